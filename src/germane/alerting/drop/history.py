"""Scores of the past, as a detector would have seen them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from germane.alerting.detector import Seen, kept, learn, thinning
from germane.alerting.drop.scope import in_scope
from germane.baseline import Baseline
from germane.storage import Arrival, Key, Past, Store

DAY: Final = timedelta(days=1)


def seen(arrivals: Sequence[Arrival]) -> Seen:
    """Return scores as a detector takes them."""
    return Seen(
        [one.route for one in arrivals],
        np.array([one.value for one in arrivals], dtype=np.float64),
        np.array([one.zero for one in arrivals], dtype=np.bool_),
        np.array([one.arrived_at.timestamp() for one in arrivals], dtype=np.float64),
    )


def past_of(key: Key, since: datetime, until: datetime) -> Past:
    """Return the name of the scores that arrived within a time."""
    return Past(service=key.service, scorer=key.scorer, fingerprint=key.fingerprint, since=since, until=until)


def heard(store: Store, key: Key, since: datetime, until: datetime, keep: float) -> list[Arrival]:
    """Return the scores that arrived within a time and reach a detector that keeps so many, in their order."""
    sought = past_of(key, since, until)
    found = store.past(sought, lambda exchange_id: kept(exchange_id, keep), attributes=bool(key.scope))
    return [one for one in found if in_scope(key.scope, one.attributes)]


def first_of(store: Store, key: Key, since: datetime, until: datetime) -> datetime:
    """Return when the first score of a time arrived: how many a day there are is to be counted from there on."""
    if key.scope:
        return next((one.arrived_at for one in heard(store, key, since, until, 1.0)), since)
    found = store.earliest(past_of(key, since, until))
    return since if found is None else found[1]


def keep_for(store: Store, key: Key, since: datetime, until: datetime) -> float:
    """Return the probability with which scores are to reach a detector that learns from this time."""
    count = len(heard(store, key, since, until, 1.0)) if key.scope else store.count_past(past_of(key, since, until))
    return thinning(count / ((until - since) / DAY))


def learned(store: Store, key: Key, since: datetime, until: datetime) -> Baseline:
    """Return what the scores of a time say of how a service behaves; no routes where there were too few."""
    keep = keep_for(store, key, since, until)
    return learned_from(key, seen(heard(store, key, since, until, keep)), since, until, keep)


def learned_from(key: Key, scores: Seen, since: datetime, until: datetime, keep: float) -> Baseline:
    """Return the same of scores that are there already."""
    return learn(
        scores,
        service=key.service,
        scorer=key.scorer,
        fingerprint=key.fingerprint,
        since=since.timestamp(),
        until=until.timestamp(),
        keep=keep,
    )
