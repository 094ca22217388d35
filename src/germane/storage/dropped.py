"""Exchanges that never became rows: counted in memory, until the tally has them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from germane.score import Reason

if TYPE_CHECKING:
    from germane.storage.store import Store

_MINUTE = 60_000_000_000
_Cell = tuple[int, Reason, str, str]
Scorers = Callable[[], Iterable[str]] | Iterable[str]


class Dropped:
    """Counts by minute, reason, service and route. Safe to share between threads; false when there are none."""

    def __init__(self) -> None:
        # Reentrant: the collector may end a forgotten stream, and drop its exchange, on a thread that is in here.
        self._lock = threading.RLock()
        self._cells: Counter[_Cell] = Counter()
        self._totals: Counter[Reason] = Counter()

    def __bool__(self) -> bool:
        return bool(self._cells)

    def total(self, reason: Reason) -> int:
        """Return how many were dropped for a reason since the beginning, reported or not."""
        return self._totals[reason]

    def count(self, reason: Reason, service: str, route: str, started: int) -> None:
        """Count an exchange that began ``started`` nanoseconds after 1970."""
        with self._lock:
            self._cells[(started // _MINUTE, reason, service, route)] += 1
            self._totals[reason] += 1

    def report(self, store: Store, scorers: Scorers) -> None:
        """Move the counts into the tally, under the names of the scorers.

        Raises:
            StorageError: the database did not take them; those that it did not take stay here.
        """
        with self._lock:
            groups = {cell[:2] for cell in self._cells}
        for minute, reason in sorted(groups):
            with self._lock:
                cells = {cell: count for cell, count in self._cells.items() if cell[:2] == (minute, reason)}
            counts = {(service, route): count for (_, _, service, route), count in cells.items()}
            names = scorers() if callable(scorers) else scorers
            store.count_dropped(counts, names, reason, at=datetime.fromtimestamp(minute * 60, UTC))
            with self._lock:
                self._cells -= Counter(cells)  # what was dropped meanwhile stays
