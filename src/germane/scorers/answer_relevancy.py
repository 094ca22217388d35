"""Does the answer answer the question? A judge writes the questions that it would answer; how near is the one asked?"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Reason, Score, band
from germane.scorers.batcher import Batcher
from germane.scorers.copies import without_copies
from germane.scorers.fingerprint import fingerprint
from germane.scorers.noncommittal import RULES, find_noncommittal
from germane.scorers.prompt import Prompt, read_prompt
from germane.scorers.protocols import Embedder, Judge, Message, Reply, Vectors
from germane.scorers.questions import Question, read_questions
from germane.scorers.text import clean, cut, shorten
from germane.scorers.vectors import mean_pairwise

Form = Literal["instructions", "few_shot"]

VERSION = "1"
NONCOMMITTAL = "noncommittal"
EMBEDDED_LIMIT = 8_000
"""Bytes of one text that go to the embedder."""
_VOTE = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "noncommittal": {"type": "boolean"}},
    "required": ["question", "noncommittal"],
    "additionalProperties": False,
}
_VOTES = {
    "type": "object",
    "properties": {"questions": {"type": "array", "items": _VOTE}},
    "required": ["questions"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class _Way:
    """How a kind of judge is asked."""

    one: Prompt
    many: Prompt | None
    """For servers that ignore ``n``; None where the judge is too small to write a list."""
    temperature: float
    max_tokens: int
    stop: tuple[str, ...]
    schema: bool
    limit: int
    """Bytes of the answer that the judge is shown."""

    def parameters(self) -> dict[str, object]:
        return {"temperature": self.temperature, "max_tokens": self.max_tokens, "stop": self.stop, "limit": self.limit}


def _way(form: Form) -> _Way:
    if form == "few_shot":
        return _Way(
            one=read_prompt("few_shot"), many=None, temperature=0.3, max_tokens=32, stop=("\n",), schema=False,
            limit=1_000,
        )  # fmt: skip
    return _Way(
        one=read_prompt("one_question"), many=read_prompt("list_of_questions"), temperature=0.7, max_tokens=800,
        stop=(), schema=True, limit=16_000,
    )  # fmt: skip


@dataclass
class _Asked:
    """What came of asking the judge about one answer."""

    questions: list[Question]
    """One per choice that came: a choice without any question in it is an empty one."""
    replies: list[Reply]
    asked: Literal["choices", "list"]

    @property
    def usable(self) -> list[Question]:
        return [question for question in self.questions if question.is_usable]

    @property
    def noncommittal(self) -> bool:
        votes = [question.noncommittal for question in self.questions if question.noncommittal is not None]
        return 2 * sum(votes) > len(votes)

    def tokens(self, kind: Literal["input_tokens", "output_tokens"]) -> int | None:
        counts = [count for reply in self.replies if (count := getattr(reply, kind)) is not None]
        return sum(counts) if counts else None


class AnswerRelevancy:
    """Mean cosine similarity of the question asked to N questions that a judge wrote from the answer alone.

    From -1 to 1; in practice from about 0 for another topic to 1. It says whether the answer addresses the question,
    not whether it is true or complete. An answer that does not commit itself ("I don't know", a question back) is
    found by rules, before any judge is asked, and gets 0 and the label ``noncommittal``.
    """

    name = "answer_relevancy"
    requires = frozenset({"question", "answer"})
    range = (-1.0, 1.0)

    def __init__(
        self,
        judge: Judge,
        embedder: Embedder | Batcher,
        *,
        questions: int = 3,
        form: Form = "instructions",
        noncommittal_votes: bool = False,
    ) -> None:
        """Ask for ``questions`` questions (1 or more).

        ``form``: ``few_shot`` for the smallest models, which take examples and no instructions. With
        ``noncommittal_votes`` a strict majority of the judge's votes, too, makes a score noncommittal.
        """
        if questions < 1:
            raise ValueError(f"questions must be 1 or more, not {questions}")
        self.judge = judge
        self.embedder = embedder if isinstance(embedder, Batcher) else Batcher(embedder)
        self.questions = questions
        self.form = form
        self.noncommittal_votes = noncommittal_votes
        self._way = _way(form)
        self._ignores_n = False

    def __repr__(self) -> str:
        return f"AnswerRelevancy({self.judge!r}, questions={self.questions}, form={self.form!r})"

    @property
    def fingerprint(self) -> str:
        """Of version, N, prompts, rules, judge and embedder."""
        way = self._way
        return fingerprint(
            scorer=self.name,
            version=VERSION,
            parameters={
                **way.parameters(),
                "questions": self.questions,
                "form": self.form,
                "noncommittal": RULES,
                "noncommittal_votes": self.noncommittal_votes,
                "copies_removed": True,
            },
            prompt=way.one.text + (way.many.text if way.many else ""),
            judge=self.judge.model,
            embedder=self.embedder.model,
        )

    async def score(self, exchange: Exchange) -> Score:
        """Return the score; ``details`` holds every question with its similarity, and how many were asked for.

        Raises:
            ScoringError: the judge or the embedder failed, or no reply held a usable question.
        """
        question, answer = clean(exchange.question or ""), clean(exchange.answer or "")
        rest = without_copies(answer, question)
        if rest != answer and not any(character.isalnum() for character in rest):
            return self._value(0.0, label=band(0.0), explanation="The answer only repeats the question.")
        found = find_noncommittal(rest)
        if found is not None:
            return self._value(
                0.0, label=NONCOMMITTAL, explanation=f"The answer does not commit itself: {found.rule}.",
                details={"noncommittal": {"rule": found.rule, "text": shorten(found.text, 200)}},
            )  # fmt: skip
        shown = cut(rest, self._way.limit)
        asked = await self._ask(shown)
        cut_off = {} if shown == rest else {"cut": {"shown": len(shown), "of": len(rest)}}
        return await self._judged(question, asked, cut_off)

    async def _judged(self, question: str, asked: _Asked, cut_off: Mapping[str, Any]) -> Score:
        usable = asked.usable
        if self.noncommittal_votes and asked.noncommittal:
            details = {**self._details(asked, None), **cut_off}
            return self._value(
                0.0, label=NONCOMMITTAL, explanation="The judge holds the answer for noncommittal.", details=details,
                asked=asked,
            )  # fmt: skip
        if not usable:
            raise ScoringError(Reason.NO_USABLE_QUESTION, f"of {len(asked.questions)} texts none is a usable question")
        texts = [cut(text, EMBEDDED_LIMIT) for text in (question, *(each.text for each in usable))]
        rows = await self.embedder.embed(texts, keep=1)
        value = float((rows[1:] @ rows[0]).mean())
        details = {**self._details(asked, rows), **cut_off}
        return self._value(value, label=band(value), details=details, asked=asked)

    async def _ask(self, answer: str) -> _Asked:
        """Ask for N choices; of a server that ignores ``n``, for a list. What is short is asked for once more."""
        many = self._way.many
        if many is not None and self._ignores_n:
            asked = _Asked([], [], "list")
            await self._ask_list(many, answer, asked, self.questions)
        else:
            asked = _Asked([], [], "choices")
            await self._ask_choices(answer, asked, self.questions)
        short = self.questions - len(asked.questions)
        if short <= 0:
            return asked
        if many is None:
            await self._ask_choices(answer, asked, short)
        else:
            self._ignores_n = self._ignores_n or len(asked.questions) == 1  # a filter may swallow one of several
            await self._ask_list(many, answer, asked, short)
        return asked

    async def _ask_choices(self, answer: str, asked: _Asked, count: int) -> None:
        schema = _VOTE if self._way.schema else None
        reply = await self._send(self._way.one.fill(answer=answer, fence=_fence()), count, schema)
        read = [read_questions(text) for text in reply.texts[:count]]
        asked.replies.append(reply)
        asked.questions += [found[0] if found else Question("") for found in read]

    async def _ask_list(self, prompt: Prompt, answer: str, asked: _Asked, count: int) -> None:
        messages = prompt.fill(answer=answer, fence=_fence(), count=str(count))
        reply = await self._send(messages, 1, _VOTES)
        asked.replies.append(reply)
        asked.questions += read_questions(reply.texts[0])[:count]

    async def _send(self, messages: Sequence[Message], n: int, schema: Mapping[str, Any] | None) -> Reply:
        way = self._way
        return await self.judge.ask(
            messages, n=n, temperature=way.temperature, max_tokens=way.max_tokens, stop=way.stop, schema=schema
        )

    def _details(self, asked: _Asked, rows: Vectors | None) -> dict[str, Any]:
        similarities = iter(() if rows is None else (rows[1:] @ rows[0]).tolist())
        return {
            "questions": [
                {
                    "text": shorten(question.text, 500),
                    "similarity": next(similarities, None) if question.is_usable else None,
                    "noncommittal": question.noncommittal,
                }
                for question in asked.questions
            ],
            "requested": self.questions,
            "usable": len(asked.usable),
            "diversity": None if rows is None else mean_pairwise(rows[1:]),
            "asked": asked.asked,
            "requests": len(asked.replies),
            "judge": asked.replies[-1].model,
        }

    def _value(
        self,
        value: float,
        *,
        label: str,
        explanation: str | None = None,
        details: Mapping[str, Any] | None = None,
        asked: _Asked | None = None,
    ) -> Score:
        return Score(
            scorer=self.name,
            fingerprint=self.fingerprint,
            value=value,
            label=label,
            explanation=explanation,
            details=details or {},
            judge=self.judge.model,
            embedder=self.embedder.model,
            input_tokens=asked.tokens("input_tokens") if asked else None,
            output_tokens=asked.tokens("output_tokens") if asked else None,
        )


def _fence() -> str:
    """Return a mark that the answer's author could not know."""
    return secrets.token_hex(8)
