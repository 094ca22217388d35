"""How well each metric agrees with people's labels, beside what needs no model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from germane.cli.labelled import Row
from germane.errors import UsageError
from germane.exchange import Exchange

if TYPE_CHECKING:
    from germane.agreement import Interval, Statistic

ENOUGH = 20
"""Questions with labelled scores without which nothing is said of a metric."""
ENOUGH_EACH = 5
"""Questions with good answers, and with bad ones, without which there is no AUC."""
GOOD = 0.75
"""Least label of an answer that people hold for good."""
BAD = 0.25
"""Greatest label of one that they hold for bad."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well one metric agrees with the labels; a statistic is None where there is too little to compare."""

    metric: str
    fingerprint: str
    n: int
    """Labelled rows with a score."""
    of: int
    """Labelled rows."""
    questions: int
    """Units of the rows with a score: what is resampled."""
    spearman: Interval | None = None
    auc: Interval | None = None
    pairs: Interval | None = None
    """Pairwise accuracy within groups."""
    pairs_absent_half: Interval | None = None
    """The same, where a pair that lacks a score counts half."""

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self)


def agreements(rows: Sequence[Row]) -> list[Agreement]:
    """Return how well each metric agrees with the labels, then the floors: what needs no model.

    Raises:
        UsageError: a group spans units.
    """
    _check_groups(rows)
    scored: dict[tuple[str, str], dict[int, float]] = {}
    for place, row in enumerate(rows):
        for score in row.scores:
            if score.value is not None:
                scored.setdefault((score.scorer, score.fingerprint), {})[place] = score.value
    places = range(len(rows))
    metrics = [(*key, [found.get(place, math.nan) for place in places]) for key, found in sorted(scored.items())]
    floors = [(name, "", [measure(row.exchange) for row in rows]) for name, measure in _FLOORS.items()]
    return [_agreement(rows, *metric) for metric in [*metrics, *(floors if rows else [])]]


def _agreement(rows: Sequence[Row], metric: str, fingerprint: str, scores: Sequence[float]) -> Agreement:
    from germane.agreement import auc, pairwise_accuracy, spearman

    there = [row for row, score in zip(rows, scores, strict=True) if not math.isnan(score)]
    found = Agreement(metric, fingerprint, len(there), len(rows), questions=len(units_of(there)))
    if found.questions < ENOUGH:
        return found
    groups, has_auc, has_pairs = [row.group for row in rows], _has_auc(there), _has_pairs(there)
    return replace(
        found,
        spearman=_interval(rows, spearman, scores=scores),
        auc=_interval(rows, partial(auc, high=GOOD, low=BAD), scores=scores) if has_auc else None,
        pairs=_interval(rows, pairwise_accuracy, scores=scores, groups=groups) if has_pairs else None,
        pairs_absent_half=_interval(rows, _absent_half, scores=scores, groups=groups) if has_pairs else None,
    )


def units_of(rows: Iterable[Row]) -> set[str]:
    """Return what was drawn independently."""
    return {row.unit for row in rows}


def _has_auc(rows: Sequence[Row]) -> bool:
    """Whether there are questions enough on either side: else an interval would be narrow by accident."""
    sides = ([row for row in rows if row.label >= GOOD], [row for row in rows if row.label <= BAD])
    return all(len(units_of(side)) >= ENOUGH_EACH for side in sides)


def _has_pairs(rows: Sequence[Row]) -> bool:
    """Whether there are questions enough with answers of different labels."""
    labels: dict[str, set[float]] = {}
    for row in rows:
        labels.setdefault(row.group, set()).add(row.label)
    return len(units_of(row for row in rows if len(labels[row.group]) > 1)) >= ENOUGH


def _check_groups(rows: Sequence[Row]) -> None:
    units: dict[str, str] = {}
    for row in rows:
        if units.setdefault(row.group, row.unit) != row.unit:
            raise UsageError(f"group {row.group!r:.60} spans units: its rows would be drawn apart")


def _absent_half(**arrays: Any) -> Any:
    from germane.agreement import pairwise_accuracy

    return pairwise_accuracy(**arrays, absent=0.5)


def _interval(rows: Sequence[Row], statistic: Statistic, **arrays: Sequence[Any]) -> Interval | None:
    from germane.agreement import interval

    labels, units = [row.label for row in rows], [row.unit for row in rows]
    found = interval(partial(statistic, labels=labels, **arrays), units)
    return None if math.isnan(found.value) else found


def _overlap(exchange: Exchange) -> float:
    """Return the share of the question's words that the answer has."""
    asked = set(_WORD.findall((exchange.question or "").lower()))
    return len(asked & set(_WORD.findall((exchange.answer or "").lower()))) / len(asked) if asked else 0.0


_FLOORS = {
    "longer answer": lambda exchange: float(len(exchange.answer or "")),
    "shorter answer": lambda exchange: -float(len(exchange.answer or "")),
    "question overlap": _overlap,
}
