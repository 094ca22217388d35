"""Composite scores, which are weighted combinations of other scorers' scores. The scorers run concurrently."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import UNCALIBRATED, Score, UnscoredReason, band_of
from germane.scorers.base.fingerprint import fingerprint, fingerprint_name
from germane.scorers.base.protocols import Scorer
from germane.scorers.base.run import is_rejected, is_retryable, is_unanswered, run_scorer
from germane.scorers.base.text import shorten

MAX_EXPLANATION_CHARACTERS = 200
"""Maximum length of a part's explanation; longer ones are truncated."""
MAX_WAITING_EXCHANGES = 1_000
"""Maximum number of exchanges whose finished parts are cached while other parts are retried. The oldest are evicted
first.
"""

MissingPolicy = Literal["renormalize", "fail"]
"""What to do if a part has no value: renormalize the remaining weights, or return no value."""


def validate_weights(weights: object, defaults: Mapping[str, float]) -> dict[str, float]:
    """Return the positive weights, in the order of ``defaults``. If ``weights`` is None, the defaults are used.

    Raises:
        TypeError: the weights do not map names to numbers.
        ValueError: a name is unknown, a weight is negative or not finite, or all weights are 0.
    """
    weights = defaults if weights is None else weights
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights must be a mapping of part names to numbers, not {weights!r:.80}")
    if unknown := [str(name) for name in weights if name not in defaults]:
        raise ValueError(f"weights: unknown part {', '.join(unknown)}; the parts are {', '.join(defaults)}")
    for name, weight in weights.items():
        if not isinstance(weight, Real) or isinstance(weight, bool):
            raise TypeError(f"weights: {name} must be a number, not {weight!r:.80}")
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(f"weights: {name} must be 0 or more, not {weight}")
    positive = {name: float(weights[name]) for name in defaults if weights.get(name)}
    if not positive:
        raise ValueError("weights: at least one must be greater than 0")
    return positive


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One scorer's contribution to a composite score."""

    name: str
    score: Score
    weight: float

    @property
    def value(self) -> float | None:
        """The part's value, clipped to [0, 1] because cosines can be negative; None if there is none."""
        return None if self.score.value is None else min(max(self.score.value, 0.0), 1.0)

    @property
    def calibrated(self) -> float | None:
        """The value that determines the label: the calibrated value if there is one, and otherwise :attr:`value`."""
        calibrated = self.score.details.get("calibrated")
        return calibrated if isinstance(calibrated, float) and self.value is not None else self.value

    @property
    def may_succeed_later(self) -> bool:
        """Whether the part has no value yet, but may get one."""
        score = self.score
        return is_rejected(score) or is_retryable(score) or score.reason is UnscoredReason.BUDGET

    def details(self) -> dict[str, object]:
        """Return the part as a JSON-serializable dict, with its unclipped value."""
        score = self.score
        fields = {
            "value": score.value,
            "weight": self.weight,
            "label": score.label,
            "reason": None if score.reason is None else str(score.reason),
            "explanation": score.explanation and shorten(score.explanation, MAX_EXPLANATION_CHARACTERS),
            "fingerprint": score.fingerprint,
            "cut": score.details.get("cut"),
        }
        return {name: value for name, value in fields.items() if value is not None or name == "value"}


class CompositeScorer(ABC):
    """A base class for scorers that combine other scorers' scores into a value from 0 to 1.

    An exchange's finished parts are cached while others are retried.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    requires: ClassVar[frozenset[str]]
    range = (0.0, 1.0)

    def __init__(self, scorers: Mapping[str, Scorer], weights: Mapping[str, float], missing: MissingPolicy) -> None:
        """Select the scorers that have a weight. See :data:`MissingPolicy` for ``missing``.

        Raises:
            ValueError: ``missing`` is not a known policy, or there is no scorer for a weight.
        """
        if missing not in get_args(MissingPolicy):
            raise ValueError(f"missing must be {' or '.join(get_args(MissingPolicy))}, not {missing!r}")
        if absent := [name for name in weights if name not in scorers]:
            raise ValueError(f"there is no scorer for {', '.join(absent)}")
        self.scorers = {name: scorers[name] for name in weights}
        self.weights = dict(weights)
        self.missing: MissingPolicy = missing
        self._finished: OrderedDict[Hashable, dict[str, Score]] = OrderedDict()

    @abstractmethod
    async def score(self, exchange: Exchange) -> Score:
        """Score an exchange. ``details`` contains each part's value, weight and reason, and the ``missing`` parts.

        Raises:
            ScoringError: no part has a value, a part is missing and ``missing`` is ``"fail"``, or a part may succeed
                later. The error has the reason of the first such part.
        """

    def parameters(self) -> dict[str, object]:
        """Return the options that affect the value. They become part of the fingerprint.

        ``missing`` is not included, because it determines only whether the score has a value, not the value itself.
        """
        return {"weights": self.weights}

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the version, the options and the configured parts."""
        return self.fingerprint_for({name: scorer.fingerprint for name, scorer in self.scorers.items()})

    def fingerprint_for(self, parts: Mapping[str, str | None]) -> str:
        """Return the score's fingerprint, based on the fingerprints of its parts. A missing part has None."""
        parameters = {**self.parameters(), "parts": dict(parts)}
        return fingerprint(scorer=fingerprint_name(self), version=self.version, parameters=parameters)

    async def score_parts(self, exchange: Exchange) -> list[ScorePart]:
        """Score all parts, and return them. If the exchange is retried, only unfinished scorers run again.

        Raises:
            ScoringError: a part may still succeed on a retry, or a part is missing under the ``fail`` policy. The
                error has the reason of the first such part.
        """
        # The key includes all fields that scorers may use, because data set rows can have the same id.
        key = (exchange.id, exchange.question, exchange.answer, exchange.contexts, exchange.history)
        finished = self._finished.get(key, {})
        unfinished = {name: scorer for name, scorer in self.scorers.items() if name not in finished}
        new = await asyncio.gather(*(run_scorer(scorer, exchange) for scorer in unfinished.values()))
        scores = {**finished, **dict(zip(unfinished, new, strict=True))}
        parts = [ScorePart(name, scores[name], weight) for name, weight in self.weights.items()]

        finished = {part.name: part.score for part in parts if not part.may_succeed_later}
        self._finished.pop(key, None)
        if len(finished) < len(self.scorers):
            self._finished[key] = finished
        while len(self._finished) > MAX_WAITING_EXCHANGES:
            self._finished.popitem(last=False)

        raise_if_incomplete(parts)
        if self.missing == "fail" and (missing := missing_parts(parts)):
            raise missing_error(missing)
        return parts

    def build_score(
        self, parts: Sequence[ScorePart], *, value: float, label: str, explanation: str, details: Mapping[str, object]
    ) -> Score:
        """Build a score with the parts' details and usage. If parts are missing, the label says so."""
        missing = missing_parts(parts)
        fingerprints = {part.name: None if part.value is None else part.score.fingerprint for part in parts}
        return Score(
            scorer=self.name,
            fingerprint=self.fingerprint_for(fingerprints),
            value=value,
            label=f"{label} (incomplete)" if missing else label,
            explanation=explanation,
            details={
                **details,
                "parts": {part.name: part.details() for part in parts},
                "missing": [part.name for part in missing],
            },
            **combined_usage(parts),
        )


