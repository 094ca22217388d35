"""Has a judge write the questions that an answer would answer: N choices of one request, or one list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.base.protocols import Judge
from germane.scorers.base.question_parser import Question, read_line, read_question, read_questions
from germane.scorers.prompting.inputs import ANSWER_LIMIT
from germane.scorers.prompting.judge_session import TOKENS, TRIAL, Inquiry
from germane.scorers.prompting.template import Prompt, fence_for, read_prompt

Form = Literal["instructions", "few_shot"]
Asked = Literal["choices", "list"]

_QUESTION = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}
_VOTE = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "noncommittal": {"type": "boolean"}},
    "required": ["question", "noncommittal"],
    "additionalProperties": False,
}


def _list_of(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {"questions": {"type": "array", "items": dict(item)}},
        "required": ["questions"],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Way:
    """How a kind of judge is asked."""

    one: Prompt
    many: Prompt | None
    """For servers that ignore ``n``; None where the judge is too small to write a list."""
    temperature: float = 0.7
    max_tokens: int = TOKENS
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    """Of one choice; None where plain text is asked for."""
    list_schema: Mapping[str, Any] | None = None
    limit: int = ANSWER_LIMIT
    """Bytes of the answer that the judge is shown."""

    def parameters(self) -> dict[str, object]:
        """Return what of it decides the questions, besides the prompts."""
        return {"temperature": self.temperature, "max_tokens": self.max_tokens, "stop": self.stop, "limit": self.limit}


def way_for(form: Form, *, votes: bool) -> Way:
    """Return how to ask; with ``votes`` the judge says with each question whether the answer is noncommittal."""
    if form == "few_shot":
        return Way(read_prompt("few_shot"), None, temperature=0.3, max_tokens=32, stop=("\n",), limit=1_000)
    if votes:
        return Way(
            read_prompt("question_and_vote"),
            read_prompt("questions_and_votes"),
            schema=_VOTE,
            list_schema=_list_of(_VOTE),
        )
    return Way(read_prompt("question_of_answer"), read_prompt("questions_of_answer"), list_schema=_list_of(_QUESTION))


@dataclass
class Written:
    """What a judge wrote about one answer."""

    asked: Asked
    questions: list[Question] = field(default_factory=list)
    """One per choice that came: a choice without any question in it is an empty one."""

    @property
    def usable(self) -> list[Question]:
        """Those that are questions."""
        return [question for question in self.questions if question.is_usable]

    @property
    def noncommittal(self) -> bool:
        """Whether a strict majority of the votes holds the answer for noncommittal."""
        votes = [question.noncommittal for question in self.questions if question.noncommittal is not None]
        return 2 * sum(votes) > len(votes)


class QuestionWriter:
    """Asks a judge for ``count`` questions, and remembers whether its server takes ``n``."""

    def __init__(self, judge: Judge, way: Way, count: int) -> None:
        self.judge = judge
        self.way = way
        self.count = count
        self._ignores_n: bool | None = None

    def prompts(self) -> tuple[Prompt, ...]:
        """Return those that it may use."""
        return (self.way.one, self.way.many) if self.way.many else (self.way.one,)

    async def asked(self) -> Asked:
        """Return how this judge is asked; where nobody knows yet, a tiny request tells.

        Raises:
            ScoringError: the judge gave no reply.
        """
        if self._ignores_n is None and self.way.many and self.count > 1:
            await self._probe()
        return "list" if self._ignores_n else "choices"

    async def write(self, inquiry: Inquiry, answer: str) -> Written:
        """Return the questions. What is short is asked for once more, and never twice.

        Raises:
            ScoringError: the judge gave no reply.
        """
        many = self.way.many
        written = Written("list" if many and self._ignores_n else "choices")
        if written.asked == "choices":
            await self._ask_choices(inquiry, answer, written, self.count)
            if many and self._found_to_ignore_n(len(written.questions)):
                written = Written("list")  # a mixture of both would be a third kind of value
        short = self.count - len(written.questions)
        if short > 0 and many and written.asked == "list":
            await self._ask_list(inquiry, many, answer, written, short)
            short = self.count - len(written.questions) if len(inquiry.replies) == 1 else 0
            if short > 0:
                await self._ask_list(inquiry, many, answer, written, short)
        elif short > 0:
            await self._ask_choices(inquiry, answer, written, short)
        return written

    def _found_to_ignore_n(self, came: int) -> bool:
        """Return whether the server ignores ``n``. One of several choices may be missing for another reason."""
        if self.count > 1:
            self._ignores_n = came == 1
        return bool(self._ignores_n)

    async def _probe(self) -> None:
        try:
            reply = await self.judge.ask([TRIAL], n=2, max_tokens=TOKENS)
        except ScoringError as error:
            if error.reason is not Reason.UNPARSABLE:  # it is there, and says nothing
                raise
        else:
            self._ignores_n = len(reply.texts) == 1

    async def _ask_choices(self, inquiry: Inquiry, answer: str, written: Written, count: int) -> None:
        messages = self.way.one.fill(answer=answer, fence=fence_for(answer))
        reply = await inquiry.ask(messages, n=count, schema=self.way.schema, **self._options())
        read = read_line if self.way.schema is None else read_question
        written.questions += [read(text) for text in reply.texts[:count]]

    async def _ask_list(self, inquiry: Inquiry, prompt: Prompt, answer: str, written: Written, count: int) -> None:
        messages = prompt.fill(answer=answer, fence=fence_for(answer), count=str(count))
        reply = await inquiry.ask(messages, schema=self.way.list_schema, **self._options())
        written.questions += read_questions(reply.texts[0])[:count]

    def _options(self) -> dict[str, Any]:
        return {"temperature": self.way.temperature, "max_tokens": self.way.max_tokens, "stop": self.way.stop}
