"""Background jobs that run repeatedly, their status, and the log of outages that affect them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime

from germane.errors import GermaneError, StorageError, error_location
from germane.storage import JobRun

logger = logging.getLogger("germane.monitor")


class OutageLog:
    """The outage log that all jobs of a monitor share. Thread-safe.

    An unreachable database is one outage, even if it affects many jobs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outages: dict[str, tuple[str, set[str]]] = {}
        """For each outage, the job that first reported it and the jobs that it affects."""

    def record_failure(self, job: str, outage: str, message: str) -> None:
        """Record that an outage affects a job, and log the message if the outage is new."""
        with self._lock:
            for other in self._outages.keys() - {outage}:
                self._remove_job(job, other)
            is_known = outage in self._outages
            self._outages.setdefault(outage, (job, set()))[1].add(job)
        if not is_known:
            logger.warning("background job %r is failing: %s", job, message)

    def record_recovery(self, job: str) -> None:
        """Record that a job succeeded, and log the end of each outage that affected only this job."""
        with self._lock:
            reporters = [self._remove_job(job, outage) for outage in list(self._outages)]
        for reporter in filter(None, reporters):
            logger.warning("background job %r has recovered", reporter)

    def _remove_job(self, job: str, outage: str) -> str | None:
        """Remove a job from an outage. If it was the last job, end the outage and return the job that reported it."""
        reporter, affected = self._outages[outage]
        if job not in affected:
            return None
        affected.remove(job)
        if affected:
            return None
        del self._outages[outage]
        return reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A background job's status."""

    last_run: datetime | None = None
    """Time of the last successful run, in UTC."""
    problem: str | None = None
    """The error from the last run; None if it succeeded."""
    runs: Sequence[JobRun] = ()
    """The last 50 runs, oldest first."""


class Job:
    """The error boundary around background work. No exception that the work raises escapes :meth:`run`.

    The outage log records the first failure and the recovery. Jobs that share a log report a common outage once.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None] | None],
        *,
        clock: Callable[[], datetime],
        suppressed: Callable[[], AbstractContextManager[object]],
        outage_log: OutageLog | None = None,
    ) -> None:
        self.name = name
        self.last_run: datetime | None = None
        self.problem: str | None = None
        self.runs: tuple[JobRun, ...] = ()
        self._work = work
        self._clock = clock
        self._suppressed = suppressed
        self._outage_log = outage_log or OutageLog()
        self._running = asyncio.Lock()

    async def run(self) -> None:
        """Run the work once, without tracing it. Concurrent calls run one after another."""
        async with self._running:
            with self._error_boundary():
                if (waiting := self._work()) is not None:
                    await waiting

    def run_blocking(self) -> None:
        """Run work that is not asynchronous once, without an event loop."""
        with self._error_boundary():
            self._work()

    @contextmanager
    def _error_boundary(self) -> Iterator[None]:
        started_at, started = self._clock(), time.monotonic()
        try:
            with self._suppressed():
                yield
        except Exception as error:
            # An unreachable database is one outage for all jobs; any other error is an outage of this job.
            outage = type(error).__name__ if isinstance(error, StorageError) else self.name
            if self.problem is None or isinstance(error, StorageError):
                self._outage_log.record_failure(self.name, outage, describe_error(error))
            logger.debug("background job %r failed", self.name, exc_info=error)
            self.problem = describe_error(error)
        else:
            if self.problem is not None:
                self._outage_log.record_recovery(self.name)
            self.last_run, self.problem = self._clock(), None
        run = JobRun(started_at=started_at, seconds=time.monotonic() - started, problem=self.problem)
        self.runs = run.appended_to(self.runs)  # always a new tuple: other threads read it

    async def run_whenever(self, wait: Callable[[], Awaitable[None]]) -> None:
        """Run the work each time ``wait`` returns, until canceled."""
        while True:
            await wait()
            await self.run()

    async def wait_until_idle(self) -> None:
        """Wait for the run in progress, if any, to end."""
        async with self._running:
            pass

    def status(self) -> JobStatus:
        """Return the status of the job. Thread-safe."""
        return JobStatus(last_run=self.last_run, problem=self.problem, runs=self.runs)


def describe_error(error: BaseException) -> str:
    """Describe an error in one line, without the message of other libraries, which may contain user text or secrets."""
    return f"{type(error).__name__}: {error}" if isinstance(error, GermaneError) else error_location(error)
