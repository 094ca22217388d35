"""What a detector bets on: the nulls and bets of its cells, fixed before a score is seen.

A half of a stream has eight cells. Each tests one null, a level that is still as good as the baseline's, with one bet,
which fits one size of drop. With tol = .4 min_drop, z = 2 for the first four and 3.5 for the others, and D the scores
(committed ones, all) per day of the stream in the baseline::

    d_i   = a (.4 / a)^(i / 7), a = .6 min_drop          e_i  = b (.5 / b)^(i / 7), b = .8 min_drop
    m_i   = mu - max(tol, z_i s) - sd / sqrt(n)          p_i  = min(.9, p + max(tol, z_i s) + sqrt(p (1 - p) / n))
    lam_i = min(d_i / (sd^2 + u_i + d_i^2), .9 / (1 - m_i))
    nu_i  = min(e_i / (p_i (1 - p_i) + .01 + w_i), .9 / p_i)

Large drops show within hours: their cells bet in full, but only beyond 3.5 times the wander. Small ones take a day or
more of scores, which share that day's wander: u = D s^2 and w are that variance, which makes the first four more
careful.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from germane.alerting.detector.seen import BoolArray, FloatArray, Scores, Seen
from germane.baseline import OTHER, Baseline

CELLS: Final = 8
TOLERANCE: Final = 0.4
"""Of the smallest drop that matters: what the level may differ by at least."""
MOST_ZEROS: Final = 0.9
"""Rate of zeros beyond which no null lies."""
LEAST_FACTOR: Final = 0.1
"""What no factor falls below."""
_STEPS: Final = np.arange(CELLS) / (CELLS - 1)
_CAREFUL: Final = np.arange(CELLS) < CELLS // 2
_DEVIATIONS: Final = np.where(_CAREFUL, 2.0, 3.5)


class Cells:
    """Nulls and bets of all streams of one baseline.

    Raises:
        ValueError: ``min_drop`` is not within (0, 1).
    """

    def __init__(self, baseline: Baseline, min_drop: float) -> None:
        if not 0 < min_drop < 1:
            raise ValueError(f"the smallest drop that matters is above 0 and below 1, not {min_drop}")
        self.baseline = baseline
        self.routes = tuple(baseline.routes)
        self.numbers = [baseline.routes[name] for name in self.routes]
        self.min_drop = min_drop
        self.tolerance = TOLERANCE * min_drop
        self._places = {name: place for place, name in enumerate(self.routes)}
        if OTHER in self._places:
            pool = self._places[OTHER]
            self._places = dict.fromkeys(baseline.pooled, pool) | self._places
        self.mean = self.column("committed_mean")
        self.deviation = self.column("committed_deviation")
        self.wander = self.column("committed_wander")
        self.rate = self.column("zero_rate")
        self.rate_wander = self.column("zero_wander")
        self.means = self._means()
        """Nulls of the committed half, by route and cell."""
        self.rates = self._rates()
        """Nulls of the zero half."""
        self.watched = self._watched()
        """By half and route: whether there is a null to test."""
        self.committed_bets = self._committed_bets()
        """By kind of stream (the whole service, one route), route and cell."""
        self.zero_bets = self._zero_bets()
        self.zero_logs = self._zero_logs()
        """By kind of stream, route, whether a score is zero, and cell: logarithm of the factor of the zero half."""

    def column(self, name: str) -> FloatArray:
        """Return one number of each route's baseline."""
        return np.array([getattr(numbers, name) for numbers in self.numbers], dtype=np.float64)

    def read(self, seen: Seen) -> Scores:
        """Return the scores that there is a baseline for."""
        routes = np.array([self._places.get(route, -1) for route in seen.routes], dtype=np.int64)
        values = seen.clipped()
        places = np.flatnonzero((routes >= 0) & ~np.isnan(values))
        times = np.asarray(seen.times, dtype=np.float64)
        return Scores(places, routes[places], values[places], seen.zero()[places], times[places])

    def concerns(self, scores: Scores, half: int) -> BoolArray:
        """Return which scores a half learns from: committed ones, or all; of routes that it watches."""
        watched: BoolArray = self.watched[half, scores.routes]
        return watched & ~scores.zeros if half == 0 else watched

    def _means(self) -> FloatArray:
        chance = self.deviation / np.sqrt(np.maximum(self.column("committed"), 1))
        margin = np.maximum(self.tolerance, np.outer(self.wander, _DEVIATIONS))
        return np.asarray(self.mean[:, None] - margin - chance[:, None])

    def _rates(self) -> FloatArray:
        chance = np.sqrt(self.rate * (1 - self.rate) / self.column("n"))
        margin = np.maximum(self.tolerance, np.outer(self.rate_wander, _DEVIATIONS))
        return np.asarray(np.minimum(MOST_ZEROS, self.rate[:, None] + margin + chance[:, None]))

    def _watched(self) -> BoolArray:
        # Where the cap draws the null to within the tolerance of the baseline, or below it, all would seem bad.
        return np.stack([self.column("committed") >= 2, self.rate + self.tolerance <= MOST_ZEROS])

    def _committed_bets(self) -> FloatArray:
        variance = self.deviation[:, None] ** 2 + self._shared("committed_per_day", self.wander)
        return stake(_grid(0.6 * self.min_drop, 0.4), variance, 1 - self.means)

    def _zero_bets(self) -> FloatArray:
        rises = _grid(0.8 * self.min_drop, 0.5)
        variance = self.rates * (1 - self.rates) + 0.01 + self._shared("scores_per_day", self.rate_wander)
        return np.asarray(np.minimum(rises / variance, (1 - LEAST_FACTOR) / self.rates))

    def _zero_logs(self) -> FloatArray:
        return np.stack([np.log1p(-self.zero_bets * self.rates), np.log1p(self.zero_bets * (1 - self.rates))], axis=2)

    def _shared(self, per_day: str, wander: FloatArray) -> FloatArray:
        """Return by kind of stream, route and cell the variance that the scores of a day share."""
        together = np.full(len(self.routes), getattr(self.baseline, per_day))
        days = np.stack([together, self.column(per_day)])
        return np.where(_CAREFUL, (days * wander**2)[:, :, None], 0.0)


def stake(shift: FloatArray, variance: FloatArray, worst: FloatArray) -> FloatArray:
    """Return the bet for a shift of scores with this variance: at most what leaves .1 after the worst score.

    Maximises the first two terms of the expected logarithm. Source: J. Kelly, A new interpretation of information
    rate, Bell System Technical Journal 35, 1956.

    Args:
        shift: What is bet on.
        variance: Of scores.
        worst: How far from the null the worst score lies; not above 0 where none does.
    """
    bets = shift / (variance + shift**2)
    return np.where(worst > 0, np.minimum(bets, (1 - LEAST_FACTOR) / np.where(worst > 0, worst, 1.0)), bets)


def _grid(first: float, last: float) -> FloatArray:
    return first * (last / first) ** _STEPS
