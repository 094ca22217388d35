"""A job that one process of all does for the rest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from germane.storage import Store

RENEWALS: Final = 3
"""How often within a term the database is asked."""


class Office:
    """Held by one process at a time, for a term that it renews; free when its holder resigns or is gone that long."""

    def __init__(self, store: Store, name: str, owner: str, *, term: timedelta, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._name = name
        self._owner = owner
        self._term = term
        self._clock = clock
        self._asked_at: datetime | None = None
        self._held = False

    def held(self) -> bool:
        """Return whether this process holds it; take it when it is free. Calls the database now and then."""
        now = self._clock()
        if self._asked_at is None or not timedelta() <= now - self._asked_at < self._term / RENEWALS:
            self._held = self._store.elect(self._name, self._owner, ttl=self._term)
            self._asked_at = now
        return self._held

    def resign(self) -> None:
        """Leave it to others. Calls the database."""
        self._held, self._asked_at = False, None
        self._store.elect(self._name, self._owner, ttl=timedelta())
