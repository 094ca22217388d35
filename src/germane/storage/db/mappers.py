"""Conversion of records to rows and back, derived from the tables.

Inserts bypass the ORM and SQLAlchemy's parameter processing: each statement is compiled once, and the values are
encoded for the driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, compress
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

from sqlalchemy import Boolean, Column, Connection, Dialect, Float, Table, Text, and_, bindparam

from germane.exchange import Exchange
from germane.sanitize import clean_text
from germane.score import Score
from germane.storage.db.functions import array_literal
from germane.storage.db.sanitize import to_json
from germane.storage.db.tables import exchange, score
from germane.storage.db.types import Json, UtcDateTime

Item = TypeVar("Item")
Record = TypeVar("Record")
Values = tuple[Any, ...]
TimestampEncoder = Callable[[datetime], Any]

MAX_IDS_PER_STATEMENT: Final = 500
"""Maximum number of ids in one statement. Every version of SQLite accepts this many parameters."""
MAX_CHARACTERS_PER_STATEMENT: Final = 16_000_000
"""Texts are copied several times on their way into a statement. PostgreSQL accepts up to 1 GB per array."""


def batched(items: Sequence[Item], size: int = MAX_IDS_PER_STATEMENT) -> Iterator[Sequence[Item]]:
    """Split a sequence into batches, which by default fit into one statement."""
    return (items[start : start + size] for start in range(0, len(items), size))


def bulk_insert(
    connection: Connection,
    table: Table,
    columns: tuple[str, ...],
    rows: Sequence[Values],
    *,
    adding: bool = False,
    returning: tuple[str, ...] = (),
) -> Sequence[Any]:
    """Insert rows, ignoring rows with an existing key. Timestamps and JSON must be encoded for the driver.

    PostgreSQL gets an array per column, because a statement per row takes its server four times as long.

    Args:
        adding: Add to the ``count`` of rows with an existing key. All rows must have different keys.
        returning: Columns of the inserted rows to return. Ignored by SQLite, which cannot return them.
    """
    if not rows:
        return []
    if connection.dialect.name == "sqlite":
        _insert_into_sqlite(connection, table, columns, rows, adding=adding)
        return []
    encoders = [_array_encoder(table.c[name]) for name in columns]
    inserted: list[Any] = []
    for batch in _split_by_length(rows):
        arrays = tuple(encode(values) for encode, values in zip(encoders, zip(*batch, strict=True), strict=True))
        result = connection.exec_driver_sql(_insert_arrays(table, columns, adding, returning), arrays)
        inserted += result if returning else ()
    return inserted


def _array_encoder(column: Column[Any]) -> Callable[[Values], Any]:
    if isinstance(column.type, (Text, Json)):
        # The driver refuses what is no text.
        return lambda values: array_literal(values) if _are_texts(values) else values
    if isinstance(column.type, Float):
        # Numbers may also be integers, but the elements of an array must have one type.
        return lambda values: [None if value is None else float(value) for value in values]
    return list


def _insert_into_sqlite(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[Values], *, adding: bool
) -> None:
    """Insert rows. Of many, insert several with each statement, without parameters for columns that are null in all.

    Python's driver releases the GIL for each statement, and may wait 5 ms to get it back. A null takes it longer than a
    value, because it looks for an adapter.
    """
    if len(rows) < _MANY_ROWS:
        connection.exec_driver_sql(_insert_rows(table, columns, (True,) * len(columns), 1, adding), list(rows))
        return
    given = tuple(any(value is not None for value in values) for values in zip(*rows, strict=True))
    size = MAX_IDS_PER_STATEMENT // sum(given)
    whole = len(rows) - len(rows) % size
    for count, part in ((size, rows[:whole]), (1, rows[whole:])):
        if part:
            sets = [tuple(chain.from_iterable(compress(row, given) for row in some)) for some in batched(part, count)]
            connection.exec_driver_sql(_insert_rows(table, columns, given, count, adding), sets)


_MANY_ROWS: Final = 250
"""For fewer rows, preparing statements with other numbers of rows and other nulls takes as long as they save."""


@lru_cache
def _insert_rows(table: Table, columns: tuple[str, ...], given: tuple[bool, ...], count: int, adding: bool) -> str:  # noqa: FBT001 - part of the cache's key
    """Return SQLite's statement for a number of rows. Columns that are not given are null."""
    from sqlalchemy.dialects import sqlite

    row = f"({', '.join('?' if is_given else 'NULL' for is_given in given)})"
    values = ", ".join([row] * count)
    return f"{_target(table, columns, sqlite.dialect())} VALUES {values} {_conflict(table, adding=adding)}"


