"""Keeping trends fast: one process of all rolls up the hours that changed, a little at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from germane.daemon_pool import Threads
from germane.monitor.loop.leader import Office
from germane.storage import Store

EVERY: Final = timedelta(seconds=5)
"""Between two rounds, at least."""
CURRENT: Final = timedelta(minutes=1)
"""Between two rounds that roll up the current hour as well, which changes all the time."""
LONGEST: Final = 1.0
"""Seconds after which a round begins no further hours."""
REST: Final = 10
"""How much longer than the last round took the next one is waited for, at least."""
AT_ONCE: Final = 6
"""Hours between two looks at the time."""


class Rollups:
    """Rolls up what is due, unless another process does. What it leaves is read from the rows: nothing is ever wrong.

    Args:
        store: Whose hours.
        trend_by: The setting.
        office: Who holds it rolls up.
        threads: Where the database is called.
        clock: Tells the time.
    """

    def __init__(
        self, store: Store, trend_by: Sequence[str], *, office: Office, threads: Threads, clock: Callable[[], datetime]
    ) -> None:
        self.stopping = False
        self.office = office
        self._store = store
        self._trend_by = tuple(trend_by)
        self._threads = threads
        self._clock = clock
        self._next: datetime | None = None
        self._whole: datetime | None = None

    async def run(self) -> None:
        """Do a round, if it is time."""
        now = self._clock()
        if not self.stopping and _is_due(now, self._next, EVERY * 60):
            took = await self._threads.run(self._round, now)
            self._next = now + max(EVERY, took * REST)

    def _round(self, now: datetime) -> timedelta:
        """Roll up some hours, the newest first; return how long that took."""
        begun = time.monotonic()
        hour = now.replace(minute=0, second=0, microsecond=0)
        with_current = _is_due(now, self._whole, CURRENT)
        if self.office.held():
            before = None if with_current else hour
            while not self.stopping and self._store.roll(AT_ONCE, trend_by=self._trend_by, before=before) == AT_ONCE:
                if time.monotonic() - begun > LONGEST:
                    break
            self._whole = now + CURRENT if with_current else self._whole
        return timedelta(seconds=time.monotonic() - begun)


def _is_due(now: datetime, due: datetime | None, most: timedelta) -> bool:
    """Whether the time has come; also where it lies so far ahead that the clock must have been set back."""
    return due is None or due <= now or due - now > most
