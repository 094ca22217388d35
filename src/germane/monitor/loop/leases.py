"""Coordination between processes that share a database: heartbeats that renew task leases, and leader leases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from germane.errors import StorageError
from germane.monitor.loop.job import Job
from germane.storage import LeaseRenewal, TrackingStore

RENEWALS_PER_TTL: Final = 3
"""The number of times that a lease is renewed per TTL."""
THREAD_NAME: Final = "germane-monitor-heartbeat"


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
        """Acquire the lease, or renew it if that is due. Return whether this process holds it. Blocks."""
        now = self._clock()
        if self._renewed_at is None or not timedelta() <= now - self._renewed_at < self._ttl / RENEWALS_PER_TTL:
            self._is_leader = self._store.workers.acquire_lease(self._name, self._owner, ttl=self._ttl)
            self._renewed_at = now
        return self._is_leader

    def release(self) -> None:
        """Release the lease so that another process can acquire it. Blocks."""
        self._is_leader, self._renewed_at = False, None
        self._store.workers.acquire_lease(self._name, self._owner, ttl=timedelta())


def build_heartbeat(job: Job, *, deregister: Job, lease: timedelta) -> LeaseRenewal:
    """Return the renewal of a process's task leases. Its first heartbeat is sent as soon as it starts.

    ``deregister`` runs after the last heartbeat in the same thread, so that no late heartbeat can follow.
    """

    def send() -> bool:
        job.run_blocking()
        if job.problem is not None:
            raise StorageError(job.problem)
        return True

    heartbeat = LeaseRenewal(send, release=deregister.run_blocking, lease=lease, name=THREAD_NAME)
    heartbeat.renew_now()
    return heartbeat