@lru_cache
def _insert_arrays(table: Table, columns: tuple[str, ...], adding: bool, returning: tuple[str, ...]) -> str:  # noqa: FBT001
    """Return PostgreSQL's statement for an array per column."""
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    make_dialect: Callable[[], Dialect] = PGDialect_psycopg
    dialect = make_dialect()
    arrays = ", ".join(f"%b::{table.c[name].type.compile(dialect)}[]" for name in columns)
    returned = f" RETURNING {', '.join(returning)}" if returning else ""
    return (
        f"{_target(table, columns, dialect)} SELECT * FROM unnest({arrays}) {_conflict(table, adding=adding)}{returned}"  # noqa: S608 - names of columns and types
    )


def _conflict(table: Table, *, adding: bool) -> str:
    if not adding:
        return "ON CONFLICT DO NOTHING"
    keys = ", ".join(column.name for column in table.primary_key.columns)
    return f"ON CONFLICT ({keys}) DO UPDATE SET count = {table.name}.count + excluded.count"


def _target(table: Table, columns: Sequence[str], dialect: Dialect) -> str:
    preparer = dialect.identifier_preparer
    names = ", ".join(preparer.format_column(table.c[name]) for name in columns)
    return f"INSERT INTO {preparer.format_table(table)} ({names})"


