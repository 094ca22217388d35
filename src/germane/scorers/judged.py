"""What scorers that ask a judge have in common: their fingerprint, and how a value becomes a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from germane.exchange import Exchange
from germane.score import Score, band
from germane.scorers.fingerprint import fingerprint
from germane.scorers.inquiry import Inquiry
from germane.scorers.prompt import Prompt
from germane.scorers.protocols import Embedder, Judge


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
