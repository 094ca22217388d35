"""The background thread: start, stop, fork and recovery."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import pytest
from tests.deliveries import due_channels

from germane.daemon_pool import DaemonThreadPool
from germane.errors import DatabaseUnreachable
from germane.exchange import Exchange
from germane.monitor import Callback, Monitor, MonitorConfig
from germane.score import Score
from germane.settings import Settings
from germane.storage import ScoringTask, TrackingStore
from germane.storage.queue.store_tasks import TaskQueue
from germane.testing import FakeJudge

Start = Callable[..., Monitor]
Until = Callable[..., None]


class Held:
    """A scorer that waits until it is released."""

    name, fingerprint, requires, range = "held", "f1", frozenset({"answer"}), (0.0, 1.0)

    def __init__(self) -> None:
        self.begun = 0
        self.free = threading.Event()

    async def score(self, exchange: Exchange) -> float:
        self.begun += 1
        while not self.free.is_set():  # noqa: ASYNC110 - it is set on another thread
            await asyncio.sleep(0.01)
        return 0.5


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A user's module ``hanging`` with a predicate that only returns at the end of the test."""
    module: Any = ModuleType("hanging")
    module.asked, go_on = threading.Event(), threading.Event()

    def hangs(exchange: Exchange) -> bool:
        module.asked.set()
        return go_on.wait(60)

    module.hangs = hangs
    monkeypatch.setitem(sys.modules, "hanging", module)
    yield module
    go_on.set()


class Slow:
    """A scorer that takes a number of seconds per exchange."""

    name, fingerprint, requires, range = "slow", "f1", frozenset({"answer"}), (0.0, 1.0)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun = 0

    async def score(self, exchange: Exchange) -> float:
        self.begun += 1
        await asyncio.sleep(self.seconds)
        return 0.5


@pytest.mark.slow
def test_importing_germane_starts_no_thread() -> None:
    """Importing the package starts nothing."""
    code = "import germane.monitor, threading; print(threading.active_count())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "1"


