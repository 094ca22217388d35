"""Heartbeats renew the leases of a process's tasks for as long as the process is running."""

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
from germane.monitor.loop.job import Job
from germane.monitor.loop.leases import build_heartbeat
from germane.monitor.loop.scheduler import Scheduler
from germane.settings import Settings
from germane.storage import TrackingStore
from germane.storage.db import tables
from germane.testing import transaction

Start = Callable[..., Monitor]
Until = Callable[..., None]
SHORT = timedelta(seconds=0.2)


class Waiting:
    """A scorer that waits until it is released, with or without blocking the event loop."""

    name, fingerprint, requires, range = "waiting", "f1", frozenset({"answer"}), (0.0, 1.0)

    def __init__(self, *, blocking: bool = False) -> None:
        self.released, self.begun = threading.Event(), 0
        self._blocking = blocking

    async def score(self, exchange: Exchange) -> float:
        self.begun += 1
        if self._blocking:
            self.released.wait(60)
        else:
            await asyncio.to_thread(self.released.wait, 60)
        return 0.5


@pytest.mark.parametrize("blocking", [False, True])
def test_heartbeats_extend_the_lease_of_a_long_task(
    url: str, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, blocking: bool
) -> None:
    """Even if the scorer blocks the event loop, no other process claims the task."""
    scorer, now = Waiting(blocking=blocking), [datetime.now(UTC)]
    # A frozen clock: no lease expires while a busy machine delays a heartbeat.
    store = TrackingStore(url, clock=lambda: now[0])
    store.exchanges.add([new_exchange()])
    monitor = start(store, [scorer], settings=settings(task_lease=1), clock=lambda: now[0])
    until(lambda: scorer.begun)

    for _ in range(3):
        now[0] += timedelta(seconds=0.8)
        until(lambda: [one.seen_at for one in store.workers.list_workers()] == now)
    stolen = store.queue.claim_tasks("another", {"waiting": "f1"}, limit=1, lease=SHORT)
    scorer.released.set()

    assert stolen == []
    until(lambda: store.answers.counts().done == 1)
    assert scorer.begun == 1
    assert monitor.stop(60)
    store.close()


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_task_in_progress_is_not_started_by_another_process(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """After an outage longer than the lease, the same process claims the task again, but the judge gets only one
    request."""
    scorer, tasks = Waiting(), tables.scoring_task

    def claims() -> int:
        with transaction(store, read_only=True) as connection:
            return int(connection.execute(select(tasks.c.claims)).scalar_one())

    store.exchanges.add([new_exchange()])
    start(store, [scorer], settings=settings())
    until(lambda: scorer.begun == 1)
    past = datetime.now(UTC) - timedelta(seconds=1)
    with transaction(store) as connection:
        connection.execute(update(tasks).values(due_at=past))
    until(lambda: claims() == 2)
    scorer.released.set()
    until(lambda: store.answers.counts().done == 1)

    assert scorer.begun == 1


def test_a_crashed_task_is_retried_when_its_lease_expires(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """After an unexpected error, the lease expires, and the task is claimed again."""
    breaks = threading.Event()

    class Breaking(Waiting):
        async def score(self, exchange: Exchange) -> float:
            self.begun += 1
            if self.begun == 1:
                breaks.set()
            return 0.5

    def clock() -> datetime:
        if (
            breaks.is_set() and threading.current_thread().name == "germane-monitor"
        ):  # the monitor reads the time of a score
            breaks.clear()
            raise LookupError
        return datetime.now(UTC)

    scorer = Breaking()
    store.exchanges.add([new_exchange()])
    start(store, [scorer], settings=settings(task_lease=1), clock=clock)

    until(lambda: store.answers.counts().done == 1)

    assert scorer.begun == 2


def test_a_scoring_process_is_registered_while_it_runs(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """A row with its details is added at the start and deleted at the stop."""
    monitor = start(store, [Waiting()], settings=settings(concurrency=3))
    until(store.workers.list_workers)
    (worker,) = store.workers.list_workers()

    assert (worker.service, worker.scorers, worker.in_flight, worker.problem) == ("shop", {"waiting": "f1"}, 0, None)
    assert worker.started_at <= worker.seen_at
    assert monitor.status().jobs["heartbeat"].problem is None
    assert monitor.stop(60)
    assert store.workers.list_workers() == []


def test_a_process_without_scorers_is_not_registered(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """A process that only evaluates rules sends no heartbeats."""
    monitor = start(store, [], settings=settings(rules=[{"name": "low", "threshold": 0.5}]))
    until(lambda: monitor.status().jobs["evaluate"].last_run)

    assert store.workers.list_workers() == []
    assert "heartbeat" not in monitor.status().jobs


def test_heartbeats_continue_after_a_database_outage(until: Until, caplog: Any) -> None:
    """Heartbeats are retried with short pauses, and the outage and its end are logged once each."""
    away, tries = threading.Event(), []

    def work() -> None:
        tries.append(time.monotonic())
        if away.is_set():
            raise DatabaseUnreachable("gone")

    def job(name: str, do: Callable[[], None]) -> Job:
        return Job(name, do, clock=lambda: datetime.now(UTC), suppressed=nullcontext)

    away.set()
    beat = job("heartbeat", work)
    with build_heartbeat(beat, deregister=job("deregister", lambda: None), lease=SHORT):
        until(lambda: len(tries) >= 5)
        away.clear()
        until(lambda: beat.last_run)

    messages = [record.message for record in caplog.records]
    assert messages == [
        "background job 'heartbeat' is failing: DatabaseUnreachable: gone",
        "background job 'heartbeat' has recovered",
    ]


def test_heartbeats_need_no_event_loop_of_their_own() -> None:
    """With gevent, the thread that sends them already runs one, and asyncio allows only one."""
    sent: list[str] = []
    beat = Job("heartbeat", lambda: sent.append("beat"), clock=lambda: datetime.now(UTC), suppressed=nullcontext)

    async def send_beside_another_loop() -> None:
        beat.run_blocking()

    asyncio.run(send_beside_another_loop())

    assert sent == ["beat"]
    assert (beat.problem, len(beat.runs)) == (None, 1)


def test_a_scheduler_in_a_greenlet_beside_another_loop_says_that_nothing_is_scored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It does not end with a traceback."""

    async def run_beside_another_loop() -> None:
        Scheduler(_never, poll_interval=1)._run()

    asyncio.run(run_beside_another_loop())

    assert [record.getMessage().partition(":")[2] for record in caplog.records] == [
        " nothing is scored; run 'germane worker'"
    ]


def _never() -> Any:
    raise AssertionError("the service must not be created")
