"""Coordination between processes that share a database: heartbeats that renew task leases, and leader leases."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from germane.monitor.loop.job import Job, JobStatus
from germane.storage import TrackingStore

RENEWALS_PER_TTL: Final = 3
"""The number of times that a lease is renewed per TTL."""
THREAD_NAME: Final = "germane-monitor-heartbeat"
BEATS_PER_LEASE: Final = 4
MAX_INTERVAL: Final = 15.0
"""The longest interval between two heartbeats in seconds, even if the lease is longer.

Heartbeats also show which workers are alive, and they correct the leases after a clock has been set back.
"""
RETRY_INTERVAL: Final = 1.0
"""The longest delay before the next heartbeat after a failed one, in seconds."""


class LeaderLease:
    """A named lease that one process holds at a time. It becomes free when it expires or the holder releases it."""

    def __init__(
        self, store: TrackingStore, name: str, owner: str, *, ttl: timedelta, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._name = name
        self._owner = owner
        self._ttl = ttl
        self._clock = clock
        self._renewed_at: datetime | None = None
        self._is_leader = False

    def acquire(self) -> bool:
        """Acquire the lease if it is free, or renew it if a renewal is due. Return whether this process holds it.

        The database is called at most three times per TTL; in between, the last result is returned. Blocks.

        Raises:
            StorageError: The database call failed.
        """
        now = self._clock()
        if self._renewed_at is None or not timedelta() <= now - self._renewed_at < self._ttl / RENEWALS_PER_TTL:
            self._is_leader = self._store.workers.acquire_lease(self._name, self._owner, ttl=self._ttl)
            self._renewed_at = now
        return self._is_leader

    def release(self) -> None:
        """Release the lease so that another process can acquire it. Blocks.

        Raises:
            StorageError: The database call failed.
        """
        self._is_leader, self._renewed_at = False, None
        self._store.workers.acquire_lease(self._name, self._owner, ttl=timedelta())


class Heartbeat:
    """Sends heartbeats from its own thread, so that a blocked event loop or a slow transaction does not delay them.

    Args:
        job: Sends one heartbeat.
        deregister: Runs after the last heartbeat in the same thread, so that no late heartbeat can follow.
        lease: The duration for which each heartbeat renews the leases of the process's tasks.
    """

    def __init__(self, job: Job, *, deregister: Job, lease: timedelta) -> None:
        self._job = job
        self._deregister = deregister
        self._interval = min(lease.total_seconds() / BEATS_PER_LEASE, MAX_INTERVAL)
        self._stopping = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)

    def start(self) -> None:
        """Start the thread, which sends the first heartbeat immediately."""
        self._thread.start()

    def send_now(self) -> None:
        """Send the next heartbeat without waiting for the end of the interval."""
        self._due.set()

    def stop(self, timeout: float) -> bool:
        """Stop the heartbeats and deregister. Return whether this finished within ``timeout`` seconds. Blocks."""
        self._stopping = True
        self._due.set()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, timeout))
        return not self._thread.is_alive()

    def status(self) -> JobStatus:
        """Return the status of the heartbeat job. Thread-safe."""
        return self._job.status()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while not self._stopping:
                self._due.clear()
                runner.run(self._job.run())
                if not self._stopping:
                    failed = self._job.problem is not None
                    self._due.wait(min(self._interval, RETRY_INTERVAL) if failed else self._interval)
            runner.run(self._deregister.run())
