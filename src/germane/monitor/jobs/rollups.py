"""The rollup job: one process keeps the hourly rollups of trends up to date, a few hours at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.monitor.loop.leader import LeaderLease
from germane.storage import TrackingStore

MIN_INTERVAL: Final = timedelta(seconds=5)
"""The shortest interval between two rounds."""
MAX_INTERVAL: Final = 60 * MIN_INTERVAL
"""The longest interval between two rounds."""
CURRENT_HOUR_INTERVAL: Final = timedelta(minutes=1)
"""The interval between two rounds that include the current hour, which changes all the time."""
MAX_ROUND_SECONDS: Final = 1.0
"""Seconds after which a round starts no further batch."""
PAUSE_FACTOR: Final = 10
"""The shortest pause after a round, as a multiple of its duration."""
HOURS_PER_BATCH: Final = 6


class RollupJob:
    """Rolls up the hours that changed, in the process that holds the lease.

    Readers compute hours without a rollup from the rows, so a late rollup costs time and never correctness.

    Args:
        store: Where the hours are.
        breakdowns: The setting of the same name.
        leader: The lease that a process must hold to roll up.
        thread_pool: Where the database is called.
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
        """Roll up some hours, newest first; return how long that took."""
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
    """Return whether ``due`` has passed, or lies so far ahead that the clock must have been set back."""
    return due is None or due <= now or due - now > max_interval
