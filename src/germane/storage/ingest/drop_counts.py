"""Counts of exchanges that were not stored, kept in memory until the tally has them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

from germane import sanitize
from germane.annotation import Annotation, Feedback, Marker, RecordedScore
from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.answers.store_labels import LabelStore
from germane.storage.ingest.store_exchanges import ExchangeStore
from germane.storage.trends.store_trends import TrendStore

WriterItem = Exchange | Annotation
Scorers = Callable[[], Iterable[str]] | Iterable[str]
_CountKey = tuple[int, str, str]
"""Minutes since 1970, service and route."""

_NANOSECONDS_PER_MINUTE: Final = 60_000_000_000
_NOUNS: Final = {"exchange": Exchange, "label": Feedback, "recorded score": RecordedScore, "marker": Marker}


class WriterStore(Protocol):
    """The parts of the tracking store that the writer uses."""

    @property
    def name(self) -> str:
        """The database URL without its password."""

    @property
    def exchanges(self) -> ExchangeStore:
        """Exchanges, recorded scores and counts of drops."""

    @property
    def labels(self) -> LabelStore:
        """Labels."""

    @property
    def trends(self) -> TrendStore:
        """Markers."""

    def close(self) -> None:
        """Close the connections."""


class DropCounter:
    """Counts by minute, service and route of the exchanges dropped for one reason. Thread-safe; false when empty."""

    def __init__(self, reason: UnscoredReason) -> None:
        self._reason = reason
        # Reentrant: the garbage collector may close an abandoned stream, and drop its exchange, on a thread inside.
        self._lock = threading.RLock()
        self._counts: dict[_CountKey, int] = {}
        self.total = 0
        """All dropped exchanges, reported or not."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __len__(self) -> int:
        """Return the number of exchanges that the tally does not have yet."""
        with self._lock:
            return sum(self._counts.values())

    def count(self, service: str, route: str, started: int) -> None:
        """Count an exchange that started ``started`` nanoseconds after 1970."""
        key = (started // _NANOSECONDS_PER_MINUTE, service, route)
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1
            self.total += 1

    def report(self, store: WriterStore, scorers: Scorers) -> None:
        """Move the counts into the tally, under the names of the scorers.

        Raises:
            StorageError: The database failed. Counts that were not written stay here.
        """
        with self._lock:  # only for the copy: a day without a database leaves many counts, and callers wait
            counts = self._counts.copy()
        by_minute: dict[int, dict[_CountKey, int]] = {}
        for key, count in counts.items():
            by_minute.setdefault(key[0], {})[key] = count
        for minute, of_minute in sorted(by_minute.items()):
            by_route = {(service, route): count for (_, service, route), count in of_minute.items()}
            names = scorers() if callable(scorers) else scorers
            at = datetime.fromtimestamp(minute * 60, UTC)
            store.exchanges.count_dropped(by_route, names, self._reason, at=at)
            with self._lock:  # exchanges dropped since the copy stay
                for key, count in of_minute.items():
                    self._counts[key] -= count
                    if not self._counts[key]:
                        del self._counts[key]


def describe_items(items: Sequence[WriterItem]) -> str:
    """Return the number of items of each kind, such as "2 exchanges and 1 label"."""
    counts = {noun: sum(isinstance(item, item_type) for item in items) for noun, item_type in _NOUNS.items()}
    return " and ".join(sanitize.count_noun(count, noun) for noun, count in counts.items() if count)


def display_id(item: WriterItem) -> str:
    """Return an id for the log. The exchange id of a recorded score may come from an untrusted client."""
    return repr(item.exchange_id[:40]) if isinstance(item, RecordedScore) else str(item.id)
