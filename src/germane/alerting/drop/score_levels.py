"""Score levels before a drop and since it began, for the whole service and for each contributor."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import hypot, sqrt
from typing import Final

import numpy as np

from germane.alert import ScoreLevel
from germane.alerting.intervals import combine_levels
from germane.baseline import POOLED_ROUTE, Baseline
from germane.statistics import WeightedSums, estimate_mean, t_quantile
from germane.storage import DetectorScore

TRAILING_WINDOW: Final = timedelta(days=1)
"""Length of the window for the current level during a drop."""
MIN_TRAILING_SCORES: Final = 20
"""Minimum number of scores for a mean that can show recovery. If the window has fewer, the current level is the mean of
the last 20 scores since the onset. If there are fewer than that, a drop is critical only if the whole interval is below
the limit.
"""
MIN_ROUTE_SCORES: Final = 5
"""Minimum number of scores for a route to count as affected by a drop."""
CLEAR_FALL: Final = 2.0
"""Minimum fall of an affected route, in standard errors."""
CLEAR_CONTRAST: Final = 3.0
"""Minimum difference between the affected routes and the others, in standard errors. It is larger than ``CLEAR_FALL``,
because the routes that fell most are chosen after looking at all of them."""


def baseline_level(baseline: Baseline) -> ScoreLevel:
    """Return a baseline's mean and its interval."""
    return _t_level(baseline.mean, baseline.deviation, baseline.n)


def score_level(arrivals: Sequence[DetectorScore]) -> ScoreLevel | None:
    """Return the mean of the scores, clipped to [0, 1], and its interval, or None if there are no scores."""
    if not arrivals:
        return None
    y = np.clip([arrival.value for arrival in arrivals], 0.0, 1.0) * [not arrival.is_zero for arrival in arrivals]
    sums = WeightedSums.of_equal_weights(
        n=len(y), n_zero=int((y == 0).sum()), total=float(y.sum()), squares=float((y**2).sum())
    )
    mean = estimate_mean(sums)
    return ScoreLevel(mean=mean.mean, n=sums.n, interval=mean.interval)


def recent_scores(
    baseline: Baseline, arrivals: Sequence[DetectorScore], now: datetime, route: str | None = None
) -> list[DetectorScore]:
    """Return those of the scores since an onset, in order of arrival, that make up the level of a service or a route.

    These are the scores of the last day, or the last 20 if there are fewer. Routes without a score among them
    contribute their last five, so that the level always covers the same routes.
    """
    if route is not None:
        arrivals = [arrival for arrival in arrivals if _stream_of(baseline, arrival.route) == route]
    recent = [arrival for arrival in arrivals if arrival.answered_at > now - TRAILING_WINDOW]
    if len(recent) < MIN_TRAILING_SCORES:
        recent = list(arrivals[-MIN_TRAILING_SCORES:])
    missing = {arrival.route for arrival in arrivals} - {arrival.route for arrival in recent}
    for name in sorted(missing):
        recent += [arrival for arrival in arrivals if arrival.route == name][-MIN_ROUTE_SCORES:]
    return recent


def compared_levels(
    baseline: Baseline,
    arrivals: Sequence[DetectorScore],
    route: str | None = None,
    *,
    routes: Collection[str] | None = None,
) -> tuple[ScoreLevel, ScoreLevel] | None:
    """Return the level in the baseline and the current level, for one route or for the whole service.

    For the service, both levels cover the same routes and are weighted by the routes' shares in the baseline, so a
    change in the route mix affects neither level. Return None if there are no scores on these routes.

    Args:
        baseline: The baseline.
        arrivals: The scores that make up the current level.
        route: The route, or None for the service.
        routes: The routes that the service's levels cover; by default all that have scores.
    """
    by_stream: dict[str, list[DetectorScore]] = {}
    for arrival in arrivals:
        by_stream.setdefault(_stream_of(baseline, arrival.route), []).append(arrival)
    covered = by_stream.keys() if routes is None else by_stream.keys() & routes
    streams = [name for name in baseline.routes if name in covered and route in {None, name}]
    parts = [(baseline.routes[name], score_level(by_stream[name])) for name in streams]
    pairs = [(before, now) for before, now in parts if now is not None]
    if not pairs:
        return None
    total = sum(before.n for before, _ in pairs)
    weights = [before.n / total for before, _ in pairs]
    before_levels = [_t_level(before.mean, before.deviation, before.n) for before, _ in pairs]
    now_levels = [_with_interval(now, before.deviation) for before, now in pairs]
    return (
        combine_levels(before_levels, weights, limits=(0.0, 1.0)),
        combine_levels(now_levels, weights, limits=(0.0, 1.0)),
    )


def covered_routes(baseline: Baseline, arrivals: Sequence[DetectorScore]) -> tuple[str, ...]:
    """Return the routes of the baseline that have scores."""
    return tuple(sorted({_stream_of(baseline, arrival.route) for arrival in arrivals} & baseline.routes.keys()))


