"""Detection of lasting improvements, so that a later return to the old level can be detected as a drop.

An improvement is a drop in the mirrored scores 1 - x, so the drop detector can detect it. Noncommittal answers count as
0, because fewer of them are also an improvement.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np

from germane.alerting.detector.score_batch import ScoreBatch
from germane.alerting.drop.scope import DAY, learn_from_store
from germane.baseline import Baseline
from germane.storage import BaselineKey, TrackingStore

GUARD_DAYS: Final = (3, 7, 14)
"""Ages in days at which an improved level is learned, and learned again from all its scores."""
_MIN_VALUE: Final = 1e-9


def mirrored_baseline(baseline: Baseline) -> Baseline:
    """Return the baseline that the mirrored scores would have."""
    routes = {}
    for name, route in baseline.routes.items():
        routes[name] = replace(
            route,
            mean=1 - route.mean,
            committed=route.n,
            committed_mean=1 - route.mean,
            committed_deviation=route.deviation,
            zero_rate=0.0,
            committed_wander=route.wander,
            zero_wander=0.0,
            committed_per_day=route.scores_per_day,
        )
    return replace(baseline, mean=1 - baseline.mean, committed_per_day=baseline.scores_per_day, routes=routes)


def mirrored_scores(batch: ScoreBatch) -> ScoreBatch:
    """Return the scores with each value x replaced by 1 - x."""
    scores = without_zeros(batch)
    return without_zeros(ScoreBatch(scores.routes, 1 - scores.values, scores.zeros, scores.times))


def without_zeros(batch: ScoreBatch) -> ScoreBatch:
    """Return the scores with noncommittal answers replaced by values near 0, so that one mean covers all answers."""
    values = np.where(batch.zero_flags(), _MIN_VALUE, np.maximum(batch.clipped_values(), _MIN_VALUE))
    return ScoreBatch(batch.routes, values, np.zeros(len(batch), dtype=np.bool_), batch.times)


def is_guard_due(guard: Baseline | None, onset: datetime, now: datetime) -> bool:
    """Return whether an improved level is to be learned: for the first time, or from more days than before."""
    known = (guard.until - guard.since) / DAY if guard is not None and guard.since >= onset else 0.0
    return any(known < days <= (now - onset) / DAY for days in GUARD_DAYS)


def learn_guard(
    store: TrackingStore, key: BaselineKey, baseline: Baseline, onset: datetime, now: datetime
) -> Baseline | None:
    """Return the improved level as a baseline for scores that are limited to the traffic of the active baseline.

    Return None if there are too few scores.
    """
    found = learn_from_store(store, key, onset, now)
    if not found.routes:
        return None
    return found.with_traffic(min(1.0, baseline.scores_per_day / found.scores_per_day))
