"""Baselines carried over to a new judge, by the shift between both judges on the anchors.

Without it, drops would be missed while a baseline is learned from the new judge's scores.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from math import hypot
from typing import Final

from germane.alerting.drop.scope import with_routes
from germane.alerting.intervals import TWO_SIDED_Z
from germane.baseline import Baseline, RouteBaseline
from germane.statistics import JudgeShift, estimate_shift
from germane.storage import TrackingStore

MAX_SPAN: Final = timedelta(days=28)
"""Maximum length of the window that a baseline claims after it was carried over. After the same time again, it is
learned from scores of the new judge alone."""


def load_committed_shift(store: TrackingStore, scorer: str, old: str, new: str) -> JudgeShift | None:
    """Return the shift of scores that are not zero between two fingerprints, or None without enough anchors.

    Zeros are refusals, which most scorers detect without the judge.
    """
    pairs = store.anchors.load_pairs(scorer, old, new)
    if pairs is None:
        return None
    committed = (pairs.old != 0) & (pairs.new != 0)
    return estimate_shift(pairs.old[committed], pairs.new[committed], pairs.baseline_counts[committed])


def carry_over(old: Baseline, fingerprint: str, shift: JudgeShift, until: datetime) -> Baseline:
    """Return a baseline with each route's level shifted, whose window ends when the new judge began.

    The error of the shift adds to the wander, so that it does not look like a drop.
    """
    error = (shift.interval[1] - shift.interval[0]) / (2 * TWO_SIDED_Z)
    routes = {name: _shifted(route, shift.size, error) for name, route in old.routes.items()}
    since = until - min(MAX_SPAN, old.until - old.since)
    return with_routes(replace(old, fingerprint=fingerprint, since=since, until=until), routes)


def _shifted(route: RouteBaseline, size: float, error: float) -> RouteBaseline:
    committed_mean = min(1.0, max(0.0, route.committed_mean + size))
    change = (committed_mean - route.committed_mean) * (1 - route.zero_rate)
    return replace(
        route,
        committed_mean=committed_mean,
        mean=min(1.0, max(0.0, route.mean + change)),
        committed_wander=hypot(route.committed_wander, error),
    )
