"""Worker heartbeats and task leases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import SamplingDecision, ScoringTask, TrackingStore, WorkerHeartbeat
from germane.storage.db.component import StoreContext
from germane.storage.db.engine import Database
from germane.storage.queue.store_tasks import TaskQueue

Make = Callable[..., Exchange]
Sampled = Callable[..., list[Exchange]]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1"}
ME = WorkerHeartbeat(id="a", host="h1", pid=7, service="shop", version="1", scorers=SCORERS, concurrency=4)


def claimed(store: TrackingStore, owner: str, limit: int = 9) -> list[ScoringTask]:
    """Return the tasks that an owner claims."""
    return [task for claim in store.queue.claim_tasks(owner, SCORERS, limit=limit, lease=LEASE) for task in claim.tasks]


def test_workers_are_listed_by_their_latest_heartbeat(store: TrackingStore, clock: Any) -> None:
    """Each has the times of its first and latest heartbeat; the latest comes first."""
    began = clock.now
    store.workers.heartbeat(ME, [], lease=LEASE)
    store.workers.heartbeat(replace(ME, id="b", host="h2\0"), [], lease=LEASE)
    clock.advance(seconds=15)
    store.workers.heartbeat(replace(ME, in_flight=3, problem="judge_rejected: key\ud800"), [], lease=LEASE)

    a, b = store.workers.list_workers()

    assert (a.id, a.host, a.pid, a.service, a.version) == ("a", "h1", 7, "shop", "1")
    assert (a.scorers, a.concurrency, a.in_flight, a.problem) == (SCORERS, 4, 3, "judge_rejected: key\ufffd")
    assert (a.started_at, a.seen_at) == (began, began + timedelta(seconds=15))
    assert (b.id, b.host, b.seen_at) == ("b", "h2\ufffd", began)
    assert [one.id for one in store.workers.list_workers(within=timedelta(seconds=14))] == ["a"]


def test_a_deregistered_worker_is_not_listed(store: TrackingStore) -> None:
    """Other workers are still listed."""
    for name in ("a", "b"):
        store.workers.heartbeat(replace(ME, id=name), [], lease=LEASE)

    store.workers.deregister_worker("a")

    assert [one.id for one in store.workers.list_workers()] == ["b"]


def test_a_heartbeat_renews_the_leases_of_running_tasks(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """No other worker can claim the task, regardless of the duration of scoring."""
    sampled(make())
    [task] = claimed(store, "a")
    for _ in range(20):
        clock.advance(seconds=45)
        assert store.workers.heartbeat(ME, [task.id], lease=LEASE) == 1
        assert claimed(store, "b") == []
    clock.advance(seconds=60)

    assert [one.id for one in claimed(store, "b")] == [task.id]


def test_a_heartbeat_does_not_renew_abandoned_tasks(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Abandoned tasks can be claimed when their lease ends, although the worker is alive."""
    sampled(make(0), make(1))
    kept, dropped = claimed(store, "a")
    clock.advance(seconds=30)
    store.workers.heartbeat(ME, [kept.id], lease=LEASE)
    clock.advance(seconds=30)

    assert [one.id for one in claimed(store, "b")] == [dropped.id]


