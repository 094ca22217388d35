"""Which processes score is known, and what they hold stays theirs while they say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.storage import Decision, Presence, Store, Task

Make = Callable[..., Exchange]
Sampled = Callable[..., list[Exchange]]
LEASE = timedelta(seconds=60)
SCORERS = {"relevancy": "f1"}
ME = Presence(id="a", host="h1", pid=7, service="shop", version="1", scorers=SCORERS, concurrency=4)


def claimed(store: Store, owner: str, limit: int = 9) -> list[Task]:
    """Return the tasks that an owner gets."""
    return [task for claim in store.claim(owner, SCORERS, limit=limit, lease=LEASE) for task in claim.tasks]


def test_a_process_tells_of_itself_and_is_listed(store: Store, clock: Any) -> None:
    """Its row has what it told last, and when it was first and last heard of; the one seen last comes first."""
    began = clock.now
    store.beat(ME, [], lease=LEASE)
    store.beat(replace(ME, id="b", host="h2\0"), [], lease=LEASE)
    clock.advance(seconds=15)
    store.beat(replace(ME, in_flight=3, problem="judge_rejected: key\ud800"), [], lease=LEASE)

    a, b = store.workers()

    assert (a.id, a.host, a.pid, a.service, a.version) == ("a", "h1", 7, "shop", "1")
    assert (a.scorers, a.concurrency, a.in_flight, a.problem) == (SCORERS, 4, 3, "judge_rejected: key\ufffd")
    assert (a.started_at, a.seen_at) == (began, began + timedelta(seconds=15))
    assert (b.id, b.host, b.seen_at) == ("b", "h2\ufffd", began)
    assert [one.id for one in store.workers(within=timedelta(seconds=14))] == ["a"]


def test_one_that_ends_is_no_longer_listed(store: Store) -> None:
    """The others are."""
    for name in ("a", "b"):
        store.beat(replace(ME, id=name), [], lease=LEASE)

    store.dismiss("a")

    assert [one.id for one in store.workers()] == ["b"]


def test_a_beat_renews_what_the_process_holds(store: Store, sampled: Sampled, make: Make, clock: Any) -> None:
    """From lease to lease nobody else gets it, however long its scoring takes."""
    sampled(make())
    [task] = claimed(store, "a")
    for _ in range(20):
        clock.advance(seconds=45)
        assert store.beat(ME, [task.id], lease=LEASE) == 1
        assert claimed(store, "b") == []
    clock.advance(seconds=60)

    assert [one.id for one in claimed(store, "b")] == [task.id]


def test_a_beat_renews_nothing_that_the_process_does_not_work_on(
    store: Store, sampled: Sampled, make: Make, clock: Any
) -> None:
    """What it let fall is free when its lease ends, although it lives."""
    sampled(make(0), make(1))
    kept, dropped = claimed(store, "a")
    clock.advance(seconds=30)
    store.beat(ME, [kept.id], lease=LEASE)
    clock.advance(seconds=30)

    assert [one.id for one in claimed(store, "b")] == [dropped.id]


def test_a_process_that_slept_keeps_nothing_that_it_lost(
    store: Store, sampled: Sampled, make: Make, clock: Any
) -> None:
    """What another owner took, finished or postponed in the meantime is not renewed; what nobody took is."""
    sampled(*(make(number) for number in range(4)))
    tasks = claimed(store, "a")
    clock.advance(seconds=300)
    taken, finished, postponed = claimed(store, "b", 3)
    store.complete("b", [(finished, Score(scorer="relevancy", fingerprint="f1", value=0.5))])
    until = clock.now + timedelta(seconds=5)
    store.postpone("b", [postponed], until=until, reason=Reason.JUDGE_TIMEOUT, error="slow")

    assert store.beat(ME, [task.id for task in tasks], lease=timedelta(hours=1)) == 1

    assert store.complete("a", [(taken, Score(scorer="relevancy", fingerprint="f1", value=0.1))]) == []
    clock.advance(seconds=60)
    assert {task.id for task in claimed(store, "c")} == {taken.id, postponed.id}


def test_more_is_renewed_at_once_than_one_statement_takes(store: Store, sampled: Sampled, make: Make) -> None:
    """However much a process holds."""
    sampled(*(make(number / 100) for number in range(600)))
    tasks = claimed(store, "a", 600)

    assert store.beat(ME, [task.id for task in tasks], lease=LEASE) == 600


def test_tasks_of_a_clock_that_was_set_back_are_brought_back(
    store: Store, sampled: Sampled, make: Make, clock: Any
) -> None:
    """What was to wait seconds does not wait the hour that the clock lost; nor does what a dead process held."""
    sampled(make(0), make(1), make(120))
    late, held = claimed(store, "dead", 2)
    until = clock.now + timedelta(seconds=20)
    store.postpone("dead", [late], until=until, reason=Reason.JUDGE_TIMEOUT, error="slow")
    clock.advance(hours=-1)
    assert claimed(store, "b") == []

    store.beat(ME, [], lease=LEASE, longest_wait=timedelta(minutes=5))

    back = {task.id for task in claimed(store, "b")}
    assert late.id in back
    assert len(back) == 2
    clock.advance(seconds=59)
    assert claimed(store, "c") == []
    clock.advance(seconds=1)
    assert held.id in {task.id for task in claimed(store, "c")}


def test_tasks_that_wait_for_their_time_are_left_alone(store: Store, sampled: Sampled, make: Make, clock: Any) -> None:
    """A wait that somebody asked for is not shortened."""
    sampled(make())
    tasks = claimed(store, "a")
    until = clock.now + timedelta(minutes=5)
    store.postpone("a", tasks, until=until, reason=Reason.JUDGE_TIMEOUT, error="slow")

    store.beat(ME, [], lease=LEASE, longest_wait=timedelta(minutes=5))

    clock.advance(seconds=299)
    assert claimed(store, "a") == []


def test_an_election_by_a_clock_that_was_set_back_binds_nobody(store: Store, clock: Any) -> None:
    """An office is free again within a minute, not after the hour that the clock lost; a small step is waited for."""
    assert store.elect("sampler", "dead", ttl=LEASE)
    clock.advance(seconds=-30)
    assert not store.elect("sampler", "a", ttl=LEASE)
    clock.advance(hours=-1)

    assert store.elect("sampler", "a", ttl=LEASE)
    assert not store.elect("sampler", "b", ttl=LEASE)


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_tasks_and_offices_go_by_the_clock_of_the_server(migrated_url: str, make: Make, hours: int) -> None:
    """A process whose own clock is an hour off neither steals from the others nor waits for them."""
    here, there = Store(migrated_url), Elsewhere(migrated_url, timedelta(hours=hours))
    there.add([make(), make()])
    there.assign([Decision(one.id, 1.0, "drawn") for one in there.unsampled(9)], SCORERS)

    [held] = claimed(there, "a", 1)
    there.beat(ME, [held.id], lease=LEASE)
    there.postpone("a", claimed(there, "a", 1), until=there.now, reason=Reason.JUDGE_TIMEOUT, error="slow")

    assert len(claimed(here, "b")) == 1
    assert here.elect("sampler", "b", ttl=LEASE)
    assert not there.elect("sampler", "a", ttl=LEASE)
    for store in (here, there):
        store.close()


class Elsewhere(Store):
    """A store on a host whose clock is off."""

    def __init__(self, url: str, by: timedelta) -> None:
        super().__init__(url)
        self._clock = lambda: datetime.now(UTC) + by

    @property
    def now(self) -> datetime:
        return self._clock()

    def _given_time(self) -> None:
        """Nobody gave it one: it is the host's own."""
