"""The thread in the background: how it starts, ends, forks and survives what goes wrong."""

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

from germane.daemon_pool import Threads
from germane.errors import DatabaseUnreachable
from germane.exchange import Exchange
from germane.monitor import Callback, Monitor
from germane.score import Score
from germane.settings import Settings
from germane.storage import Store, Task
from germane.testing import FakeJudge

Start = Callable[..., Monitor]
Until = Callable[..., None]


class Held:
    """A scorer that scores once it is let."""

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
    """The user's module ``hanging``, whose predicate returns when the test ends."""
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
    """A scorer that takes its time for each exchange, in seconds."""

    name, fingerprint, requires, range = "slow", "f1", frozenset({"answer"}), (0.0, 1.0)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.begun = 0

    async def score(self, exchange: Exchange) -> float:
        self.begun += 1
        await asyncio.sleep(self.seconds)
        return 0.5


def test_nothing_starts_at_import() -> None:
    """Importing the room starts no thread."""
    code = "import germane.monitor, threading; print(threading.active_count())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "1"


def test_it_is_one_daemon_thread_and_leaves_none_behind(
    store: Store, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """The thread has a name, keeps no program from ending, is started once, and is gone after stop."""
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
    until(lambda: set(threading.enumerate()) <= before)  # a last beat is not waited for


def test_stop_before_start_is_no_error(store: Store, settings: Callable[..., Settings], attached: Any) -> None:
    """A monitor that never ran is stopped at once."""
    assert Monitor(store, [], settings(), attach=attached).stop(0)


def test_stop_right_after_start_is_not_lost(
    store: Store, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """A stop that comes before the thread has begun its work still ends it, and so does a second one."""
    monitor = start(store, [Slow(0)], settings=settings())
    monitor.stop(0)
    monitor.stop(0)

    until(lambda: not monitor.status().running)


def test_stop_finishes_what_is_under_way(
    store: Store, start: Start, settings: Callable[..., Settings], attached: Any, new_exchange: Any, until: Until
) -> None:
    """What is being scored is finished, saved and attached; what has not begun is handed back, untouched."""
    scorer = Slow(0.2)
    store.add([new_exchange() for _ in range(200)])
    monitor = start(store, [scorer], settings=settings(concurrency=2))
    until(lambda: scorer.begun >= 4)

    assert monitor.stop(60)

    counts = store.counts()
    assert counts.done == len(attached.calls) == scorer.begun < 200
    assert (counts.pending, counts.running) == (200 - counts.done, 0)


def test_stop_hands_back_what_takes_too_long(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """When the time is up, tasks under way are handed back: another process has them at once, without a lease to wait
    for; stop says that not all was finished."""
    store.add([new_exchange() for _ in range(4)])
    monitor = start(store, [Slow(3600)], settings=settings())
    until(lambda: monitor.status().in_flight == 4)

    assert not monitor.stop(3)  # pytest's own time limit would end a stop that waits

    assert store.counts().pending == 4
    start(store, [Slow(0)], settings=settings())
    until(lambda: store.counts().done == 4)


def test_stop_saves_and_hands_back_beside_a_predicate_that_never_returns(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, hanging: Any
) -> None:
    """What is scored is saved and the rest handed back, also where the sampler cannot be waited for."""
    scorer = Held()
    store.add([new_exchange() for _ in range(2)])
    monitor = start(store, [scorer], settings=settings(always=[{"routes": ["odd"], "predicate": "hanging:hangs"}]))
    until(lambda: scorer.begun == 2)
    store.add([new_exchange(route="odd")])
    until(hanging.asked.is_set)

    assert not monitor.stop(3)

    counts = store.counts()
    assert (counts.pending, counts.running, counts.unsampled) == (2, 0, 1)
    assert store.workers() == []


def test_stop_closes_the_clients_on_their_own_loop(
    store: Store, judge: FakeJudge, start: Start, settings: Callable[..., Settings], until: Until
) -> None:
    """What closes the scorers' clients runs once, in the background's thread."""
    closed: list[str] = []

    async def close() -> None:
        closed.append(threading.current_thread().name)

    start(store, [Slow(0)], settings=settings(), close=close).stop(5)

    assert closed == ["germane-monitor"]


def test_stop_waits_for_alerts_on_their_way(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """An alert that was found before the stop still goes out."""
    sent: list[str] = []
    began = threading.Event()

    async def take_time(alert: Any) -> None:
        began.set()
        await asyncio.sleep(0.2)
        sent.append(alert.state)

    store.add([new_exchange() for _ in range(3)])
    rules = [{"scorer": "slow", "threshold": 0.9, "min_count": 3, "window": 60}]
    monitor = start(store, [Slow(0)], settings=settings(rules=rules), channels={"callback": Callback(take_time)})
    assert began.wait(60)
    assert monitor.stop(60)

    assert sent == ["firing"]


def test_without_any_rule_no_score_waits_for_a_detector(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """Whoever wants no alerts has no queue that grows for ever."""
    store.add([new_exchange() for _ in range(3)])
    off = [{"kind": kind, "enabled": False} for kind in ("drop", "no_data", "scorer_error", "budget_exhausted")]
    start(store, [Slow(0)], settings=settings(rules=off))
    until(lambda: sum(one.n for one in store.summary()) == 3)
    until(lambda: not store.arrivals(1))


def test_stop_gives_up_an_alert_that_does_not_go_out(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until, caplog: Any
) -> None:
    """A channel that hangs does not hold up the end; what was left is said, and waits for the next start."""
    began = threading.Event()

    async def hang(alert: Any) -> None:
        began.set()
        await asyncio.sleep(3600)

    store.add([new_exchange() for _ in range(3)])
    rules = [{"scorer": "slow", "threshold": 0.9, "min_count": 3, "window": 60}]
    monitor = start(store, [Slow(0)], settings=settings(rules=rules), channels={"callback": Callback(hang)})
    assert began.wait(60)

    assert not monitor.stop(0.3)
    until(lambda: not monitor.status().running)
    assert "left for later: callback" in caplog.text
    (posted,) = store.notifications(channel="callback")
    assert posted.status == "waiting"
    assert store.due_channels(["callback"]) == {"callback"}


def test_a_callback_may_stop_the_monitor(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """Stopping from within, where nobody can wait for the thread's end, is no deadlock."""
    told: list[bool] = []

    async def stop(alert: Any) -> None:
        told.append(monitor.stop(1))

    store.add([new_exchange() for _ in range(3)])
    rules = [{"scorer": "slow", "threshold": 0.9, "min_count": 3, "window": 60}]
    monitor = start(store, [Slow(0)], settings=settings(rules=rules), channels={"callback": Callback(stop)})

    until(lambda: not monitor.status().running)

    assert told == [False]


def test_it_can_be_started_again(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """After a stop the same monitor runs anew."""
    monitor = start(store, [Slow(0)], settings=settings())
    assert monitor.stop(60)
    store.add([new_exchange()])
    monitor.start()

    until(lambda: store.counts().done == 1)


FORK = """
import os, sys, threading, time
from contextlib import nullcontext
from germane.monitor import Monitor
from germane.settings import load
from germane.storage import Store

class Quick:
    name, fingerprint, requires, range = "quick", "f1", frozenset({"answer"}), (0.0, 1.0)
    async def score(self, exchange):
        return 0.5

store = Store(sys.argv[1])
monitor = Monitor(store, [Quick()], load(tick=0.05), attach=lambda exchange, scores: "none")
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


def test_a_forked_child_starts_without_it_and_may_start_its_own(url: str) -> None:
    """After a fork the child runs nothing until it is started there, ends in silence, and the parent goes on."""
    command = [sys.executable, "-W", "error", "-c", FORK, url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert (result.returncode, result.stderr) == (0, "")


FORK_IDLE = FORK[: FORK.index("    monitor.start()\n    while")] + "    sys.exit(0)\n" + FORK[FORK.index("_, status") :]


def test_a_forked_child_that_never_starts_it_ends_in_silence(url: str) -> None:
    """A child that only inherited the monitor neither complains at its end nor disturbs the parent."""
    command = [sys.executable, "-W", "error", "-c", FORK_IDLE, url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert (result.returncode, result.stderr) == (0, "")


WORKER = """
import asyncio, sys, time
from germane.monitor import Monitor
from germane.settings import load
from germane.storage import Store

class Slow:
    name, fingerprint, requires, range = "slow", "f1", frozenset({"answer"}), (0.0, 1.0)
    async def score(self, exchange):
        await asyncio.sleep(0.02)
        return 0.5

settings = load(tick=0.05, lease=1, concurrency=4)
Monitor(Store(sys.argv[1]), [Slow()], settings, attach=lambda *_: "none").start()
time.sleep(60)
"""


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_a_killed_worker_loses_nothing(
    store: Store, url: str, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """kill -9 in the middle of scoring: what it held is scored by another once the lease is over, all of it once."""
    store.add([new_exchange() for _ in range(200)])
    with subprocess.Popen([sys.executable, "-c", WORKER, url]) as worker:

        def caught_holding_something() -> bool:
            os.kill(worker.pid, signal.SIGSTOP)
            os.waitpid(worker.pid, os.WUNTRACED)
            counts = store.counts()
            if counts.done and counts.running:
                return True
            os.kill(worker.pid, signal.SIGCONT)
            return False

        until(caught_holding_something)
        worker.kill()
    assert store.counts().running > 0

    start(store, [Slow(0)], settings=settings())
    until(lambda: store.counts().done == 200)

    (coverage,) = store.coverage()
    assert store.counts().rows == coverage.seen == coverage.scored == 200


class Broken(Store):
    """Takes no score until it is mended: whoever saves fails at every try."""

    raised, mended = 0, False

    def complete(self, owner: str, results: Sequence[tuple[Task, Score]]) -> list[tuple[Task, Score]]:
        if self.mended:
            return super().complete(owner, results)
        self.raised += 1
        raise KeyError("text of a user")


def test_what_a_job_raises_does_not_end_it(
    store: Store,
    url: str,
    start: Start,
    settings: Callable[..., Settings],
    new_exchange: Any,
    until: Until,
    caplog: Any,
) -> None:
    """What a job raises is told once, without its message, and the job goes on and says when it is well again."""
    broken = Broken(url)
    store.add([new_exchange() for _ in range(3)])
    monitor = start(broken, [Slow(0)], settings=settings())
    until(lambda: monitor.status().jobs["save"].problem and broken.raised > 2)
    store.add([new_exchange()])
    until(lambda: monitor.status().unsaved == 4)
    broken.mended = True
    until(lambda: store.counts().done == 4)
    until(lambda: monitor.status().jobs["save"].problem is None)
    assert monitor.stop(60)
    broken.close()

    lines = [record.getMessage() for record in caplog.records if "'save'" in record.getMessage()]
    assert [line.split(" ")[2:4] for line in lines] == [["'save'", "fails:"], ["'save'", "works"]]
    assert "KeyError at test_background.py" in caplog.text
    assert "text of a user" not in caplog.text


def test_what_attaching_raises_keeps_no_other_from_it(
    store: Store, start: Start, settings: Callable[..., Settings], new_exchange: Any, until: Until
) -> None:
    """All are saved, and each of the others is attached once."""
    attached: list[str] = []

    def attach(exchange: Exchange, scores: Any) -> None:
        if exchange.route == "bad":
            raise KeyError
        attached.append(exchange.id)

    good = [new_exchange() for _ in range(3)]
    store.add([new_exchange(route="bad"), *good])
    start(store, [Slow(0)], settings=settings(), attach=attach)
    until(lambda: len(attached) == 3)

    assert sorted(attached) == sorted(one.id for one in good)
    assert store.counts().done == 4


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_database_that_goes_away_costs_nothing_but_time(
    store: Store, url: str, postgresql: Any, start: Start, settings: Callable[..., Settings], attached: Any,
    new_exchange: Any, until: Until, caplog: Any,
) -> None:  # fmt: skip
    """While the database is away, finished scores wait in memory; each job says so once; nothing is scored twice."""
    scorer = Held()
    name = url.partition("@/")[2].partition("?")[0]
    store.add([new_exchange() for _ in range(6)])
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
    assert store.counts().rows == 6
    failures = [record.getMessage() for record in caplog.records if "fails" in record.getMessage()]
    assert len(failures) == len({line.split(" ")[2] for line in failures})
    assert DatabaseUnreachable.__name__ in failures[0]


def test_an_unmigrated_database_is_told_and_nothing_breaks(
    tmp_path: Any, start: Start, settings: Callable[..., Settings], until: Until, new_exchange: Any
) -> None:
    """Without tables the jobs say how to mend it, and work as soon as it is mended."""
    store = Store(f"sqlite:///{tmp_path / 'empty.db'}")
    monitor = start(store, [Slow(0)], settings=settings())
    until(lambda: monitor.status().jobs["sample"].problem)
    assert "germane db upgrade" in str(monitor.status().jobs["sample"].problem)

    store.migrate()
    store.add([new_exchange()])
    until(lambda: store.counts().done == 1)
    monitor.stop(60)
    store.close()


def test_the_scheduler_says_nothing(
    store: Store, start: Start, settings: Callable[..., Settings], until: Until, caplog: Any
) -> None:
    """Ticks that fall due while a job still runs are daily life: the log of the application hears nothing of them."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "sqlalchemy")
    monitor = start(store, [Slow(0)], settings=settings())
    until(lambda: monitor.status().jobs["sample"].last_run)
    first = monitor.status().jobs["sample"].last_run
    until(lambda: monitor.status().jobs["sample"].last_run != first)
    monitor.stop(60)

    assert [record.name for record in caplog.records if "apscheduler" in record.name] == []


def test_a_call_in_a_thread_returns_raises_and_sees_the_context() -> None:
    """A blocking call behaves as if it were made in place, without blocking the loop."""
    variable: ContextVar[str] = ContextVar("variable", default="outside")

    def fail() -> None:
        raise LookupError

    async def use() -> tuple[str, str]:
        threads = Threads(1, name="germane-test")
        variable.set("inside")
        seen = await threads.run(variable.get)
        with pytest.raises(LookupError):
            await threads.run(fail)
        name = await threads.run(lambda: threading.current_thread().name)
        threads.close()
        return seen, name

    assert asyncio.run(use()) == ("inside", "germane-test-0")


def test_a_call_that_is_no_longer_wanted_is_not_made() -> None:
    """A call whose caller was cancelled while it waited for a thread is dropped."""
    made: list[int] = []

    async def use() -> None:
        threads = Threads(1, name="germane-test")
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


def test_a_coroutine_that_nobody_awaits_any_more_is_closed() -> None:
    """A function that returns a coroutine after its caller was cancelled makes Python complain of nothing."""
    made: list[Coroutine[Any, Any, None]] = []
    release, called = threading.Event(), threading.Event()

    def make() -> Coroutine[Any, Any, None]:
        called.set()
        release.wait(60)
        made.append(asyncio.sleep(0))
        return made[0]

    async def use() -> None:
        threads = Threads(1, name="germane-test")
        call = asyncio.create_task(threads.run(make))
        await asyncio.to_thread(called.wait, 60)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        release.set()
        await threads.run(made.copy)
        threads.close()

    asyncio.run(use())

    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED
