"""Rows of a data set, read as exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from germane.errors import UsageError
from germane.evaluation import cells
from germane.evaluation.columns import Columns
from germane.evaluation.sources import records_of
from germane.exchange import Exchange, Turn, new_exchange_id

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
    given = {name: cells.attribute(columns.cell(row, name)) for name in ("id", "route", "model")}
    named = {name: str(value) for name, value in given.items() if value not in {None, ""}}
    attributes = {name: cells.attribute(cell) for name, cell in columns.others(row).items()}
    return Exchange(
        id=named.get("id") or new_exchange_id(),
        trace_id="0" * 32,
        span_id="0" * 16,
        service=NAME,
        route=named.get("route", NAME),
        question=talk.question,
        answer=talk.answer,
        contexts=cells.contexts(columns.cell(row, "contexts")),
        history=talk.history,
        model=named.get("model"),
        attributes={name: value for name, value in attributes.items() if value is not None},
        started_at=datetime.now(UTC),
    )


def _talk(row: Mapping[str, Any], columns: Columns) -> _Talk:
    question, history = columns.cell(row, "question"), cells.turns(columns.cell(row, "history"))
    if cells.is_conversation(question):
        return _conversation(row, columns, history + cells.turns(question))
    return _Talk(cells.text(question, "question"), cells.text(columns.cell(row, "answer"), "answer"), history)


def _conversation(row: Mapping[str, Any], columns: Columns, turns: tuple[Turn, ...]) -> _Talk:
    """Return a conversation's last question; what follows it is the answer where no column holds one."""
    asked = [place for place, turn in enumerate(turns) if turn.role == "user"]
    last = asked[-1] if asked else len(turns)
    replies = [turn.text for turn in turns[last + 1 :] if turn.role == "assistant"]
    if columns.has(row, "answer") or not replies:
        answer = cells.text(columns.cell(row, "answer"), "answer")
    else:
        answer = replies[-1]
    return _Talk(turns[last].text if asked else None, answer, turns[:last])
