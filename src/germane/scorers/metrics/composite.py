"""The parts of a score that is put together from others: run side by side, weighted, and kept."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.scorers.base.protocols import Scorer
from germane.scorers.base.run import is_rejected, may_succeed_later, run
from germane.scorers.base.text import shorten

Missing = Literal["renormalise", "fail"]
"""What becomes of the whole where a part is missing: the rest counts for it, or there is no value."""

REASON_LIMIT = 200
"""Characters of a part's explanation that are kept."""
KEPT = 1_000
"""Exchanges whose parts are kept while they wait; the oldest makes room."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one scorer contributes to a score."""

    name: str
    score: Score
    weight: float

    @property
    def value(self) -> float | None:
        """The part's value, clipped to 0..1 as cosines may be negative; None where it is missing."""
        return None if self.score.value is None else min(max(self.score.value, 0.0), 1.0)

    def details(self) -> dict[str, object]:
        """Return what is kept of it, as JSON: its value as it was, weight, label or reason, explanation, and cuts."""
        score = self.score
        kept = {
            "value": score.value,
            "weight": self.weight,
            "label": score.label,
            "reason": None if score.reason is None else str(score.reason),
            "explanation": score.explanation and shorten(score.explanation, REASON_LIMIT),
            "fingerprint": score.fingerprint,
            "cut": score.details.get("cut"),
        }
        return {name: value for name, value in kept.items() if value is not None or name == "value"}


async def run_parts(scorers: Mapping[str, Scorer], exchange: Exchange) -> dict[str, Score]:
    """Return what each scorer says of the exchange, asked side by side; see :func:`germane.scorers.run`."""
    scores = await asyncio.gather(*(run(scorer, exchange) for scorer in scorers.values()))
    return dict(zip(scorers, scores, strict=True))


class Parts:
    """Scorers that are run as parts of one score. What some said of an exchange is kept while others are waited for."""

    def __init__(self, scorers: Mapping[str, Scorer], weights: Mapping[str, float], missing: Missing) -> None:
        """Take the scorers that have a weight, and what becomes of the whole where a part is missing.

        Raises:
            ValueError: ``missing`` is none of what there is, or a scorer is not there.
        """
        if missing not in get_args(Missing):
            raise ValueError(f"missing must be {' or '.join(get_args(Missing))}, not {missing!r}")
        if absent := [name for name in weights if name not in scorers]:
            raise ValueError(f"there is no scorer for {', '.join(absent)}")
        self.scorers = {name: scorers[name] for name in weights}
        self.weights = dict(weights)
        self.missing: Missing = missing
        self._kept: OrderedDict[Hashable, dict[str, Score]] = OrderedDict()

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of all parts as configured."""
        return {name: scorer.fingerprint for name, scorer in self.scorers.items()}

    async def run(self, exchange: Exchange) -> list[Part]:
        """Return all parts; of an exchange that is tried again, only those scorers are asked that must be.

        Raises:
            ScoringError: a part is missing and none may be, or one may still get its value; with the reason of the
                first such part.
        """
        key = _seen_of(exchange)
        known = self._kept.get(key, {})
        asked = {name: scorer for name, scorer in self.scorers.items() if name not in known}
        made = {**known, **await run_parts(asked, exchange)}
        self._keep(key, {name: score for name, score in made.items() if not is_awaited(score)})
        parts = [Part(name, made[name], weight) for name, weight in self.weights.items()]
        expect_no_more(parts)
        if self.missing == "fail" and (missing := missing_of(parts)):
            raise missing_error(missing)
        return parts

    def _keep(self, key: Hashable, scores: dict[str, Score]) -> None:
        self._kept.pop(key, None)
        if len(scores) < len(self.scorers):
            self._kept[key] = scores
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def _seen_of(exchange: Exchange) -> Hashable:
    """Return all that scorers look at: rows of a data set may share an id, which is the user's."""
    return exchange.id, exchange.question, exchange.answer, exchange.contexts, exchange.history


def missing_of(parts: Iterable[Part]) -> list[Part]:
    """Return the parts without a value."""
    return [part for part in parts if part.value is None]


def fingerprints_of(parts: Iterable[Part]) -> dict[str, str | None]:
    """Return the fingerprints of what really made the parts; None for one that is missing."""
    return {part.name: None if part.value is None else part.score.fingerprint for part in parts}


def weighted_mean(parts: Iterable[Part]) -> float:
    """Return the mean of the parts that are there, each by its weight: the missing ones are left out, never 0.

    Raises:
        ScoringError: no part with a weight is there; with the reason of the first that is missing.
    """
    parts = list(parts)
    present = [(part.value, part.weight) for part in parts if part.value is not None]
    total = math.fsum(weight for _, weight in present)
    if total <= 0:
        raise missing_error(missing_of(parts))
    return math.fsum(value * weight for value, weight in present) / total


def missing_error(missing: Sequence[Part]) -> ScoringError:
    """Return the error of a score that cannot do without these parts: it has the reason of the first."""
    if not missing:
        return ScoringError(Reason.MISSING_INPUT, "no part has a weight")
    first = missing[0].score
    names = ", ".join(part.name for part in missing)
    reason = first.reason or Reason.MISSING_INPUT
    why = f": {shorten(first.explanation, REASON_LIMIT)}" if first.explanation else ""
    rejected = any(is_rejected(part.score) for part in missing)
    return ScoringError(reason, f"without {names}{why}", retry_after=_longest_wait(missing), rejected=rejected)


def expect_no_more(parts: Sequence[Part]) -> None:
    """Return if every part is what it will ever be.

    Raises:
        ScoringError: a part may get its value later, once the judge is back, less busy, or has its key or quota. The
            whole waits for it, or a moment's trouble would stay in the score. Or a budget does not pay for a part: then
            it does not pay for the whole.
    """
    if unpaid := [part for part in parts if part.score.reason is Reason.BUDGET]:
        raise missing_error(unpaid)
    awaited = [part for part in parts if is_awaited(part.score)]
    if awaited:
        raise missing_error(awaited)


def expenses(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the fields of :class:`Score` that say who made the parts, and what that took in all."""
    return {
        "judge": _joined(parts, "judge"),
        "embedder": _joined(parts, "embedder"),
        "input_tokens": _sum(parts, "input_tokens"),
        "output_tokens": _sum(parts, "output_tokens"),
        "cost": _sum(parts, "cost"),
    }


def is_awaited(score: Score) -> bool:
    """Return whether a part may get its value later."""
    return is_rejected(score) or may_succeed_later(score) or score.reason is Reason.BUDGET


def _longest_wait(parts: Sequence[Part]) -> float | None:
    waits = [part.score.details.get("retry_after") for part in parts]
    return max((wait for wait in waits if isinstance(wait, (int, float))), default=None)


def _joined(parts: Sequence[Part], field: Literal["judge", "embedder"]) -> str | None:
    names = dict.fromkeys(name for part in parts if (name := getattr(part.score, field)))
    return ", ".join(names) or None


def _sum(parts: Sequence[Part], field: Literal["input_tokens", "output_tokens", "cost"]) -> Any:
    found = [taken for part in parts if (taken := getattr(part.score, field)) is not None]
    return sum(found) if found else None
