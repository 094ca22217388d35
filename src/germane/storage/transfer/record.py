"""All that is known of one exchange, or a mark, as one line of JSON, and back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Boolean, Column, Float, Integer, Table, Text

from germane.annotation import Mark
from germane.errors import UsageError
from germane.score import Reason
from germane.storage.db.sanitize import clean, to_json
from germane.storage.db.tables import UtcDateTime, exchange, feedback, score, scoring_task
from germane.storage.trends.time_ranges import END, EPOCH

VERSION: Final = 1
"""Of the lines' form."""
Row = Mapping[str, Any]
STATES: Final = ("pending", "done", "failed", "skipped")
_LEFT_OUT: Final = {
    "task": {"id", "exchange_id", "lease_owner", "lease_until"},
    "score": {"id", "exchange_id", "service", "route", "started_at"},
    "feedback": {"exchange_id"},
}
"""Columns that are nobody's but the database's own, or stand in the exchange."""
COLUMNS: Final[Mapping[str, tuple[Column[Any], ...]]] = {
    name: tuple(column for column in table.columns if column.name not in _LEFT_OUT.get(name, ()))
    for name, table in (("exchange", exchange), ("task", scoring_task), ("score", score), ("feedback", feedback))
}
NEVER_ROWS: Final = (Reason.QUEUE_FULL.value, Reason.CAPTURE_LIMIT.value)
"""Reasons why an exchange is dropped, which only the tally knows then."""
SMALLEST: Final = 1e-12
"""Probability: whatever is less likely is none that a sampler gave, and its weight would outweigh all others."""
MOST: Final = 2**31 - 1
"""Of whole numbers: tokens, attempts, and exchanges that one process dropped in one minute."""
LONGEST: Final = 500
"""Characters of what stands in an index."""
_CLOSED: Final = ("failed", "skipped")
_OPTIONAL_PARTS: Final = {"tasks", "scores", "feedback"}


@dataclass(frozen=True, slots=True)
class Record:
    """An exchange, its tasks, scores and labels: rows of their tables."""

    exchange: Row
    tasks: Sequence[Row] = ()
    scores: Sequence[Row] = ()
    feedback: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """Exchanges that never became rows, as one process counted them in one minute."""

    minute: datetime
    service: str
    route: str
    scorer: str
    process: str
    reason: str
    count: int = field(default=0)


def dumped(one: Record | Dropped | Mark) -> str:
    """Return it as one line of JSON."""
    if not isinstance(one, Record):
        name = "mark" if isinstance(one, Mark) else "dropped"
        return _line({"version": VERSION, name: _plain({part: getattr(one, part) for part in one.__slots__})})
    parts = {"tasks": one.tasks, "scores": one.scores, "feedback": one.feedback}
    lists = {name: [_plain(row) for row in rows] for name, rows in parts.items() if rows}
    return _line({"version": VERSION, "exchange": _plain(one.exchange), **lists})


