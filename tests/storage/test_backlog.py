"""The backlog: counts per scorer up to a limit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.queue.backlog import BACKLOG_COUNT_LIMIT
from germane.testing import transaction

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"a": "f1", "b": "f2"}


@pytest.fixture
def busy_store(store: TrackingStore, make: Make, clock: Any) -> TrackingStore:
    """A store with ready, postponed, running and abandoned tasks of two scorers, and candidates of one."""
    store.exchanges.add([make(number) for number in range(12)])
    ids = [exchange.id for exchange in store.sampling.list_undecided(12)]
    store.sampling.assign_tasks([SamplingDecision(id_, 1.0, "sampled") for id_ in ids[:6]], SCORERS)
    store.queue.claim_tasks("gone", {"b": "f2"}, limit=1, lease=LEASE)
    clock.advance(minutes=5)
    store.sampling.assign_tasks([SamplingDecision(id_, 1.0, "sampled") for id_ in ids[6:9]], SCORERS)
    tasks = [task for claim in store.queue.claim_tasks("me", {"a": "f1"}, limit=5, lease=LEASE) for task in claim.tasks]
    until = clock.now + timedelta(minutes=9)
    store.queue.postpone_tasks(
        "me", tasks[:2], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="no answer in 30 s"
    )
    assert store.workers.acquire_lease("sampler", "me", ttl=LEASE)
    store.sampling.assign_tasks(
        [SamplingDecision(id_, None, "candidate") for id_ in ids[9:]], {"a": "f1"}, holder=("sampler", "me")
    )
    return store


def test_scoring_health_matches_the_exact_task_counts(busy_store: TrackingStore) -> None:
    """Both queries count each running or overdue task once."""
    queue = busy_store.health.load_health().queue

    assert queue == busy_store.backlog.load_outstanding().tasks
    assert [
        (scorer_queue.ready, scorer_queue.postponed, scorer_queue.running, scorer_queue.candidates)
        for scorer_queue in queue
    ] == [(4, 2, 3, 3), (8, 0, 1, 0)]


def test_new_database_has_an_empty_backlog(store: TrackingStore) -> None:
    """Without assigned tasks the backlog is zero and not capped."""
    assert (
        store.health.load_health().queue,
        store.health.load_health().waiting,
        store.health.load_health().is_capped,
    ) == ((), 0, False)


def test_large_backlog_count_is_capped(store: TrackingStore, fill_backlog: Callable[[str], None]) -> None:
    """Counting stops at the limit and reports it; the oldest waiting task is still reported."""
    fill_backlog("judge_timeout")
    health, (retries,) = store.health.load_health(), store.health.list_retries()

    assert [scorer_queue.ready for scorer_queue in health.queue] == [BACKLOG_COUNT_LIMIT]
    assert (health.waiting, health.retried, health.is_capped) == (BACKLOG_COUNT_LIMIT, BACKLOG_COUNT_LIMIT, True)
    assert health.oldest_waiting_at == health.queue[0].waiting_since
    assert (retries.tasks, retries.is_capped, retries.last_error) == (BACKLOG_COUNT_LIMIT, True, "as it is")


@pytest.fixture
def fill_backlog(store: TrackingStore) -> Callable[[str], None]:
    """Write more pending tasks for one scorer than the count limit."""

    def write(reason: str) -> None:
        numbers = (
            "WITH RECURSIVE numbers (n) AS "
            f"(SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= {BACKLOG_COUNT_LIMIT})"
        )
        columns = "exchange_id, scorer, fingerprint, state, reason, error, claims, first_pending_at, due_at"
        moment = "'2026-01-01 00:00:00+00'" if "postgresql" in store.name else "'2026-01-01 00:00:00'"
        values = f"CAST(n AS TEXT), 'a', 'f1', 'pending', '{reason}', 'as it is', 1, {moment}, {moment}"
        with transaction(store) as connection:
            connection.exec_driver_sql(f"INSERT INTO scoring_task ({columns}) {numbers} SELECT {values} FROM numbers")

    return write
