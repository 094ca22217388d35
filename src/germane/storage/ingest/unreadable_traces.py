"""A small sample of unreadable traces without values, which shows which attributes are missing."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Select, delete, select

from germane.sanitize import clean_text
from germane.storage.db.component import StoreComponent
from germane.storage.db.sanitize import clean_json
from germane.storage.db.tables import unreadable_trace
from germane.storage.db.upsert import insert_into
from germane.trace_outline import AttributeOutline, SpanOutline, UnreadableTrace

MAX_PER_REASON: Final = 3
"""Maximum number of traces that are kept for one service, instrumentation scope and reason: the newest ones."""
MAX_TRACES: Final = 100
"""Maximum number of traces that are kept."""
MAX_AGE: Final = timedelta(days=7)
"""Time for which a trace is kept."""
MAX_PER_MINUTE: Final = 30
"""Maximum number of traces that one process adds per minute."""
_MINUTE: Final = 60.0


class SampleLimiter:
    """Decides which unreadable traces a process adds to the sample, so that most traces cost nothing. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._admitted: deque[tuple[float, tuple[str, str, str]]] = deque()
        """Times and keys of the traces of the last minute, oldest first."""

    def admit(self, service: str, scope: str, reason: str) -> bool:
        """Return whether to add a trace: at most 3 per minute per service, scope and reason, and 30 in total."""
        key, now = (service, scope, reason), self._clock()
        with self._lock:
            while self._admitted and self._admitted[0][0] <= now - _MINUTE:
                self._admitted.popleft()
            if len(self._admitted) >= MAX_PER_MINUTE:
                return False
            if sum(each == key for _, each in self._admitted) >= MAX_PER_REASON:
                return False
            self._admitted.append((now, key))
            return True


class UnreadableTraceStore(StoreComponent):
    """Reads and writes the sample of unreadable traces."""

    def add(self, traces: Sequence[UnreadableTrace]) -> None:
        """Add traces to the sample, and delete those that exceed its limits."""
        with self._write_values() as connection:
            add_unreadable(connection, traces, self._context.now(connection))

    def list_traces(self) -> list[UnreadableTrace]:
        """Return the traces of the sample without their spans, newest first."""
        columns = [column for column in unreadable_trace.c if column.name not in {"spans", "sampled_at"}]
        with self._database.read() as connection:
            oldest = self._context.now(connection) - MAX_AGE
            query = select(*columns).where(unreadable_trace.c.sampled_at > oldest).limit(MAX_TRACES)
            rows = connection.execute(query.order_by(*_NEWEST_FIRST)).mappings().all()
        return [UnreadableTrace(**row) for row in rows]

    def get_trace(self, trace_id: str) -> UnreadableTrace | None:
        """Return a sampled trace with its spans, or None if the trace is not in the sample."""
        query = select(unreadable_trace).where(unreadable_trace.c.trace_id == clean_text(trace_id))
        with self._database.read() as connection:
            oldest = self._context.now(connection) - MAX_AGE
            row = connection.execute(query.where(unreadable_trace.c.sampled_at > oldest)).mappings().first()
        if row is None:
            return None
        values = {name: value for name, value in row.items() if name != "sampled_at"}
        spans = tuple(
            SpanOutline(**span | {"attributes": tuple(AttributeOutline(**each) for each in span["attributes"])})
            for span in row["spans"]
        )
        return UnreadableTrace(**values | {"spans": spans})


def add_unreadable(connection: Connection, traces: Sequence[UnreadableTrace], now: datetime) -> None:
    """Add traces to the sample, and delete the oldest ones above the limits per service, scope and reason, and in
    total.

    Rows that another transaction has locked are not deleted, so that transactions never wait for each other here. The
    sample may therefore be too large for a moment.
    """
    if not traces:
        return
    rows = [
        {
            "trace_id": clean_text(trace.trace_id),
            "service": clean_text(trace.service),
            "scope": clean_text(trace.scope),
            "reason": clean_text(trace.reason),
            "started_at": trace.started_at,
            "sampled_at": now,
            "spans": clean_json([dataclasses.asdict(span) for span in trace.spans]),
            "spans_omitted": trace.spans_omitted,
        }
        for trace in sorted(traces, key=lambda trace: clean_text(trace.trace_id))
    ]
    connection.execute(insert_into(unreadable_trace, connection.dialect.name).on_conflict_do_nothing(), rows)
    table = unreadable_trace.c
    ids = select(table.trace_id)
    for service, scope, reason in sorted({(row["service"], row["scope"], row["reason"]) for row in rows}):
        own = ids.where(table.service == service, table.scope == scope, table.reason == reason)
        _delete(connection, own.order_by(*_NEWEST_FIRST).offset(MAX_PER_REASON))
    _delete(connection, ids.order_by(*_NEWEST_FIRST).offset(MAX_TRACES))
    delete_unreadable(connection, now - MAX_AGE)


def delete_unreadable(connection: Connection, before: datetime) -> None:
    """Delete the traces that were added before a given time."""
    _delete(connection, select(unreadable_trace.c.trace_id).where(unreadable_trace.c.sampled_at < before))


def _delete(connection: Connection, chosen: Select[tuple[str]]) -> None:
    ids = connection.execute(chosen.limit(MAX_TRACES).with_for_update(skip_locked=True)).scalars().all()
    if ids:
        connection.execute(delete(unreadable_trace).where(unreadable_trace.c.trace_id.in_(ids)))


_NEWEST_FIRST: Final = (unreadable_trace.c.sampled_at.desc(), unreadable_trace.c.trace_id)
