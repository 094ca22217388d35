"""Stored scores, as a detector would have seen them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from germane.alerting.detector import ScoreBatch, is_sampled, learn_baseline, sampling_rate
from germane.alerting.drop.scope import matches_scope
from germane.baseline import Baseline
from germane.storage import BaselineKey, DetectorScore, DetectorScoreQuery, TrackingStore

DAY: Final = timedelta(days=1)


def to_batch(arrivals: Sequence[DetectorScore]) -> ScoreBatch:
    """Return scores as a detector processes them."""
    return ScoreBatch(
        [arrival.route for arrival in arrivals],
        np.array([arrival.value for arrival in arrivals], dtype=np.float64),
        np.array([arrival.is_zero for arrival in arrivals], dtype=np.bool_),
        np.array([arrival.arrived_at.timestamp() for arrival in arrivals], dtype=np.float64),
    )


def score_query(key: BaselineKey, since: datetime, until: datetime) -> DetectorScoreQuery:
    """Return the query for the scores of a baseline key that arrived within a window."""
    return DetectorScoreQuery(
        service=key.service, scorer=key.scorer, fingerprint=key.fingerprint, since=since, until=until
    )


def load_sampled_scores(
    store: TrackingStore, key: BaselineKey, since: datetime, until: datetime, rate: float
) -> list[DetectorScore]:
    """Return the scores of a window that a detector with this sampling rate processes, in order of arrival."""
    query = score_query(key, since, until)
    arrivals = store.detectors.list_past_scores(
        query, lambda exchange_id: is_sampled(exchange_id, rate), attributes=bool(key.scope)
    )
    return [arrival for arrival in arrivals if matches_scope(key.scope, arrival.attributes)]


def first_arrival(store: TrackingStore, key: BaselineKey, since: datetime, until: datetime) -> datetime:
    """Return when the first score of a window arrived, or ``since`` if there is none.

    Rates per day are counted from there.
    """
    if key.scope:
        return next((arrival.arrived_at for arrival in load_sampled_scores(store, key, since, until, 1.0)), since)
    earliest = store.detectors.first_score_times(score_query(key, since, until))
    return since if earliest is None else earliest[1]


def learn_from_store(store: TrackingStore, key: BaselineKey, since: datetime, until: datetime) -> Baseline:
    """Learn a baseline from the stored scores of a window. It has no routes if there are too few scores."""
    if key.scope:
        count = len(load_sampled_scores(store, key, since, until, 1.0))
    else:
        count = store.detectors.count_past_scores(score_query(key, since, until))
    rate = sampling_rate(count / ((until - since) / DAY))
    return learn_from_batch(key, to_batch(load_sampled_scores(store, key, since, until, rate)), since, until, rate)


def learn_from_batch(key: BaselineKey, batch: ScoreBatch, since: datetime, until: datetime, rate: float) -> Baseline:
    """Learn a baseline from sampled scores of a window."""
    return learn_baseline(
        batch,
        service=key.service,
        scorer=key.scorer,
        fingerprint=key.fingerprint,
        since=since.timestamp(),
        until=until.timestamp(),
        sampling_rate=rate,
    )
