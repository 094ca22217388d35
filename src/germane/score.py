"""The other noun: a value, or an honest absence of one with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

State = Literal["scored", "skipped", "failed"]

LOW_SCORE = 0.5
"""Edge of the lowest band: a score under this is low."""

BANDS = ((0.9, "relevant"), (0.7, "mostly_relevant"), (LOW_SCORE, "partly_relevant"), (-math.inf, "irrelevant"))
"""Lower edge and label of each band, best first."""
LOWEST_BAND = BANDS[-1][1]
NONCOMMITTAL = "noncommittal"
"""The label of an answer that does not answer the question."""
_BAND_LABELS = frozenset(label for _, label in BANDS)


class UnscoredReason(StrEnum):
    """Why there is no value: a closed list."""

    NOT_SAMPLED = "not_sampled"
    FILTERED = "filtered"
    BUDGET = "budget"
    MISSING_INPUT = "missing_input"
    QUEUE_FULL = "queue_full"
    EXCHANGE_LIMIT = "exchange_limit"
    EXPIRED = "expired"

    JUDGE_TIMEOUT = "judge_timeout"
    JUDGE_RATE_LIMITED = "judge_rate_limited"
    JUDGE_REFUSED = "judge_refused"
    JUDGE_UNREACHABLE = "judge_unreachable"
    JUDGE_REJECTED = "judge_rejected"
    UNPARSABLE = "unparsable"
    NO_USABLE_QUESTION = "no_usable_question"
    EMBEDDER_ERROR = "embedder_error"
    OUT_OF_RANGE = "out_of_range"
    SCORER_ERROR = "scorer_error"

    @property
    def state(self) -> Literal["skipped", "failed"]:
        """``skipped``: nobody tried. ``failed``: somebody tried and got no value."""
        return "skipped" if self in _SKIPPED else "failed"

    @property
    def is_transient(self) -> bool:
        """Whether the same request may well succeed later."""
        return self in _TRANSIENT


_SKIPPED = frozenset(
    {
        UnscoredReason.NOT_SAMPLED,
        UnscoredReason.FILTERED,
        UnscoredReason.BUDGET,
        UnscoredReason.MISSING_INPUT,
        UnscoredReason.QUEUE_FULL,
        UnscoredReason.EXCHANGE_LIMIT,
        UnscoredReason.EXPIRED,
    }
)
_TRANSIENT = frozenset(
    {UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.JUDGE_RATE_LIMITED, UnscoredReason.JUDGE_UNREACHABLE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What one scorer says of one exchange: a finite value, or the reason why there is none.

    Raises:
        ValueError: neither or both of ``value`` and ``reason`` are given, or the value is not finite.
    """

    scorer: str = ""
    """The scorer's name. A scorer that leaves out name or fingerprint gets its own filled in."""
    fingerprint: str = ""
    """Short hash of scorer, prompt, judge, embedder and parameters. Scores that differ in it are never averaged."""
    value: float | None = None
    reason: UnscoredReason | None = None
    label: str | None = None
    explanation: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the value was made from; JSON."""
    judge: str | None = None
    embedder: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """US dollars, where a price is known."""
    latency: float | None = None
    """Seconds."""
    scored_at: datetime | None = None
    """UTC, with its zone."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError(f"a score of {self.scorer} needs either a value or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a score of {self.scorer} must be finite, not {self.value}")

    @property
    def is_low(self) -> bool:
        """Whether it lies in the lowest band: by its label where that is a band's, for bands may be calibrated."""
        if self.label in _BAND_LABELS:
            return self.label == LOWEST_BAND
        return self.value is not None and self.value < LOW_SCORE

    @property
    def state(self) -> State:
        """``scored`` with a value, else what the reason says."""
        return "scored" if self.reason is None else self.reason.state


def band_of(value: float) -> str:
    """Return the label of the band that a value lies in: relevant, mostly_relevant, partly_relevant or irrelevant."""
    return next(label for edge, label in BANDS if value >= edge)
