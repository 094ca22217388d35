"""Parsers for data set cells: text, contexts, messages and scalar attributes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any
from uuid import UUID

from germane.errors import UsageError
from germane.evaluation.reprs import parse_repr
from germane.exchange import AttributeValue, Context, Message
from germane.sanitize import clean_text

TEXT_FIELDS = ("text", "content", "page_content")
"""Fields that may contain the text of a context or message."""
_MISSING = frozenset({"None", "nan", "NaN", "sNaN", "<NA>", "NaT"})
"""The values that Python, NumPy and pandas use for missing data, as text."""
_WRITTEN_TYPES = (Decimal, date, time, timedelta, UUID, PurePath)
"""Scalar types that have one usual form as text."""
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "agent": "assistant", "ai": "assistant"}
_ROLE_PREFIX = re.compile(r"\s*(user|human|assistant|agent|ai|system)\s*:\s*", re.IGNORECASE)


def to_plain(cell: Any) -> Any:
    """Return a cell as a value of Python's own types: bytes in UTF-8 as text, and missing values as None."""
    if isinstance(cell, Enum):
        cell = cell.value
    if hasattr(cell, "item") and hasattr(cell, "dtype") and not getattr(cell, "shape", ()):
        is_time = getattr(cell.dtype, "kind", None) in {"m", "M"}  # item() returns nanoseconds as a number
        cell = str(cell) if is_time else cell.item()
        cell = None if cell == "NaT" else cell
    if isinstance(cell, (bytes, bytearray, memoryview)):
        try:
            return bytes(cell).decode()
        except UnicodeDecodeError:
            return bytes(cell)
    return None if not isinstance(cell, (str, Iterable)) and str(cell) in _MISSING else cell


def parse_text(cell: Any, column: str) -> str | None:
    """Return a cell as text, or None if the value is missing. Numbers, dates and times are converted to text.

    Raises:
        UsageError: the cell contains something else. A Boolean, a UUID or a path can stand for another text.
    """
    cell = to_plain(cell)
    value = None if isinstance(cell, (bool, UUID, PurePath)) else parse_attribute(cell)
    return _require(value, cell, f"its {column}, not text: name the column that contains the text, or convert it")


def parse_name(cell: Any, column: str) -> str | None:
    """Return a cell that names something, such as an id, as text, or None if the value is missing or empty.

    Raises:
        UsageError: the cell contains neither text nor another scalar value.
    """
    cell = to_plain(cell)
    return _require(parse_attribute(cell), cell, f"its {column}: use text or a number") or None


def parse_contexts(cell: Any) -> tuple[Context, ...]:
    """Parse contexts from a list, a single text, number or object, or a list or object in a string.

    A JSON object without a text field is itself the text. Missing values are omitted.

    Raises:
        UsageError: a context is an object without text, or neither text, a number, a date nor an object.
    """
    contexts = []
    for item in _to_list(cell, "contexts", TEXT_FIELDS):
        if isinstance(item, Mapping):
            score = parse_attribute(item.get("score"))
            contexts.append(
                Context(
                    _text_field(item, "context"),
                    parse_name(item.get("id"), "context id"),
                    float(score) if isinstance(score, (int, float)) else None,
                )
            )
        elif (text := parse_text(item, "context")) is not None:
            contexts.append(Context(text))
        elif _is_collection(item):  # an empty list
            raise UsageError(f"has a {type(item).__name__} as its context, not text")
    return tuple(contexts)


def parse_messages(cell: Any) -> tuple[Message, ...]:
    """Parse the messages of a conversation: objects with ``role`` and ``content`` or ``text``, or strings.

    A string can start with its role, as in ``user: Hello``. Otherwise the roles alternate, starting with the user.

    Raises:
        UsageError: a message is neither an object with text nor a string.
    """
    messages = []
    for index, item in enumerate(map(to_plain, _to_list(cell, "history"))):
        if item is None:
            continue
        if isinstance(item, str):
            prefix = _ROLE_PREFIX.match(item)
            role = prefix[1].lower() if prefix else ("user", "assistant")[index % 2]
            content = parse_text(item[prefix.end() :] if prefix else item, "message") or ""
        elif isinstance(item, Mapping):
            role = str(item.get("role") or item.get("type") or "user").lower()
            content = _text_field(item, "message")
        else:
            raise UsageError(
                f"has a {type(item).__name__} in its history: messages must be strings or objects with role and content"
            )
        messages.append(Message(_ROLES.get(role, role), content))
    return tuple(messages)


def parse_attribute(cell: Any) -> AttributeValue | None:
    """Return a cell as text, a number or a Boolean. Return None for other types and for non-finite numbers.

    Dates, times, decimal numbers, UUIDs and paths are converted to text.
    """
    cell = to_plain(cell)
    if isinstance(cell, bool):
        return cell
    if isinstance(cell, str):
        return clean_text(str.__str__(cell))  # NumPy has its own class of strings
    if isinstance(cell, Integral):
        return int(cell)
    if isinstance(cell, Real):
        return float(cell) if math.isfinite(cell) else None
    if isinstance(cell, Decimal) and not cell.is_finite():
        return None
    return str(cell) if isinstance(cell, _WRITTEN_TYPES) else None


def is_conversation(cell: Any) -> bool:
    """Return whether a cell contains messages rather than text: a list, or a JSON list of objects in a string."""
    if isinstance(cell, str):
        return cell.lstrip().startswith("[{") and all(isinstance(item, Mapping) for item in _to_list(cell, "question"))
    return _is_collection(cell) and not isinstance(cell, Mapping)


def _is_collection(cell: Any) -> bool:
    return isinstance(cell, Iterable) and not isinstance(cell, (str, bytes)) and getattr(cell, "shape", (1,)) != ()


def _to_list(cell: Any, column: str, object_fields: Iterable[str] = ()) -> list[Any]:
    """Return the items of a list, or of a text with a list in JSON or in the syntax in which pandas writes it to CSV.

    Any other cell becomes a single item. So does a text with an object that has one of ``object_fields``.
    """
    if not isinstance(cell, str):
        return list(cell) if _is_collection(cell) and not isinstance(cell, Mapping) else [cell]
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        value = parse_repr(cell, column)
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping) and not value.keys().isdisjoint(object_fields):
        return [value]
    return [cell] if cell.strip() else []


def _require(value: AttributeValue | None, cell: Any, expected: str) -> str | None:
    """Return the value of a cell as text; None only if the cell is None or an empty list."""
    is_empty = _is_collection(cell) and not isinstance(cell, Mapping) and not list(cell)
    if value is None and cell is not None and not is_empty:
        kind = "bytes that are not UTF-8" if isinstance(cell, bytes) else f"a {type(cell).__name__}"
        raise UsageError(f"has {kind} as {expected}")
    return None if value is None else str(value)


def _text_field(item: Mapping[str, Any], what: str) -> str:
    for name in TEXT_FIELDS:
        if (text := parse_text(item.get(name), what)) is not None:
            return text
    raise UsageError(
        f"has a {what} that is an object without {', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}: use strings, or "
        "objects with one of these fields"
    )
