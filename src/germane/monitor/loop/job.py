"""One thing that is done again and again, and whether it goes well."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from germane.errors import GermaneError, place_of, StorageError
from germane.monitor.loop.outage_log import Voice
from germane.storage import Run
from germane.storage.cluster.workers import KEPT

logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """How a job is doing."""

    last_run: datetime | None = None
    """When it last went well; UTC."""
    problem: str | None = None
    """What went wrong the last time, None when nothing did."""
    runs: Sequence[Run] = ()
    """The last 50, the oldest first."""


class Job:
    """The boundary around background work: nothing that the work raises gets past it.

    It says so in the log once when the work begins to fail, and once when it goes well again: through the voice that it
    shares with others, where there is one.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        *,
        clock: Callable[[], datetime],
        quiet: Callable[[], AbstractContextManager[object]],
        voice: Voice | None = None,
    ) -> None:
        self.name = name
        self.last_run: datetime | None = None
        self.problem: str | None = None
        self.runs: tuple[Run, ...] = ()
        self._work = work
        self._clock = clock
        self._quiet = quiet
        self._voice = voice or Voice()
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Do the work once, untraced; a second call meanwhile waits for its turn."""
        async with self._turn:
            began, steady = self._clock(), time.monotonic()
            try:
                with self._quiet():
                    await self._work()
            except Exception as error:  # noqa: BLE001 - the one boundary that keeps the background alive
                self._failed(error)
            else:
                self._succeeded()
            ended = Run(started_at=began, seconds=time.monotonic() - steady, problem=self.problem)
            self.runs = (*self.runs[1 - KEPT :], ended)  # a new one each time: others read it from their threads

    async def rest(self) -> None:
        """Wait until a run that is under way has ended."""
        async with self._turn:
            pass

    def status(self) -> JobStatus:
        """Return how it is doing; may be called from any thread."""
        return JobStatus(last_run=self.last_run, problem=self.problem, runs=self.runs)

    def _succeeded(self) -> None:
        if self.problem is not None:
            self._voice.works(self.name)
        self.last_run, self.problem = self._clock(), None

    def _failed(self, error: Exception) -> None:
        # A database that is away is one trouble of all jobs; any other is this one's until it goes well.
        kind = type(error).__name__ if isinstance(error, StorageError) else self.name
        if self.problem is None or isinstance(error, StorageError):
            self._voice.fails(self.name, kind, describe(error))
        logger.debug("background job %r fails", self.name, exc_info=error)
        self.problem = describe(error)


def describe(error: BaseException) -> str:
    """Say in one line what went wrong.

    Of errors that are not ours only type and place are told: their messages may hold text of users or secrets.
    """
    return f"{type(error).__name__}: {error}" if isinstance(error, GermaneError) else place_of(error)
