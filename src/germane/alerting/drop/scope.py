"""Selection of the scores that a baseline and its rule cover, in the way a detector would process them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.limiter import UserLimit
from germane.alerting.detector.score_batch import ScoreBatch, is_sampled, sampling_rate
from germane.baseline import POOLED_ROUTE, Baseline, RouteBaseline
from germane.exchange import matches_attributes
from germane.storage import BaselineKey, DetectorScore, DetectorScoreQuery, TrackingStore

DAY: Final = timedelta(days=1)


def attribute_scope(attributes: Mapping[str, str]) -> str:
    """Convert attribute patterns to the format used in baseline keys: JSON with sorted names, or an empty string."""
    return json.dumps(dict(sorted(attributes.items()))) if attributes else ""


def restrict_to_routes(baseline: Baseline, matches_route: Callable[[str], bool]) -> Baseline:
    """Return a baseline with only the matching routes. The pool is kept if any of its routes matches."""
    pooled = frozenset(filter(matches_route, baseline.pooled))
    routes = {
        name: route
        for name, route in baseline.routes.items()
        if (bool(pooled) if name == POOLED_ROUTE else matches_route(name))
    }
    if routes.keys() == baseline.routes.keys() and pooled == baseline.pooled:
        return baseline
    return with_routes(replace(baseline, pooled=pooled), routes)


def is_new_route(baseline: Baseline, route: str) -> bool:
    """Return whether a route is not watched yet and may therefore join the baseline."""
    watched = route in baseline.routes or (POOLED_ROUTE in baseline.routes and route in baseline.pooled)
    return not watched and route != POOLED_ROUTE


def add_routes(baseline: Baseline, newcomers: Baseline) -> Baseline:
    """Add the routes of another baseline that are missing from a baseline. Existing routes keep their values."""
    new = {
        name: route for name, route in newcomers.routes.items() if name != POOLED_ROUTE and name not in baseline.routes
    }
    return with_routes(baseline, {**baseline.routes, **new})


def with_routes(baseline: Baseline, routes: Mapping[str, RouteBaseline]) -> Baseline:
    """Return a baseline with the given routes, and with totals that match them."""
    route_baselines = list(routes.values())
    n = sum(route.n for route in route_baselines)
    mean = sum(route.n * route.mean for route in route_baselines) / n if n else 0.0
    squares = sum((route.n - 1) * route.deviation**2 + route.n * (route.mean - mean) ** 2 for route in route_baselines)
    return replace(
        baseline,
        n=n,
        mean=mean,
        deviation=math.sqrt(squares / (n - 1)) if n > 1 else 0.0,
        scores_per_day=sum(route.scores_per_day for route in route_baselines),
        committed_per_day=sum(route.committed_per_day for route in route_baselines),
        routes=routes,
    )


def to_batch(arrivals: Sequence[DetectorScore]) -> ScoreBatch:
    """Convert scores to a batch that a detector can process."""
    return ScoreBatch(
        [arrival.route for arrival in arrivals],
        np.array([arrival.value for arrival in arrivals], dtype=np.float64),
        np.array([arrival.is_zero for arrival in arrivals], dtype=np.bool_),
        np.array([arrival.answered_at.timestamp() for arrival in arrivals], dtype=np.float64),
    )


def score_query(key: BaselineKey, since: datetime, until: datetime, *, by_answer: bool = False) -> DetectorScoreQuery:
    """Return the query for a baseline key's scores that arrived, or whose answers were given, within a window."""
    return DetectorScoreQuery(
        service=key.service,
        scorer=key.scorer,
        fingerprint=key.fingerprint,
        since=since,
        until=until,
        by_answer=by_answer,
    )


def load_sampled_scores(
    store: TrackingStore, key: BaselineKey, since: datetime, until: datetime, rate: float, *, by_answer: bool = False
) -> list[DetectorScore]:
    """Return the scores in a window that a detector with this sampling rate would process, in order of arrival.

    As in the detector, only a few scores per user per hour are included.
    """
    query = score_query(key, since, until, by_answer=by_answer)
    arrivals = store.detectors.list_past_scores(
        query, lambda exchange_id: is_sampled(exchange_id, rate), attributes=bool(key.scope)
    )
    patterns: dict[str, str] = json.loads(key.scope) if key.scope else {}
    users = UserLimit()
    return [
        arrival
        for arrival in arrivals
        if matches_attributes(arrival.attributes, patterns)
        and users.admits(arrival.user, arrival.answered_at.timestamp())
    ]


def first_arrival(store: TrackingStore, key: BaselineKey, since: datetime, until: datetime) -> datetime:
    """Return the arrival time of the first score in a window, or ``since`` if there is none.

    Daily rates are computed from this time.
    """
    if key.scope:
        return next((arrival.arrived_at for arrival in load_sampled_scores(store, key, since, until, 1.0)), since)
    earliest = store.detectors.first_score_times(score_query(key, since, until))
    return since if earliest is None else earliest[1]


def learn_from_store(store: TrackingStore, key: BaselineKey, since: datetime, until: datetime) -> Baseline:
    """Learn a baseline from the stored scores in a window. With too few scores, the baseline has no routes."""
    if key.scope:
        count = len(load_sampled_scores(store, key, since, until, 1.0))
    else:
        count = store.detectors.count_past_scores(score_query(key, since, until))
    rate = sampling_rate(count / ((until - since) / DAY))
    return learn_from_batch(key, to_batch(load_sampled_scores(store, key, since, until, rate)), since, until, rate)


def learn_from_batch(key: BaselineKey, batch: ScoreBatch, since: datetime, until: datetime, rate: float) -> Baseline:
    """Learn a baseline from sampled scores in a window."""
    return learn_baseline(
        batch,
        service=key.service,
        scorer=key.scorer,
        fingerprint=key.fingerprint,
        since=since.timestamp(),
        until=until.timestamp(),
        sampling_rate=rate,
    )
