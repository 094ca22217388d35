"""Leader election: of all processes on one database, one runs a job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from germane.storage import TrackingStore

RENEWALS_PER_TTL: Final = 3
"""How often the lease is renewed within its TTL."""


class LeaderLease:
    """A named lease that one process holds at a time. It becomes free when the holder releases it or its TTL ends."""

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
        """Acquire the lease if it is free, renew it if it is due, and return whether this process holds it.

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
