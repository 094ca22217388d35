"""The lines of export files: exchanges with their tasks, scores and labels, markers, counts, alerts and saved views."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Boolean, Column, Float, Integer, Table, Text

from germane.annotation import Marker
from germane.errors import UsageError
from germane.sanitize import clean_text
from germane.score import UnscoredReason
from germane.storage.db.mappers import score_key
from germane.storage.db.sanitize import to_json
from germane.storage.db.tables import (
    alert,
    alert_event,
    baseline,
    exchange,
    feedback,
    label_draw,
    saved_view,
    score,
    scoring_task,
    silence,
)
from germane.storage.db.types import UtcDateTime
from germane.storage.trends.time_ranges import END, EPOCH

Row = Mapping[str, Any]

VERSION: Final = 2
"""Version of the file format."""
MIN_PROBABILITY: Final = 1e-12
"""Minimum probability. The sampler never assigns a lower one, and such a score's weight would dominate all others."""
MAX_INTEGER: Final = 2**31 - 1
MAX_NAME_LENGTH: Final = 500
"""Maximum number of characters in an indexed column."""
NEVER_STORED: Final = (
    UnscoredReason.QUEUE_FULL.value,
    UnscoredReason.EXCHANGE_LIMIT.value,
    UnscoredReason.UNREADABLE.value,
)
"""Skip reasons for exchanges that exist only as counts in the tally."""
TABLES: Final[Mapping[str, Table]] = {
    "exchange": exchange,
    "task": scoring_task,
    "score": score,
    "feedback": feedback,
    "draw": label_draw,
    "baseline": baseline,
    "alert": alert,
    "alert_event": alert_event,
    "silence": silence,
    "saved_view": saved_view,
}
ALERTING_PARTS: Final = ("baseline", "alert", "alert_event", "silence", "saved_view")
"""Alerting parts and saved views, in the order in which they are written. Each row is a separate line."""
_CANONICAL: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
_DECODER: Final = json.JSONDecoder(parse_float=lambda text: canonical_number(float(text)))
FIRST_EXPONENT: Final = 1e16
"""The smallest number that Python writes with an exponent."""
_OMITTED: Final = {
    "exchange": {"span_holder"},
    "task": {"id", "exchange_id", "lease_owner"},
    "score": {"id", "exchange_id", "service", "route", "started_at"},
    "feedback": {"exchange_id"},
    "draw": {"exchange_id"},
    "baseline": {"id"},
}
"""Columns that are specific to one database or that repeat columns of the exchange."""
COLUMNS: Final[Mapping[str, tuple[Column[Any], ...]]] = {
    part: tuple(column for column in table.columns if column.name not in _OMITTED.get(part, ()))
    for part, table in TABLES.items()
}
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    part: tuple(column.name for column in columns) for part, columns in COLUMNS.items()
}
_STATES: Final = ("pending", "done", "failed", "skipped")
LISTS: Final = {"tasks": "task", "scores": "score", "feedback": "feedback", "draws": "draw"}
_NAMES: Final = (
    *("id", "trace_id", "span_id", "service", "route", "scorer", "fingerprint", "scored_as", "scope", "status", "key"),
    *("rule", "type", "state", "alert_id", "name"),
)
_OBJECTS: Final = {"attributes", "details", "numbers", "labels", "body", "detail", "matchers"}
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON leaves unescaped but terminals interpret: controls, text direction marks and line separators."""


@dataclass(frozen=True, slots=True)
class ExchangeRecord:
    """The rows of an exchange and its tasks, scores and labels, and of the waves in which it was drawn."""

    exchange: Row
    tasks: Sequence[Row] = ()
    scores: Sequence[Row] = ()
    feedback: Sequence[Row] = ()
    draws: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class DroppedCount:
    """The number of exchanges that a process captured but did not store in one minute."""

    minute: datetime
    service: str
    route: str
    scorer: str
    process: str
    reason: str
    count: int = field(default=0)


@dataclass(frozen=True, slots=True)
class AlertingRow:
    """A row of a baseline, an alert, an alert event, a silence or a saved view."""

    part: str
    """One of :data:`ALERTING_PARTS`."""
    values: Row


ExportedItem = ExchangeRecord | DroppedCount | Marker | AlertingRow
"""The content of one line in an export file."""


def is_export_line(line: bytes) -> bool:
    """Return whether a file that starts with this line is an export. Invalid JSON counts, so that it is reported."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return True
    parts = {"exchange", "dropped", "marker", *ALERTING_PARTS}
    return isinstance(content, dict) and "version" in content and not content.keys().isdisjoint(parts)


