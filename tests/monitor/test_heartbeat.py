"""A process keeps what it works on for as long as it lives, and no longer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from germane.errors import DatabaseUnreachable
from germane.exchange import Exchange
from germane.monitor import Monitor
from germane.monitor.loop.heartbeat import Heartbeat
from germane.monitor.loop.job import Job
from germane.settings import Settings
from germane.storage import Store
from germane.storage.db import tables

Start = Callable[..., Monitor]
Until = Callable[..., None]
SHORT = timedelta(seconds=0.2)


class Waiting:
    """A scorer that waits until it is let go: for the event loop, or holding it up."""

    name, fingerprint, requires, range = "waiting", "f1", frozenset({"answer"}), (0.0, 1.0)

    def __init__(self, *, blocking: bool = False) -> None:
        self.go_on, self.begun = threading.Event(), 0
        self._blocking = blocking

    async def score(self, exchange: Exchange) -> float:
        self.begun += 1
        if self._blocking:
            self.go_on.wait(60)
        else:
            await asyncio.to_thread(self.go_on.wait, 60)
        return 0.5


def beating(work: Callable[[], None], leave: Callable[[], None] = lambda: None) -> Heartbeat:
    """Return a heart that beats every twentieth of a second."""

    def job(name: str, do: Callable[[], None]) -> Job:
        async def done() -> None:
            do()

        return Job(name, done, clock=lambda: datetime.now(UTC), quiet=nullcontext)

    return Heartbeat(job("beat", work), leave=job("leave", leave), lease=SHORT)


@pytest.mark.parametrize("blocking", [False, True])
def test_a_score_may_take_longer_than_the_lease(
    url: str, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, blocking: bool
) -> None:
    """The heartbeat carries it, even while the scorer holds up the event loop: no other process begins it anew."""
    scorer, now = Waiting(blocking=blocking), [datetime.now(UTC)]
    store = Store(url, clock=lambda: now[0])  # on which no lease ends while the machine has no time for a beat
    store.add([new_exchange()])
    monitor = start(store, [scorer], settings=settings(lease=1), clock=lambda: now[0])
    until(lambda: scorer.begun)

    for _ in range(3):
        now[0] += timedelta(seconds=0.8)
        until(lambda: [one.seen_at for one in store.workers()] == now)
    stolen = store.claim("another", {"waiting": "f1"}, limit=1, lease=SHORT)
    scorer.go_on.set()

    assert stolen == []
    until(lambda: store.counts().done == 1)
    assert scorer.begun == 1
    assert monitor.stop(60)
    store.close()


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_what_is_worked_on_is_not_begun_again_when_its_lease_has_ended(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """When the database was away for longer than a lease, its task is this process's again, and asked about once."""
    scorer, tasks = Waiting(), tables.scoring_task

    def attempts() -> int:
        with store._database.read() as connection:
            return int(connection.execute(select(tasks.c.attempts)).scalar_one())

    store.add([new_exchange()])
    start(store, [scorer], settings=settings())
    until(lambda: scorer.begun == 1)
    past = datetime.now(UTC) - timedelta(seconds=1)
    with store._database.write() as connection:
        connection.execute(update(tasks).values(lease_until=past, not_before=past))
    until(lambda: attempts() == 2)
    scorer.go_on.set()
    until(lambda: store.counts().done == 1)

    assert scorer.begun == 1


def test_what_was_left_by_an_error_of_our_own_is_not_kept(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """A round of scoring that broke off leaves its task to the lease, which ends: it is begun again."""
    breaks = threading.Event()

    class Breaking(Waiting):
        async def score(self, exchange: Exchange) -> float:
            self.begun += 1
            if self.begun == 1:
                breaks.set()
            return 0.5

    def clock() -> datetime:
        if breaks.is_set() and threading.current_thread().name == "germane-monitor":  # where scores get their time
            breaks.clear()
            raise LookupError
        return datetime.now(UTC)

    scorer = Breaking()
    store.add([new_exchange()])
    start(store, [scorer], settings=settings(lease=1), clock=clock)

    until(lambda: store.counts().done == 1)

    assert scorer.begun == 2


def test_a_process_that_scores_is_known_while_it_runs(
    store: Store, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """From its start on, with what it has; its row goes when it stops."""
    monitor = start(store, [Waiting()], settings=settings(concurrency=3))
    until(store.workers)
    (worker,) = store.workers()

    assert (worker.service, worker.scorers, worker.in_flight, worker.problem) == ("shop", {"waiting": "f1"}, 0, None)
    assert worker.started_at <= worker.seen_at
    assert monitor.status().jobs["beat"].problem is None
    assert monitor.stop(60)
    assert store.workers() == []


def test_a_process_that_scores_nothing_is_not_among_them(
    store: Store, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """One that only watches its rules does not tell of itself."""
    monitor = start(store, [], settings=settings(rules=[{"name": "low", "threshold": 0.5}]))
    until(lambda: monitor.status().jobs["watch"].last_run)

    assert store.workers() == []
    assert "beat" not in monitor.status().jobs


def test_it_beats_on_while_the_database_is_away(until: Until, caplog: Any) -> None:
    """It tries again with short pauses, says so once, and says when it is well."""
    away, tries = threading.Event(), []

    def work() -> None:
        tries.append(time.monotonic())
        if away.is_set():
            raise DatabaseUnreachable("gone")

    away.set()
    heartbeat = beating(work)
    heartbeat.start()
    until(lambda: len(tries) >= 5)
    away.clear()
    until(lambda: heartbeat.status().problem is None)

    assert heartbeat.stop(60)
    told = [record.message for record in caplog.records]
    assert told == ["background job 'beat' fails: DatabaseUnreachable: gone", "background job 'beat' works again"]


def test_a_beat_that_hangs_keeps_nobody_from_stopping(until: Until) -> None:
    """Whoever stops waits for a beat under way no longer than it says."""
    hangs, go_on = threading.Event(), threading.Event()

    def work() -> None:
        hangs.set()
        go_on.wait(60)

    heartbeat = beating(work)
    heartbeat.start()
    until(hangs.is_set)

    assert not heartbeat.stop(0.01)
    go_on.set()
    assert heartbeat.stop(60)


def test_whoever_leaves_is_not_heard_of_again(until: Until) -> None:
    """A beat that outlasts the patience of the stop comes before the leaving, so that nothing of it stays."""
    hangs, go_on, told = threading.Event(), threading.Event(), list[str]()

    def beat() -> None:
        hangs.set()
        go_on.wait(60)
        told.append("beat")

    heartbeat = beating(beat, lambda: told.append("left"))
    heartbeat.start()
    until(hangs.is_set)

    assert not heartbeat.stop(0.01)
    go_on.set()
    assert heartbeat.stop(60)
    assert told == ["beat", "left"]


def test_one_that_never_began_is_stopped_at_once() -> None:
    """As that of a process that has no scorer."""
    assert beating(lambda: None).stop(10)
