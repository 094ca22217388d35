"""What waits in the database, read for gauges: by the process that samples, and only where somebody looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from germane.daemon_pool import Threads
from germane.errors import StorageError
from germane.monitor.loop.leader import Office
from germane.settings import Settings
from germane.storage import Backlog, Store, shares
from germane.tracer import Waiting, is_measured

SHARE: Final = 0.01
"""Of the time that reading may take: a long backlog takes long to count, and is counted less often."""


class Measuring:
    """Keeps what gauges show, so that no exporter has to wait for a database.

    Args:
        wanted: says whether anybody looks.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        office: Office,
        threads: Threads,
        wanted: Callable[[], bool] = is_measured,
    ) -> None:
        self.waiting: Waiting | None = None
        """What waited when it was read last; None in a process that is not elected to read it."""
        self._store = store
        self._settings = settings
        self._office = office
        self._threads = threads
        self._wanted = wanted
        self._next = 0.0

    async def run(self) -> None:
        """Read anew what waits, unless it was read only just now; show nothing once another process reads it."""
        if self.waiting is not None or time.monotonic() >= self._next:
            self.waiting = await self._threads.run(self._read)

    def _read(self) -> Waiting | None:
        try:
            if not (self._wanted() and self._office.held()):
                return None
            return self.waiting if time.monotonic() < self._next else self._found()
        except StorageError:  # the jobs that cannot do without the database say so
            return None

    def _found(self) -> Waiting:
        began = time.monotonic()
        try:
            return self._look()
        finally:
            ended = time.monotonic()
            self._next = ended + (ended - began) / SHARE

    def _look(self) -> Waiting:
        found = self._store.backlog(lately=timedelta(seconds=self._settings.lease))
        budget = self._settings.budget
        return Waiting(
            undecided=found.left.undecided,
            exchanges=_by_scorer(found),
            lag=found.lag.total_seconds(),
            workers=found.workers,
            budget={} if budget is None else shares(self._store.spent().expense, budget),
        )


def _by_scorer(found: Backlog) -> Mapping[tuple[str, str], int]:
    """Count by scorer and state; of a scorer all fingerprints together, and no state left out that is empty."""
    counts: dict[tuple[str, str], int] = {}
    for one in found.left.tasks:
        states = {"candidate": one.candidates, "ready": one.ready, "postponed": one.postponed, "running": one.running}
        for state, number in states.items():
            counts[one.scorer, state] = counts.get((one.scorer, state), 0) + number
    return counts