def is_below(level: ScoreLevel, limit: float) -> bool:
    """Return whether a mean is at least one standard error below a limit.

    If there are few scores, the whole interval must be below the limit.
    """
    if level.interval is None:
        return False
    upper = level.interval[1]
    return (upper if level.n < MIN_TRAILING_SCORES else (level.mean + upper) / 2) < limit


def fallen_routes(baseline: Baseline, arrivals: Sequence[DetectorScore], min_drop: float) -> tuple[str, ...]:
    """Return the routes that have clearly fallen.

    Their mean fell by more than three standard errors and by more than half of ``min_drop``.
    """
    falls = _falls(baseline, arrivals)
    return tuple(sorted(name for name, fall in falls.items() if fall.exceeds(CLEAR_CONTRAST, min_drop / 2)))


def affected_routes(
    baseline: Baseline, arrivals: Sequence[DetectorScore], min_drop: float, *, names_all: bool = False
) -> tuple[str, ...]:
    """Return the routes that a drop affects, or an empty tuple if it affects the whole service.

    With ``names_all``, all routes of the baseline are returned if it affects them all, because the service may have
    others.

    Each affected route has fallen by more than two standard errors and more than half of ``min_drop``, and at least
    half as much as the route with the largest fall. On average, the affected routes have fallen more than twice as much
    as the others, and the difference exceeds three standard errors, so it is unlikely to be due to chance.
    """
    falls = _falls(baseline, arrivals)
    falling = {name: fall for name, fall in falls.items() if fall.exceeds(CLEAR_FALL, min_drop / 2)}
    largest = max((fall.size for fall in falling.values()), default=0.0)
    affected = {name for name, fall in falling.items() if fall.size >= largest / 2}
    others = falls.keys() - affected
    if not affected or POOLED_ROUTE in affected or (affected == baseline.routes.keys() and not names_all):
        return ()
    if not others:  # no other route has had an answer since the onset
        return tuple(sorted(affected))
    inside, inside_error = _mean_fall([falls[name] for name in affected])
    outside, outside_error = _mean_fall([falls[name] for name in others])
    stand_out = inside > 2 * outside and inside - outside > CLEAR_CONTRAST * hypot(inside_error, outside_error)
    return tuple(sorted(affected)) if stand_out else ()


@dataclass(frozen=True, slots=True)
class _RouteFall:
    """The distance by which a route's mean has fallen below its baseline."""

    size: float
    error: float
    """Standard error of the difference, including the usual variation between days."""
    n: int

    def exceeds(self, errors: float, size: float) -> bool:
        """Return whether there are enough scores and the fall exceeds both a number of standard errors and a minimum
        size.
        """
        return self.n >= MIN_ROUTE_SCORES and self.size > max(errors * self.error, size)


def _falls(baseline: Baseline, arrivals: Sequence[DetectorScore]) -> dict[str, _RouteFall]:
    """Return the fall of each route that has scores."""
    by_stream: dict[str, list[DetectorScore]] = {}
    for arrival in arrivals:
        by_stream.setdefault(_stream_of(baseline, arrival.route), []).append(arrival)
    falls = {}
    for name, scores in by_stream.items():
        route, now = baseline.routes.get(name), score_level(scores)
        if route is None or now is None:
            continue
        # With more refusals, scores vary more than in the baseline.
        deviation = max(route.deviation, float(np.std([0.0 if score.is_zero else score.value for score in scores])))
        error = hypot(deviation / sqrt(now.n), route.deviation / sqrt(route.n), route.committed_wander)
        falls[name] = _RouteFall(route.mean - now.mean, error, now.n)
    return falls


def _mean_fall(falls: Sequence[_RouteFall]) -> tuple[float, float]:
    """Return the mean fall of routes, weighted by their scores, and its standard error."""
    n = sum(fall.n for fall in falls)
    return sum(fall.n * fall.size for fall in falls) / n, hypot(*(fall.n * fall.error for fall in falls)) / n


def _stream_of(baseline: Baseline, route: str) -> str:
    return POOLED_ROUTE if route in baseline.pooled else route


def _t_level(mean: float, deviation: float, n: int) -> ScoreLevel:
    """Return the level for a mean, with a t interval clipped to [0, 1]."""
    half = t_quantile(n - 1) * deviation / sqrt(n) if n > 1 else None
    return ScoreLevel(mean=mean, n=n, interval=None if half is None else (max(0.0, mean - half), min(1.0, mean + half)))


def _with_interval(level: ScoreLevel, deviation: float) -> ScoreLevel:
    """Add an interval to a level that has none, based on the baseline's standard deviation."""
    if level.interval is not None:
        return level
    half = t_quantile(level.n) * deviation / sqrt(level.n)
    return replace(level, interval=(max(0.0, level.mean - half), min(1.0, level.mean + half)))
