"""What waits is told by scorer, and counted no further than anybody needs to know."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage import SamplingDecision, TrackingStore
from germane.storage.queue.backlog import BACKLOG_COUNT_LIMIT

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
SCORERS = {"a": "f1", "b": "f2"}


@pytest.fixture
def busy(store: TrackingStore, make: Make, clock: Any) -> TrackingStore:
    """A store of which tasks of two scorers are ready, put off, running and abandoned, beside candidates of one."""
    store.exchanges.add([make(number) for number in range(12)])
    ids = [one.id for one in store.sampling.list_undecided(12)]
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


def test_what_few_tasks_wait_for_is_counted_as_all_of_them_are(busy: TrackingStore) -> None:
    """The pulse says the same as counting every task does: what runs, and what is late, is counted once."""
    queue = busy.queue.load_health().queue

    assert queue == busy.queue.load_outstanding().tasks
    assert [(one.ready, one.postponed, one.running, one.candidates) for one in queue] == [(4, 2, 3, 3), (8, 0, 1, 0)]


def test_nothing_waits_where_nothing_was_assigned(store: TrackingStore) -> None:
    """A new database has no queue."""
    assert (
        store.queue.load_health().queue,
        store.queue.load_health().waiting,
        store.queue.load_health().is_capped,
    ) == ((), 0, False)


def test_of_very_many_no_more_is_counted_than_anybody_needs_to_know(
    store: TrackingStore, fill: Callable[[str], None]
) -> None:
    """The count stops, says so, and the oldest of those that are up first is still told."""
    fill("judge_timeout")
    pulse, (trouble,) = store.queue.load_health(), store.queue.list_retries()

    assert [one.ready for one in pulse.queue] == [BACKLOG_COUNT_LIMIT]
    assert (pulse.waiting, pulse.retried, pulse.is_capped) == (BACKLOG_COUNT_LIMIT, BACKLOG_COUNT_LIMIT, True)
    assert pulse.oldest_waiting_at == pulse.queue[0].waiting_since
    assert (trouble.tasks, trouble.is_capped, trouble.last_error) == (BACKLOG_COUNT_LIMIT, True, "as it is")


@pytest.fixture
def fill(store: TrackingStore) -> Callable[[str], None]:
    """Writes more tasks of one scorer than are counted."""

    def write(reason: str) -> None:
        numbers = f"WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= {BACKLOG_COUNT_LIMIT})"
        columns = "exchange_id, scorer, fingerprint, state, reason, error, claims, first_pending_at, not_before"
        moment = "'2026-01-01 00:00:00+00'" if "postgresql" in store.name else "'2026-01-01 00:00:00'"
        values = f"CAST(n AS TEXT), 'a', 'f1', 'pending', '{reason}', 'as it is', 1, {moment}, {moment}"
        with store._database.write() as connection:
            connection.exec_driver_sql(f"INSERT INTO scoring_task ({columns}) {numbers} SELECT {values} FROM numbers")

    return write