def test_a_suspended_worker_does_not_regain_tasks_that_others_took_over(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Leases of tasks that another worker claimed, finished or postponed are not renewed; the others are."""
    sampled(*(make(number) for number in range(4)))
    tasks = claimed(store, "a")
    clock.advance(seconds=300)
    taken, finished, postponed = claimed(store, "b", 3)
    store.queue.complete_tasks("b", [(finished, Score(scorer="relevancy", fingerprint="f1", value=0.5))])
    until = clock.now + timedelta(seconds=5)
    store.queue.postpone_tasks("b", [postponed], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")

    assert store.workers.heartbeat(ME, [task.id for task in tasks], lease=timedelta(hours=1)) == 1

    assert store.queue.complete_tasks("a", [(taken, Score(scorer="relevancy", fingerprint="f1", value=0.1))]) == []
    clock.advance(seconds=60)
    assert {task.id for task in claimed(store, "c")} == {taken.id, postponed.id}


def test_a_heartbeat_renews_the_leases_of_any_number_of_tasks(
    store: TrackingStore, sampled: Sampled, make: Make
) -> None:
    """Several statements renew the leases."""
    sampled(*(make(number / 100) for number in range(600)))
    tasks = claimed(store, "a", 600)

    assert store.workers.heartbeat(ME, [task.id for task in tasks], lease=LEASE) == 600


def test_tasks_are_rescheduled_after_the_clock_was_set_back(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Neither a delay of a few seconds nor a dead worker's lease grows by the hour of the clock change."""
    sampled(make(0), make(1), make(120))
    late, held = claimed(store, "dead", 2)
    until = clock.now + timedelta(seconds=20)
    store.queue.postpone_tasks("dead", [late], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")
    clock.advance(hours=-1)
    assert claimed(store, "b") == []

    store.workers.heartbeat(ME, [], lease=LEASE, longest_wait=timedelta(minutes=5))

    back = {task.id for task in claimed(store, "b")}
    assert late.id in back
    assert len(back) == 2
    clock.advance(seconds=59)
    assert claimed(store, "c") == []
    clock.advance(seconds=1)
    assert held.id in {task.id for task in claimed(store, "c")}


def test_scheduled_retries_are_not_moved_forward(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """A requested delay is not shortened."""
    sampled(make())
    tasks = claimed(store, "a")
    until = clock.now + timedelta(minutes=5)
    store.queue.postpone_tasks("a", tasks, until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")

    store.workers.heartbeat(ME, [], lease=LEASE, longest_wait=timedelta(minutes=5))

    clock.advance(seconds=299)
    assert claimed(store, "a") == []


def test_a_held_lease_can_be_acquired_soon_after_the_clock_was_set_back(store: TrackingStore, clock: Any) -> None:
    """The lease is free within a minute, instead of an hour later. Small clock changes only delay it."""
    assert store.workers.acquire_lease("sampler", "dead", ttl=LEASE)
    clock.advance(seconds=-30)
    assert not store.workers.acquire_lease("sampler", "a", ttl=LEASE)
    clock.advance(hours=-1)

    assert store.workers.acquire_lease("sampler", "a", ttl=LEASE)
    assert not store.workers.acquire_lease("sampler", "b", ttl=LEASE)


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_tasks_and_leases_use_the_server_clock(migrated_url: str, make: Make, hours: int) -> None:
    """A process whose clock is an hour off neither claims others' tasks nor waits longer for them."""
    here, there = TrackingStore(migrated_url), TrackingStore(migrated_url)
    skewed = SkewedContext(there.context.database, timedelta(hours=hours))
    there.queue = TaskQueue(skewed)
    there.exchanges.add([make(), make()])
    there.sampling.assign_tasks(
        [SamplingDecision(one.id, 1.0, "sampled") for one in there.sampling.list_undecided(9)], SCORERS
    )

    [held] = claimed(there, "a", 1)
    there.workers.heartbeat(ME, [held.id], lease=LEASE)
    there.queue.postpone_tasks(
        "a", claimed(there, "a", 1), until=skewed.local_time(), reason=UnscoredReason.JUDGE_TIMEOUT, error="slow"
    )

    assert len(claimed(here, "b")) == 1
    assert here.workers.acquire_lease("sampler", "b", ttl=LEASE)
    assert not there.workers.acquire_lease("sampler", "a", ttl=LEASE)
    for store in (here, there):
        store.close()


class SkewedContext(StoreContext):
    """The context of a store on a host whose clock is off."""

    def __init__(self, database: Database, offset: timedelta) -> None:
        super().__init__(database)
        self.offset = offset

    def local_time(self) -> datetime:
        return super().local_time() + self.offset
