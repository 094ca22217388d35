"""Rows of a data set, read as exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from germane.errors import UsageError
from germane.evaluation import values
from germane.evaluation.files import records_of
from germane.exchange import Exchange, Turn, new_exchange_id
from germane.sanitize import harmless

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "user_input"),
    "answer": ("answer", "response"),
    "contexts": ("contexts", "retrieved_contexts"),
    "history": ("history", "meta.history"),
    "id": ("id",),
    "route": ("route",),
    "model": ("model",),
}
"""Ours, then those of Ragas. Any other column is an attribute of its exchange."""
NEEDED = frozenset({"question", "answer"})
_ABSENT = object()


class Columns:
    """Finds the cells of a row under your names for them; a name like ``meta.history`` looks into a nested object."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        """Take ``names``: ours to yours.

        Raises:
            UsageError: it maps what is no column of ours.
        """
        unknown = sorted(set(names or ()) - set(COLUMNS))
        if unknown:
            raise UsageError(f"columns maps {', '.join(COLUMNS)} to names of yours, and knows no {', '.join(unknown)}")
        mapped = {name: (column,) for name, column in (names or {}).items()}
        self.names: Mapping[str, tuple[str, ...]] = {**COLUMNS, **mapped}
        self._must = NEEDED | mapped.keys()
        self._taken = {column for known in self.names.values() for column in known}

    def cell(self, row: Mapping[str, Any], name: str) -> Any:
        """Return what stands under one of our names; None where nothing does.

        Raises:
            UsageError: there is no such column, and it is needed, or you named it.
        """
        found = self.find(row, name)
        if found is not _ABSENT:
            return found
        if name not in self._must:
            return None
        wanted, there = " or ".join(self.names[name]), ", ".join(harmless(str(column), 60) for column in row) or "none"
        raise UsageError(
            f"has no column {wanted}; its columns are {there}. Name the right one: columns={{{name!r}: '...'}}, "
            f"or --columns {name}=..."
        )

    def has(self, row: Mapping[str, Any], name: str) -> bool:
        """Return whether a row has that column."""
        return self.find(row, name) is not _ABSENT

    def find(self, row: Mapping[str, Any], name: str) -> Any:
        """Return what stands under one of our names, or a mark that nothing does."""
        for column in self.names[name]:
            if column in row:
                return row[column]
            if (nested := _nested(row, column)) is not _ABSENT:
                return nested
        return _ABSENT

    def others(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns that are none of ours."""
        return {str(column): cell for column, cell in row.items() if column not in self._taken}


def _nested(row: Mapping[str, Any], path: str) -> Any:
    head, _, rest = path.partition(".")
    inner = row.get(head) if rest else None
    if not isinstance(inner, Mapping):
        return _ABSENT
    return inner[rest] if rest in inner else _nested(inner, rest)


NAME = "evaluate"
"""Service of all rows, and route of those that name none."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row, and where it stands."""

    place: str
    """Such as ``row 0`` or ``answers.csv, line 2``."""
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class _Talk:
    """What a row says, in the order in which it was said."""

    question: str | None
    answer: str | None
    history: tuple[Turn, ...]


def read_rows(rows: Any, columns: Mapping[str, str] | None = None) -> Iterator[Row]:
    """Return the rows of a data set, one after another: see :func:`germane.aevaluate` for what ``rows`` may be.

    Raises:
        UsageError: names the place, what is wrong with it, and the fix.
    """
    found = Columns(columns)
    for place, record in records_of(rows):
        try:
            yield Row(place, _exchange(_mapping(record), found))
        except UsageError as error:
            raise UsageError(f"{place} {error}") from None


def _mapping(record: Any) -> Mapping[str, Any]:
    """Return a record as a mapping; the samples of Ragas are pydantic models."""
    found = record.model_dump(exclude_none=True) if hasattr(record, "model_dump") else record
    if not isinstance(found, Mapping):
        raise UsageError(f"is a {type(record).__name__}, not a mapping of columns to values")
    return found


def _exchange(row: Mapping[str, Any], columns: Columns) -> Exchange:
    talk = _talk(row, columns)
    given = {name: values.attribute(columns.cell(row, name)) for name in ("id", "route", "model")}
    named = {name: str(value) for name, value in given.items() if value not in {None, ""}}
    attributes = {name: values.attribute(cell) for name, cell in columns.others(row).items()}
    return Exchange(
        id=named.get("id") or new_exchange_id(),
        trace_id="0" * 32,
        span_id="0" * 16,
        service=NAME,
        route=named.get("route", NAME),
        question=talk.question,
        answer=talk.answer,
        contexts=values.contexts(columns.cell(row, "contexts")),
        history=talk.history,
        model=named.get("model"),
        attributes={name: value for name, value in attributes.items() if value is not None},
        started_at=datetime.now(UTC),
    )


def _talk(row: Mapping[str, Any], columns: Columns) -> _Talk:
    question, history = columns.cell(row, "question"), values.turns(columns.cell(row, "history"))
    if values.is_conversation(question):
        return _conversation(row, columns, history + values.turns(question))
    return _Talk(values.text(question, "question"), values.text(columns.cell(row, "answer"), "answer"), history)


def _conversation(row: Mapping[str, Any], columns: Columns, turns: tuple[Turn, ...]) -> _Talk:
    """Return a conversation's last question; what follows it is the answer where no column holds one."""
    asked = [place for place, turn in enumerate(turns) if turn.role == "user"]
    last = asked[-1] if asked else len(turns)
    replies = [turn.text for turn in turns[last + 1 :] if turn.role == "assistant"]
    if columns.has(row, "answer") or not replies:
        answer = values.text(columns.cell(row, "answer"), "answer")
    else:
        answer = replies[-1]
    return _Talk(turns[last].text if asked else None, answer, turns[:last])
