"""The retention job: once an hour, one process deletes what the retention settings no longer keep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.monitor.loop.job import Job
from germane.monitor.loop.leader import LeaderLease
from germane.settings import Retention
from germane.storage import PruneResult, TrackingStore

LEASE_INTERVALS: Final = 1.5
"""The TTL of the leader lease, as a multiple of the interval between two rounds."""

logger = logging.getLogger("germane.monitor")


@dataclass(frozen=True, slots=True)
class RetentionSchedule:
    """When the retention job runs."""

    initial_delay: timedelta = timedelta(minutes=5)
    """The delay after the start, when an application is busy with other things."""
    interval: timedelta = timedelta(hours=1)


class RetentionJob:
    """Expires orphaned tasks, erases old text, deletes old exchanges and counts, and enforces the maximum size.

    It calls the database from its own thread, so that a long round delays no other job. Once ``stopping`` is true, it
    ends between two short transactions.
    """

    def __init__(
        self,
        store: TrackingStore,
        retention: Retention,
        *,
        owner: str,
        schedule: RetentionSchedule,
        clock: Callable[[], datetime],
    ) -> None:
        self.stopping = False
        self.leader = LeaderLease(store, "housekeeper", owner, ttl=LEASE_INTERVALS * schedule.interval, clock=clock)
        self._store = store
        self._retention = retention
        self._schedule = schedule
        self._clock = clock
        self._thread_pool: DaemonThreadPool | None = None
        self._was_too_large = False

    async def run_forever(self, job: Job) -> None:
        """Run ``job`` on the schedule until cancelled."""
        await asyncio.sleep(self._schedule.initial_delay.total_seconds())
        while True:
            await job.run()
            await asyncio.sleep(self._schedule.interval.total_seconds())

    async def run(self) -> None:
        """Run one round unless another process is the leader, and log what was removed."""
        if self.stopping:
            return
        self._thread_pool = self._thread_pool or DaemonThreadPool(1, name="germane-monitor-retention")
        removed = await self._thread_pool.run(self._run_round)
        if removed:
            logger.info("retention: %s", removed)

    def close(self) -> None:
        """Let the thread end."""
        if self._thread_pool is not None:
            self._thread_pool.close()

    def _run_round(self) -> PruneResult:
        if self._must_stop():
            return PruneResult()
        expired = 0
        while not self._must_stop() and (batch := self._store.queue.expire_orphaned_tasks()):
            expired += batch
        # The earlier of both clocks: one that is ahead must not make recent data look old.
        now = min(self._clock(), self._store.now())
        removed = self._store.retention.prune(
            texts_before=now - timedelta(days=self._retention.text_days),
            before=now - timedelta(days=self._retention.score_days),
            max_size=self._retention.max_size,
            stopping=self._must_stop,
        )
        self._check_size()
        return removed + PruneResult(expired=expired)

    def _must_stop(self) -> bool:
        """Return whether to end the round, and renew the lease if not."""
        return self.stopping or not self.leader.acquire()

    def _check_size(self) -> None:
        """Log once that the database exceeds its maximum size, and once that it no longer does."""
        max_size = self._retention.max_size
        if max_size is None or self._must_stop():
            return
        size = self._store.retention.measure_size(max_size)
        is_too_large = size > max_size
        if is_too_large and not self._was_too_large:
            message = "the database takes %.0f MB, retention.max_size is %.0f MB, and the rest is too recent to delete"
            logger.warning(message, size / 1e6, max_size / 1e6)
        elif self._was_too_large and not is_too_large:
            logger.info("the database is within retention.max_size again")
        self._was_too_large = is_too_large