def dump_line(item: DroppedCount | Marker | AlertingRow) -> str:
    """Encode an item as one line of JSON. For exchanges, see ``StoredRecord.dump``."""
    if isinstance(item, AlertingRow):
        content = {item.part: plain_row(item.values)}
    else:
        name = "marker" if isinstance(item, Marker) else "dropped"
        content = {name: plain_row({part: getattr(item, part) for part in item.__slots__})}
    return escape_unsafe(to_json({"version": VERSION, **content}))


def escape_unsafe(line: str) -> str:
    """Escape the characters that JSON leaves unescaped but terminals interpret."""
    if line.isascii() and "\x7f" not in line:
        return line
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def canonical_json(text: str) -> str:
    """Sort the keys of JSON, remove spaces and convert numbers, because databases store JSON in different formats."""
    return _CANONICAL.encode(_DECODER.decode(text))


def canonical_number(value: float) -> float | int:
    """Return the form of a number that is the same after storing it in either database.

    PostgreSQL stores JSON numbers as decimals: it writes ``1e+16`` as ``10000000000000000``, which is read as an
    integer, and neither its decimals nor SQLite's columns keep the sign of -0.0.
    """
    if abs(value) < FIRST_EXPONENT or not math.isfinite(value):
        return value + 0.0  # -0.0 becomes 0.0
    return int(Decimal(repr(value)))  # the digits that PostgreSQL stores; int(value) would add those of the binary form


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _canonical(value[name]) for name in sorted(value)}
    if isinstance(value, float):
        return canonical_number(value)
    return [_canonical(item) for item in value] if isinstance(value, list | tuple) else value


def plain_row(row: Row) -> dict[str, Any]:
    """Return a row with values that JSON can represent."""
    values = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
    return {name: _canonical(value) for name, value in values.items() if value is not None}


def parse_line(line: str) -> ExportedItem:
    """Parse one line of an export file.

    Raises:
        UsageError: The line is invalid. The message does not include the line number.
    """
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the line is not valid JSON: {error}") from None
    if not isinstance(content, dict) or "version" not in content:
        raise UsageError("the line is not from a germane export: it is not an object with a version")
    if content["version"] != VERSION:
        raise UsageError(
            f"unsupported version {content['version']!r:.20}: this version of germane reads version {VERSION}"
        )
    for part in ALERTING_PARTS:
        if part in content:
            return AlertingRow(part, _parse_row(part, content[part]))
    if "marker" in content:
        return _parse_marker(content["marker"])
    return _parse_dropped(content["dropped"]) if "dropped" in content else _parse_record(content)


def _parse_record(content: dict[str, Any]) -> ExchangeRecord:
    if unknown := content.keys() - LISTS.keys() - {"version", "exchange"}:
        raise UsageError(f"unknown part {min(unknown)!r:.50}")
    for name in LISTS:
        if not isinstance(content.get(name, []), list):
            raise UsageError(f"{name} is not a list")
    exchange_row = _parse_row("exchange", content.get("exchange"))
    record = ExchangeRecord(
        exchange=exchange_row,
        tasks=[_parse_task(row) for row in content.get("tasks", [])],
        scores=[_parse_row("score", row) for row in content.get("scores", [])],
        feedback=[_parse_row("feedback", row) for row in content.get("feedback", [])],
        draws=[_parse_row("draw", row) for row in content.get("draws", [])],
    )
    _check_exchange(record.exchange)
    done = {score_key(task) for task in record.tasks if task["state"] == "done"}
    if any((row["scorer"], row["fingerprint"]) not in done for row in record.scores):
        raise UsageError("a score has no matching task in state 'done'")
    for row in record.scores:
        _check_range("score.value", row["value"], -1)
        _check_range("score.sampling_probability", row["sampling_probability"], MIN_PROBABILITY)
    for row in record.feedback:
        _check_range("feedback.score", row["score"], 0)
    for row in record.draws:
        _check_range("draw.probability", row["probability"], MIN_PROBABILITY)
        if row["state"] not in {"open", "labeled", "cannot_tell", "skipped"}:
            raise UsageError(f"draw.state = {row['state']!r:.60} is not a state of a drawn answer")
    # A task without due_at waits for the sampler, which selects only candidates, so other tasks would wait forever.
    unscheduled = any(task["state"] == "pending" and task["due_at"] is None for task in record.tasks)
    if unscheduled and record.exchange["sampling_reason"] != "candidate":
        raise UsageError("a pending task has no due_at")
    return record


def _parse_task(content: Any) -> Row:
    task = _parse_row("task", content)
    state, reason = task["state"], task["reason"]
    if state not in _STATES:
        raise UsageError(f"task.state = {state!r:.60} is not one of {', '.join(_STATES)}")
    if state in {"failed", "skipped"} and (reason not in set(UnscoredReason) or UnscoredReason(reason).state != state):
        raise UsageError(f"task.reason = {reason!r:.60} is not a reason for the state {state}")
    return task if state == "pending" else task | {"due_at": None}  # a finished task must not be claimable


