"""Protocols for scorers, judges and embedders, and the data that they exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from germane.exchange import Exchange, Message
from germane.score import Score

if TYPE_CHECKING:
    from germane.settings import Settings

MAX_REPLY_TOKENS = 800
"""Default token limit for one judge reply. It is generous, because reasoning models spend part of it on reasoning."""
MAX_TOTAL_PROBABILITY = 1.02
"""Maximum total probability of alternative tokens. It exceeds 1 to allow for rounded log probabilities."""
CHECK_MESSAGE = Message("user", "Reply with: ok")
"""A minimal request that shows whether the judge is reachable, which model replies, and what the server supports."""

Vectors = NDArray[np.float64]
"""An array of shape (texts, dimensions) with unit-length rows."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a judge's reply."""

    text: str
    alternatives: Mapping[str, float] = field(default_factory=dict)
    """The most likely tokens at this position, and their probabilities from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A judge's reply: one text per choice, token counts and cost."""

    texts: tuple[str, ...]
    """The text of each choice; empty for a refusal. There may be too few texts, because many servers ignore ``n``."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    """The model name that the server reported."""
    cost: float | None = None
    """Cost in US dollars; None if no price is known."""
    first_token: Mapping[str, float] = field(default_factory=dict)
    """The most likely first tokens of the first choice, and their probabilities from 0 to 1. Empty without logprobs."""
    tokens: tuple[Token, ...] = ()
    """All tokens of the first choice. Empty without logprobs."""
    cut_off: frozenset[int] = frozenset()
    """The indexes of the texts that were cut off at the token limit."""


class JudgeOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`Judge.ask`."""

    n: int
    """The number of choices to request."""
    temperature: float
    """The sampling temperature."""
    max_tokens: int
    """The token limit for each choice."""
    stop: Sequence[str]
    """Stop sequences. Each of them ends a choice."""
    schema: Mapping[str, Any] | None
    """A JSON schema for the reply. Servers may ignore it."""
    top_tokens: int
    """The number of most likely tokens to return per position, if the server supports logprobs."""


DEFAULT_JUDGE_OPTIONS: JudgeOptions = {
    "n": 1, "temperature": 0.0, "max_tokens": 512, "stop": (), "schema": None, "top_tokens": 0,
}  # fmt: skip
"""The default values of the options."""


class Judge(Protocol):
    """The language model that scorers query."""

    @property
    def model(self) -> str:
        """The configured model name."""

    async def identify(self) -> str:
        """Return the model name that the server reports. If there has been no reply yet, send a minimal request first.

        Raises:
            ScoringError: the judge did not reply.
        """

    async def ask(self, messages: Sequence[Message], **options: Unpack[JudgeOptions]) -> Reply:
        """Send a conversation to the model, and return its reply with up to ``n`` choices.

        Raises:
            ScoringError: the request failed. The reason is one of the ``judge_...`` reasons, or ``unparsable``.
        """


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def model(self) -> str:
        """The model name, which is part of fingerprints."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array with one unit-length row per text.

        Raises:
            ScoringError: the embedder failed. The reason is ``embedder_error``.
        """


class Scorer(Protocol):
    """Turns an exchange into a score.

    Call scorers through :func:`germane.scorers.run_scorer`, which handles their errors.
    """

    @property
    def name(self) -> str:
        """The name under which the scores are stored."""

    @property
    def fingerprint(self) -> str:
        """A short hash of all inputs that determine the values.

        Scores with different fingerprints are never averaged together.
        """

    @property
    def requires(self) -> frozenset[str]:
        """The inputs that the scorer requires, out of ``question``, ``answer`` and ``contexts``."""

    @property
    def range(self) -> tuple[float, float]:
        """The minimum and maximum value, inclusive. Higher is better."""

    async def score(self, exchange: Exchange) -> Score | float:
        """Return an exchange's score, as a :class:`Score` or as a number.

        Raises:
            ScoringError: the exchange cannot be scored. The error states the reason.
        """


class ScorerModels(Protocol):
    """The settings, shared models and other scorers that a built-in scorer's ``build`` function may use."""

    settings: Settings

    @property
    def judge(self) -> Judge:
        """The configured judge, shared by all scorers."""

    @property
    def embedder(self) -> Embedder:
        """The configured embedder, shared by all scorers."""

    def get_scorer(self, name: str) -> Scorer:
        """Return the scorer with this name.

        Raises:
            SettingsError: the scorer is unknown or cannot be built.
        """
