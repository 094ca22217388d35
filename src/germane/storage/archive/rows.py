"""The rows of an archived day: their tables, their Arrow types, and the checksum of their content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    Select,
    Table,
    Text,
    select,
)

from germane.storage.archive.location import require
from germane.storage.db.functions import json_text
from germane.storage.db.sanitize import to_json
from germane.storage.db.tables import (
    exchange,
    feedback,
    rollup,
    rollup_count,
    rollup_proxy,
    score,
    scoring_task,
    tally,
)
from germane.storage.db.types import Json, UtcDateTime
from germane.storage.queue.erase_text import keep_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

Row = tuple[Any, ...]
"""A row's values in the order of the table's columns: times in UTC without a time zone, JSON as text."""

SOURCES: Final[dict[str, Table]] = {table.name: table for table in (exchange, scoring_task, score, feedback, tally)}
"""The tables whose rows are moved to the archive."""
ROLLUPS: Final[dict[str, Table]] = {table.name: table for table in (rollup, rollup_count, rollup_proxy)}
"""The tables whose hourly rows are computed from the archived rows."""
TABLES: Final = SOURCES | ROLLUPS
BATCH_ROWS: Final = 20_000
"""Number of rows to read from the database at once."""
_ORDERS: Final[dict[str, Sequence[Column[Any]]]] = {
    "exchange": (exchange.c.started_at, exchange.c.id),
    "scoring_task": (exchange.c.started_at, scoring_task.c.id),
    "score": (exchange.c.started_at, score.c.id),
    "feedback": (feedback.c.created_at, feedback.c.id),
    "tally": tuple(tally.primary_key.columns),
}
"""The order of rows in files, by which DuckDB skips the parts of a file that a filter by time excludes."""
_WITHOUT_TEXT: Final[dict[str, dict[str, Any]]] = {
    "exchange": {"question": None, "answer": None, "contexts": "[]", "history": "[]", "error": None},
    "scoring_task": {"error": None},
    "score": {"explanation": None},
    "feedback": {"comment": None},
    "tally": {},
}
"""Values that replace text, as in rows whose text was erased."""


def read_rows(
    connection: Connection, table: str, since: datetime, until: datetime, *, blank_at: datetime | None
) -> Iterator[list[Row]]:
    """Yield batches of the database's rows that belong to exchanges with ``since <= started_at < until``.

    For the tally, the range consists of whole minutes. With ``blank_at``, text is removed, and this is the time of its
    erasure.
    """
    convert = _converter(table, blank_at)
    query = _select(table, connection.dialect.name, since, until)
    for part in connection.execute(query, execution_options={"yield_per": BATCH_ROWS}).partitions():
        yield [convert(row) for row in part]


def _select(table: str, dialect: str, since: datetime, until: datetime) -> Select[Any]:
    source = SOURCES[table]
    columns = [json_text(column, dialect) if isinstance(column.type, Json) else column for column in source.columns]
    moment = tally.c.minute if source is tally else exchange.c.started_at
    query: Select[Any] = select(*columns).where(moment >= since, moment < until).order_by(*_ORDERS[table])
    if source in {exchange, tally}:
        return query
    return query.join(exchange, exchange.c.id == source.c.exchange_id)


def _converter(table: str, blank_at: datetime | None) -> Callable[[Sequence[Any]], Row]:
    columns = list(SOURCES[table].columns)
    times = [index for index, column in enumerate(columns) if isinstance(column.type, UtcDateTime)]
    indexes = {column.name: index for index, column in enumerate(columns)}
    blanks = [(indexes[name], value) for name, value in _WITHOUT_TEXT[table].items()]
    details, erased_at = indexes.get("details"), indexes.get("erased_at")
    blank_time = None if blank_at is None else _naive(blank_at)

    def convert(row: Sequence[Any]) -> Row:
        values = list(row)
        for index in times:
            if values[index] is not None:
                values[index] = _naive(values[index])
        if blank_time is not None:
            for index, value in blanks:
                values[index] = value
            if details is not None and values[details] != "{}":
                values[details] = to_json(keep_numbers(json.loads(values[details])))
            if erased_at is not None and values[erased_at] is None:
                values[erased_at] = blank_time
        return tuple(values)

    return convert


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def column_index(table: str, name: str) -> int:
    """Return the position of a column's value in a row."""
    return list(TABLES[table].columns.keys()).index(name)


def from_dicts(table: str, dicts: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return rows, given dicts of column names to values with times in UTC."""
    names = list(TABLES[table].columns.keys())
    return [
        tuple(_naive(row[name]) if isinstance(row[name], datetime) else row[name] for name in names) for row in dicts
    ]


@cache
def arrow_schema(table: str) -> Any:
    """Return the Arrow schema of a table's files."""
    arrow = require("pyarrow")
    types: dict[type, Any] = {
        Json: arrow.string(),
        UtcDateTime: arrow.timestamp("us"),
        Boolean: arrow.bool_(),
        Float: arrow.float64(),
        Integer: arrow.int64(),
        LargeBinary: arrow.binary(),
        Text: arrow.string(),
    }
    return arrow.schema(
        [
            (column.name, next(arrow_type for kind, arrow_type in types.items() if isinstance(column.type, kind)))
            for column in TABLES[table].columns
        ]
    )


def to_batch(table: str, rows: Sequence[Row]) -> Any:
    """Return rows as an Arrow record batch."""
    arrow, schema = require("pyarrow"), arrow_schema(table)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)


def from_batch(batch: Any) -> list[Row]:
    """Return the rows of an Arrow record batch."""
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def hash_rows(rows: Iterable[Row]) -> NDArray[Any]:
    """Return a 64-bit hash for each row."""
    import numpy as np

    digests = b"".join(blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, "<u8")


def sum_hashes(hashes: NDArray[Any]) -> str:
    """Return the checksum of rows with these hashes: 16 hexadecimal digits."""
    return f"{int(hashes.sum(dtype='u8')) if len(hashes) else 0:016x}"