def test_the_monitor_runs_in_one_daemon_thread(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """The thread has a name, is started only once, and has ended after the stop."""
    before = set(threading.enumerate())
    monitor = start(store, [Slow(0)], settings=settings())
    monitor.start()

    ours = set(threading.enumerate()) - before
    assert [thread.name for thread in ours].count("germane-monitor") == 1
    assert all(thread.daemon for thread in ours)
    assert monitor.status().running
    assert monitor.stop(60)
    assert monitor.stop(60)
    assert not monitor.status().running
    until(lambda: set(threading.enumerate()) <= before)  # stopping does not wait for the last heartbeat


def test_stopping_the_monitor_before_its_start_is_not_an_error(
    store: TrackingStore, settings: Callable[..., Settings], attached: Any
) -> None:
    """It returns immediately."""
    assert Monitor(MonitorConfig(store, [], settings(), attach=attached)).stop(0)


def test_stopping_the_monitor_right_after_its_start_takes_effect(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """The thread ends even if it has not started its work yet. A second stop has no effect."""
    monitor = start(store, [Slow(0)], settings=settings())
    monitor.stop(0)
    monitor.stop(0)

    until(lambda: not monitor.status().running)


def test_stopping_the_monitor_finishes_tasks_in_progress(
    store: TrackingStore,
    start: Start,
    settings: Callable[..., Settings],
    attached: Any,
    new_exchange: Any,
    until: Until,
) -> None:
    """They are finished, saved and attached. Unstarted tasks are released unchanged."""
    scorer = Slow(0.2)
    store.exchanges.add([new_exchange() for _ in range(200)])
    monitor = start(store, [scorer], settings=settings(concurrency=2))
    until(lambda: scorer.begun >= 4)

    assert monitor.stop(60)

    counts = store.answers.counts()
    assert counts.done == len(attached.calls) == scorer.begun < 200
    assert (counts.pending, counts.running) == (200 - counts.done, 0)


@pytest.mark.slow
def test_stopping_the_monitor_releases_slow_tasks(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """After the timeout, another process can claim the tasks immediately, and stop returns False."""
    store.exchanges.add([new_exchange() for _ in range(4)])
    monitor = start(store, [Slow(3600)], settings=settings())
    until(lambda: monitor.status().in_flight == 4)

    assert not monitor.stop(3)  # if stop() waited, pytest's time limit would end it

    assert store.answers.counts().pending == 4
    start(store, [Slow(0)], settings=settings())
    until(lambda: store.answers.counts().done == 4)


@pytest.mark.slow
def test_a_hanging_predicate_does_not_prevent_saving_scores(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, hanging: Any
) -> None:
    """Scores are saved and tasks released even if the sampler never returns."""
    scorer = Held()
    store.exchanges.add([new_exchange() for _ in range(2)])
    monitor = start(
        store, [scorer], settings=settings(always_score=[{"routes": ["odd"], "predicate": "hanging:hangs"}])
    )
    until(lambda: scorer.begun == 2)
    store.exchanges.add([new_exchange(route="odd")])
    until(hanging.asked.is_set)

    assert not monitor.stop(3)

    counts = store.answers.counts()
    assert (counts.pending, counts.running, counts.undecided) == (2, 0, 1)
    assert store.workers.list_workers() == []


def test_stopping_the_monitor_closes_clients_on_their_event_loop(
    store: TrackingStore, judge: FakeJudge, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """Each client is closed once, in the background thread."""
    closed: list[str] = []

    async def close() -> None:
        closed.append(threading.current_thread().name)

    start(store, [Slow(0)], settings=settings(), close=close).stop(5)

    assert closed == ["germane-monitor"]


def test_stopping_the_monitor_delivers_pending_notifications(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """An alert that was raised before the stop is still sent."""
    sent: list[str] = []
    began = threading.Event()

    async def take_time(alert: Any) -> None:
        began.set()
        await asyncio.sleep(0.2)
        sent.append(alert.state)

    store.exchanges.add([new_exchange() for _ in range(3)])
    rules = [{"scorer": "slow", "threshold": 0.9, "min_samples": 3, "window": 60}]
    monitor = start(store, [Slow(0)], settings=settings(rules=rules), channels={"callback": Callback(take_time)})
    assert began.wait(60)
    assert monitor.stop(60)

    assert sent == ["firing"]


def test_no_detector_input_is_stored_without_drop_rules(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """No scores are queued for the detectors."""
    store.exchanges.add([new_exchange() for _ in range(3)])
    off = [
        {"type": kind, "enabled": False}
        for kind in ("drop", "no_data", "scorer_error", "budget_exhausted", "judge_drift")
    ]
    start(store, [Slow(0)], settings=settings(rules=off))
    until(lambda: sum(one.n for one in store.trends.summary()) == 3)
    until(lambda: not store.detectors.list_new_scores(1))


def test_stopping_the_monitor_does_not_wait_for_a_hanging_channel(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, caplog: Any
) -> None:
    """The problem is logged, and the notification waits for the next start."""
    began = threading.Event()

    async def hang(alert: Any) -> None:
        began.set()
        await asyncio.sleep(3600)

    store.exchanges.add([new_exchange() for _ in range(3)])
    rules = [{"scorer": "slow", "threshold": 0.9, "min_samples": 3, "window": 60}]
    monitor = start(store, [Slow(0)], settings=settings(rules=rules), channels={"callback": Callback(hang)})
    assert began.wait(60)

    assert not monitor.stop(0.3)
    until(lambda: not monitor.status().running)
    assert "stopped before everything had been sent to channel callback" in caplog.text
    (posted,) = store.notifications.search(channel="callback")
    assert posted.status == "waiting"
    assert due_channels(store, ["callback"]) == {"callback"}


def test_an_alert_callback_can_stop_the_monitor(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """Stopping from the background thread itself does not deadlock."""
    stopped: list[bool] = []

    async def stop(alert: Any) -> None:
        stopped.append(monitor.stop(1))

    store.exchanges.add([new_exchange() for _ in range(3)])
    rules = [{"scorer": "slow", "threshold": 0.9, "min_samples": 3, "window": 60}]
    monitor = start(store, [Slow(0)], settings=settings(rules=rules), channels={"callback": Callback(stop)})

    until(lambda: not monitor.status().running)

    assert stopped == [False]


def test_a_monitor_can_be_restarted(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """The same object runs again after a stop."""
    monitor = start(store, [Slow(0)], settings=settings())
    assert monitor.stop(60)
    store.exchanges.add([new_exchange()])
    monitor.start()

    until(lambda: store.answers.counts().done == 1)


FORK = """
import os, sys, threading, time
from contextlib import nullcontext
from germane.monitor import Monitor, MonitorConfig
from germane.settings import load_settings
from germane.storage import TrackingStore

class Quick:
    name, fingerprint, requires, range = "quick", "f1", frozenset({"answer"}), (0.0, 1.0)
    async def score(self, exchange):
        return 0.5

store = TrackingStore(sys.argv[1])
settings = load_settings(poll_interval=0.05)
monitor = Monitor(MonitorConfig(store, [Quick()], settings, attach=lambda exchange, scores: "none"))
monitor.start()
while not monitor.status().jobs["sample"].last_run:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    assert not monitor.status().running and threading.active_count() == 1
    monitor.start()
    while not monitor.status().jobs["score"].last_run:
        time.sleep(0.01)
    sys.exit(0 if monitor.stop(60) else 1)
_, status = os.waitpid(child, 0)
before = monitor.status().jobs["sample"].last_run
while monitor.status().jobs["sample"].last_run == before:
    time.sleep(0.01)
assert monitor.stop(60)
store.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow
def test_a_forked_child_can_start_its_own_monitor(url: str) -> None:
    """The child runs nothing before it starts its monitor, and exits silently. The parent continues."""
    command = [sys.executable, "-W", "error", "-c", FORK, url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert (result.returncode, result.stderr) == (0, "")


FORK_IDLE = FORK[: FORK.index("    monitor.start()\n    while")] + "    sys.exit(0)\n" + FORK[FORK.index("_, status") :]


@pytest.mark.slow
def test_a_forked_child_without_a_monitor_exits_silently(url: str) -> None:
    """It neither warns at exit nor disturbs the parent."""
    command = [sys.executable, "-W", "error", "-c", FORK_IDLE, url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert (result.returncode, result.stderr) == (0, "")


WORKER = """
import asyncio, sys, time
from germane.monitor import Monitor, MonitorConfig
from germane.settings import load_settings
from germane.storage import TrackingStore

class Slow:
    name, fingerprint, requires, range = "slow", "f1", frozenset({"answer"}), (0.0, 1.0)
    async def score(self, exchange):
        await asyncio.sleep(0.02)
        return 0.5

settings = load_settings(poll_interval=0.05, task_lease=1, concurrency=4)
Monitor(MonitorConfig(TrackingStore(sys.argv[1]), [Slow()], settings, attach=lambda *_: "none")).start()
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_no_task_is_lost_when_a_worker_is_killed(
    store: TrackingStore, url: str, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """After kill -9, another worker scores each task of the killed worker once, when the lease has expired."""
    store.exchanges.add([new_exchange() for _ in range(200)])
    with subprocess.Popen([sys.executable, "-c", WORKER, url]) as worker:

        def caught_holding_something() -> bool:
            os.kill(worker.pid, signal.SIGSTOP)
            os.waitpid(worker.pid, os.WUNTRACED)
            counts = store.answers.counts()
            if counts.done and counts.running:
                return True
            os.kill(worker.pid, signal.SIGCONT)
            return False

        until(caught_holding_something)
        worker.kill()
    assert store.answers.counts().running > 0

    start(store, [Slow(0)], settings=settings())
    until(lambda: store.answers.counts().done == 200)

    (coverage,) = store.trends.coverage()
    assert store.answers.counts().scores == coverage.seen == coverage.scored == 200


class BrokenQueue(TaskQueue):
    """A task queue that cannot complete tasks until ``fixed``."""

    raised, fixed = 0, False

    def complete_tasks(
        self, owner: str, results: Sequence[tuple[ScoringTask, Score]]
    ) -> list[tuple[ScoringTask, Score]]:
        if self.fixed:
            return super().complete_tasks(owner, results)
        self.raised += 1
        raise KeyError("text of a user")


def test_a_job_runs_again_after_it_fails(
    store: TrackingStore,
    url: str,
    start: Start,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
    caplog: Any,
) -> None:
    """The error is logged once, without its message. The recovery is also logged once."""
    broken = TrackingStore(url)
    broken.queue = queue = BrokenQueue(broken.context)
    store.exchanges.add([new_exchange() for _ in range(3)])
    monitor = start(broken, [Slow(0)], settings=settings())
    until(lambda: monitor.status().jobs["save"].problem and queue.raised > 2)
    store.exchanges.add([new_exchange()])
    until(lambda: monitor.status().unsaved == 4)
    queue.fixed = True
    until(lambda: store.answers.counts().done == 4)
    until(lambda: monitor.status().jobs["save"].problem is None)
    assert monitor.stop(60)
    broken.close()

    lines = [record.getMessage() for record in caplog.records if "'save'" in record.getMessage()]
    assert [line.split(" ")[2:4] for line in lines] == [["'save'", "is"], ["'save'", "has"]]
    assert "KeyError at test_supervisor.py" in caplog.text
    assert "text of a user" not in caplog.text


def test_an_error_while_attaching_scores_does_not_affect_other_exchanges(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """All scores are saved, and each of the other scores is attached once."""
    attached: list[str] = []

    def attach(exchange: Exchange, scores: Any) -> None:
        if exchange.route == "bad":
            raise KeyError
        attached.append(exchange.id)

    good = [new_exchange() for _ in range(3)]
    store.exchanges.add([new_exchange(route="bad"), *good])
    start(store, [Slow(0)], settings=settings(), attach=attach)
    until(lambda: len(attached) == 3)

    assert sorted(attached) == sorted(one.id for one in good)
    assert store.answers.counts().done == 4


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_no_score_is_lost_in_a_database_outage(
    store: TrackingStore, url: str, postgresql: Any, start: Start, settings: Callable[..., Settings], attached: Any,
    new_exchange: Any, until: Until, caplog: Any,
) -> None:  # fmt: skip
    """Finished scores wait in memory, the outage is logged once, and nothing is scored twice."""
    scorer = Held()
    name = url.partition("@/")[2].partition("?")[0]
    store.exchanges.add([new_exchange() for _ in range(6)])
    monitor = start(store, [scorer], settings=settings(concurrency=2))
    until(lambda: scorer.begun == 2)

    postgresql.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    postgresql.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    scorer.free.set()
    until(lambda: monitor.status().jobs["save"].problem)
    until(lambda: monitor.status().jobs["sample"].problem)
    until(lambda: monitor.status().unsaved == 2)
    postgresql.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")

    until(lambda: len(attached.calls) == 6)
    assert scorer.begun == 6
    assert store.answers.counts().scores == 6
    failures = [record.getMessage() for record in caplog.records if "is failing" in record.getMessage()]
    assert len(failures) == len({line.split(" ")[2] for line in failures})
    assert DatabaseUnreachable.__name__ in failures[0]


def test_missing_migrations_are_logged(
    tmp_path: Any, start: Start, settings: Callable[..., Settings], until: Until, new_exchange: Any
) -> None:
    """The log names the command that fixes the problem. Jobs work as soon as the database is migrated."""
    store = TrackingStore(f"sqlite:///{tmp_path / 'empty.db'}")
    monitor = start(store, [Slow(0)], settings=settings())
    until(lambda: monitor.status().jobs["sample"].problem)
    assert "germane db upgrade" in str(monitor.status().jobs["sample"].problem)

    store.migrate()
    store.exchanges.add([new_exchange()])
    until(lambda: store.answers.counts().done == 1)
    monitor.stop(60)
    store.close()


def test_the_scheduler_writes_nothing_to_the_log_of_the_application(
    store: TrackingStore, start: Start, settings: Callable[..., Settings], until: Until, caplog: Any
) -> None:
    """Intervals that a long job misses are normal, so the application's log stays empty."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "sqlalchemy")
    monitor = start(store, [Slow(0)], settings=settings())
    until(lambda: monitor.status().jobs["sample"].last_run)
    first = monitor.status().jobs["sample"].last_run
    until(lambda: monitor.status().jobs["sample"].last_run != first)
    monitor.stop(60)

    assert [record.name for record in caplog.records if "apscheduler" in record.name] == []


def test_a_call_in_the_thread_pool_behaves_like_a_direct_call() -> None:
    """The call returns, raises and sees context variables like a direct call, but does not block the loop."""
    variable: ContextVar[str] = ContextVar("variable", default="outside")

    def fail() -> None:
        raise LookupError

    async def use() -> tuple[str, str]:
        threads = DaemonThreadPool(1, name="germane-test")
        variable.set("inside")
        seen = await threads.run(variable.get)
        with pytest.raises(LookupError):
            await threads.run(fail)
        name = await threads.run(lambda: threading.current_thread().name)
        threads.close()
        return seen, name

    assert asyncio.run(use()) == ("inside", "germane-test-0")


def test_a_pool_call_that_is_canceled_while_queued_never_runs() -> None:
    """This applies to a call that is canceled while it is waiting for a thread."""
    made: list[int] = []

    async def use() -> None:
        threads = DaemonThreadPool(1, name="germane-test")
        hold = threading.Event()
        first = asyncio.create_task(threads.run(hold.wait))
        second = asyncio.create_task(threads.run(made.append, 1))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        hold.set()
        await first
        await threads.run(made.append, 2)
        threads.close()

    asyncio.run(use())

    assert made == [2]


def test_a_coroutine_whose_caller_was_canceled_is_closed() -> None:
    """A function that returns a coroutine after its caller was canceled causes no warning."""
    made: list[Coroutine[Any, Any, None]] = []
    release, called = threading.Event(), threading.Event()

    def make() -> Coroutine[Any, Any, None]:
        called.set()
        release.wait(60)
        made.append(asyncio.sleep(0))
        return made[0]

    async def use() -> None:
        threads = DaemonThreadPool(1, name="germane-test")
        call = asyncio.create_task(threads.run(make))
        await asyncio.to_thread(called.wait, 60)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        release.set()
        await threads.run(made.copy)
        threads.close()

    asyncio.run(use())

    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED
