"""The detector's bet grid: null levels and stakes, which are fixed before any score is seen.

Each statistic of a stream (mean of nonzero scores, rate of zeros) has eight bets. A bet tests one null, which is
a level that is still as good as the baseline, with a stake that suits one size of drop. With tol = 0.4 min_drop,
z = 1.5 for the first four bets and 3.5 for the others, wander s, D the stream's scores per day in the baseline
(nonzero scores or all scores), and se the standard error of the baseline's level, of which the wander in its T days is
a part: se^2 = sd^2 / n + 3 s^2 / T, or p (1 - p) / n + 3 s^2 / T::

    f     = u / (u + sd^2), u = 2 D s^2                  g    = w / (w + p (1 - p)), w = 2 D s^2
    d_i   = a (0.4 / a)^(i / 7), a = 0.6 min_drop        e_i  = b (0.5 / b)^(i / 7), b = 0.8 min_drop
    m_i   = mu - hypot(max(tol, z_i s f), 1.5 se)        p_i  = min(0.9, p + hypot(max(tol, z_i s g), 1.5 se))
    lam_i = min(d_i / (sd^2 + u_i + d_i^2), 0.9 / (1 - m_i))
    nu_i  = min(e_i / (p_i (1 - p_i) + 0.01 + w_i), 0.9 / p_i)

The tolerance for wander is needed only as far as wander dominates: f is its share of the variance of a day's scores. If
scores vary much more from answer to answer, as scores of 0 or 1 do, a bad day is no evidence.

Large drops show up within hours, so their bets use the full stake, but only beyond 3.5 times the wander. Detecting
small drops takes days of scores. Scores from one day share that day's wander, which resembles the wander of the next
day. The variance terms u = 2 D s^2 and w = 2 D s^2 account for both effects and make the first four bets smaller. In
simulations with z from 1 to 3 and with 1/4 to 3 times D s^2 (wander 0.02), these values detected the most drops of 0.05
at the same rate of false alerts.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from germane.alerting.detector.score_batch import BoolArray, FloatArray, IndexedScores, ScoreBatch
from germane.baseline import POOLED_ROUTE, Baseline

BETS_PER_STATISTIC: Final = 8
TOLERANCE: Final = 0.4
"""Minimum tolerated difference from the baseline, as a fraction of ``min_drop``."""
MAX_ZERO_RATE: Final = 0.9
"""Upper limit of a null for the rate of zeros."""
MIN_FACTOR: Final = 0.1
"""Lower limit of the factor by which one score multiplies a bet's capital."""
_STEPS: Final = np.arange(BETS_PER_STATISTIC) / (BETS_PER_STATISTIC - 1)
_IS_SMALL_DROP: Final = np.arange(BETS_PER_STATISTIC) < BETS_PER_STATISTIC // 2
_WANDER_MULTIPLES: Final = np.where(_IS_SMALL_DROP, 1.5, 3.5)
_ERRORS: Final = 1.5
"""Tolerated error of the baseline, in standard errors."""
_CORRELATED_DAYS: Final = 2.0
"""Factor for the variance that one day's scores share, because consecutive days resemble each other."""


