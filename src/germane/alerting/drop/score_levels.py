"""Levels before and since a drop: for the service as a whole, and for the contributors to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from germane.alert import ScoreLevel
from germane.alerting.detector import Contributor
from germane.alerting.intervals import wilson_interval
from germane.baseline import POOLED_ROUTE, Baseline
from germane.storage import DetectorScore, WeightedSums, estimate_mean, t_quantile

TRAILING_WINDOW: Final = timedelta(days=1)
"""Window of the mean that decides whether a drop is critical."""
MIN_TRAILING_SCORES: Final = 20
"""Fewer scores do not make a drop critical."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributorChange:
    """A contributor's level before and since a drop."""

    route: str | None
    """None for the service as a whole."""
    half: str
    """``committed``: the mean of committed answers. ``zero``: the share of noncommittal answers."""
    before: ScoreLevel
    since: ScoreLevel

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data."""
        levels = {
            name: {"mean": level.mean, "n": level.n, "interval": level.interval and list(level.interval)}
            for name, level in (("before", self.before), ("since", self.since))
        }
        return {"route": self.route, "half": self.half, **levels}


def baseline_level(baseline: Baseline) -> ScoreLevel:
    """Return the mean of a baseline with its interval."""
    return _t_level(baseline.mean, baseline.deviation, baseline.n)


def score_level(arrivals: Sequence[DetectorScore]) -> ScoreLevel | None:
    """Return the mean of scores, clipped to [0, 1], with its interval; None without scores."""
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
    """Return a contributor's level before and since a drop; None if it has no scores since."""
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
        # The interval covers sampling error within routes only.
        variance = sum(part.committed * part.committed_deviation**2 for part in routes) / n if n else 0.0
        before = _t_level(mean, math.sqrt(variance), n)
    if since is None:
        return None
    return ContributorChange(route=route, half=contributor.half, before=before, since=since)


def trailing_drop(baseline: Baseline, arrivals: Sequence[DetectorScore], now: datetime) -> float | None:
    """Return the baseline's mean minus the mean of the last day; None with fewer than 20 scores.

    Means are compared per route, so a changed mix of routes is not a drop.
    """
    recent = [arrival for arrival in arrivals if arrival.arrived_at > now - TRAILING_WINDOW]
    level = score_level(recent)
    if level is None or level.n < MIN_TRAILING_SCORES:
        return None
    counts = Counter(_stream_of(baseline, arrival.route) for arrival in recent)
    return sum(count * baseline.routes[route].mean for route, count in counts.items()) / level.n - level.mean


def _stream_of(baseline: Baseline, route: str) -> str:
    return POOLED_ROUTE if route in baseline.pooled else route


def _t_level(mean: float, deviation: float, n: int) -> ScoreLevel:
    """Return a mean with its t interval, clipped to [0, 1]."""
    half = t_quantile(n - 1) * deviation / math.sqrt(n) if n > 1 else None
    return ScoreLevel(mean=mean, n=n, interval=None if half is None else (max(0.0, mean - half), min(1.0, mean + half)))


def _share_level(share: float, n: int) -> ScoreLevel:
    share = min(1.0, max(0.0, share))
    return ScoreLevel(mean=share, n=n, interval=wilson_interval(share, n))
