"""Database maintenance by one process at a time: rollups, archive and retention."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.errors import ArchiveError, UsageError
from germane.monitor.loop.job import Job
from germane.monitor.loop.leases import LeaderLease
from germane.settings import Archive, Retention
from germane.storage import PruneResult, TrackingStore

MIN_INTERVAL: Final = timedelta(seconds=5)
"""The shortest interval between two rounds."""
MAX_INTERVAL: Final = 60 * MIN_INTERVAL
"""The longest interval between two rounds."""
CURRENT_HOUR_INTERVAL: Final = timedelta(minutes=1)
"""The interval between rounds that include the current hour. Its data changes constantly."""
MAX_ROUND_SECONDS: Final = 1.0
"""Time limit, in seconds, after which a round starts no further batch."""
PAUSE_FACTOR: Final = 10
"""The shortest pause after a round, as a multiple of the round's duration."""
HOURS_PER_BATCH: Final = 6
LEASE_INTERVALS: Final = 1.5
"""The TTL of the leader lease, as a multiple of the interval between two rounds."""
logger = logging.getLogger("germane.monitor")


class RollupJob:
    """Updates the rollups of hours whose data changed, in the process that holds the lease.

    For hours without a rollup, queries read the individual rows, so a late rollup makes queries slower but never
    incorrect.
    """

    def __init__(
        self,
        store: TrackingStore,
        breakdowns: Sequence[str],
        *,
        leader: LeaderLease,
        thread_pool: DaemonThreadPool,
        clock: Callable[[], datetime],
    ) -> None:
        self.stopping = False
        self.leader = leader
        self._store = store
        self._breakdowns = tuple(breakdowns)
        self._thread_pool = thread_pool
        self._clock = clock
        self._next_round: datetime | None = None
        self._next_current_hour: datetime | None = None

    async def run(self) -> None:
        """Run a round if one is due."""
        now = self._clock()
        if not self.stopping and _is_due(now, self._next_round, MAX_INTERVAL):
            duration = await self._thread_pool.run(self._run_round, now)
            self._next_round = now + max(MIN_INTERVAL, duration * PAUSE_FACTOR)

    def _run_round(self, now: datetime) -> timedelta:
        """Roll up a limited number of hours, newest first, and return the duration of the round."""
        started = time.monotonic()
        with_current_hour = _is_due(now, self._next_current_hour, CURRENT_HOUR_INTERVAL)
        if self.leader.acquire():
            before = None if with_current_hour else now.replace(minute=0, second=0, microsecond=0)
            while not self.stopping:
                hours = self._store.rollups.update(HOURS_PER_BATCH, breakdowns=self._breakdowns, before=before)
                if hours < HOURS_PER_BATCH or time.monotonic() - started > MAX_ROUND_SECONDS:
                    break
            if with_current_hour:
                self._next_current_hour = now + CURRENT_HOUR_INTERVAL
        return timedelta(seconds=time.monotonic() - started)


def _is_due(now: datetime, due: datetime | None, max_interval: timedelta) -> bool:
    """Return whether ``due`` has passed, or is so far in the future that the clock must have been set back."""
    return due is None or due <= now or due - now > max_interval


@dataclass(frozen=True, slots=True)
class RetentionSchedule:
    """The schedule of the retention job."""

    initial_delay: timedelta = timedelta(minutes=5)
    """The delay before the first run, so that the job does not slow down the application's startup."""
    interval: timedelta = timedelta(hours=1)


class RetentionJob:
    """Expires orphaned tasks, erases old text, moves closed days to the archive, deletes old exchanges and counts, and
    enforces the maximum size.

    The job calls the database from its own thread, so that a long round does not delay other jobs. If ``stopping``
    becomes true, the job stops after the current transaction. Transactions are short.
    """

    def __init__(
        self,
        store: TrackingStore,
        retention: Retention,
        *,
        owner: str,
        schedule: RetentionSchedule,
        clock: Callable[[], datetime],
        archive: Archive | None = None,
    ) -> None:
        self.stopping = False
        self.leader = LeaderLease(store, "housekeeper", owner, ttl=LEASE_INTERVALS * schedule.interval, clock=clock)
        self._store = store
        self._retention = retention
        self._archive = archive
        self._schedule = schedule
        self._clock = clock
        self._thread_pool: DaemonThreadPool | None = None
        self._was_too_large = False

    async def run_forever(self, job: Job) -> None:
        """Run ``job`` on the schedule until canceled."""
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
            # Clients rely on the delivery of requests that were acknowledged.
            logger.log(
                logging.WARNING if removed.requests or removed.traces else logging.INFO, "retention: %s", removed
            )

    def close(self) -> None:
        """Close the thread pool."""
        if self._thread_pool is not None:
            self._thread_pool.close()

    def _run_round(self) -> PruneResult:
        if self._must_stop():
            return PruneResult()
        expired = 0
        while not self._must_stop() and (batch := self._store.orphans.expire_orphaned_tasks()):
            expired += batch
        # Use the earlier of the two clocks, so that recent data does not look old if one clock is ahead.
        now = min(self._clock(), self._store.now())
        removed = self._store.retention.prune(
            texts_before=now - timedelta(days=self._retention.text_days),
            before=now - timedelta(days=self._retention.score_days),
            max_size=self._retention.max_size,
            stopping=self._must_stop,
        )
        if self._archive is not None and not self._must_stop():
            self._archive_days(self._archive, now)
        if self._retention.max_size is not None and not self._must_stop():
            self._check_size(self._retention.max_size)
        return removed + PruneResult(expired=expired)

    def _check_size(self, max_size: int) -> None:
        """Log once when the database exceeds its maximum size, and once when it is below it again."""
        size = self._store.retention.measure_size(max_size)
        is_too_large = size > max_size
        if is_too_large and not self._was_too_large:
            message = (
                "the database uses %.0f MB, more than retention.max_size (%.0f MB), but the remaining data is too "
                "recent to delete"
            )
            logger.warning(message, size / 1e6, max_size / 1e6)
        elif self._was_too_large and not is_too_large:
            logger.info("the database is within retention.max_size again")
        self._was_too_large = is_too_large

    def _archive_days(self, archive: Archive, now: datetime) -> None:
        """Move closed days to the archive. A failure is logged and does not stop retention."""
        try:
            results = self._store.archive.archive_days(
                archive.location,
                before=now - timedelta(days=archive.after_days),
                has_text=archive.text,
                stopping=self._must_stop,
            )
        except (ArchiveError, UsageError) as error:
            logger.warning("archive: %s", error)
            return
        archived = [result for result in results if result.manifest is not None]
        if archived:
            logger.info("archive: %d days moved to %s", len(archived), archive.location)

    def _must_stop(self) -> bool:
        """Return whether the round must end, after renewing the lease if a renewal is due."""
        return self.stopping or not self.leader.acquire()
