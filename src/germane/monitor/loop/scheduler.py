"""The thread in the background: an event loop of its own, and what happens on it at every tick."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

from apscheduler.executors.asyncio import AsyncIOExecutor  # type: ignore[import-untyped]  # APScheduler 3 has no types
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]  # the same

NAME: Final = "germane-monitor"
LOOK: Final = 1.0
"""Seconds between two looks whether the clock was set back."""
SET_BACK: Final = 0.5
"""Seconds by which a clock goes back when it is set, and not merely slowed."""
_EXECUTOR: Final = "germane"
_SILENT: Final = logging.CRITICAL + 1
Tick = Callable[[], Awaitable[object]]
Seconds = Callable[[], float]


class Work(Protocol):
    """What is done in the thread. It is made, run and stopped on the thread's own loop."""

    def ticks(self) -> Mapping[str, Tick]:
        """Return by name what is called at every tick. It must not raise."""
        ...

    async def stop(self, deadline: float) -> bool:
        """Finish or hand back everything by ``deadline``, a time of the loop; return whether that went well."""
        ...


class Scheduler:
    """Runs work in one daemon thread, from :meth:`start` to :meth:`stop`. A forked child has no such thread.

    Args:
        make: makes the work, on the thread's own loop.
        tick: seconds between two ticks.
        wall: the time of day, in seconds since 1970, by which ticks are due.
        steady: a time that nobody sets.
    """

    work: Work | None
    """What runs now."""
    _thread: threading.Thread | None
    _loop: asyncio.AbstractEventLoop | None
    _told: asyncio.Future[float] | None
    _patience: float | None
    """Seconds for stopping, once that is asked for."""

    def __init__(
        self, make: Callable[[], Work], *, tick: float, wall: Seconds = time.time, steady: Seconds = time.monotonic
    ) -> None:
        self._make = make
        self._tick = tick
        self._clock = SteppingClock(wall, steady)
        self._forget()
        _all.add(self)

    @property
    def running(self) -> bool:
        """Whether the thread lives."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread, unless it runs."""
        with self._lock:
            if not self.running:
                self._patience = None
                self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
                self._thread.start()

    def stop(self, timeout: float) -> bool:
        """End the thread; return whether it ended within ``timeout`` seconds and nothing was left undone."""
        thread = self._thread
        if thread is None:
            return True
        self._patience = timeout
        loop = self._loop
        if loop is not None:  # else it looks for itself when it begins
            with contextlib.suppress(RuntimeError):  # it is closed: somebody else has stopped it
                loop.call_soon_threadsafe(self._tell)
        if thread is threading.current_thread():
            return False
        # A little later than the work's own deadline, which it keeps.
        thread.join(timeout + 1.0)
        return self._went_well and not thread.is_alive()

    def _tell(self) -> None:
        told, patience = self._told, self._patience
        if told is not None and patience is not None and not told.done():
            told.set_result(asyncio.get_running_loop().time() + patience)

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._main())
        finally:
            self.work = self._loop = self._told = None

    async def _main(self) -> None:
        self._went_well = False
        loop = self._loop = asyncio.get_running_loop()
        told = self._told = loop.create_future()
        work = self.work = self._make()
        timer = _timer(work.ticks(), self._tick)
        timer.start()
        watching = asyncio.create_task(_keep_ticking(timer, self._clock, min(self._tick, LOOK)))
        self._tell()
        deadline = await told
        watching.cancel()
        timer.pause()
        self._went_well = await work.stop(deadline)
        timer.shutdown(wait=False)
        await asyncio.sleep(0)  # it goes by way of the loop

    def _forget(self) -> None:
        """Begin without a thread: threads do not come along into a forked child, locks do as they happen to be."""
        # What runs in the parent must not be collected here: closing its loop would be felt there.
        self._inherited = dict(vars(self))
        self._lock = threading.Lock()
        self._thread = self._loop = self._told = self._patience = self.work = None
        self._went_well = True


class SteppingClock:
    """Tells when the time of day was set back: it then differs by less than before from a time that nobody sets."""

    def __init__(self, wall: Seconds, steady: Seconds) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead = wall() - steady()

    def was_set_back(self) -> bool:
        """Whether that happened since it was asked last."""
        before, self._ahead = self._ahead, self._wall() - self._steady()
        return before - self._ahead > SET_BACK


async def _keep_ticking(timer: AsyncIOScheduler, clock: SteppingClock, every: float) -> None:
    """Have all ticks done at once when the clock was set back: APScheduler would wait for it to catch up."""
    while True:
        await asyncio.sleep(every)
        if clock.was_set_back():
            for job in timer.get_jobs():
                job.modify(next_run_time=datetime.now(UTC))


def _timer(ticks: Mapping[str, Tick], seconds: float) -> AsyncIOScheduler:
    """Return a scheduler that does the ticks at once, and then again and again.

    A tick that takes longer than the interval is left to end: what falls due meanwhile becomes one. That is daily life
    here, so that the scheduler's log of it is kept silent, without touching the logs of an application's own.
    """
    silent = logging.getLogger("germane.monitor.apscheduler")
    silent.setLevel(_SILENT)
    logging.getLogger(f"apscheduler.executors.{_EXECUTOR}").setLevel(_SILENT)
    timer = AsyncIOScheduler(
        timezone=UTC,
        logger=silent,
        executors={_EXECUTOR: AsyncIOExecutor()},
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    for name, tick in ticks.items():
        timer.add_job(tick, "interval", seconds=seconds, id=name, executor=_EXECUTOR, next_run_time=datetime.now(UTC))
    return timer


_all: weakref.WeakSet[Scheduler] = weakref.WeakSet()


def _after_fork() -> None:
    for scheduler in _all:
        scheduler._forget()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_after_fork)
