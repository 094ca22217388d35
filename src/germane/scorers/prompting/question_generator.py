"""Generation of questions that an answer would answer, either as N choices of one request or as one list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.protocols import CHECK_MESSAGE, MAX_REPLY_TOKENS, Judge, JudgeOptions
from germane.scorers.prompting.judge_scorer import JudgeSession
from germane.scorers.prompting.prompt import MAX_ANSWER_BYTES, Prompt, delimiter_for, load_prompt
from germane.scorers.prompting.question_parser import (
    GeneratedQuestion,
    parse_question,
    parse_question_line,
    parse_questions,
)

PromptStyle = Literal["instructions", "few_shot"]
RequestKind = Literal["choices", "list"]

_QUESTION_SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}
_VOTE_SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "noncommittal": {"type": "boolean"}},
    "required": ["question", "noncommittal"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class GenerationMethod:
    """The prompts and parameters for generating questions with a particular kind of judge."""

    one: Prompt
    """The prompt for one question."""
    many: Prompt | None
    """The prompt for a list, for servers that ignore ``n``; None if the judge is too small to write a list."""
    temperature: float = 0.7
    max_tokens: int = MAX_REPLY_TOKENS
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    """The JSON schema for one choice; None for plain text."""
    list_schema: Mapping[str, Any] | None = None
    max_answer_bytes: int = MAX_ANSWER_BYTES

    def parameters(self) -> dict[str, object]:
        """Return the parameters, other than the prompts, that affect the questions, as part of the fingerprint."""
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "stop": self.stop,
            "limit": self.max_answer_bytes,
        }


def generation_method(style: PromptStyle, *, votes: bool) -> GenerationMethod:
    """Return the method for a prompt style.

    With ``votes``, the judge also votes on whether the answer is noncommittal.
    """
    if style == "few_shot":
        return GenerationMethod(
            load_prompt("few_shot"), None, temperature=0.3, max_tokens=32, stop=("\n",), max_answer_bytes=1_000
        )

    def list_of(item: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {"questions": {"type": "array", "items": dict(item)}},
            "required": ["questions"],
            "additionalProperties": False,
        }

    if votes:
        return GenerationMethod(
            load_prompt("question_and_vote"),
            load_prompt("questions_and_votes"),
            schema=_VOTE_SCHEMA,
            list_schema=list_of(_VOTE_SCHEMA),
        )
    return GenerationMethod(
        load_prompt("question_of_answer"),
        load_prompt("questions_of_answer"),
        schema=_QUESTION_SCHEMA,
        list_schema=list_of(_QUESTION_SCHEMA),
    )


@dataclass
class GeneratedQuestions:
    """The questions that a judge generated for one answer."""

    request_kind: RequestKind
    questions: list[GeneratedQuestion] = field(default_factory=list)
    """One question per choice. Its text is empty if the choice did not contain a question."""

    @property
    def usable(self) -> list[GeneratedQuestion]:
        """The generated texts that are usable questions."""
        return [question for question in self.questions if question.is_usable]

    @property
    def noncommittal(self) -> bool:
        """Whether a strict majority votes that the answer is noncommittal."""
        votes = [question.noncommittal for question in self.questions if question.noncommittal is not None]
        return 2 * sum(votes) > len(votes)


class QuestionGenerator:
    """Generates ``count`` questions with a judge, and remembers whether the judge's server supports ``n``."""

    def __init__(self, judge: Judge, method: GenerationMethod, count: int) -> None:
        self.judge = judge
        self.method = method
        self.count = count
        self._ignores_n: bool | None = None

    def prompts(self) -> tuple[Prompt, ...]:
        """Return the prompts that may be used."""
        return (self.method.one, self.method.many) if self.method.many else (self.method.one,)

    async def request_kind(self) -> RequestKind:
        """Return the kind of request that this judge needs. If it is unknown, send a minimal request to find out."""
        if self._ignores_n is None and self.method.many and self.count > 1:
            try:
                reply = await self.judge.ask([CHECK_MESSAGE], n=2, max_tokens=MAX_REPLY_TOKENS)
            except ScoringError as error:
                if error.reason is not UnscoredReason.UNPARSABLE:  # the judge is reachable, but the reply is empty
                    raise
            else:
                self._ignores_n = len(reply.texts) == 1
        return "list" if self._ignores_n else "choices"

    async def generate(self, session: JudgeSession, answer: str, asked: str = "") -> GeneratedQuestions:
        """Generate the questions. Missing questions are requested at most once more.

        The judge does not see ``asked``, the user's question. It only helps to recognize texts that are not questions.

        Raises:
            ScoringError: the judge did not reply.
        """
        list_prompt = self.method.many
        generated = GeneratedQuestions("list" if list_prompt and self._ignores_n else "choices")
        for is_first_request in (True, False):
            missing = self.count - len(generated.questions)
            if missing <= 0:
                break
            if list_prompt and generated.request_kind == "list":
                await self._ask_list(session, list_prompt, answer, generated, missing)
                continue
            await self._ask_choices(session, answer, generated, missing)
            if list_prompt and is_first_request and self.count > 1:
                self._ignores_n = len(generated.questions) == 1  # two or more choices show that it supports n
                if self._ignores_n:
                    generated = GeneratedQuestions("list")  # mixed kinds would make values incomparable
        generated.questions = [replace(question, answer=answer, asked=asked) for question in generated.questions]
        return generated

    async def _ask_choices(self, session: JudgeSession, answer: str, generated: GeneratedQuestions, count: int) -> None:
        messages = self.method.one.fill(answer=answer, fence=delimiter_for(answer))
        reply = await session.ask(messages, **self._options(self.method.schema, n=count))
        # Servers that do not support JSON schemas reply with a line of text, unless the prompt also asks for JSON.
        parse = parse_question if self.method.schema is _VOTE_SCHEMA else parse_question_line
        generated.questions += [
            parse(text, is_cut_off=index in reply.cut_off) for index, text in enumerate(reply.texts[:count])
        ]

    async def _ask_list(
        self, session: JudgeSession, prompt: Prompt, answer: str, generated: GeneratedQuestions, count: int
    ) -> None:
        messages = prompt.fill(answer=answer, fence=delimiter_for(answer), count=str(count))
        reply = await session.ask(messages, **self._options(self.method.list_schema))
        generated.questions += parse_questions(reply.texts[0], is_cut_off=0 in reply.cut_off)[:count]

    def _options(self, schema: Mapping[str, Any] | None, *, n: int = 1) -> JudgeOptions:
        method = self.method
        return {
            "n": n,
            "temperature": method.temperature,
            "max_tokens": method.max_tokens,
            "stop": method.stop,
            "schema": schema,
        }
