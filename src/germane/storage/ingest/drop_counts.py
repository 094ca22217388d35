"""Exchanges that never became rows: counted in memory, until the tally has them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from germane.annotation import Annotation, Feedback, Mark, Recorded
from germane.exchange import Exchange
from germane.sanitize import counted
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
        for minute, cells in sorted(self._by_minute().items()):
            counts = {(service, route): count for (_, service, route), count in cells.items()}
            names = scorers() if callable(scorers) else scorers
            store.count_dropped(counts, names, self._reason, at=datetime.fromtimestamp(minute * 60, UTC))
            self._forget(cells)

    def _by_minute(self) -> dict[int, dict[_Cell, int]]:
        with self._lock:  # for no longer than a copy takes: callers wait for it, and a day without a database is long
            cells = self._cells.copy()
        minutes: dict[int, dict[_Cell, int]] = {}
        for cell, count in cells.items():
            minutes.setdefault(cell[0], {})[cell] = count
        return minutes

    def _forget(self, cells: dict[_Cell, int]) -> None:
        """Take away what the tally has; what was dropped meanwhile stays."""
        with self._lock:
            for cell, count in cells.items():
                self._cells[cell] -= count
                if not self._cells[cell]:
                    del self._cells[cell]


Item = Exchange | Annotation
_KINDS = {"exchange": Exchange, "label": Feedback, "recorded score": Recorded, "mark": Mark}


def told(items: Sequence[Item]) -> str:
    """Return how many of each kind there are, such as "2 exchanges and 1 label"."""
    counts = {name: sum(isinstance(item, kind) for item in items) for name, kind in _KINDS.items()}
    return " and ".join(counted(count, name) for name, count in counts.items() if count)


def named(item: Item) -> str:
    """Return an id for the log. That of a recorded score may have come from a stranger's browser."""
    return repr(item.exchange_id[:40]) if isinstance(item, Recorded) else str(item.id)
