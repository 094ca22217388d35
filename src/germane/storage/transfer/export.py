"""Fast reading of exchanges for an export, and encoding as JSON lines.

The database formats times as text, because converting them in Python would take much of an export's time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from json.encoder import encode_basestring
from typing import Any, Final

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Float,
    Integer,
    Select,
    Text,
    func,
    select,
    type_coerce,
)

from germane.storage.archive.dialect import NAME as ARCHIVE
from germane.storage.db.functions import json_text
from germane.storage.db.mappers import score_key
from germane.storage.db.types import Json, UtcDateTime
from germane.storage.transfer.record import (
    COLUMNS,
    FIRST_EXPONENT,
    LISTS,
    TABLES,
    VERSION,
    canonical_json,
    canonical_number,
    escape_unsafe,
)

StoredRow = Sequence[Any]
"""Values of ``COLUMNS``, with times as ISO 8601 text in UTC and JSON as text. The exchange's id may follow."""
Encoder = tuple[str, Callable[[Any], str]]
"""A column's name with JSON punctuation, and the function that encodes its values."""

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    part: tuple(column.name for column in columns) for part, columns in COLUMNS.items()
}


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """The rows of an exchange and its tasks, scores and labels, as the database stores them."""

    exchange: StoredRow
    parts: Mapping[str, Sequence[StoredRow]]
    """Rows by part name: ``task``, ``score``, ``feedback`` or ``draw``."""

    def exchange_values(self) -> dict[str, Any]:
        """Return the exchange as a dict of column names to values."""
        return dict(zip(NAMES["exchange"], self.exchange, strict=True))

    def part_values(self, part: str) -> list[dict[str, Any]]:
        """Return an exchange's tasks, scores or labels, each as a dict of column names to values."""
        return [dict(zip(NAMES[part], row, strict=False)) for row in self.parts[part]]

    def tasks_with_scores(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield each task, with the fingerprint of its score, and its score, which is empty if there is none."""
        scores = {(score["scorer"], score["fingerprint"]): score for score in self.part_values("score")}
        for task in self.part_values("task"):
            key = score_key(task)
            yield {**task, "fingerprint": key[1]}, scores.get(key, {})

    def dump(self) -> str:
        """Encode the record as one line of JSON, which ``parse_line`` reads."""
        parts = [f'{{"version":{VERSION},"exchange":{_encode_row(self.exchange, _ENCODERS["exchange"])}']
        for name, part in LISTS.items():
            if rows := self.parts.get(part):
                encoders = _ENCODERS[part]
                parts.append(f'"{name}":[{",".join([_encode_row(row, encoders) for row in rows])}]')
        return escape_unsafe(",".join(parts) + "}")


@cache
def select_stored(part: str, dialect: str) -> Select[Any]:
    """Return a query for the stored rows of a part. Rows of tasks, scores and labels end with their exchange's id."""
    columns = [_stored(column, dialect) for column in COLUMNS[part]]
    return select(*columns) if part == "exchange" else select(*columns, TABLES[part].c.exchange_id)


def _stored(column: Column[Any], dialect: str) -> ColumnElement[Any]:
    if isinstance(column.type, Json):
        return json_text(column, dialect)
    if not isinstance(column.type, UtcDateTime):
        return column
    if dialect == ARCHIVE:
        moment = func.strftime(column, "%Y-%m-%dT%H:%M:%S.%f")
    elif dialect == "sqlite":
        moment = func.replace(type_coerce(column, Text()), " ", "T")
    else:
        moment = func.to_char(func.timezone("UTC", column), 'YYYY-MM-DD"T"HH24:MI:SS.US')
    return func.replace(moment, ".000000", "", type_=Text()) + "+00:00"


def group_by_exchange(rows: Sequence[StoredRow]) -> dict[str, list[StoredRow]]:
    """Return a dict of exchange ids to rows. The exchange's id is the last value of each row."""
    by_exchange: dict[str, list[StoredRow]] = {}
    for row in rows:
        by_exchange.setdefault(row[-1], []).append(row)
    return by_exchange


def _encode_row(row: StoredRow, encoders: Sequence[Encoder]) -> str:
    pairs = [
        name + encode(value)
        for (name, encode), value in zip(encoders, row, strict=False)  # the exchange's id is omitted
        if value is not None
    ]
    return f"{{{','.join(pairs)}}}"


def _encode_float(value: float) -> str:
    if -FIRST_EXPONENT < value < FIRST_EXPONENT:  # avoids two function calls for almost every number
        return repr(value + 0.0)
    return repr(canonical_number(value)) if math.isfinite(value) else "null"


def _encoder(column: Column[Any]) -> Encoder:
    by_type: dict[type, Callable[[Any], str]] = {
        Json: canonical_json,
        UtcDateTime: '"{}"'.format,
        Boolean: lambda value: "true" if value else "false",
        Float: _encode_float,
        Integer: str,
        Text: encode_basestring,
    }
    encode = next(encode for column_type, encode in by_type.items() if isinstance(column.type, column_type))
    return f'"{column.name}":', encode


_ENCODERS: Final = {part: tuple(map(_encoder, columns)) for part, columns in COLUMNS.items()}
