"""Detection of bad answers on new routes that are not in the baseline yet.

While a new route is being learned, it has no normal level from which it could drop. Instead, its scores are compared
with a level that is low for both the scorer and the service: the upper edge of the lowest band, or the lowest mean of
the other routes if that is lower. Cosine scores have no fixed bands, so for them, the level is a fixed distance below
the other routes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from germane.alerting.detector.score_batch import ScoreBatch
from germane.baseline import Baseline, RouteBaseline
from germane.score import COSINE_SCORERS, LOW_SCORE
from germane.storage import DetectorState

COSINE_DISTANCE: Final = 0.15
"""Distance below the lowest mean of the other routes at which a new route's cosine scores count as low."""
ASSUMED_DEVIATION: Final = 0.3
"""Assumed standard deviation of a new route's scores. It is about the largest that occurs in practice."""
ASSUMED_WANDER: Final = 0.03
"""Assumed day-to-day wander of a new route, as in a provisional baseline."""
_MANY: Final = 1_000_000
"""Number of scores attributed to a level that was chosen rather than estimated."""
_MIN_VALUE: Final = 1e-9


def low_level(baseline: Baseline) -> float:
    """Return the mean score, in [0, 1], below which a new route counts as bad."""
    lowest = min(route.mean for route in baseline.routes.values())
    return max(0.0, lowest - COSINE_DISTANCE) if baseline.scorer in COSINE_SCORERS else min(LOW_SCORE, lowest)


def bad_new_routes(progress: DetectorState) -> set[str]:
    """Return the new routes with bad answers, from a stored detector state."""
    return {route for route, detector in progress.state.get("new_routes", {}).items() if detector["firing"]}


def new_route_baseline(baseline: Baseline, route: str) -> Baseline:
    """Return a baseline against which a detector fires if a new route's mean is lower than :func:`low_level`."""
    level = low_level(baseline)
    level_as_route = RouteBaseline(
        n=_MANY,
        mean=level,
        deviation=ASSUMED_DEVIATION,
        committed=_MANY,
        committed_mean=level,
        committed_deviation=ASSUMED_DEVIATION,
        zero_rate=0.0,
        committed_wander=ASSUMED_WANDER,
        zero_wander=0.0,
        scores_per_day=baseline.scores_per_day,
        committed_per_day=baseline.scores_per_day,
    )
    return replace(baseline, routes={route: level_as_route}, pooled=frozenset())


def without_zeros(batch: ScoreBatch) -> ScoreBatch:
    """Return the scores with noncommittal answers replaced by values near 0, so that one mean covers all answers."""
    values = np.where(batch.zero_flags(), _MIN_VALUE, np.maximum(batch.clipped_values(), _MIN_VALUE))
    return ScoreBatch(batch.routes, values, np.zeros(len(batch), dtype=np.bool_), batch.times)
