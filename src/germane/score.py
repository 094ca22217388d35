"""A score: the value that a scorer computed for an exchange, or the reason there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

State = Literal["scored", "skipped", "failed"]

LOW_SCORE = 0.5
"""Scores below this value are low. It is the upper edge of the lowest band."""

MIN_SAMPLES = 20
"""Minimum number of scores for which a mean is shown or compared."""

BANDS = ((0.9, "relevant"), (0.7, "mostly_relevant"), (LOW_SCORE, "partly_relevant"), (-math.inf, "irrelevant"))
"""Lower edge and label of each band, from the best to the worst."""
LOWEST_BAND = BANDS[-1][1]
"""Label of low scores."""
NONCOMMITTAL = "noncommittal"
"""Label for an answer that evades or refuses the question."""
REFUSAL_SCORERS = frozenset({"answer_relevancy", "direct_relevancy", "guarded_relevancy", "noncommittal"})
"""Built-in scorers that check whether an answer is noncommittal."""
COSINE_SCORERS = ("answer_relevancy", "question_answer_similarity", "context_similarity")
"""Scorers whose values are cosines, or means of cosines. Their labels come from calibrated values."""
UNCALIBRATED = "uncalibrated"
"""Placeholder for a missing label, used if the embedder has not been calibrated."""
GRADES = (*(label for _, label in BANDS), UNCALIBRATED)
"""Labels that determine whether a score is low. For a score with any other label, the value determines it."""
_UNCALIBRATED_MEANING = "No label, because the embedder is not calibrated; run germane calibrate --save"
MEANINGS = {
    "relevant": "The answer addresses the question",
    "mostly_relevant": "The answer mostly addresses the question",
    "partly_relevant": "The answer only partly addresses the question",
    "irrelevant": "The answer does not address the question",
    UNCALIBRATED: _UNCALIBRATED_MEANING,
}
"""A sentence for each label in :data:`GRADES`, used if a judge rated the answer or its questions."""
UNRATED_MEANINGS = {
    "relevant": "The answer is very close to the question in meaning, but no judge has rated it",
    "mostly_relevant": "The answer is close to the question in meaning, but no judge has rated it",
    "partly_relevant": "The answer is on the topic of the question, but no judge has rated whether it addresses it",
    "irrelevant": "The answer is no closer to the question than answers to other questions; no judge has rated it",
    UNCALIBRATED: _UNCALIBRATED_MEANING,
}
"""A sentence for each label that is based on similarities alone. Similarities show whether an answer is about the same
topic as the question, but not whether it answers it."""


class UnscoredReason(StrEnum):
    """The reason a score has no value. Custom scorers cannot add reasons."""

    NOT_SAMPLED = "not_sampled"
    FILTERED = "filtered"
    BUDGET = "budget"
    MISSING_INPUT = "missing_input"
    QUEUE_FULL = "queue_full"
    EXCHANGE_LIMIT = "exchange_limit"
    EXPIRED = "expired"
    UNREADABLE = "unreadable"

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
        """``skipped`` if the exchange was not scored, ``failed`` if an attempt to score it had no result."""
        return "skipped" if self in _SKIPPED else "failed"

    @property
    def is_transient(self) -> bool:
        """Whether retrying the same request may succeed."""
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
        UnscoredReason.UNREADABLE,
    }
)
_TRANSIENT = frozenset(
    {UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.JUDGE_RATE_LIMITED, UnscoredReason.JUDGE_UNREACHABLE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One scorer's result for one exchange: a finite value, or the reason there is none.

    Raises:
        ValueError: Neither or both of ``value`` and ``reason`` are given, or the value is not finite.
    """

    scorer: str = ""
    """Name of the scorer. If a scorer returns a score without a name or fingerprint, germane fills them in."""
    fingerprint: str = ""
    """Short hash of scorer, prompt, judge, embedder and parameters. Scores with different fingerprints are never
    averaged together."""
    value: float | None = None
    reason: UnscoredReason | None = None
    label: str | None = None
    """A one-word summary, such as a band."""
    explanation: str | None = None
    """Why the scorer chose this value, or details of the failure."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Intermediate results, as plain JSON."""
    judge: str | None = None
    """Name of the judge model."""
    embedder: str | None = None
    """Name of the embedding model."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """US dollars. None if a model's price is unknown."""
    latency: float | None = None
    """Duration of scoring in seconds."""
    scored_at: datetime | None = None
    """UTC, timezone-aware."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError(f"a score by {self.scorer} needs either a value or a reason, not both")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a score by {self.scorer} must be finite, not {self.value}")

    def __str__(self) -> str:
        """Return the score as text for people, such as ``answer_relevancy: 0.71``, or its reason."""
        value = f"{self.state} ({self.reason})" if self.value is None else describe_value(self.scorer, self.value)
        return f"{self.scorer}: {value}"

    @property
    def is_low(self) -> bool:
        """Whether the score is low.

        This depends on the band, because bands are calibrated, or on the value if there is no band. Uncalibrated scores
        are never low.
        """
        return self.value is not None and is_low_value(self.value, self.label)

    @property
    def state(self) -> State:
        """``scored`` if the score has a value, otherwise ``skipped`` or ``failed``, depending on the reason."""
        return "scored" if self.reason is None else self.reason.state


def describe_value(scorer: str, value: float, digits: int = 2) -> str:
    """Return a value or a mean for people: a number, or words for ``noncommittal``, whose 1 would read like a yes."""
    if scorer != NONCOMMITTAL:
        return f"{value:z.{digits}f}"
    return {1.0: "no refusal", 0.0: "refusal"}.get(value, f"{1 - value:.0%} refusals")


def is_low_value(value: float, label: str | None) -> bool:
    """Return whether a value with a label is low. See :attr:`Score.is_low`."""
    return label == LOWEST_BAND if label in GRADES else value < LOW_SCORE


def band_of(value: float) -> str:
    """Return the band of a value: ``relevant``, ``mostly_relevant``, ``partly_relevant`` or ``irrelevant``."""
    return next(label for edge, label in BANDS if value >= edge)
