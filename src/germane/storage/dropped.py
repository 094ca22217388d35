"""Exchanges that never became rows: counted in memory, until the tally has them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from germane.score import Reason

if TYPE_CHECKING:
    from germane.storage.store import Store

_MINUTE = 60_000_000_000
_Cell = tuple[int, str, str]
Scorers = Callable[[], Iterable[str]] | Iterable[str]


class Dropped:
    """Counts of one reason by minute, service and route. Safe to share between threads; false when there are none."""

    def __init__(self, reason: Reason) -> None:
        self._reason = reason
        # Reentrant: the collector may end a forgotten stream, and drop its exchange, on a thread that is in here.
        self._lock = threading.RLock()
        self._cells: dict[_Cell, int] = {}
        self.total = 0
        """Since the beginning, reported or not."""

    def __bool__(self) -> bool:
        return bool(self._cells)

    def __len__(self) -> int:
        """Return how many the tally does not have yet."""
        with self._lock:
            return sum(self._cells.values())

    def count(self, service: str, route: str, started: int) -> None:
        """Count an exchange that began ``started`` nanoseconds after 1970."""
        cell = (started // _MINUTE, service, route)
        with self._lock:
            self._cells[cell] = self._cells.get(cell, 0) + 1
            self.total += 1

    def report(self, store: Store, scorers: Scorers) -> None:
        """Move the counts into the tally, under the names of the scorers.

        Raises:
            StorageError: the database did not take them; those that it did not take stay here.
        """
        with self._lock:
            minutes = {minute for minute, _, _ in self._cells}
        for minute in sorted(minutes):
            with self._lock:
                cells = {cell: count for cell, count in self._cells.items() if cell[0] == minute}
            counts = {(service, route): count for (_, service, route), count in cells.items()}
            names = scorers() if callable(scorers) else scorers
            store.count_dropped(counts, names, self._reason, at=datetime.fromtimestamp(minute * 60, UTC))
            self._forget(cells)

    def _forget(self, cells: dict[_Cell, int]) -> None:
        """Take away what the tally has; what was dropped meanwhile stays."""
        with self._lock:
            for cell, count in cells.items():
                self._cells[cell] -= count
                if not self._cells[cell]:
                    del self._cells[cell]
