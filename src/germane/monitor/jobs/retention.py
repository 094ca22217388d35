"""What keeps the database from growing for ever: one process of all does it, about once an hour."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane.daemon_pool import Threads
from germane.monitor.loop.job import Job
from germane.monitor.loop.leader import Office
from germane.settings import Retention
from germane.storage import Removed, Store

TERMS: Final = 1.5
"""Intervals for which a process that is gone may still be thought to keep house."""
logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When the house is kept."""

    first: timedelta = timedelta(minutes=5)
    """After the start, when an application has other things to do."""
    every: timedelta = timedelta(hours=1)


class Housekeeping:
    """Ends tasks that nobody runs, erases old text, deletes old exchanges and counts, and keeps to a size.

    Its calls are made in a thread of its own, so that a long round holds up nothing else; it ends between two short
    transactions once ``stopping`` is true.
    """

    def __init__(
        self, store: Store, retention: Retention, *, owner: str, rhythm: Rhythm, clock: Callable[[], datetime]
    ) -> None:
        self.stopping = False
        self.office = Office(store, "housekeeper", owner, term=TERMS * rhythm.every, clock=clock)
        self._store = store
        self._retention = retention
        self._rhythm = rhythm
        self._clock = clock
        self._threads: Threads | None = None
        self._too_large = False

    async def again(self, job: Job) -> None:
        """Do the job when it is time, for ever."""
        await asyncio.sleep(self._rhythm.first.total_seconds())
        while True:
            await job.run()
            await asyncio.sleep(self._rhythm.every.total_seconds())

    async def run(self) -> None:
        """Keep the house once, unless another process does, and say what went."""
        if self.stopping:
            return
        self._threads = self._threads or Threads(1, name="germane-monitor-housekeeping")
        removed = await self._threads.run(self._round)
        if removed:
            logger.info("housekeeping: %s", removed)

    def close(self) -> None:
        """Let the thread end."""
        if self._threads is not None:
            self._threads.close()

    def _round(self) -> Removed:
        if self._is_over():
            return Removed()
        expired, retention = self._expire(), self._retention
        now = min(self._clock(), self._store.now())  # a clock that is ahead must not make old what is not
        removed = self._store.prune(
            texts_before=now - timedelta(days=retention.text_days),
            before=now - timedelta(days=retention.score_days),
            max_size=retention.max_size,
            stopping=self._is_over,
        )
        self._tell_size()
        return removed + Removed(expired=expired)

    def _is_over(self) -> bool:
        """Return whether to leave the rest; asking renews the office."""
        return self.stopping or not self.office.held()

    def _expire(self) -> int:
        expired = 0
        while not self._is_over() and (some := self._store.expire()):
            expired += some
        return expired

    def _tell_size(self) -> None:
        """Say once that the database does not fit, and once that it does again."""
        limit = self._retention.max_size
        if limit is None or self._is_over():
            return
        size = self._store.size(limit)
        was, self._too_large = self._too_large, size > limit
        if self._too_large and not was:
            told = "the database takes %.0f MB, retention.max_size is %.0f MB, and what is left is too young to go"
            logger.warning(told, size / 1e6, limit / 1e6)
        elif was and not self._too_large:
            logger.info("the database is within retention.max_size again")
