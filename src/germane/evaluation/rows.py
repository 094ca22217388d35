"""Conversion of data set rows to exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from germane import sanitize
from germane.errors import UsageError
from germane.evaluation import values
from germane.evaluation.files import Record, iterate_records
from germane.exchange import Exchange, Message, new_exchange_id

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "user_input", "query"),
    "answer": ("answer", "response"),
    "contexts": ("contexts", "retrieved_contexts"),
    "history": ("history", "meta.history"),
    "id": ("id",),
    "route": ("route",),
    "model": ("model",),
}
"""Accepted names by column: germane's own name first, then other libraries' names. Other columns become
attributes.
"""
REQUIRED_COLUMNS = frozenset({"question", "answer"})
EVALUATION_SERVICE = "evaluate"
"""The service name of all rows, and the route of rows that do not specify one."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a data set."""

    location: str
    """Location of the row, such as ``row 0`` or ``answers.csv, line 2``."""
    exchange: Exchange
    other_columns: Mapping[str, Any]
    """Cells of the columns that are not in :data:`COLUMN_NAMES`."""
    has_id: bool
    """Whether the exchange's id comes from the row. Otherwise, it was generated."""


class ColumnMap:
    """Looks up a row's cells by column name. ``meta.history`` refers to a field of a nested object."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        """Map germane's column names to the data set's. Raise a usage error if a name is unknown."""
        if unknown := sorted(set(names or ()) - set(COLUMN_NAMES)):
            raise UsageError(f"unknown columns {', '.join(unknown)}; known columns: {', '.join(COLUMN_NAMES)}")
        given = {name: (column,) for name, column in (names or {}).items()}
        self.names: Mapping[str, tuple[str, ...]] = {**COLUMN_NAMES, **given}
        self._required = REQUIRED_COLUMNS | given.keys()
        self.known = frozenset(column for columns in self.names.values() for column in columns)

    def get_cell(self, row: Mapping[str, Any], name: str) -> Any:
        """Return the cell of one of germane's columns; None without it. Raise a usage error if it is required."""
        cell = self._find_cell(row, name)
        if cell is not _ABSENT:
            return values.to_plain(cell)
        if name not in self._required:
            return None
        expected = " or ".join(self.names[name])
        existing = ", ".join(sanitize.line(str(column), 60) for column in row) or "none"
        raise UsageError(
            f"has no column {expected}; its columns are {existing}. Name the column: columns={{{name!r}: '...'}}, "
            f"or --columns {name}=..."
        )

    def has_column(self, row: Mapping[str, Any], name: str) -> bool:
        """Return whether a row has a column, under any of its accepted names."""
        return self._find_cell(row, name) is not _ABSENT

    def other_columns(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Map the name of each column that germane does not recognize to its cell."""
        return {str(column): values.to_plain(cell) for column, cell in row.items() if column not in self.known}

    def _find_cell(self, row: Mapping[str, Any], name: str) -> Any:
        for column in self.names[name]:
            if column in row:
                return row[column]
            if (nested := _find_nested(row, column)) is not _ABSENT:
                return nested
        return _ABSENT


def read_rows(rows: Any, columns: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Yield the rows of a data set; see :func:`germane.aevaluate` for the supported types of ``rows``.

    Raises:
        UsageError: a row is invalid. The message names the row, the problem, and the fix.
    """
    return convert_records(iterate_records(rows), columns)


def convert_records(records: Iterable[Record], columns: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Yield the rows of records. Usage errors about a record name its location, the problem, and the fix."""
    column_map = ColumnMap(columns)
    for location, record in records:
        try:
            # Ragas samples are pydantic models.
            row = record.model_dump(exclude_none=True) if hasattr(record, "model_dump") else record
            if not isinstance(row, Mapping):
                raise UsageError(  # noqa: TRY301 - the location is added below
                    f"must be a mapping of columns to values, not {type(record).__name__}"
                )
            question, answer, history = _parse_conversation(row, column_map)
            names = {name: values.parse_name(column_map.get_cell(row, name), name) for name in ("id", "route", "model")}
            other_columns = column_map.other_columns(row)
            attributes = {name: values.parse_attribute(cell) for name, cell in other_columns.items()}
            exchange = Exchange(
                id=names["id"] or new_exchange_id(),
                trace_id="0" * 32,
                span_id="0" * 16,
                service=EVALUATION_SERVICE,
                route=names["route"] or EVALUATION_SERVICE,
                question=question,
                answer=answer,
                contexts=values.parse_contexts(column_map.get_cell(row, "contexts")),
                history=history,
                model=names["model"],
                attributes={name: value for name, value in attributes.items() if value is not None},
                started_at=datetime.now(UTC),
            )
            yield Row(location, exchange, other_columns, names["id"] is not None)
        except UsageError as error:
            raise UsageError(f"{location} {error}") from None


def _parse_conversation(
    row: Mapping[str, Any], columns: ColumnMap
) -> tuple[str | None, str | None, tuple[Message, ...]]:
    """Return question, answer and earlier messages. The question is the last user message; the answer may follow it."""
    cell, messages = columns.get_cell(row, "question"), values.parse_messages(columns.get_cell(row, "history"))
    if not values.is_conversation(cell):
        answer = values.parse_text(columns.get_cell(row, "answer"), "answer")
        return values.parse_text(cell, "question"), answer, messages
    messages += values.parse_messages(cell)
    last = max((index for index, each in enumerate(messages) if each.role == "user"), default=len(messages))
    replies = [message.content for message in messages[last + 1 :] if message.role == "assistant"]
    question = messages[last].content if last < len(messages) else None
    if replies and not columns.has_column(row, "answer"):
        return question, replies[-1], messages[:last]
    return question, values.parse_text(columns.get_cell(row, "answer"), "answer"), messages[:last]


def _find_nested(row: Mapping[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    inner = row.get(head) if rest else None
    if not isinstance(inner, Mapping):
        return _ABSENT
    return inner[rest] if rest in inner else _find_nested(inner, rest)
