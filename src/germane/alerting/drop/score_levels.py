"""Score levels before and since a drop, for the whole service and for each contributor to the drop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import hypot, sqrt
from typing import Any, Final

import numpy as np

from germane.alert import ScoreLevel
from germane.alerting.detector import Contributor
from germane.alerting.intervals import wilson_interval
from germane.baseline import POOLED_ROUTE, Baseline
from germane.storage import DetectorScore, WeightedSums, estimate_mean, t_quantile

TRAILING_WINDOW: Final = timedelta(days=1)
"""Length of the window for the current level during a drop."""
MIN_TRAILING_SCORES: Final = 20
"""Minimum number of scores for a mean that can show recovery. With fewer scores, a drop is critical only if the whole
interval is below the limit."""
MIN_ROUTE_SCORES: Final = 5
"""Minimum number of scores for a route to count as affected by a drop."""
ROUTES_SHARE: Final = 0.8
"""Minimum share of a drop for which the affected routes together must account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributorChange:
    """A contributor's level before and since a drop."""

    route: str | None
    """Name of the route; None for the service as a whole."""
    half: str
    """``committed``: levels are means of nonzero scores. ``zero``: levels are shares of noncommittal answers."""
    before: ScoreLevel
    since: ScoreLevel

    def as_dict(self) -> dict[str, Any]:
        """Return the change as JSON-compatible data."""
        levels = {
            name: {"mean": level.mean, "n": level.n, "interval": level.interval and list(level.interval)}
            for name, level in (("before", self.before), ("since", self.since))
        }
        return {"route": self.route, "half": self.half, **levels}


def baseline_level(baseline: Baseline) -> ScoreLevel:
    """Return a baseline's mean and its interval."""
    return _t_level(baseline.mean, baseline.deviation, baseline.n)


def score_level(arrivals: Sequence[DetectorScore]) -> ScoreLevel | None:
    """Return the mean of scores, clipped to [0, 1], and its interval, or None without scores."""
    if not arrivals:
        return None
    y = np.clip([arrival.value for arrival in arrivals], 0.0, 1.0) * [not arrival.is_zero for arrival in arrivals]
    sums = WeightedSums.of_equal_weights(
        n=len(y), n_zero=int((y == 0).sum()), total=float(y.sum()), squares=float((y**2).sum())
    )
    mean = estimate_mean(sums)
    return ScoreLevel(mean=mean.mean, n=sums.n, interval=mean.interval)


def contributor_change(
    contributor: Contributor, baseline: Baseline, arrivals: Sequence[DetectorScore]
) -> ContributorChange | None:
    """Return a contributor's levels before and since a drop, or None if it has no scores since the drop."""
    route = contributor.route
    scores = [arrival for arrival in arrivals if route is None or _stream_of(baseline, arrival.route) == route]
    routes = list(baseline.routes.values()) if route is None else [baseline.routes[route]]
    since: ScoreLevel | None
    if contributor.half == "zero":
        zeros = [score.is_zero or score.value <= 0 for score in scores]
        since = _share_level(sum(zeros) / len(zeros), len(zeros)) if zeros else None
        n = sum(part.n for part in routes)
        before = _share_level(sum(part.zero_rate * (part.n + 1) - 0.5 for part in routes) / n, n)
    else:
        since = score_level([score for score in scores if not score.is_zero and score.value > 0])
        n = sum(part.committed for part in routes)
        mean = sum(part.committed * part.committed_mean for part in routes) / n if n else 0.0
        # The interval covers only sampling error within routes.
        variance = sum(part.committed * part.committed_deviation**2 for part in routes) / n if n else 0.0
        before = _t_level(mean, sqrt(variance), n)
    if since is None:
        return None
    return ContributorChange(route=route, half=contributor.half, before=before, since=since)


