"""What a drop looks like in numbers: before and since, in the whole and where the evidence sits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from germane.alert import Level
from germane.alerting.detector import Carrier
from germane.baseline import OTHER, Baseline, RouteBaseline
from germane.storage import Arrival
from germane.storage.stats.estimate import Sums, estimate, quantile

TRAILING: Final = timedelta(days=1)
"""Over which the mean is taken that makes a drop critical."""
ENOUGH: Final = 20
"""Fewer scores than this decide nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """One half of one stream that carries the evidence, before and since."""

    route: str | None
    """None: the service as a whole."""
    half: str
    """committed: the mean of answers that answer; zero: the rate of those that do not."""
    before: Level
    since: Level

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        levels = {"before": self.before, "since": self.since}
        plain = {
            name: {"mean": one.mean, "n": one.n, "interval": one.interval and list(one.interval)}
            for name, one in levels.items()
        }
        return {"route": self.route, "half": self.half, **plain}


def usual(baseline: Baseline) -> Level:
    """Return the level of a baseline."""
    return _known(baseline.mean, baseline.deviation, baseline.n)


def level_of(arrivals: Sequence[Arrival]) -> Level | None:
    """Return the mean of scores, counted as within [0, 1], with its interval; None without any."""
    if not arrivals:
        return None
    y = np.clip([one.value for one in arrivals], 0.0, 1.0) * [not one.zero for one in arrivals]
    n, n_zero, total, squares = len(y), int((y == 0).sum()), float(y.sum()), float((y**2).sum())
    found = estimate(
        Sums(
            n=n,
            n_zero=n_zero,
            w=n,
            w_zero=n_zero,
            ww=n,
            ww_zero=n_zero,
            wy=total,
            wyy=squares,
            wwy=total,
            wwyy=squares,
            w_low=0.0,
            w_noncommittal=0.0,
        )
    )
    return Level(mean=found.mean, n=n, interval=found.interval)


def carried(carrier: Carrier, baseline: Baseline, arrivals: Sequence[Arrival]) -> Carried | None:
    """Return what a carrier was and is now; None without a score of it since."""
    route = carrier.route
    mine = [one for one in arrivals if route is None or _stream(baseline, one.route) == route]
    known = list(baseline.routes.values()) if route is None else [baseline.routes[route]]
    if carrier.half == "zero":
        since = _share([one.zero or one.value <= 0 for one in mine])
        before = _rate(known)
    else:
        committed = [one for one in mine if not one.zero and one.value > 0]
        since = level_of(committed)
        before = _committed(known)
    return None if since is None else Carried(route=route, half=carrier.half, before=before, since=since)


def fallen_by(baseline: Baseline, arrivals: Sequence[Arrival], now: datetime) -> float | None:
    """Return how far the trailing mean lies under what these routes usually have; None where too few tell.

    Route by route, so that other questions than usual are no drop.
    """
    lately = [one for one in arrivals if one.arrived_at > now - TRAILING]
    found = level_of(lately)
    if found is None or found.n < ENOUGH:
        return None
    counts = Counter(_stream(baseline, one.route) for one in lately)
    return sum(count * baseline.routes[route].mean for route, count in counts.items()) / found.n - found.mean


def _stream(baseline: Baseline, route: str) -> str:
    return OTHER if route in baseline.pooled else route


def _known(mean: float, deviation: float, n: int) -> Level:
    half = quantile(n - 1) * deviation / math.sqrt(n) if n > 1 else None
    return Level(mean=mean, n=n, interval=None if half is None else (max(0.0, mean - half), min(1.0, mean + half)))


def _committed(routes: Sequence[RouteBaseline]) -> Level:
    """Return the mean of the committed answers of routes; its interval is of the chance within routes."""
    n = sum(one.committed for one in routes)
    mean = sum(one.committed * one.committed_mean for one in routes) / n if n else 0.0
    variance = sum(one.committed * one.committed_deviation**2 for one in routes) / n if n else 0.0
    return _known(mean, math.sqrt(variance), n)


def _rate(routes: Sequence[RouteBaseline]) -> Level:
    n = sum(one.n for one in routes)
    return _share_of(sum(one.zero_rate * (one.n + 1) - 0.5 for one in routes) / n, n)


def _share(flags: Sequence[bool]) -> Level | None:
    return _share_of(sum(flags) / len(flags), len(flags)) if flags else None


def _share_of(share: float, n: int) -> Level:
    """Return a share with its Wilson interval.

    Source: E. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927.
    """
    share = min(1.0, max(0.0, share))
    z = quantile(10**9)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Level(mean=share, n=n, interval=(max(0.0, centre - half), min(1.0, centre + half)))
