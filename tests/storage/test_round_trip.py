"""Exports and imports between SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert
from tests.exports import dump_record, load_records

from germane.annotation import Marker
from germane.sanitize import clean_text
from germane.storage import ExportSelection, TrackingStore
from germane.storage.db.tables import scoring_task
from germane.storage.transfer.import_batch import ImportResult
from germane.storage.transfer.record import (
    COLUMNS,
    MAX_INTEGER,
    AlertingRow,
    DroppedCount,
    ExchangeRecord,
    dump_line,
    parse_line,
)
from germane.testing import transaction

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EDGES = [1e16, -1e16, 9999999999999998.0, 1.5e22, -0.0, 1e300, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
TEXT = "".join(map(chr, range(1, 0xA1))) + '\u2028\u202e\ufeff\U0001f600"\\</script>'
LARGE = [2**53 + 1, -(2**63) - 1, 10**400, 10**16, 0]
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(EDGES),
    st.integers(),
    st.integers(-(10**500), 10**500),
)
values = st.recursive(
    st.one_of(numbers, st.none(), st.booleans(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def stores(postgresql: Any, sqlite_store: TrackingStore) -> Iterator[tuple[TrackingStore, TrackingStore]]:
    """Two empty databases, one of each kind."""
    with closing(TrackingStore(postgresql.emptied())) as other:
        yield sqlite_store, other


def export(store: TrackingStore, since: datetime) -> str:
    """Return the export of one second from ``since`` on, as the command writes it."""
    selection = ExportSelection(since=since, until=since + timedelta(seconds=1))
    lines = [record.dump() for record in store.transfer.load_stored(selection)]
    assert lines == [dump_record(record) for record in load_records(store, selection)]
    lines += [dump_line(marker) for marker in store.trends.list_markers(since=selection.since, until=selection.until)]
    return "\n".join([*lines, *(dump_line(row) for row in store.transfer.load_alerting(selection))])


def restore(store: TrackingStore, text: str) -> None:
    """Import an export."""
    items = [parse_line(line) for line in text.split("\n")]
    store.transfer.restore_records([item for item in items if isinstance(item, ExchangeRecord)])
    store.transfer.restore_dropped([item for item in items if isinstance(item, DroppedCount)])
    store.trends.add_markers([item for item in items if isinstance(item, Marker)])
    store.transfer.restore_alerting([item for item in items if isinstance(item, AlertingRow)])


def row(part: str, **given: Any) -> dict[str, Any]:
    """Return a row with all columns of a part."""
    return {column.name: given.get(column.name) for column in COLUMNS[part]}


def record_of(id_: str, at: datetime, details: list[Any], number: float, text: str | None) -> ExchangeRecord:
    """Return an exchange and its score, label and draw that contain these details, this number and this text."""
    content = {"values": details}
    texts = {"trace_id": "0" * 32, "span_id": "0" * 16, "service": "shop", "route": "ask", "status": "ok"}
    chances = {"duration": number, "sampling_key": 0.5, "capture_probability": 1.0, "sampling_reason": "sampled"}
    lists = {"contexts": [{"text": "c", "more": details}], "history": []}
    exchange = row("exchange", id=id_, **texts, **chances, **lists, attributes=content, started_at=at, traced=False)
    exchange |= {"question": text, "model": text, "error": text, "sampling_probability": None if text else 0.25}
    names = {"scorer": "relevancy", "fingerprint": "f1"}
    task = row("task", **names, state="done", claims=1, first_pending_at=at, retries=0)
    score = row(
        "score", **names, value=number if abs(number) <= 1 else 0.5, details=content, latency=number, cost=number
    )
    score |= {"explanation": text, "input_tokens": MAX_INTEGER if text else None, "scored_at": at if text else None}
    failed = row("task", scorer="z", fingerprint="f1", state="failed", reason="unparsable", claims=MAX_INTEGER)
    failed |= {"error": text, "first_pending_at": at, "retries": 0}
    label = row("feedback", id=id_, score=0.25, comment=text, user=text, created_at=at)
    draw = row("draw", wave=id_, **names, since=at, until=at, service="shop", route="ask", probability=1e-12)
    draw |= {"drawn_at": at, "position": 1, "state": "open", "settled_by": text}
    return ExchangeRecord(exchange, [task, failed], [score], [label] if text else [], [draw] if text else [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    details=st.lists(values, max_size=4),
    number=st.floats(allow_nan=False, allow_infinity=False),
    text=st.none() | st.text().map(clean_text),
    microsecond=st.sampled_from([0, 1, 999_999, 500_000]),
    sqlite_first=st.booleans(),
)
@example(details=[*EDGES, *LARGE, TEXT], number=-0.0, text=TEXT, microsecond=1, sqlite_first=True)
@example(details=[*EDGES, *LARGE, TEXT], number=1e300, text=TEXT, microsecond=0, sqlite_first=False)
def test_export_after_an_import_is_byte_identical(
    stores: tuple[TrackingStore, TrackingStore],
    details: list[Any],
    number: float,
    text: str | None,
    microsecond: int,
    sqlite_first: bool,
) -> None:
    """For any text, time and finite JSON number, an export contains what was imported.

    It does not depend on which databases the data went through.
    """
    first, second = stores if sqlite_first else reversed(stores)
    id_, at = uuid4().hex, EPOCH + timedelta(seconds=next(_seconds))
    record = record_of(id_, at + timedelta(microseconds=microsecond), details, number, text)
    first.transfer.restore_records([record])
    first.trends.add_markers([Marker(id=id_, name="deploy", service="shop", at=at, attributes={"values": details})])
    content, matchers = {"values": details, "number": number}, {"id": id_}
    silence = row("silence", id=id_, matchers=matchers, starts_at=at, ends_at=at, created_by="me", comment="")
    alert = row("alert", id=id_, key=id_, rule="drop", type="drop", state="resolved", starts_at=at, labels=matchers)
    alert |= {"body": content, "severity": "warning", "message": "down", "evaluated_at": at, "value": number}
    first.transfer.restore_alerting([AlertingRow("alert", alert), AlertingRow("silence", silence)])

    exported = export(first, at)
    restore(second, exported)
    again = export(second, at)
    home = export(first, at)

    assert exported.split("\n")[0] == dump_record(record)
    assert exported.count("\n") == 3
    assert exported == again == home


def test_tasks_that_another_import_has_just_written_are_not_counted(
    stores: tuple[TrackingStore, TrackingStore],
) -> None:
    """Two processes may import the same file into PostgreSQL at the same time."""
    store, id_ = stores[1], uuid4().hex
    record = record_of(id_, EPOCH, [], 0.5, None)
    with transaction(store) as connection:
        connection.execute(insert(scoring_task), [{**record.tasks[0], "exchange_id": id_}])

    assert store.transfer.restore_records([record]) == ImportResult(exchanges=1, tasks=1)


_seconds = iter(range(10**6))