def _check_exchange(row: Row) -> None:
    if not row["id"]:
        raise UsageError("exchange.id is empty")
    if not 0 < row["sampling_key"] <= 1:
        raise UsageError(f"exchange.sampling_key = {row['sampling_key']!r} must be above 0 and at most 1")
    for name in ("capture_probability", "sampling_probability", "proxy_probability"):
        _check_range(f"exchange.{name}", row[name], MIN_PROBABILITY)
    for column, names in (("contexts", ("text",)), ("history", ("role", "content"))):
        for item in row[column]:
            if not isinstance(item, dict) or not all(isinstance(item.get(name), str) for name in names):
                raise UsageError(f"exchange.{column} is not a list of objects with {' and '.join(names)}")


def _check_range(name: str, value: float | None, minimum: float) -> None:
    if value is not None and not minimum <= value <= 1:
        raise UsageError(f"{name} = {value!r} must be from {minimum:g} to 1")


def _parse_row(part: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise UsageError(f"{part} is missing or not an object")
    if unknown := content.keys() - NAMES[part]:
        raise UsageError(f"unknown column {part}.{min(unknown)!s:.50}")
    row, get = dict[str, Any](), content.get
    for name, parse, expected, default in _FIELDS[part]:
        value = get(name)
        if value is not None:
            try:
                row[name] = parse(value)
            except (TypeError, ValueError, OverflowError):
                raise UsageError(f"{part}.{name} = {value!r:.60} is not {expected}") from None
        elif default is _REQUIRED:
            raise UsageError(f"{part}.{name} is missing")
        else:
            row[name] = default
    for name in _LIMITED[part]:
        if len(row[name] or "") > MAX_NAME_LENGTH:
            raise UsageError(f"{part}.{name} is longer than {MAX_NAME_LENGTH} characters")
    return row


def _parse_dropped(content: Any) -> DroppedCount:
    try:
        minute = _parse_time(content["minute"]).replace(second=0, microsecond=0)
        texts = {name: _parse_text(content[name]) for name in ("service", "route", "scorer", "process")}
        reason, count = UnscoredReason(content["reason"]).value, _parse_integer(content["count"])
    except (KeyError, TypeError, ValueError):
        raise UsageError("invalid count of dropped exchanges") from None
    if reason not in NEVER_STORED:
        raise UsageError("invalid count of dropped exchanges")
    return DroppedCount(minute=minute, **texts, reason=reason, count=count)


def _parse_marker(content: Any) -> Marker:
    try:
        texts = {name: _parse_text(content[name]) for name in ("id", "name", "service")}
        marker = Marker(**texts, at=_parse_time(content["at"]), attributes=content.get("attributes", {}))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UsageError("invalid marker") from None
    if not isinstance(marker.attributes, dict) or not all(0 < len(text) <= MAX_NAME_LENGTH for text in texts.values()):
        raise UsageError("invalid marker")
    return marker


def _parse_time(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None or not EPOCH <= moment < END:
        raise ValueError(value)
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return clean_text(value)


def _parse_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def _parse_integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_INTEGER:
        raise ValueError(value)
    return value


def _parse_as(type_: type) -> Callable[[Any], Any]:
    """Return a parser that accepts only values of a type."""

    def parse(value: Any) -> Any:
        if not isinstance(value, type_):
            raise TypeError(value)
        return value

    return parse


_PARSERS: Final[Mapping[type, tuple[Callable[[Any], Any], str]]] = {
    UtcDateTime: (_parse_time, "an ISO 8601 time with a time zone, after 1969"),
    Text: (_parse_text, "text"),
    Float: (_parse_float, "a finite number"),
    Boolean: (_parse_as(bool), "true or false"),
    Integer: (_parse_integer, f"an integer from 0 to {MAX_INTEGER}"),
}
_REQUIRED: Final = object()
"""The default of a column that a row must have."""


def _field(column: Column[Any]) -> tuple[str, Callable[[Any], Any], str, Any]:
    """Return a column's name, the function that parses its values, what these have to be, and its default."""
    of_json = (_parse_as(dict), "an object") if column.name in _OBJECTS else (_parse_as(list), "a list")
    parser = next((each for type_, each in _PARSERS.items() if isinstance(column.type, type_)), of_json)
    default: Any = column.server_default
    if column.nullable or default is None:
        return column.name, *parser, None if column.nullable else _REQUIRED
    return column.name, *parser, float(default.arg) if isinstance(column.type, Float) else int(default.arg)


_FIELDS: Final = {part: tuple(map(_field, columns)) for part, columns in COLUMNS.items()}
_LIMITED: Final = {part: tuple(name for name in _NAMES if name in NAMES[part]) for part in COLUMNS}
