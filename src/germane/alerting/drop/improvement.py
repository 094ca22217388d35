"""Detection of lasting improvements, so that a later return to the old level can be detected as a drop.

An improvement is a drop in the mirrored scores 1 - x, so the drop detector can detect it. Noncommittal answers count as
0, because fewer of them are also an improvement.
"""

from __future__ import annotations

from dataclasses import replace
from math import hypot

from germane.alerting.detector.score_batch import ScoreBatch
from germane.alerting.drop.new_routes import without_zeros
from germane.baseline import Baseline


def mirrored_baseline(baseline: Baseline) -> Baseline:
    """Return the baseline that the mirrored scores would have."""
    routes = {}
    for name, route in baseline.routes.items():
        # The mean of all scores is (1 - zero rate) * (mean of nonzero scores), so its wander is derived from theirs.
        wander = hypot((1 - route.zero_rate) * route.committed_wander, route.committed_mean * route.zero_wander)
        routes[name] = replace(
            route,
            mean=1 - route.mean,
            committed=route.n,
            committed_mean=1 - route.mean,
            committed_deviation=route.deviation,
            zero_rate=0.0,
            committed_wander=wander,
            zero_wander=0.0,
            committed_per_day=route.scores_per_day,
        )
    return replace(baseline, mean=1 - baseline.mean, committed_per_day=baseline.scores_per_day, routes=routes)


def mirrored_scores(batch: ScoreBatch) -> ScoreBatch:
    """Return the scores with each value x replaced by 1 - x."""
    scores = without_zeros(batch)
    return without_zeros(ScoreBatch(scores.routes, 1 - scores.values, scores.zeros, scores.times))
