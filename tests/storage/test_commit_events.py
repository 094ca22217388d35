"""Events of committed transactions, and the state of the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.db import tables
from germane.storage.db.engine import CommitEvent, record_events
from germane.testing import transaction

LEASE = timedelta(seconds=60)
SCORERS = {"a": "f1", "b": "f2"}
NOT_DRAWN = dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED)
Make = Callable[..., Exchange]


@pytest.fixture
def events() -> Counter[CommitEvent]:
    return Counter()


@pytest.fixture
def reporting_store(migrated_url: str, clock: Any, events: Counter[CommitEvent]) -> Iterator[TrackingStore]:
    """A store that reports committed transactions."""
    opened = TrackingStore(migrated_url, clock=clock, on_commit=events.update)
    yield opened
    opened.close()


def test_reported_commit_events_match_the_tally(
    reporting_store: TrackingStore, make: Make, events: Counter[CommitEvent]
) -> None:
    """Each stored or dropped exchange and each finished task is reported once."""
    reporting_store.exchanges.add([make(number, route=f"route-{number % 2}") for number in range(6)])
    reporting_store.exchanges.count_dropped({("shop", "route-0"): 3}, ["a", "b"], UnscoredReason.EXCHANGE_LIMIT)
    exchanges = reporting_store.sampling.list_undecided(9)
    reporting_store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "sampled") for one in exchanges[:4]], SCORERS)
    reporting_store.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "not_sampled", NOT_DRAWN) for one in exchanges[4:]], SCORERS
    )
    tasks = [
        task for claim in reporting_store.queue.claim_tasks("me", SCORERS, limit=4, lease=LEASE) for task in claim.tasks
    ]
    ends: dict[str, Any] = {"a": {"value": 0.5}, "b": {"reason": UnscoredReason.UNPARSABLE}}
    scores = [Score(scorer=task.scorer, fingerprint=task.fingerprint, **ends[task.scorer]) for task in tasks]
    reporting_store.queue.complete_tasks("me", list(zip(tasks, scores, strict=True)))

    with transaction(reporting_store, read_only=True) as connection:
        table = tables.tally.c
        query = select(table.route, table.scorer, table.outcome, table.reason, func.sum(table.count))
        query = query.where(table.outcome.in_(["scored", "skipped", "failed"]))
        rows = connection.execute(query.group_by(*list(query.selected_columns)[:4]))
        tally = {tuple(row[:4]): int(row[4]) for row in rows}
    assert {key: count for key, count in events.items() if key[1]} == tally
    assert {key: count for key, count in events.items() if not key[1]} == {
        ("route-0", "", "stored", ""): 3,
        ("route-1", "", "stored", ""): 3,
        ("route-0", "", "dropped", "exchange_limit"): 3,
    }


def note_and_fail(store: TrackingStore) -> None:
    with transaction(store) as connection:
        record_events(connection, {("ask", "", "stored", ""): 1})
        raise ZeroDivisionError


def test_a_rolled_back_transaction_reports_no_commit_events(
    reporting_store: TrackingStore, make: Make, events: Counter[CommitEvent]
) -> None:
    """Its events are not reported with the connection's next transaction either."""
    reporting_store.exchanges.add([make()])
    events.clear()
    with pytest.raises(ZeroDivisionError):
        note_and_fail(reporting_store)

    reporting_store.exchanges.declare_routes("shop", ["ask"])
    assert not events


def test_reopening_a_task_does_not_change_event_counts(
    reporting_store: TrackingStore, make: Make, events: Counter[CommitEvent]
) -> None:
    """Event counts only grow: a skipped task that is scored later is counted as finished twice."""
    exchange = make()
    reporting_store.exchanges.add([exchange])
    reporting_store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.1, "not_sampled", NOT_DRAWN)], SCORERS)
    before = Counter(events)

    assert reporting_store.sampling.apply_feedback([], [exchange.id], SCORERS) == 2
    assert events == before


def test_scoring_lag_is_the_age_of_the_oldest_waiting_exchange(store: TrackingStore, make: Make, clock: Any) -> None:
    """Undecided exchanges and ready tasks count; candidates do not."""
    assert (
        store.backlog.load_backlog(alive_within=LEASE).lag,
        bool(store.backlog.load_backlog(alive_within=LEASE).outstanding),
    ) == (timedelta(), False)
    decided, undecided = make(59), make(58)
    store.exchanges.add([decided])
    store.sampling.assign_tasks([SamplingDecision(decided.id, 1.0, "candidate")], {"a": "f1"})
    clock.advance(minutes=5)
    with transaction(store) as connection:
        connection.execute(tables.scoring_task.update().values(due_at=None))
    assert store.backlog.load_backlog(alive_within=LEASE).lag == timedelta()
    with transaction(store) as connection:
        connection.execute(tables.scoring_task.update().values(due_at=clock()))
    assert store.backlog.load_backlog(alive_within=LEASE).lag == timedelta(minutes=5)
    store.exchanges.add([undecided])

    backlog = store.backlog.load_backlog(alive_within=LEASE)
    assert backlog.lag == timedelta(minutes=7)
    assert backlog.outstanding.undecided == 1
    assert [(one.scorer, one.ready) for one in backlog.outstanding.tasks] == [("a", 1)]


def test_workers_with_a_recent_heartbeat_are_counted(store: TrackingStore, clock: Any) -> None:
    """Workers whose last heartbeat is older are not counted."""
    named = {"host": "h", "pid": 1, "service": "shop", "version": "0", "scorers": {}, "concurrency": 1, "in_flight": 0}
    with transaction(store) as connection:
        for number, seconds in enumerate((0, 59, 61)):
            seen = clock() - timedelta(seconds=seconds)
            row = {**named, "id": str(number), "started_at": seen, "seen_at": seen}
            connection.execute(insert(tables.worker).values(row))

    assert store.backlog.load_backlog(alive_within=LEASE).workers == 2
