"""What the parts of this room promise one another: scorer, judge and embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from germane.exchange import Exchange
from germane.score import Score

Role = Literal["system", "user", "assistant"]
Vectors = NDArray[np.float64]
"""Shape (texts, dimensions); each row has length 1."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of what a judge is shown."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """One token that a judge wrote."""

    text: str
    likeliest: Mapping[str, float] = field(default_factory=dict)
    """How likely each of the likeliest tokens was in its place, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge said: one text per choice, and what that took."""

    texts: tuple[str, ...]
    """May be fewer than were asked for: many servers ignore ``n``. A choice that was refused is an empty text."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    """The model as the server names it."""
    cost: float | None = None
    """US dollars, where a price is known."""
    first_token: Mapping[str, float] = field(default_factory=dict)
    """How likely each of the likeliest first tokens of the first choice was, 0 to 1; empty where no server told."""
    tokens: tuple[Token, ...] = ()
    """All tokens of the first choice; empty where no server told."""


class Judge(Protocol):
    """The language model that a scorer asks."""

    @property
    def model(self) -> str:
        """Name of the model, as it was configured."""
        ...

    async def identify(self) -> str:
        """Return the model as its server names it: from the last reply, before any by a tiny request.

        Raises:
            ScoringError: it gave no answer.
        """
        ...

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        n: int = 1,
        temperature: float = 0.0,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
        top_tokens: int = 0,
    ) -> Reply:
        """Return ``n`` choices, or fewer. ``schema`` is a JSON schema that a server may or may not honour.

        With ``top_tokens`` the reply's ``first_token`` holds that many of the likeliest, and ``tokens`` those of all
        places, where the server tells them.

        Raises:
            ScoringError: one of the ``judge_...`` reasons, or ``unparsable``.
        """
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def model(self) -> str:
        """Name of the model: part of the fingerprint."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 per text, all of one dimension.

        Raises:
            ScoringError: with reason ``embedder_error``.
        """
        ...


class Scorer(Protocol):
    """Turns an exchange into a score. Call it through :func:`germane.scorers.run`, which guards it."""

    @property
    def name(self) -> str:
        """Name under which its scores are kept."""
        ...

    @property
    def fingerprint(self) -> str:
        """Short hash of all that decides its values: scores that differ in it are never averaged."""
        ...

    @property
    def requires(self) -> frozenset[str]:
        """Of ``question``, ``answer`` and ``contexts`` those without which it cannot score."""
        ...

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest value, both included. Higher is better."""
        ...

    async def score(self, exchange: Exchange) -> Score | float:
        """Return the score of an exchange, or just its value.

        Raises:
            ScoringError: there is no value, and why.
        """
        ...
