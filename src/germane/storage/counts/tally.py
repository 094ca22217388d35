"""Counts by minute, service, route and scorer. At every commit, seen = scored + skipped + failed + pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from sqlalchemy import Connection

from germane.sanitize import clean_text
from germane.score import UnscoredReason
from germane.storage.counts import dirty_hours
from germane.storage.db.engine import CommitEvent, get_pending, pop_pending, record_events
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.tables import tally

Outcome = Literal["seen", "pending", "scored", "skipped", "failed"]
TallyKey = tuple[datetime, str, str, str, str, str]
"""Minute, service, route, scorer, outcome and reason."""

DECLARED_MINUTE: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The minute of the zero counts that register a route before its first exchange."""
_COLUMNS: Final = ("minute", "service", "route", "scorer", "outcome", "reason", "process", "count")
_PENDING: Final = "tally"
_FINAL_OUTCOMES: Final = frozenset({"scored", "skipped", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Counts of one route's exchanges by outcome for one scorer, with seen = scored + skipped + failed + pending.

    The scorer is empty for a route that was only declared, and for exchanges that were dropped before a scorer was
    known.
    """

    service: str
    route: str
    scorer: str
    seen: int = 0
    scored: int = 0
    pending: int = 0
    """Number of exchanges that are waiting to be scored or being scored."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Counts by reason."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Counts by reason."""

    @property
    def has_exchanges(self) -> bool:
        """Whether any exchanges were counted. False for a route that was only declared."""
        return bool(self.scorer or self.seen)

    @property
    def share(self) -> float | None:
        """Scored / seen, in [0, 1]; None if nothing was seen."""
        return self.scored / self.seen if self.seen else None


class TallyChanges:
    """Changes that one transaction makes to the tally."""

    def __init__(self) -> None:
        self._counts: Counter[TallyKey] = Counter()

    def add(self, at: datetime, names: tuple[str, str, str], outcome: Outcome, reason: str = "", by: int = 1) -> None:
        """Add ``by`` to one count; ``names`` are service, route and scorer."""
        minute = at.astimezone(UTC).replace(second=0, microsecond=0)
        self._counts[(minute, *names, outcome, reason)] += by

    def apply(self, connection: Connection, process: str) -> None:
        """Schedule the changes to be added to this process's counts at the end of the transaction."""
        dirty_hours.mark_dirty(connection, {minute for minute, *_ in self._counts})
        pending = get_pending(connection, _PENDING, dict[str, Counter[TallyKey]])
        pending.setdefault(process, Counter()).update(self._counts)
        events: Counter[CommitEvent] = Counter()
        for (_, _, route, scorer, outcome, reason), count in self._counts.items():
            # A negative count reopens a task, which is not an event.
            if scorer and count > 0 and outcome in _FINAL_OUTCOMES:
                events[(route, scorer, outcome, reason)] += count
        record_events(connection, events)


def write_pending(connection: Connection) -> None:
    """Write the changes that the transaction has collected.

    This is the last step of a transaction, and rows are written in sorted order: a process's threads share these rows,
    so a transaction that has locked them must not wait for anything else.
    """
    for process, counts in sorted(pop_pending(connection, _PENDING, dict[str, Counter[TallyKey]]).items()):
        add_counts(connection, process, {key: count for key, count in sorted(counts.items()) if count})


def add_counts(connection: Connection, process: str, counts: Mapping[TallyKey, int]) -> None:
    """Add to a process's counts in the table at once."""
    stamp = timestamp_encoder(connection.dialect.name)
    rows = [(stamp(minute), *names, process, count) for (minute, *names), count in counts.items()]
    bulk_insert(connection, tally, _COLUMNS, rows, adding=True)


def count_dropped(
    connection: Connection,
    process: str,
    counts: Mapping[tuple[str, str], int],
    scorers: Iterable[str],
    reason: UnscoredReason,
    at: datetime,
) -> None:
    """Count dropped exchanges, which are not stored, as seen and as skipped or failed for the given reason."""
    changes = TallyChanges()
    for scorer in tuple(scorers) or ("",):
        for (service, route), count in counts.items():
            names = (clean_text(service), clean_text(route), scorer)
            changes.add(at, names, "seen", by=count)
            changes.add(at, names, reason.state, reason.value, by=count)
    changes.apply(connection, process)
    for (_, route), count in counts.items():
        record_events(connection, {(route, "", "dropped", reason.value): count})


def coverage_counts(outcomes: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Convert counts by outcome and reason to the count fields of a :class:`Coverage`."""
    counts: dict[str, Any] = {"skipped": {}, "failed": {}}
    for (outcome, reason), total in sorted(outcomes.items()):
        if outcome not in {"skipped", "failed"}:
            counts[outcome] = total
        elif total:
            counts[outcome][reason] = total
    return counts
