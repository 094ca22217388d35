"""Counts per minute, service, route and scorer: seen = scored + skipped + failed + pending, at every commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from sqlalchemy import Connection, Insert
from sqlalchemy.dialects import postgresql, sqlite

from germane.score import Reason
from germane.storage.counts import dirty_hours
from germane.storage.db.commit_events import Ended, note
from germane.storage.db.sanitize import clean
from germane.storage.db.tables import tally

Outcome = Literal["seen", "pending", "scored", "skipped", "failed"]
Cell = tuple[datetime, str, str, str, str, str]
"""Minute, service, route, scorer, outcome, reason."""

DECLARED = datetime(1970, 1, 1, tzinfo=UTC)
"""The minute of the empty counts that make a route known before its first exchange."""


class Deltas:
    """What one transaction changes in the tally."""

    def __init__(self) -> None:
        self._counts: Counter[Cell] = Counter()

    def count(self, at: datetime, names: tuple[str, str, str], outcome: Outcome, reason: str = "", by: int = 1) -> None:
        """Add to one count; ``names`` are service, route and scorer."""
        minute = at.astimezone(UTC).replace(second=0, microsecond=0)
        self._counts[(minute, *names, outcome, reason)] += by

    def write(self, connection: Connection, process: str) -> None:
        """Have them added to the rows of this process by :func:`settle`, when all else of the transaction is done."""
        dirty_hours.note(connection, {minute for minute, *_ in self._counts})
        connection.info.setdefault(_PLACE, {}).setdefault(process, Counter()).update(self._counts)
        note(connection, self._ended())

    def _ended(self) -> Counter[Ended]:
        """Return what came to an end; what is begun anew has no part in it."""
        ended: Counter[Ended] = Counter()
        for (_, _, route, scorer, outcome, reason), count in self._counts.items():
            if scorer and count > 0 and outcome in _ENDS:
                ended[(route, scorer, outcome, reason)] += count
        return ended


def settle(connection: Connection) -> None:
    """Write what all :class:`Deltas` of the transaction change.

    It comes last, and sorted: threads of one process share these rows, and whoever has them waits for nobody any more.
    """
    for process, counts in sorted(take(connection).items()):
        rows = [_row(cell, process, count) for cell, count in sorted(counts.items()) if count]
        if rows:
            connection.execute(_UPSERTS[connection.dialect.name], rows)


def take(connection: Connection) -> Mapping[str, Counter[Cell]]:
    """Return what is to be written, by process, and forget it: a connection outlives its transactions."""
    found: Mapping[str, Counter[Cell]] = connection.info.pop(_PLACE, {})
    return found


_PLACE: Final = "germane_tally"
_ENDS = frozenset({"scored", "skipped", "failed"})


def _row(cell: Cell, process: str, count: int) -> dict[str, Any]:
    names = ("minute", "service", "route", "scorer", "outcome", "reason")
    return {**dict(zip(names, cell, strict=True)), "process": process, "count": count}


def _upserts() -> dict[str, Insert]:
    on_sqlite = sqlite.insert(tally)
    on_postgresql = postgresql.insert(tally)
    key = list(tally.primary_key.columns)
    return {
        "sqlite": on_sqlite.on_conflict_do_update(
            index_elements=key, set_={"count": tally.c.count + on_sqlite.excluded.count}
        ),
        "postgresql": on_postgresql.on_conflict_do_update(
            index_elements=key, set_={"count": tally.c.count + on_postgresql.excluded.count}
        ),
    }


_UPSERTS = _upserts()


def count_dropped(
    connection: Connection,
    process: str,
    counts: Mapping[tuple[str, str], int],
    scorers: Iterable[str],
    reason: Reason,
    at: datetime,
) -> None:
    """Count exchanges that never became rows: seen, and skipped for the reason."""
    deltas = Deltas()
    for scorer in tuple(scorers) or ("",):
        for (service, route), count in counts.items():
            names = (clean(service), clean(route), scorer)
            deltas.count(at, names, "seen", by=count)
            deltas.count(at, names, reason.state, reason.value, by=count)
    deltas.write(connection, process)


def declare(connection: Connection, service: str, routes: Iterable[str]) -> None:
    """Make routes known by counts of nothing."""
    named = sorted({clean(route) for route in routes})
    dirty_hours.note(connection, [DECLARED])
    dirty_hours.settle(connection)  # before the tally, here as everywhere
    rows = [_row((DECLARED, clean(service), route, "", "seen", ""), "", 0) for route in named]
    if rows:
        connection.execute(_UPSERTS[connection.dialect.name], rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What became of the exchanges that one scorer was to score: seen = scored + skipped + failed + pending.

    An empty scorer stands for a route that was declared, or whose exchanges were dropped before a scorer was known.
    """

    service: str
    route: str
    scorer: str
    seen: int = 0
    scored: int = 0
    pending: int = 0
    """Waiting, or being scored."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Count per reason."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Count per reason."""

    @property
    def share(self) -> float | None:
        """Scored of seen, in [0, 1]; None when nothing was seen."""
        return self.scored / self.seen if self.seen else None


def covered(outcomes: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return the parts of a coverage, from counts by outcome and reason."""
    counts: dict[str, Any] = {"skipped": {}, "failed": {}}
    for (outcome, reason), total in sorted(outcomes.items()):
        if outcome not in {"skipped", "failed"}:
            counts[outcome] = total
        elif total:
            counts[outcome][reason] = total
    return counts