def compared_levels(
    baseline: Baseline, arrivals: Sequence[DetectorScore], route: str | None = None
) -> tuple[ScoreLevel, ScoreLevel] | None:
    """Return the level in the baseline and the current level, for one route or for the whole service.

    For the service, both levels cover the same routes and are weighted by the routes' shares in the baseline, so a
    change in the route mix affects neither level. Return None if there are no scores on these routes.
    """
    by_stream: dict[str, list[DetectorScore]] = {}
    for arrival in arrivals:
        by_stream.setdefault(_stream_of(baseline, arrival.route), []).append(arrival)
    streams = [name for name in baseline.routes if name in by_stream and route in {None, name}]
    parts = [(baseline.routes[name], score_level(by_stream[name])) for name in streams]
    pairs = [(before, now) for before, now in parts if now is not None]
    if not pairs:
        return None
    total = sum(before.n for before, _ in pairs)
    weights = [before.n / total for before, _ in pairs]
    levels = [
        (_t_level(before.mean, before.deviation, before.n), _with_interval(now, before.deviation))
        for before, now in pairs
    ]
    return _combined(weights, [before for before, _ in levels]), _combined(weights, [now for _, now in levels])


def is_below(level: ScoreLevel, limit: float) -> bool:
    """Return whether a mean is below a limit. If there are few scores, the whole interval must be below the limit."""
    is_certain = level.n >= MIN_TRAILING_SCORES or (level.interval is not None and level.interval[1] < limit)
    return level.mean < limit and is_certain


def affected_routes(baseline: Baseline, arrivals: Sequence[DetectorScore], min_drop: float) -> tuple[str, ...]:
    """Return the routes that a drop affects, or an empty tuple if it affects the whole service.

    Each affected route has fallen by more than twice the standard error of the difference and by more than half of
    ``min_drop``. Together, the affected routes account for at least 80 % of the drop, and the other routes have fallen
    by less than half as much.
    """
    counts = Counter(_stream_of(baseline, arrival.route) for arrival in arrivals)
    compared = {name: compared_levels(baseline, arrivals, name) for name in counts}
    falls = {name: levels[0].mean - levels[1].mean for name, levels in compared.items() if levels is not None}
    affected = []
    for name, fall in falls.items():
        route = baseline.routes[name]
        error = hypot(route.deviation / sqrt(counts[name]), route.deviation / sqrt(route.n), route.committed_wander)
        if counts[name] >= MIN_ROUTE_SCORES and fall > max(2 * error, min_drop / 2):
            affected.append(name)
    if POOLED_ROUTE in affected or not 0 < len(affected) < len(baseline.routes):
        return ()

    def total(names: Iterable[str]) -> tuple[float, int]:
        return sum(counts[name] * falls[name] for name in names), sum(counts[name] for name in names)

    inside, inside_count = total(affected)
    outside, outside_count = total(falls.keys() - affected)
    is_on_routes = inside >= ROUTES_SHARE * (inside + outside)
    is_elsewhere_too = outside_count > 0 and outside / outside_count >= inside / inside_count / 2
    return tuple(sorted(affected)) if is_on_routes and not is_elsewhere_too else ()


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


def _combined(weights: Sequence[float], levels: Sequence[ScoreLevel]) -> ScoreLevel:
    """Return the weighted mean of independent levels. Intervals are combined as in :mod:`germane.alerting.evidence`."""
    mean = sum(weight * level.mean for weight, level in zip(weights, levels, strict=True))
    parts = [(weight, level.mean, level.interval) for weight, level in zip(weights, levels, strict=True)]
    interval: tuple[float, float] | None = None
    if all(ends is not None for _, _, ends in parts):
        below = hypot(*(weight * (center - ends[0]) for weight, center, ends in parts if ends))
        above = hypot(*(weight * (ends[1] - center) for weight, center, ends in parts if ends))
        interval = (max(0.0, mean - below), min(1.0, mean + above))
    return ScoreLevel(mean=mean, n=sum(level.n for level in levels), interval=interval)


def _share_level(share: float, n: int) -> ScoreLevel:
    share = min(1.0, max(0.0, share))
    return ScoreLevel(mean=share, n=n, interval=wilson_interval(share, n))
