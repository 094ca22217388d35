"""What scorers that ask a judge have in common: their fingerprint, and how a value becomes a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from germane.exchange import Exchange
from germane.score import Score, band
from germane.scorers.base.fingerprint import fingerprint
from germane.scorers.base.protocols import Embedder, Judge
from germane.scorers.prompting.inputs import ANSWER_LIMIT, Material, material_of
from germane.scorers.prompting.judge_session import TOKENS, Inquiry
from germane.scorers.prompting.template import Prompt, read_prompt


class Judged(ABC):
    """A scorer that asks a judge.

    Its own ``fingerprint`` is that of its configuration. Each score carries the fingerprint of what really made it:
    the same, with the judge's model as the server named it.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    """Raised whenever the same replies would give another value."""
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self, judge: Judge, embedder: Embedder | None = None) -> None:
        self.judge = judge
        self.embedder = embedder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.judge!r})"

    @abstractmethod
    async def score(self, exchange: Exchange) -> Score:
        """Return the score of an exchange.

        Raises:
            ScoringError: there is no value, and why.
        """

    @abstractmethod
    def prompts(self) -> Sequence[Prompt]:
        """Return all prompts that it may use."""

    def parameters(self) -> Mapping[str, object]:
        """Return what else decides its values, as JSON: options, schemas, limits."""
        return {}

    @property
    def fingerprint(self) -> str:
        """Of version, parameters, prompts, and judge and embedder as configured."""
        return self.fingerprint_by(self.judge.model)

    def fingerprint_by(self, model: str, **more: object) -> str:
        """Return the fingerprint with the judge's model as its server names it, and what else turned out to count."""
        return fingerprint(
            scorer=self.name,
            version=self.version,
            parameters={**self.parameters(), **more},
            prompt="\0".join(prompt.text for prompt in self.prompts()),
            judge=model,
            embedder=self.embedder.model if self.embedder else None,
        )

    async def unasked(self, value: float, **parts: Any) -> Score:
        """Return a score that took no request; its judge is named all the same, or trends would mix two."""
        return self._score(value, await self.judge.identify(), **parts)

    def scored(self, value: float, inquiry: Inquiry, **parts: Any) -> Score:
        """Return a score with what the inquiry took.

        ``parts`` are fields of :class:`Score`; the label is the value's band unless one is given.
        """
        return self._score(
            value,
            inquiry.model,
            input_tokens=inquiry.tokens("input_tokens"),
            output_tokens=inquiry.tokens("output_tokens"),
            cost=inquiry.cost,
            **{**parts, "details": {**parts.get("details", {}), "requests": len(inquiry.replies)}},
        )

    def _score(self, value: float, model: str, **parts: Any) -> Score:
        named = {
            "label": band(value),
            "fingerprint": self.fingerprint_by(model),
            "judge": model,
            "embedder": self.embedder.model if self.embedder else None,
        }
        return Score(scorer=self.name, value=value, **{**named, **parts})


Found = TypeVar("Found")


class OneRequest(Judged, Generic[Found]):
    """A scorer with one prompt, of its own name, and one schema."""

    schema: ClassVar[Mapping[str, Any]]
    max_tokens: ClassVar[int] = TOKENS

    def __init__(self, judge: Judge, *, remove_copies: bool = True) -> None:
        """With ``remove_copies`` the judge does not see copies of the question inside the answer."""
        super().__init__(judge)
        self.remove_copies = remove_copies

    @abstractmethod
    def read(self, reply: Mapping[str, Any]) -> Found:
        """Return what the judge said.

        Raises:
            Unreadable: it is not what was asked for.
        """

    @abstractmethod
    def scored_of(self, found: Found, inquiry: Inquiry, material: Material) -> Score:
        """Return the score of what the judge said."""

    def prompts(self) -> Sequence[Prompt]:
        """Return the one prompt."""
        return (read_prompt(self.name),)

    def parameters(self) -> Mapping[str, object]:
        """Return options, schema and limits."""
        return {"remove_copies": self.remove_copies, "schema": self.schema, "answer_limit": ANSWER_LIMIT}

    async def score(self, exchange: Exchange) -> Score:
        """Return the score, with what the judge said in ``details``.

        Raises:
            ScoringError: the judge failed, or its reply could not be read twice in a row.
        """
        material = material_of(exchange, remove_copies=self.remove_copies, contexts=False)
        if material.only_copies:
            explanation = "The answer only repeats the question."
            return await self.unasked(0.0, explanation=explanation, details=material.details())
        inquiry = Inquiry(self.judge)
        found = await inquiry.ask_json(
            read_prompt(self.name), material.values(), self.schema, self.read, max_tokens=self.max_tokens
        )
        return self.scored_of(found, inquiry, material)
