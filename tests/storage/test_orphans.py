"""Orphaned tasks: tasks for scorers that no worker runs expire, and all other tasks are kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import Coverage, SamplingDecision, TrackingStore, WorkerHeartbeat

Make = Callable[..., Exchange]
Sampled = Callable[..., list[Exchange]]
LEASE = timedelta(seconds=60)
OLD_SCORER, NEW_SCORER = {"relevancy": "f1"}, {"relevancy": "f2"}


def send_heartbeat(store: TrackingStore, scorers: dict[str, str], name: str = "a") -> None:
    """Send one heartbeat from a worker with these scorers."""
    heartbeat = WorkerHeartbeat(id=name, host="h", pid=1, service="shop", version="1", scorers=scorers)
    store.workers.heartbeat(heartbeat, [], lease=LEASE)


@pytest.fixture
def send_heartbeats_for(store: TrackingStore, clock: Any) -> Callable[..., None]:
    """Send heartbeats every ten minutes from a worker with these scorers."""

    def run(minutes: int, scorers: dict[str, str], name: str = "a") -> None:
        send_heartbeat(store, scorers, name)
        for _ in range(minutes // 10):
            clock.advance(minutes=10)
            send_heartbeat(store, scorers, name)

    return run


def test_tasks_of_a_removed_scorer_expire_after_an_hour(
    store: TrackingStore, sampled: Sampled, make: Make, send_heartbeats_for: Callable[..., None]
) -> None:
    """The tasks are skipped with the reason ``expired``, and the counts agree. Tasks of running scorers are kept."""
    old, new = sampled(make(0)), sampled(make(1), scorers=NEW_SCORER)
    send_heartbeats_for(60, NEW_SCORER)
    assert store.orphans.list_orphaned_scorers() == [("relevancy", "f1")]

    assert (store.orphans.expire_orphaned_tasks(), store.orphans.expire_orphaned_tasks()) == (1, 0)

    [coverage] = store.trends.coverage()
    expected = Coverage(service="shop", route="ask", scorer="relevancy", seen=2, pending=1, skipped={"expired": 1})
    assert coverage == expected
    assert store.answers.counts().skipped_reasons == {UnscoredReason.EXPIRED: 1}
    assert store.orphans.list_orphaned_scorers() == []
    assert store.queue.claim_tasks("a", OLD_SCORER, limit=9, lease=LEASE) == []
    [claim] = store.queue.claim_tasks("a", NEW_SCORER, limit=9, lease=LEASE)
    assert [claim.exchange] == new != old


def test_new_tasks_of_a_removed_scorer_are_kept_for_an_hour(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any, send_heartbeats_for: Callable[..., None]
) -> None:
    """A task waits an hour even if its scorer has been gone for longer."""
    send_heartbeats_for(60, NEW_SCORER)
    sampled(make(0))
    send_heartbeats_for(50, NEW_SCORER)
    assert store.orphans.expire_orphaned_tasks() == 0
    send_heartbeats_for(10, NEW_SCORER)

    assert store.orphans.expire_orphaned_tasks() == 1


def test_scorer_seen_within_the_hour_keeps_its_tasks(
    store: TrackingStore, sampled: Sampled, make: Make, send_heartbeats_for: Callable[..., None]
) -> None:
    """A killed worker may restart, and a deployment may be rolled back."""
    sampled(make(0))
    send_heartbeats_for(10, OLD_SCORER, "old")
    send_heartbeats_for(60, NEW_SCORER, "new")
    assert store.orphans.expire_orphaned_tasks() == 0
    send_heartbeats_for(10, NEW_SCORER, "new")

    assert store.orphans.expire_orphaned_tasks() == 1


def test_tasks_survive_a_shutdown_of_all_workers(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any, send_heartbeats_for: Callable[..., None]
) -> None:
    """The first worker to start does not expire the tasks of a worker that starts a minute later."""
    sampled(make(0))
    assert store.orphans.expire_orphaned_tasks() == 0
    clock.advance(hours=12)
    send_heartbeats_for(50, NEW_SCORER)

    assert store.orphans.expire_orphaned_tasks() == 0


def test_claimed_tasks_do_not_expire_before_their_lease(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any, send_heartbeats_for: Callable[..., None]
) -> None:
    """Once the lease ends, they expire too, and a late result is dropped."""
    sampled(make(0))
    [claim] = store.queue.claim_tasks("old", OLD_SCORER, limit=1, lease=timedelta(minutes=90))
    send_heartbeats_for(70, NEW_SCORER)
    assert store.orphans.expire_orphaned_tasks() == 0
    clock.advance(minutes=20)
    assert store.orphans.expire_orphaned_tasks() == 1

    late = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in claim.tasks]
    assert store.queue.complete_tasks("old", late) == []


def test_candidates_of_a_removed_scorer_expire(
    store: TrackingStore, make: Make, send_heartbeats_for: Callable[..., None]
) -> None:
    """No sampler is left to select them."""
    exchange = make(0)
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.5, "candidate")], OLD_SCORER)
    send_heartbeats_for(60, NEW_SCORER)
    assert store.orphans.list_orphaned_scorers() == [("relevancy", "f1")]

    assert store.orphans.expire_orphaned_tasks() == 1

    assert [(coverage.seen, coverage.pending, coverage.skipped) for coverage in store.trends.coverage()] == [
        (1, 0, {"expired": 1})
    ]


def test_candidate_without_pending_tasks_is_not_listed(
    store: TrackingStore, make: Make, send_heartbeats_for: Callable[..., None]
) -> None:
    """A candidate that another running scorer still needs stays listed."""
    gone, stays = make(0), make(1)
    store.exchanges.add([gone, stays])
    store.sampling.assign_tasks([SamplingDecision(gone.id, None, "candidate")], OLD_SCORER)
    store.sampling.assign_tasks([SamplingDecision(stays.id, None, "candidate")], OLD_SCORER | {"noncommittal": "f1"})
    send_heartbeats_for(60, {"noncommittal": "f1"})

    assert store.orphans.expire_orphaned_tasks() == 2

    assert [exchange.id for exchange in store.pool.list_candidates(5)] == [stays.id]


def test_one_call_expires_a_limited_number_of_tasks(
    store: TrackingStore, sampled: Sampled, make: Make, send_heartbeats_for: Callable[..., None]
) -> None:
    """The limit keeps transactions short and counts the tasks of all scorers together."""
    sampled(*(make(number) for number in range(5)), scorers={"a": "f1", "b": "f1"})
    send_heartbeats_for(60, NEW_SCORER)

    assert [store.orphans.expire_orphaned_tasks(limit=4) for _ in range(4)] == [4, 4, 2, 0]
    assert [(coverage.pending, coverage.skipped) for coverage in store.trends.coverage()] == [(0, {"expired": 5})] * 2
