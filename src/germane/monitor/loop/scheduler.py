"""The background thread. It runs an event loop, on which APScheduler starts the jobs at every poll interval."""

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
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]  # APScheduler 3 has no types

THREAD_NAME: Final = "germane-monitor"
MAX_CLOCK_CHECK_INTERVAL: Final = 1.0
"""The longest interval between two checks for a clock that was set back, in seconds."""
MIN_CLOCK_STEP: Final = 0.5
"""The smallest backward step in seconds that counts as setting the clock back. Smaller steps are normal corrections."""
SERVICE_SHARE: Final = 0.9
"""The share of the stop timeout that the service gets. The rest is for stopping the event loop and its thread."""
logger = logging.getLogger("germane.monitor")
PeriodicJob = Callable[[], Awaitable[object]]
Seconds = Callable[[], float]

_EXECUTOR: Final = "germane"
_schedulers: weakref.WeakSet[Scheduler] = weakref.WeakSet()


class BackgroundService(Protocol):
    """A service that is created, run and stopped on the background thread's event loop."""

    def periodic_jobs(self) -> Mapping[str, PeriodicJob]:
        """Return the jobs that run at every poll interval, by name. They must not raise."""

    async def stop(self, deadline: float) -> bool:
        """Finish or release all work by ``deadline``, in event loop time. Return whether no work was lost."""


class Scheduler:
    """Runs a service in a daemon thread from :meth:`start` to :meth:`stop`. Forked children do not inherit the thread.

    The service is created on the thread's event loop. The wall clock determines when jobs are due.
    """

    service: BackgroundService | None
    """The running service; None if none is running."""
    _thread: threading.Thread | None
    _loop: asyncio.AbstractEventLoop | None
    _stop_deadline: asyncio.Future[float] | None
    _stop_timeout: float | None
    """The timeout passed to :meth:`stop`, in seconds; None before that call."""

    def __init__(
        self,
        make_service: Callable[[], BackgroundService],
        *,
        poll_interval: float,
        wall_clock: Seconds = time.time,
        monotonic_clock: Seconds = time.monotonic,
    ) -> None:
        self._make_service = make_service
        self._poll_interval = poll_interval
        self._clock_steps = ClockStepDetector(wall_clock, monotonic_clock)
        self._reset()
        _schedulers.add(self)

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread unless it is running."""
        with self._lock:
            if not self.running:
                self._stop_timeout = None
                self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
                self._thread.start()

    def stop(self, timeout: float) -> bool:
        """Stop the service and its thread. Return whether both ended within ``timeout`` seconds and lost no work."""
        thread = self._thread
        if thread is None:
            return True
        self._stop_timeout = timeout
        loop = self._loop
        if loop is not None:  # otherwise, the thread is starting and checks the timeout itself
            with contextlib.suppress(RuntimeError):  # the loop is closed: another thread has stopped the service
                loop.call_soon_threadsafe(self._set_stop_deadline)
        if thread is threading.current_thread():
            return False
        thread.join(timeout)
        return self._stopped_cleanly and not thread.is_alive()

    def _set_stop_deadline(self) -> None:
        future, timeout = self._stop_deadline, self._stop_timeout
        if future is not None and timeout is not None and not future.done():
            future.set_result(asyncio.get_running_loop().time() + SERVICE_SHARE * timeout)

    def _run(self) -> None:
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            # A new thread runs no event loop, unless it is a greenlet.
            logger.error("gevent shares one thread with another event loop: nothing is scored; run 'germane worker'")
            return
        try:
            with asyncio.Runner() as runner:
                runner.run(self._main())
        finally:
            self.service = self._loop = self._stop_deadline = None

    async def _main(self) -> None:
        self._stopped_cleanly = False
        loop = self._loop = asyncio.get_running_loop()
        stop_deadline = self._stop_deadline = loop.create_future()
        service = self.service = self._make_service()
        timer = _apscheduler(service.periodic_jobs(), self._poll_interval)
        timer.start()

        async def check_clock() -> None:
            """Run all jobs immediately when the clock is set back: APScheduler would wait for it to catch up."""
            while True:
                await asyncio.sleep(min(self._poll_interval, MAX_CLOCK_CHECK_INTERVAL))
                if self._clock_steps.was_set_back():
                    for job in timer.get_jobs():
                        job.modify(next_run_time=datetime.now(UTC))

        clock_checks = asyncio.create_task(check_clock())
        self._set_stop_deadline()
        deadline = await stop_deadline
        clock_checks.cancel()
        timer.pause()
        self._stopped_cleanly = await service.stop(deadline)
        timer.shutdown(wait=False)
        await asyncio.sleep(0)  # shutdown() schedules a callback on the loop

    def _reset(self) -> None:
        """Reset the state to that before :meth:`start`, also in a forked child, whose locks are arbitrary."""
        # Keep references to the parent's objects, because collecting its loop here would also close it in the parent.
        self._inherited = dict(vars(self))
        self._lock = threading.Lock()
        self._thread = self._loop = self._stop_deadline = self._stop_timeout = self.service = None
        self._stopped_cleanly = True


class ClockStepDetector:
    """Detects when the wall clock is set back, by comparing it with a monotonic clock."""

    def __init__(self, wall_clock: Seconds, monotonic_clock: Seconds) -> None:
        self._wall_clock = wall_clock
        self._monotonic_clock = monotonic_clock
        self._offset = wall_clock() - monotonic_clock()

    def was_set_back(self) -> bool:
        """Return whether the wall clock was set back since the last call."""
        previous, self._offset = self._offset, self._wall_clock() - self._monotonic_clock()
        return previous - self._offset > MIN_CLOCK_STEP


def _apscheduler(jobs: Mapping[str, PeriodicJob], interval: float) -> AsyncIOScheduler:
    """Return a scheduler that runs each job immediately and then every ``interval`` seconds.

    A job that takes longer than the interval is not interrupted, and its missed runs are coalesced into one. Because
    this is normal here, APScheduler's warnings about it are suppressed. The application's loggers are not changed.
    """
    disabled_logger = logging.getLogger("germane.monitor.apscheduler")
    for logger in (disabled_logger, logging.getLogger(f"apscheduler.executors.{_EXECUTOR}")):
        logger.setLevel(logging.CRITICAL + 1)
    timer = AsyncIOScheduler(
        timezone=UTC,
        logger=disabled_logger,
        executors={_EXECUTOR: AsyncIOExecutor()},
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    for name, job in jobs.items():
        timer.add_job(job, "interval", seconds=interval, id=name, executor=_EXECUTOR, next_run_time=datetime.now(UTC))
    return timer


def _reset_after_fork() -> None:
    for scheduler in _schedulers:
        scheduler._reset()  # noqa: SLF001 - the same module


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_reset_after_fork)
