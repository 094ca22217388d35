"""Tasks that nobody runs any more do not wait for ever, and no task is given up that somebody may still run."""

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
OLD, NEW = {"relevancy": "f1"}, {"relevancy": "f2"}


def beat(store: TrackingStore, scorers: dict[str, str], name: str = "a") -> None:
    """Let a process with these scorers tell of itself."""
    presence = WorkerHeartbeat(id=name, host="h", pid=1, service="shop", version="1", scorers=scorers)
    store.workers.heartbeat(presence, [], lease=LEASE)


@pytest.fixture
def run_for(store: TrackingStore, clock: Any) -> Callable[..., None]:
    """Lets a process with the given scorers tell of itself every ten minutes."""

    def run(minutes: int, scorers: dict[str, str], name: str = "a") -> None:
        beat(store, scorers, name)
        for _ in range(minutes // 10):
            clock.advance(minutes=10)
            beat(store, scorers, name)

    return run


def test_tasks_of_a_scorer_that_nobody_has_expire(
    store: TrackingStore, sampled: Sampled, make: Make, run_for: Callable[..., None]
) -> None:
    """After an hour they end as skipped, expired, and the counts agree; those of the scorer that runs stay."""
    old, new = sampled(make(0)), sampled(make(1), scorers=NEW)
    run_for(60, NEW)
    assert store.queue.list_orphaned_scorers() == [("relevancy", "f1")]

    assert (store.queue.expire_orphaned_tasks(), store.queue.expire_orphaned_tasks()) == (1, 0)

    [coverage] = store.trends.coverage()
    expected = Coverage(service="shop", route="ask", scorer="relevancy", seen=2, pending=1, skipped={"expired": 1})
    assert coverage == expected
    assert store.answers.counts().skipped_reasons == {UnscoredReason.EXPIRED: 1}
    assert store.queue.list_orphaned_scorers() == []
    assert store.queue.claim_tasks("a", OLD, limit=9, lease=LEASE) == []
    [claim] = store.queue.claim_tasks("a", NEW, limit=9, lease=LEASE)
    assert [claim.exchange] == new != old


def test_nothing_expires_before_it_has_waited_an_hour(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any, run_for: Callable[..., None]
) -> None:
    """However long its scorer has been gone."""
    run_for(60, NEW)
    sampled(make(0))
    run_for(50, NEW)
    assert store.queue.expire_orphaned_tasks() == 0
    run_for(10, NEW)

    assert store.queue.expire_orphaned_tasks() == 1


def test_a_scorer_that_was_seen_within_the_hour_is_not_gone(
    store: TrackingStore, sampled: Sampled, make: Make, run_for: Callable[..., None]
) -> None:
    """A process that was killed may come back, and what was deployed be taken back."""
    sampled(make(0))
    run_for(10, OLD, "old")
    run_for(60, NEW, "new")
    assert store.queue.expire_orphaned_tasks() == 0
    run_for(10, NEW, "new")

    assert store.queue.expire_orphaned_tasks() == 1


def test_nothing_expires_after_a_night_in_which_all_rested(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any, run_for: Callable[..., None]
) -> None:
    """The process that starts first does not give up the work of one that starts a minute later."""
    sampled(make(0))
    assert store.queue.expire_orphaned_tasks() == 0
    clock.advance(hours=12)
    run_for(50, NEW)

    assert store.queue.expire_orphaned_tasks() == 0


def test_what_an_owner_still_holds_is_left_to_it(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any, run_for: Callable[..., None]
) -> None:
    """It gives an answer, or its lease ends; then it is nobody's, and expires as well."""
    sampled(make(0))
    [claim] = store.queue.claim_tasks("old", OLD, limit=1, lease=timedelta(minutes=90))
    run_for(70, NEW)
    assert store.queue.expire_orphaned_tasks() == 0
    clock.advance(minutes=20)
    assert store.queue.expire_orphaned_tasks() == 1

    late = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5)) for task in claim.tasks]
    assert store.queue.complete_tasks("old", late) == []


def test_candidates_of_a_budget_expire_likewise(store: TrackingStore, make: Make, run_for: Callable[..., None]) -> None:
    """Whoever would have picked among them is gone."""
    exchange = make(0)
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.5, "candidate")], OLD)
    run_for(60, NEW)
    assert store.queue.list_orphaned_scorers() == [("relevancy", "f1")]

    assert store.queue.expire_orphaned_tasks() == 1

    assert [(one.seen, one.pending, one.skipped) for one in store.trends.coverage()] == [(1, 0, {"expired": 1})]


def test_a_candidate_of_which_nothing_waits_is_not_picked(
    store: TrackingStore, make: Make, run_for: Callable[..., None]
) -> None:
    """It would be scored by nobody, in the place of one that can be; one that another scorer waits for stays."""
    gone, stays = make(0), make(1)
    store.exchanges.add([gone, stays])
    store.sampling.assign_tasks([SamplingDecision(gone.id, None, "candidate")], OLD)
    store.sampling.assign_tasks([SamplingDecision(stays.id, None, "candidate")], OLD | {"noncommittal": "f1"})
    run_for(60, {"noncommittal": "f1"})

    assert store.queue.expire_orphaned_tasks() == 2

    assert [one.id for one in store.sampling.list_candidates(5)] == [stays.id]


def test_they_expire_in_parts(store: TrackingStore, sampled: Sampled, make: Make, run_for: Callable[..., None]) -> None:
    """So that no transaction is long; the tasks of several scorers count together."""
    sampled(*(make(number) for number in range(5)), scorers={"a": "f1", "b": "f1"})
    run_for(60, NEW)

    assert [store.queue.expire_orphaned_tasks(limit=4) for _ in range(4)] == [4, 4, 2, 0]
    assert [(one.pending, one.skipped) for one in store.trends.coverage()] == [(0, {"expired": 5})] * 2
