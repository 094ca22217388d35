"""Queue metrics: gauges for the backlog in the database, exported by the process that samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from germane.daemon_pool import DaemonThreadPool
from germane.errors import StorageError
from germane.monitor.loop.leases import LeaderLease
from germane.settings import Settings
from germane.storage import TrackingStore
from germane.tracer import BacklogState, are_gauges_exported

MAX_TIME_SHARE: Final = 0.01
"""The maximum share of time to spend reading. Counting a longer backlog takes longer, so it is read less often."""


class QueueMetricsJob:
    """Keeps a snapshot of the queue in memory, so that metrics exporters do not wait for the database.

    If no gauge is exported, the job does not read the database.
    """

    def __init__(
        self,
        store: TrackingStore,
        settings: Settings,
        *,
        leader: LeaderLease,
        thread_pool: DaemonThreadPool,
        is_needed: Callable[[], bool] = are_gauges_exported,
    ) -> None:
        self.snapshot: BacklogState | None = None
        """The last snapshot; None in a process that is not the leader."""
        self._store = store
        self._settings = settings
        self._leader = leader
        self._thread_pool = thread_pool
        self._is_needed = is_needed
        self._next_read = 0.0

    async def run(self) -> None:
        """Refresh the snapshot if it is due, and drop it if another process has become the leader."""
        if self.snapshot is not None or time.monotonic() >= self._next_read:
            self.snapshot = await self._thread_pool.run(self._current_snapshot)

    def _current_snapshot(self) -> BacklogState | None:
        try:
            if not (self._is_needed() and self._leader.acquire()):
                return None
            if time.monotonic() < self._next_read:
                return self.snapshot
            started = time.monotonic()
            try:
                return self._load_snapshot()
            finally:
                ended = time.monotonic()
                self._next_read = ended + (ended - started) / MAX_TIME_SHARE
        except StorageError:  # other jobs report an unreachable database
            return None

    def _load_snapshot(self) -> BacklogState:
        backlog = self._store.backlog.load_backlog(alive_within=timedelta(seconds=self._settings.task_lease))
        budget = self._settings.budget
        return BacklogState(
            undecided=backlog.outstanding.undecided,
            exchanges=backlog.outstanding.by_state(),
            lag=backlog.lag.total_seconds(),
            workers=backlog.workers,
            budget={} if budget is None else self._store.quota.load_usage().shares(budget),
        )