class BetGrid:
    """The null levels and stakes for all streams in one baseline. ``min_drop`` is in (0, 1)."""

    def __init__(self, baseline: Baseline, min_drop: float) -> None:
        if not 0 < min_drop < 1:
            raise ValueError(f"min_drop must be above 0 and below 1, not {min_drop}")
        self.baseline = baseline
        self.routes = tuple(baseline.routes)
        self.route_baselines = [baseline.routes[name] for name in self.routes]
        self.min_drop = min_drop
        self.tolerance = TOLERANCE * min_drop
        self._route_index = {name: index for index, name in enumerate(self.routes)}
        if POOLED_ROUTE in self._route_index:
            self._route_index = dict.fromkeys(baseline.pooled, self._route_index[POOLED_ROUTE]) | self._route_index

        self.mean = self.column("committed_mean")
        self.deviation = self.column("committed_deviation")
        self.wander = self.column("committed_wander")
        self.rate = self.column("zero_rate")
        self.rate_wander = self.column("zero_wander")

        own, shared = self.deviation**2, self._shared_variance("committed_per_day", self.wander)
        margin = self._margin(self.wander, own, shared, np.maximum(self.column("committed"), 1))
        self.means: FloatArray = self.mean[:, None] - margin
        """Nulls for the mean of nonzero scores, by type of stream (whole service or one route), route and bet."""

        own_zeros, shared_zeros = self.rate * (1 - self.rate), self._shared_variance("scores_per_day", self.rate_wander)
        margin = self._margin(self.rate_wander, own_zeros, shared_zeros, self.column("n"))
        self.rates: FloatArray = np.minimum(MAX_ZERO_RATE, self.rate[:, None] + margin)
        """Nulls for the rate of zeros, by type of stream, route and bet."""

        # If the upper limit moved the null into the tolerance or below the baseline, normal scores would look bad.
        self.watched: BoolArray = np.stack([self.column("committed") >= 2, self.rate + self.tolerance <= MAX_ZERO_RATE])
        """Whether there is a null to test, by statistic and route."""

        variance = own[:, None] + np.where(_IS_SMALL_DROP, shared[:, :, None], 0.0)
        self.committed_bets = bet_size(_geometric_grid(0.6 * self.min_drop, 0.4), variance, 1 - self.means)
        """Stakes for the mean of nonzero scores, by type of stream (whole service or one route), route and bet."""

        variance = self.rates * (1 - self.rates) + 0.01 + np.where(_IS_SMALL_DROP, shared_zeros[:, :, None], 0.0)
        bets = np.minimum(_geometric_grid(0.8 * self.min_drop, 0.5) / variance, (1 - MIN_FACTOR) / self.rates)
        self.zero_bets: FloatArray = np.asarray(bets)
        logs = [np.log1p(-bets * self.rates), np.log1p(bets * (1 - self.rates))]
        self.zero_logs: FloatArray = np.stack(logs, axis=2)
        """Log factors for the rate of zeros, by type of stream, route, whether the score is zero, and bet."""

    def column(self, field: str) -> FloatArray:
        """Return one field of all route baselines as an array, in route order."""
        return np.array([getattr(route, field) for route in self.route_baselines], dtype=np.float64)

    def index_scores(self, batch: ScoreBatch) -> IndexedScores:
        """Return the scores in a batch whose routes are in the baseline. NaN values are omitted."""
        routes = np.array([self._route_index.get(route, -1) for route in batch.routes], dtype=np.int64)
        values = batch.clipped_values()
        positions = np.flatnonzero((routes >= 0) & ~np.isnan(values))
        times = np.asarray(batch.times, dtype=np.float64)
        return IndexedScores(
            positions, routes[positions], values[positions], batch.zero_flags()[positions], times[positions]
        )

    def updates_statistic(self, scores: IndexedScores, statistic: int) -> BoolArray:
        """Return a mask of the scores that update a statistic of a stream.

        These are nonzero scores or all scores, on routes with a null to test.
        """
        watched: BoolArray = self.watched[statistic, scores.routes]
        return watched & ~scores.zeros if statistic == 0 else watched

    def _shared_variance(self, per_day: str, wander: FloatArray) -> FloatArray:
        """Return the variance that scores from the same day share, by type of stream and route."""
        whole_service = np.full(len(self.routes), getattr(self.baseline, per_day))
        scores_per_day = np.stack([whole_service, self.column(per_day)])
        return np.asarray(_CORRELATED_DAYS * scores_per_day * wander**2)

    def _margin(self, wander: FloatArray, own: FloatArray, shared: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the tolerated differences from the baseline, by type of stream, route and bet."""
        share = np.divide(shared, shared + own, out=np.zeros_like(shared), where=shared + own > 0)
        # The errors of the routes' levels cancel each other in the whole service.
        whole_error = np.full(len(counts), np.sqrt(np.sum(counts * own)) / max(1.0, np.sum(counts)))
        error = np.hypot(np.stack([whole_error, np.sqrt(own / counts)]), wander * self.baseline.wander_in_mean)
        tolerated = (wander * share)[:, :, None] * _WANDER_MULTIPLES
        return np.asarray(np.hypot(np.maximum(self.tolerance, tolerated), _ERRORS * error[:, :, None]))


def bet_size(shift: FloatArray, variance: FloatArray, worst: FloatArray) -> FloatArray:
    """Return the stake for a shift in scores.

    It is limited so that the worst score leaves at least a tenth of the capital.

    The stake maximizes the first two terms of the expected log capital. Source: J. Kelly, A new interpretation of
    information rate, Bell System Technical Journal 35, 1956.

    Args:
        shift: Size of the shift that the bet is for.
        variance: Variance of the scores.
        worst: Distance between the null and the worst score; 0 or less if no score is beyond the null.
    """
    bets = shift / (variance + shift**2)
    return np.where(worst > 0, np.minimum(bets, (1 - MIN_FACTOR) / np.where(worst > 0, worst, 1.0)), bets)


def tolerance(baseline: Baseline, *, min_drop: float = 0.05) -> tuple[float, float]:
    """Return the largest drop in the nonzero mean and the largest increase in the zero rate that are not evidence.

    The value for a route with wander s is max(0.4 min_drop, 1.5 s). Values are averaged over routes, weighted by scores
    per day. Sampling error is tolerated in addition.
    """
    routes = list(baseline.routes.values())
    weights = [route.scores_per_day for route in routes] or [1.0]
    minimum = TOLERANCE * min_drop
    committed = [max(minimum, _WANDER_MULTIPLES[0] * route.committed_wander) for route in routes] or [minimum]
    zero = [max(minimum, _WANDER_MULTIPLES[0] * route.zero_wander) for route in routes] or [minimum]
    return float(np.average(committed, weights=weights)), float(np.average(zero, weights=weights))


def _geometric_grid(first: float, last: float) -> FloatArray:
    return first * (last / first) ** _STEPS
