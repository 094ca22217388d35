"""How well each metric agrees with people's labels, beside what needs no model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from germane.cli.commands.calibrate.labels import Row
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.score import Score

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


FALSE_VOTES = 0.05
"""Share of good answers that the judge's votes may hold for noncommittal."""


@dataclass(frozen=True, slots=True)
class Votes:
    """What the judge's noncommittal votes say of answers that people hold for good."""

    n: int = 0
    """Good answers that the judge voted on."""
    questions: int = 0
    """Their units: answers to one question are no evidence of their own each."""
    false: float | None = None
    """Share of the answers whose votes say noncommittal."""

    @property
    def at_most(self) -> float | None:
        """What that share is at most, with a certainty of 95 %."""
        return None if self.false is None else _at_most(self._false_questions, self.questions)

    @property
    def may_count(self) -> bool | None:
        """Whether they may make a score noncommittal; None where the answers do not settle it."""
        if self.false is None or self.at_most is None or self.questions < ENOUGH:
            return None
        if self.at_most <= FALSE_VOTES:
            return True
        return False if self.false > FALSE_VOTES else None

    @property
    def needed(self) -> int:
        """Questions that would let them count, if no more votes were false."""
        return next(of for of in count(1) if _at_most(self._false_questions, of) <= FALSE_VOTES)

    @property
    def _false_questions(self) -> int:
        return math.ceil((self.false or 0.0) * self.questions - 1e-9)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        found = {"at_most": self.at_most, "may_count": self.may_count, "needed": self.needed, "limit": FALSE_VOTES}
        return {**asdict(self), **found}


def votes(rows: Sequence[Row]) -> Votes:
    """Return how often the judge's votes hold an answer for noncommittal that people hold for good.

    Those of the newest fingerprint alone: another judge votes otherwise.
    """
    cast = [(row, score, vote) for row in rows for score in row.scores if (vote := _vote(score)) is not None]
    if not cast:
        return Votes()
    newest = max(cast, key=lambda one: one[1].scored_at or datetime.min.replace(tzinfo=UTC))[1].fingerprint
    good = [(row, vote) for row, score, vote in cast if row.label >= GOOD and score.fingerprint == newest]
    if not good:
        return Votes()
    return Votes(len(good), len(units_of(row for row, _ in good)), sum(vote for _, vote in good) / len(good))


def _at_most(count: int, of: int) -> float:
    from germane.agreement import at_most

    return at_most(count, of)


def _vote(score: Score) -> bool | None:
    """Return what a strict majority of the votes in a score's details says; None where there are none."""
    questions = score.details.get("questions") if score.scorer == "answer_relevancy" else None
    told = [one.get("noncommittal") for one in questions or () if isinstance(one, Mapping)]
    votes = [vote for vote in told if isinstance(vote, bool)]
    return 2 * sum(votes) > len(votes) if votes else None
