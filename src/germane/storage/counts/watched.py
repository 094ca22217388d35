"""Counts of watched traces by hour, service, instrumentation scope and outcome."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete

from germane.sanitize import clean_text
from germane.storage.counts.dirty_hours import start_of_hour
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.tables import watched_trace

MAX_SCOPES: Final = 100
"""Maximum number of scopes that one process counts separately."""
OTHER_SCOPE: Final = "other"
_SECONDS_PER_HOUR: Final = 3600


class WatchKey(NamedTuple):
    """What traces are counted by."""

    hour: int
    """Hours since 1970."""
    service: str
    scope: str
    outcome: str

    @classmethod
    def at(cls, started: int, service: str, scope: str, outcome: str) -> WatchKey:
        """Return the key of a trace that started at a time in nanoseconds since 1970."""
        return cls(started // 1_000_000_000 // _SECONDS_PER_HOUR, service, scope, outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTraces:
    """The number of traces of one service and instrumentation scope with one outcome."""

    service: str
    scope: str
    outcome: str
    """``recognized``, or the reason why the traces are unreadable."""
    count: int


class WatchCounter:
    """Counts watched traces in memory until they are written to the database. Thread-safe. Falsy if all are written."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._counts: Counter[WatchKey] = Counter()
        self._scopes: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._counts)

    def count(self, service: str, scope: str, outcome: str, started: int, number: int = 1) -> None:
        """Count traces; ``started`` is in nanoseconds since 1970."""
        with self._lock:
            if scope not in self._scopes and len(self._scopes) >= MAX_SCOPES:
                scope = OTHER_SCOPE
            self._scopes.add(scope)
            self._counts[WatchKey.at(started, service, scope, outcome)] += number

    def take(self) -> Counter[WatchKey]:
        """Return the counts that have not been written to the database yet."""
        with self._lock:
            return self._counts.copy()

    def subtract(self, counts: Mapping[WatchKey, int]) -> None:
        """Remove counts that have been written to the database."""
        with self._lock:
            self._counts.subtract(counts)
            self._counts = +self._counts


def add_watched(connection: Connection, counts: Mapping[WatchKey, int]) -> None:
    """Add counts to the table. Rows are sorted, so that all processes lock them in the same order."""
    rows: Counter[tuple[datetime, str, str, str]] = Counter()
    for (hour, service, scope, outcome), count in counts.items():
        at = datetime.fromtimestamp(hour * _SECONDS_PER_HOUR, UTC)
        rows[at, clean_text(service), clean_text(scope), clean_text(outcome)] += count
    stamp = timestamp_encoder(connection.dialect.name)
    values = [(stamp(hour), *names, count) for (hour, *names), count in sorted(rows.items())]
    bulk_insert(connection, watched_trace, ("hour", "service", "scope", "outcome", "count"), values, adding=True)


def delete_watched(connection: Connection, before: datetime) -> int:
    """Delete the counts of hours that ended before a given time. Return the number of deleted rows."""
    return connection.execute(delete(watched_trace).where(watched_trace.c.hour < start_of_hour(before))).rowcount
