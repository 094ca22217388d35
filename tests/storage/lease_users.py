"""The five users of leases, each behind the same four functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Table
from tests.deliveries import SENT
from tests.storage.conftest import ELEVEN, NOON, an_exchange
from tests.storage.test_notifications import enqueue, make_alert, make_notification

from germane.score import Score
from germane.storage import (
    HistorySelection,
    OutgoingRequest,
    PartitionClaim,
    PartitionKey,
    ReceivedItem,
    SamplingDecision,
    TraceOutcome,
    TrackingStore,
    channel_queue,
    forwarding_queue,
)
from germane.storage.db import tables

LEASE = timedelta(seconds=60)
ROWS_PER_CLAIM = 2
SCORERS = {"relevancy": "f1"}
ONCALL = channel_queue("oncall")
THERE = replace(forwarding_queue("http://localhost:6006"), batch_size=ROWS_PER_CLAIM)


@dataclass(frozen=True, slots=True)
class LeaseUser:
    """One kind of rows, and what a process does with them."""

    name: str
    table: Table
    add: Callable[[TrackingStore, int], None]
    """Add a number of rows that are due."""
    claim: Callable[[TrackingStore, str], Sequence[Any]]
    """Claim up to two rows for an owner, and return what it needs to finish them."""
    finish: Callable[[TrackingStore, str, Sequence[Any]], int]
    """Finish claimed rows, and return how many were finished."""
    effects: Callable[[TrackingStore], int]
    """Return the number of effects of finished rows. Rows without an effect in the database have none."""

    def __str__(self) -> str:
        return self.name


def _add_tasks(store: TrackingStore, count: int) -> None:
    exchanges = [an_exchange(number / 60) for number in range(count)]
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "uniform") for one in exchanges], SCORERS)


def _finish_tasks(store: TrackingStore, owner: str, claims: Sequence[Any]) -> int:
    results = [
        (task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5))
        for claim in claims
        for task in claim.tasks
    ]
    return len(store.queue.complete_tasks(owner, results))


def _add_notifications(store: TrackingStore, count: int) -> None:
    enqueue(store, *(make_notification(f"n{number}", make_alert(f"r{number}")) for number in range(count)))


def _claim_notifications(store: TrackingStore, owner: str) -> Sequence[Any]:
    claimed = [store.outbox.claim(ONCALL, owner, lease=LEASE) for _ in range(ROWS_PER_CLAIM)]
    return [item for items in claimed for item in items]


def _finish_notifications(store: TrackingStore, owner: str, claims: Sequence[Any]) -> int:
    return sum(store.outbox.record_attempt(ONCALL, owner, {one.id: SENT}) == {one.id: "sent"} for one in claims)


def _add_traces(store: TrackingStore, count: int) -> None:
    spans = [ReceivedItem(uuid4().hex, f"{1:016x}", False, "shop", "scope", b"span", 0.0) for _ in range(count)]
    store.received.stage(spans, max_wait=0.0)


def _finish_traces(store: TrackingStore, owner: str, claims: Sequence[Any]) -> int:
    outcomes = [TraceOutcome(trace, an_exchange(id=trace.trace_id)) for trace in claims]
    return len(store.received.complete(owner, outcomes))


def _add_requests(store: TrackingStore, count: int) -> None:
    requests = [OutgoingRequest("traces", b"spans") for _ in range(count)]
    store.received.stage([], max_wait=0.0, requests=requests, target=THERE.target)


def _finish_requests(store: TrackingStore, owner: str, claims: Sequence[Any]) -> int:
    return sum(store.outbox.record_attempt(THERE, owner, {one.id: SENT}) == {one.id: "sent"} for one in claims)


def _add_partitions(store: TrackingStore, count: int) -> None:
    _add_tasks(store, 2 * count)
    while claims := store.queue.claim_tasks("scored before", SCORERS, limit=100, lease=LEASE):
        _finish_tasks(store, "scored before", claims)
    selection = HistorySelection(since=ELEVEN, until=NOON, scorers={"relevancy": "f2"})
    store.history.create_run(selection, partition_size=2)


def _claim_partitions(store: TrackingStore, owner: str) -> Sequence[Any]:
    claimed: list[PartitionClaim] = []
    for run in store.history.list_unfinished():
        for number in store.history.list_open_partitions(run.id):
            found = store.history.claim_partition(PartitionKey(run.id, number), owner, lease=LEASE)
            claimed += [found] if isinstance(found, PartitionClaim) else []
            if len(claimed) == ROWS_PER_CLAIM:
                return claimed
    return claimed


def _finish_partitions(store: TrackingStore, owner: str, claims: Sequence[Any]) -> int:
    finished = 0
    for claimed in claims:
        items = store.history.load_items(claimed)
        scores = [(one.exchange.id, Score(scorer="relevancy", fingerprint="f2", value=0.5)) for one in items]
        finished += store.history.finish_partition(claimed, scores) is not None
    return finished


USERS = (
    LeaseUser(
        "tasks",
        tables.scoring_task,
        _add_tasks,
        lambda store, owner: store.queue.claim_tasks(owner, SCORERS, limit=ROWS_PER_CLAIM, lease=LEASE),
        _finish_tasks,
        lambda store: store.answers.counts().scores,
    ),
    LeaseUser(
        "notifications",
        tables.delivery,
        _add_notifications,
        _claim_notifications,
        _finish_notifications,
        lambda store: len(store.notifications.search(status="sent")),
    ),
    LeaseUser(
        "traces",
        tables.received_trace,
        _add_traces,
        lambda store, owner: store.received.claim(owner, limit=ROWS_PER_CLAIM, max_size=2**20, lease=LEASE),
        _finish_traces,
        lambda store: store.answers.counts().captured,
    ),
    LeaseUser(
        "forwarding",
        tables.delivery,
        _add_requests,
        lambda store, owner: store.outbox.claim(THERE, owner, lease=LEASE),
        _finish_requests,
        lambda store: 0,
    ),
    LeaseUser(
        "partitions",
        tables.partition,
        _add_partitions,
        _claim_partitions,
        _finish_partitions,
        lambda store: sum(run.scored for run in store.history.list_unfinished()) // 2,
    ),
)