def missing_parts(parts: Iterable[ScorePart]) -> list[ScorePart]:
    """Return the parts without a value."""
    return [part for part in parts if part.value is None]


def band_of_parts(parts: Sequence[ScorePart]) -> str:
    """Return the band of the weighted mean of the calibrated values, or ``uncalibrated`` if any part is
    uncalibrated.
    """
    if any(part.score.label == UNCALIBRATED for part in parts):
        return UNCALIBRATED
    present = [(part.calibrated, part.weight) for part in parts if part.calibrated is not None]
    total = math.fsum(weight for _, weight in present)
    return band_of(math.fsum(value * weight for value, weight in present) / total)


def weighted_mean(parts: Iterable[ScorePart]) -> float:
    """Return the weighted mean of the parts that have a value. Missing parts are excluded and never count as 0.

    Raises:
        ScoringError: no part with a weight has a value. The error has the reason of the first missing part.
    """
    parts = list(parts)
    present = [(part.value, part.weight) for part in parts if part.value is not None]
    total = math.fsum(weight for _, weight in present)
    if total <= 0:
        raise missing_error(missing_parts(parts))
    return math.fsum(value * weight for value, weight in present) / total


def missing_error(missing: Sequence[ScorePart]) -> ScoringError:
    """Return the error for a composite score without these parts, with the reason of the first one."""
    if not missing:
        return ScoringError(UnscoredReason.MISSING_INPUT, "no part has a weight")
    first = missing[0].score
    names = ", ".join(part.name for part in missing)
    why = f": {shorten(first.explanation, MAX_EXPLANATION_CHARACTERS)}" if first.explanation else ""
    waits = [part.score.details.get("retry_after") for part in missing]
    return ScoringError(
        first.reason or UnscoredReason.MISSING_INPUT,
        f"no value for {names}{why}",
        retry_after=max((wait for wait in waits if isinstance(wait, (int, float))), default=None),
        rejected=any(is_rejected(part.score) for part in missing),
        is_unanswered=any(is_unanswered(part.score) for part in missing),
    )


def raise_if_incomplete(parts: Sequence[ScorePart]) -> None:
    """Raise if a part may still succeed on a retry.

    Raises:
        ScoringError: the budget is exhausted, or the judge is unreachable, busy, or rejects the key or quota. The
            composite score is retried, so that a temporary failure does not affect its value. An exhausted budget takes
            precedence as the reason.
    """
    over_budget = [part for part in parts if part.score.reason is UnscoredReason.BUDGET]
    if incomplete := over_budget or [part for part in parts if part.may_succeed_later]:
        raise missing_error(incomplete)


def combined_usage(parts: Sequence[ScorePart]) -> dict[str, Any]:
    """Return :class:`Score` fields with the parts' judges, embedders, total tokens and total cost."""

    def join(field: Literal["judge", "embedder"]) -> str | None:
        return ", ".join(dict.fromkeys(name for part in parts if (name := getattr(part.score, field)))) or None

    def add(field: Literal["input_tokens", "output_tokens", "cost"]) -> Any:
        counts = [count for part in parts if (count := getattr(part.score, field)) is not None]
        return sum(counts) if counts else None

    return {
        "judge": join("judge"),
        "embedder": join("embedder"),
        "input_tokens": add("input_tokens"),
        "output_tokens": add("output_tokens"),
        "cost": add("cost"),
    }