_TRICKS: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys and JSON leaves as it is: control characters, changes of direction, other ends of a line."""


def _line(content: Mapping[str, Any]) -> str:
    return _TRICKS.sub(lambda found: f"\\u{ord(found[0]):04x}", to_json(content))


def _plain(row: Row) -> dict[str, Any]:
    shown = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
    return {name: value for name, value in shown.items() if value is not None}


def read(line: str) -> Record | Dropped | Mark:
    """Return what a line says.

    Raises:
        UsageError: it is broken; says why.
    """
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not JSON: {error}") from None
    if not isinstance(given, dict) or "version" not in given:
        raise UsageError("is no line of an export: it has no version")
    if given["version"] != VERSION:
        raise UsageError(f"is of version {given['version']!r:.20}, and this germane reads version {VERSION}")
    if "mark" in given:
        return _mark(given["mark"])
    return _dropped(given) if "dropped" in given else _record(given)


def _record(given: dict[str, Any]) -> Record:
    if unknown := given.keys() - _OPTIONAL_PARTS - {"version", "exchange"}:
        raise UsageError(f"holds {min(unknown)!r:.50}, which no export does")
    found = Record(
        exchange=_row("exchange", given.get("exchange")),
        tasks=[_task(one) for one in _list(given, "tasks")],
        scores=[_row("score", one) for one in _list(given, "scores")],
        feedback=[_row("feedback", one) for one in _list(given, "feedback")],
    )
    _check_exchange(found.exchange)
    _check_scores(found)
    _check_waiting(found)
    return found


def _list(given: dict[str, Any], name: str) -> list[Any]:
    found = given.get(name, [])
    if not isinstance(found, list):
        raise UsageError(f"{name} is no list")
    return found


def _row(part: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"has no {part}, or one that is no object")
    if unknown := given.keys() - {column.name for column in COLUMNS[part]}:
        raise UsageError(f"{part}.{min(unknown)!s:.50} is nothing that this germane knows")
    row = {column.name: _value(part, column, given.get(column.name)) for column in COLUMNS[part]}
    if name := next((name for name in _NAMES if len(row.get(name) or "") > LONGEST), None):
        raise UsageError(f"{part}.{name} is longer than {LONGEST} characters")
    return row


_NAMES: Final = ("id", "trace_id", "span_id", "service", "route", "scorer", "fingerprint", "scored_as")


def _value(part: str, column: Column[Any], value: Any) -> Any:
    name = f"{part}.{column.name}"
    if value is None:
        if column.nullable or column.server_default is not None:
            return None if column.nullable else _default(column)
        raise UsageError(f"{name} is missing")
    for kind, (taken, what) in _KINDS.items():
        if isinstance(column.type, kind):
            return taken(value) if _fits(taken, value) else _refuse(name, value, what)
    return value if isinstance(value, dict if column.name in _OBJECTS else list) else _refuse(name, value, "JSON")


_OBJECTS: Final = {"attributes", "details"}


def _default(column: Column[Any]) -> Any:
    default: Any = column.server_default
    return float(default.arg) if isinstance(column.type, Float) else int(default.arg)


def _fits(taken: Callable[[Any], Any], value: Any) -> bool:
    try:
        taken(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _refuse(name: str, value: Any, what: str) -> Any:
    raise UsageError(f"{name} = {value!r:.60} is not {what}")


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None or not EPOCH <= moment < END:
        raise ValueError(value)
    return moment.astimezone(UTC)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return clean(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise ValueError(value)
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


_KINDS: Final[Mapping[type, tuple[Callable[[Any], Any], str]]] = {
    UtcDateTime: (_moment, "a moment in ISO 8601 with its zone, after 1969"),
    Text: (_text, "text"),
    Float: (_number, "a finite number"),
    Boolean: (_truth, "true or false"),
    Integer: (_whole, f"a whole number from 0 to {MOST}"),
}


def _task(given: Any) -> dict[str, Any]:
    found = _row("task", given)
    state, reason = found["state"], found["reason"]
    if state not in STATES:
        raise UsageError(f"task.state = {state!r:.60} is none of {', '.join(STATES)}")
    if state in _CLOSED and (reason not in set(Reason) or Reason(reason).state != state):
        raise UsageError(f"task.reason = {reason!r:.60} is no reason why a task is {state}")
    return found if state == "pending" else found | {"not_before": None}  # else it would be done again


def _check_exchange(row: Row) -> None:
    if not row["id"]:
        raise UsageError("exchange.id is empty")
    if not 0 < row["draw"] <= 1:
        raise UsageError(f"exchange.draw = {row['draw']!r} is not above 0 and at most 1")
    for name in ("capture_probability", "sampling_probability", "proxy_probability"):
        _check_range(f"exchange.{name}", row[name], SMALLEST)
    if not all(_has_texts(one, "text") for one in row["contexts"]):
        raise UsageError("exchange.contexts is no list of objects with a text")
    if not all(_has_texts(one, "role", "text") for one in row["history"]):
        raise UsageError("exchange.history is no list of objects with a role and a text")


def _check_range(name: str, value: float | None, least: float) -> None:
    if value is not None and not least <= value <= 1:
        raise UsageError(f"{name} = {value!r} is not from {least:g} to 1")


def _has_texts(one: Any, *names: str) -> bool:
    return isinstance(one, dict) and all(isinstance(one.get(name), str) for name in names)


def _check_scores(found: Record) -> None:
    """Return if each score has a task that is done."""
    done = {made_by(task) for task in found.tasks if task["state"] == "done"}
    if any((row["scorer"], row["fingerprint"]) not in done for row in found.scores):
        raise UsageError("has a score without a task that is done")
    for row in found.scores:
        _check_range("score.value", row["value"], -1)
        _check_range("score.sampling_probability", row["sampling_probability"], SMALLEST)
    for row in found.feedback:
        _check_range("feedback.score", row["score"], 0)


def _check_waiting(found: Record) -> None:
    """Return if no task waits for the end of an interval that its exchange is not in: it would wait for ever."""
    lost = any(task["state"] == "pending" and task["not_before"] is None for task in found.tasks)
    if lost and found.exchange["sampling_reason"] != "candidate":
        raise UsageError("has a task that is pending and no moment from which it may be done")


def made_by(task: Row) -> tuple[str, str]:
    """Return scorer and fingerprint of the score of a task that is done."""
    return task["scorer"], task["scored_as"] or task["fingerprint"]


def _dropped(given: dict[str, Any]) -> Dropped:
    row = given["dropped"]
    names = ("service", "route", "scorer", "process")
    try:
        minute = _moment(row["minute"]).replace(second=0, microsecond=0)
        texts = {name: _text(row[name]) for name in names}
        found = Dropped(minute=minute, **texts, reason=Reason(row["reason"]).value, count=_whole(row["count"]))
    except (KeyError, TypeError, ValueError):
        raise UsageError("counts dropped exchanges in no form that an export has") from None
    if found.reason not in NEVER_ROWS:
        raise UsageError("counts dropped exchanges in no form that an export has")
    return found


def _mark(row: Any) -> Mark:
    try:
        texts = {name: _text(row[name]) for name in ("id", "name", "service")}
        found = Mark(**texts, at=_moment(row["at"]), attributes=row.get("attributes", {}))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UsageError("holds a mark in no form that an export has") from None
    if not isinstance(found.attributes, dict) or not all(0 < len(text) <= LONGEST for text in texts.values()):
        raise UsageError("holds a mark in no form that an export has")
    return found


def table_of(part: str) -> Table:
    """Return the table that the rows of a part come from."""
    return {"exchange": exchange, "task": scoring_task, "score": score, "feedback": feedback}[part]