def _split_by_length(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    """Split rows in halves until each part fits into one statement of PostgreSQL."""
    texts = (values for values in zip(*rows, strict=True) if _are_texts(values))
    if len(rows) == 1 or sum(sum(map(len, filter(None, values))) for values in texts) <= MAX_CHARACTERS_PER_STATEMENT:
        yield rows
        return
    half = len(rows) // 2
    for part in (rows[:half], rows[half:]):
        yield from _split_by_length(part)


def _are_texts(values: Values) -> bool:
    """Return whether all values are texts or None. Almost always, comparing their types shows it, which is faster."""
    return {str, type(None)}.issuperset(map(type, values)) or all(isinstance(one, str | None) for one in values)


def timestamp_encoder(dialect: str) -> TimestampEncoder:
    """Return a function that encodes a datetime for the dialect's driver."""
    if dialect == "sqlite":
        return lambda moment: _in_utc(moment).isoformat(" ", "microseconds")[:26]
    return _in_utc


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(UTC)


class RecordMapper(Generic[Record]):
    """Converts records, which are dataclasses, to rows of a table and back.

    The columns are those that are named like a field, so that a new column needs no change here. ``encode`` and
    ``decode`` are compiled once, like the methods of a dataclass: loops over the columns would take a fifth longer, and
    encoding is a large part of storing an exchange.
    """

    def __init__(self, table: Table, record: type[Record]) -> None:
        hints = get_type_hints(record)
        mapped = {column.name: column for column in table.columns if column.name in hints}
        self.columns = tuple(mapped)
        self.selected = tuple(mapped.values())
        self._table = table
        items = {name: _item_type(hints[name]) for name in mapped}
        used = {"record_type": record, "clean_text": clean_text, "to_json": to_json}
        used |= {item.__name__: item for item in items.values() if item is not None}
        encoded = ", ".join(_encoding(column, items[name]) for name, column in mapped.items())
        decoded = ", ".join(f"{name}={_decoding(name, item)}" for name, item in items.items())
        self.encode: Callable[[Record, TimestampEncoder], Values]
        """Returns a record's values for ``columns``, encoded for the driver."""
        self.encode = eval(f"lambda record, stamp: ({encoded},)", used)  # noqa: S307 - contains only names of our fields
        self.decode: Callable[[Mapping[Any, Any]], Record]
        """Returns the record of a row, which may have more columns."""
        self.decode = eval(f"lambda row: record_type({decoded})", used)  # noqa: S307 - contains only names of our fields

    def insert(self, connection: Connection, records: Iterable[Record]) -> None:
        """Insert records, ignoring those with an existing key."""
        stamp = timestamp_encoder(connection.dialect.name)
        bulk_insert(connection, self._table, self.columns, [self.encode(record, stamp) for record in records])

    def values(self, record: Record) -> dict[str, Any]:
        """Return a record's values by column, for a statement of SQLAlchemy, which encodes times and JSON itself."""
        encoded = zip(self.selected, self.encode(record, lambda moment: moment), strict=True)
        return {column.name: json.loads(value) if isinstance(column.type, Json) else value for column, value in encoded}


def _item_type(hint: Any) -> Any:
    """Return the dataclass of a field's items; None if the field is not a tuple of dataclasses."""
    return next((part for part in get_args(hint) if is_dataclass(part)), None)


def _encoding(column: Column[Any], item: Any) -> str:
    """Return the expression for a column's value, given the dataclass of the field's items, if any."""
    value = f"record.{column.name}"
    if item is not None:
        pairs = ", ".join(f"{part.name!r}: item.{part.name}" for part in fields(item))
        return f"to_json([{{{pairs}}} for item in {value}]) if {value} else '[]'"
    if isinstance(column.type, Json):
        return f"to_json({value}) if {value} else '{{}}'"
    if isinstance(column.type, Text):
        return f"clean_text({value})"
    encoders = ((UtcDateTime, "stamp"), (Float, "float"), (Boolean, "bool"))
    encoder = next((name for column_type, name in encoders if isinstance(column.type, column_type)), None)
    if encoder is None:
        return value
    return f"None if {value} is None else {encoder}({value})" if column.nullable else f"{encoder}({value})"


def _decoding(name: str, item: Any) -> str:
    """Return the expression for a field's value."""
    if item is None:
        return f"row[{name!r}]"
    # Imported items may have more keys than fields, and lack those with a default.
    parts = [
        f"{part.name}=item[{part.name!r}]"
        if part.default is MISSING
        else f"{part.name}=item.get({part.name!r}, {part.default!r})"
        for part in fields(item)
    ]
    return f"tuple([{item.__name__}({', '.join(parts)}) for item in row[{name!r}]])"


EXCHANGES: Final = RecordMapper(exchange, Exchange)
SCORES: Final = RecordMapper(score, Score)
SHARED_COLUMNS: Final = (
    "started_at",
    *(
        column.name
        for column in score.c
        if column.name in exchange.c and column.name not in {"id", "started_at", *SCORES.columns}
    ),
)
"""The columns of the exchange that its scores repeat: its time, texts and numbers."""
SCORE_COLUMNS: Final = ("exchange_id", *SHARED_COLUMNS, *SCORES.columns)
_OF_EXCHANGE: Final = itemgetter("exchange_id", *SHARED_COLUMNS)


def score_values(row: Mapping[Any, Any], result: Score, now: datetime, stamp: TimestampEncoder) -> Values:
    """Return a score's values for ``SCORE_COLUMNS``, encoded for the driver.

    ``row`` has the exchange's id, as ``exchange_id``, and its ``SHARED_COLUMNS``. A score without ``scored_at`` gets
    ``now``.
    """
    exchange_id, started_at, *shared = _OF_EXCHANGE(row)
    dated = result if result.scored_at else replace(result, scored_at=now)
    return (exchange_id, stamp(started_at), *shared, *SCORES.encode(dated, stamp))


HAS_SCORE_KEY: Final = and_(
    score.c.exchange_id == bindparam("of"), score.c.scorer == bindparam("by"), score.c.fingerprint == bindparam("made")
)
"""SQL condition that selects a score by the parameters ``of``, ``by`` and ``made``."""


def score_key(task: Mapping[str, Any]) -> tuple[str, str]:
    """Return the (scorer, fingerprint) key of a finished task's score."""
    return task["scorer"], task["scored_as"] or task["fingerprint"]
