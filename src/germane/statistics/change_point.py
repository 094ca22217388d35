"""The moment at which the mean of a series of scores fell, with a 95% interval.

Two constant levels fit the scores best at the split with the smallest sum of squares. The interval contains all splits
that fit almost as well. How well a wrong split fits by chance depends on the distribution of the scores: refusals, and
scores of 0 and 1, need wider intervals than others. Moving the split away from the true moment adds up one step per
score, negative on average, and the maximum of such a random walk exceeds x with probability exp(-rate * x) at most.

Sources: J. Bai, Least squares estimation of a shift in linear processes, Journal of Time Series Analysis 15, 1994;
D. Siegmund, Confidence sets in change-point problems, International Statistical Review 56, 1988; S. Asmussen and
H. Albrecher, Ruin Probabilities, 2010, chapter 4 (Lundberg's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CONFIDENCE: Final = 0.95
WANDER: Final = 0.015
"""Assumed variation of a level from day to day, so that the levels near the change differ from the means."""
MIN_GAIN: Final = 12.0
"""Minimum log likelihood ratio of two levels to one. Without a change, fewer than one in 100 series reaches it."""
MIN_SCORES: Final = 5
"""Minimum number of scores before and since the change. A few unusual scores at an end are no change."""
GAUSSIAN_RATE: Final = 0.5
"""The decay rate for normally distributed scores. Larger estimates are not trusted."""
_MIN_RATE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class TimedMean:
    """The mean of the scores of one group, such as a route, in a short period, without those of refusals."""

    start: datetime
    end: datetime
    group: str
    n: float
    mean: float
    squares: float = 0.0
    """Sum of the squared differences of the scores from the mean."""
    refusals: float = 0.0
    """Number of refusals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The moment at which a mean changed."""

    at: datetime
    """The start of the first period with the later level."""
    earliest: datetime
    """Start of the 95% interval."""
    latest: datetime
    level_since: datetime
    """Start of the earlier level."""
    index: int
    """Position of the first mean with the later level."""
    size: float
    """The fall in standard deviations; negative for a rise."""


def find_latest_fall(means: Sequence[TimedMean]) -> ChangePoint | None:
    """Return the fall that led to the last level of a series, or None. The level may have changed several times.

    A later fall counts if the level rose in between, or if it is at least as large.
    """
    change = find_change(means)
    later = None if change is None else find_latest_fall(means[change.index :])
    if change is None or change.size < 0 or (later is not None and later.size >= change.size):
        return later
    return change


def find_change(means: Sequence[TimedMean], *, falls_only: bool = False) -> ChangePoint | None:
    """Return the clearest change of the level, or None.

    Refusals and other scores are compared separately, because a few refusals among good scores would hide a change.

    Args:
        means: The series, oldest first. Groups may have different levels, but change by the same amount.
        falls_only: Whether to ignore rises.
    """
    names = {name: number for number, name in enumerate(dict.fromkeys(mean.group for mean in means))}
    group = np.array([names[mean.group] for mean in means], dtype=np.intp)
    n, refusals, values, squares = np.array(
        [(mean.n, mean.refusals, mean.mean, mean.squares) for mean in means], dtype=np.float64
    ).reshape(-1, 4).T  # fmt: skip
    all_n, is_earlier = n + refusals, [one.start < other.start for one, other in pairwise(means)]
    before = np.cumsum(all_n)
    if len(before) < 2 or before[-1] < 2 * MIN_SCORES:
        return None
    is_split = np.array([*is_earlier, False]) & (before >= MIN_SCORES) & (before[-1] - before >= MIN_SCORES)
    answered = n / all_n
    series = (
        _Series(group, n, values, squares, is_split),
        _Series(group, all_n, answered, all_n * answered * (1 - answered), is_split),
    )
    by_sign = {sign: series[0].gains(sign) + series[1].gains(sign) for sign in ((1,) if falls_only else (1, -1))}
    sign = max(by_sign, key=lambda each: float(by_sign[each].max()))
    gains, last = by_sign[sign], int(by_sign[sign].argmax())
    if gains[last] < MIN_GAIN:
        return None
    steps = series[0].steps(last, sign) + series[1].steps(last, sign)
    limit = _find_limit(_decay_rate(steps[: last + 1]), _decay_rate(steps[last + 1 :]))
    inside = np.flatnonzero(is_split & (gains[last] - gains < limit))
    return ChangePoint(
        at=means[last + 1].start,
        earliest=means[int(inside[0])].start,
        latest=means[int(inside[-1]) + 1].end,
        level_since=means[0].start,
        index=last + 1,
        size=sign * math.sqrt(sum(each.fall(last, sign) ** 2 / each.variance for each in series)),
    )


class _Series:
    """The means of all groups, each of which has a free level, and how well every split fits them.

    Then the size of a fall is excess / weight, and the sum of squares decreases by excess squared / weight.
    """

    def __init__(
        self, group: NDArray[np.intp], n: Floats, values: Floats, squares: Floats, is_split: NDArray[np.bool_]
    ) -> None:
        self._group, self._n = group, n
        self._totals = totals = np.maximum(np.bincount(group, n), 1e-9)
        self._from_mean = np.where(n > 0, values - (np.bincount(group, n * values) / totals)[group], 0.0)
        order, all_n = np.argsort(group, kind="stable"), totals[group]
        counts = np.empty_like(n)  # of the group's scores up to and including each mean
        counts[order] = np.cumsum(n[order]) - (np.cumsum(totals) - totals)[group[order]]
        self._excess = np.cumsum(n * self._from_mean)
        weight = np.cumsum((counts * (all_n - counts) - (counts - n) * (all_n - counts + n)) / all_n)
        self._weight = np.where(is_split & (weight > 1e-9), weight, np.inf)
        unexplained = squares.sum() + n @ self._from_mean**2 - (self._excess**2 / self._weight).max()
        self.variance = max(float(unexplained) / max(1.0, n.sum() - len(totals) - 1), 1e-6)

    def gains(self, sign: int) -> Floats:
        """Return the log likelihood ratio of each split to no split, for falls or, with sign -1, for rises."""
        gains: Floats = np.maximum(sign * self._excess, 0.0) ** 2 / self._weight / self.variance
        return gains

    def fall(self, last: int, sign: int) -> float:
        """Return the size of the fall or rise at the split after ``last``."""
        return max(0.0, sign * float(self._excess[last] / self._weight[last]))

    def steps(self, last: int, sign: int) -> Floats:
        """Return by how much the log likelihood ratio changes if each mean was on the other side of the split."""
        size, is_earlier = self.fall(last, sign), np.arange(len(self._n)) <= last
        earlier = np.bincount(self._group, self._n * is_earlier)
        residuals = sign * self._from_mean - (size * (1 - earlier / self._totals))[self._group]
        towards = np.where(is_earlier, -1.0, 1.0)
        # In the worst case, wander moves the levels near the change towards each other.
        steps: Floats = self._n * size / self.variance * (towards * (2 * residuals + size) + 2 * WANDER)
        return steps


def _find_limit(*rates: float) -> float:
    """Return the difference in the log likelihood ratio that chance exceeds in 5% of all cases."""
    low, high = 0.0, 10 / min(rates)
    while high - low > _MIN_RATE:
        middle = (low + high) / 2
        covered = math.prod(1 - math.exp(-rate * middle) for rate in rates)
        low, high = (middle, high) if covered < CONFIDENCE else (low, middle)
    return high


def _decay_rate(steps: Floats) -> float:
    """Return the rate at which E[exp(rate * step)] = 1, at most that of normally distributed scores."""
    low, high = 0.0, 2 * GAUSSIAN_RATE
    while high - low > _MIN_RATE:
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(np.minimum(middle * steps, 50.0)).mean() < 1 else (low, middle)
    return min(max(low, _MIN_RATE), GAUSSIAN_RATE)
