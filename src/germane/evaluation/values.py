"""Parsers for data set cells: text, contexts, messages and scalar attributes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any
from uuid import UUID

from germane import sanitize
from germane.errors import UsageError
from germane.exchange import AttributeValue, Context, Message
from germane.reprs import UNREADABLE, read_repr

TEXT_FIELDS = ("text", "content", "page_content")
"""Fields that may contain the text of a context or message."""
_MISSING = frozenset({"None", "nan", "NaN", "sNaN", "<NA>", "NaT", "null"})
"""The values that Python, NumPy, pandas and JSON use for missing data, as text."""
_WRITTEN_TYPES = (Decimal, date, time, timedelta, UUID, PurePath)
"""Scalar types that have one usual form as text."""
_JSON_OBJECT = re.compile(r"\s*\{\s*\"")
"""The beginning of an object in JSON. Python writes its names in single quotes."""
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "agent": "assistant", "ai": "assistant"}
_ROLE_PREFIX = re.compile(r"\s*(user|human|assistant|agent|ai|system)\s*:\s*", re.IGNORECASE)


def to_plain(cell: Any) -> Any:
    """Return a cell as a value of Python's own types: bytes in UTF-8 as text, and missing values as None."""
    if isinstance(cell, Enum):
        cell = cell.value
    if hasattr(cell, "item") and hasattr(cell, "dtype") and not getattr(cell, "shape", ()):
        is_time = getattr(cell.dtype, "kind", None) in {"m", "M"}  # item() returns nanoseconds as a number
        is_short = getattr(cell.dtype, "kind", None) == "f" and cell.dtype.itemsize < 8  # item() adds digits
        cell = str(cell) if is_time else float(str(cell)) if is_short else cell.item()
        cell = None if cell == "NaT" else cell
    if isinstance(cell, (bytes, bytearray, memoryview)):
        try:
            return bytes(cell).decode()
        except UnicodeDecodeError:
            return bytes(cell)
    return None if not isinstance(cell, (str, Iterable)) and str(cell) in _MISSING else cell


def parse_text(cell: Any, column: str, *, may_be_json: bool = False) -> str | None:
    """Return a cell as text, or None if the value is missing. Numbers, dates and times are converted to text.

    If the cell is an object that is written in JSON or as a Python ``repr``, its text is the one in its text field,
    unless the text itself may be JSON, such as the result of a tool.

    Raises:
        UsageError: the cell contains something else, such as a Boolean, a UUID or a path, which is hardly a text.
    """
    cell = to_plain(cell)
    value = cell if may_be_json else _read(cell, column)
    if isinstance(cell, str) and isinstance(value, Mapping):
        return _text_field(value, column)
    value = cell if _is_list_of_numbers(value) else value
    text = None if isinstance(value, (bool, UUID, PurePath)) else parse_attribute(value)
    return _require(text, value, f"its {column}, not text: name the column that contains the text, or convert it")


def parse_name(cell: Any, column: str) -> str | None:
    """Return a scalar cell, such as an id, as text; None if it is empty. Raise a usage error for other values."""
    cell = to_plain(cell)
    return _require(parse_attribute(cell), cell, f"its {column}: use text or a number") or None


def parse_contexts(cell: Any) -> tuple[Context, ...]:
    """Parse contexts from a list, a single text, number or object, or a list or object in a string.

    Missing values are omitted.

    Raises:
        UsageError: a context is an object without text, or neither text, a number, a date nor an object.
    """
    contexts = []
    for item in _items(cell, "context"):
        if isinstance(item, Mapping):
            score = parse_attribute(item.get("score"))
            contexts.append(
                Context(
                    _text_field(item, "context", may_be_json=True),
                    parse_name(item.get("id"), "context id"),
                    float(score) if isinstance(score, (int, float)) else None,
                )
            )
        elif (text := parse_text(item, "context", may_be_json=True)) is not None:
            contexts.append(Context(text))
        elif _is_list(item):  # an empty list
            raise UsageError(f"has a {type(item).__name__} as its context, not text")
    return tuple(contexts)


def parse_messages(cell: Any) -> tuple[Message, ...]:
    """Parse the messages of a conversation: objects with ``role`` and ``content`` or ``text``, or strings.

    A string can start with its role, as in ``user: Hello``. Otherwise the roles alternate, starting with the user.

    Raises:
        UsageError: a message is neither an object with text nor a string.
    """
    messages = []
    for index, item in enumerate(_items(cell, "history")):
        if item is None:
            continue
        if isinstance(item, str):
            prefix = _ROLE_PREFIX.match(item)
            role = prefix[1].lower() if prefix else ("user", "assistant")[index % 2]
            content = parse_text(item[prefix.end() :] if prefix else item, "message", may_be_json=True) or ""
        elif isinstance(item, Mapping):
            role = str(item.get("role") or item.get("type") or "user").lower().removesuffix("message")
            content = _text_field(item, "message", may_be_json=True)
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
        return sanitize.clean_text(str.__str__(cell))  # NumPy has its own class of strings
    if isinstance(cell, Integral):
        return int(cell)
    if isinstance(cell, Real):
        return float(cell) if math.isfinite(cell) else None
    if isinstance(cell, Decimal) and not cell.is_finite():
        return None
    return str(cell) if isinstance(cell, _WRITTEN_TYPES) else None


def is_conversation(cell: Any) -> bool:
    """Return whether a cell contains messages rather than text: an ordered list, or a list of objects in a string."""
    if isinstance(cell, str):
        value = _read(cell, "question")
        return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)
    return _is_list(cell) and hasattr(cell, "__getitem__")


def _is_list(cell: Any) -> bool:
    """Return whether a cell is a collection other than a mapping, or an iterator."""
    is_scalar = isinstance(cell, (str, bytes, Mapping)) or getattr(cell, "shape", (1,)) == ()
    return isinstance(cell, Iterable) and not is_scalar


def _is_list_of_numbers(value: Any) -> bool:
    """Return whether a value may also be a text in brackets, such as the citation [1]."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, (int, float)) for item in value)


def _read(cell: Any, column: str) -> Any:
    """Return the list, object or scalar that a text represents in JSON or in Python's syntax, or the cell itself."""
    if not isinstance(cell, str):
        return cell
    try:
        value = json.loads(cell)
        value = value if isinstance(value, (list, dict)) else None
    except (ValueError, RecursionError):
        value = read_repr(cell)
    if value is UNREADABLE or cell.strip() in _MISSING:
        kind = "the representation of an object or a damaged list" if value is UNREADABLE else "a missing value"
        raise UsageError(f"has {kind} in its {column}: {sanitize.line(cell, 60)}; write the text, or a list of texts")
    return cell if value is None else value


def _items(cell: Any, column: str, *, is_item: bool = False) -> Iterator[Any]:
    """Yield the items of a list. The list, and lists and objects in it, may be written as text.

    Any other cell is a single item, unless it is blank.
    """
    cell = to_plain(cell)
    value = _read(cell, column)
    is_object = column == "context" and isinstance(value, dict) and not any(name in value for name in TEXT_FIELDS)
    is_row = is_object and isinstance(cell, str) and _JSON_OBJECT.match(cell)  # such as the result of an SQL query
    if is_row or (is_item and (not isinstance(cell, str) or _is_list_of_numbers(value))):
        yield cell
    elif _is_list(value):
        for item in value:
            yield from _items(item, column, is_item=True)
    elif is_item or not isinstance(value, str) or value.strip():
        yield value


def _require(value: AttributeValue | None, cell: Any, expected: str) -> str | None:
    """Return the value of a cell as text; None only if the cell is None or an empty list."""
    is_empty = _is_list(cell) and isinstance(cell, Sized) and len(cell) == 0
    if value is None and cell is not None and not is_empty:
        kind = "bytes that are not UTF-8" if isinstance(cell, bytes) else f"a {type(cell).__name__}"
        raise UsageError(f"has {kind} as {expected}")
    return None if value is None else str(value)


def _text_field(item: Mapping[str, Any], what: str, *, may_be_json: bool = False) -> str:
    """Return the text of an object, if only one of its fields contains one."""
    parsed = (parse_text(item.get(name), what, may_be_json=may_be_json) for name in TEXT_FIELDS)
    found = {text for text in parsed if text is not None}
    nodes = [part for part in item.values() if isinstance(part, Mapping) and "type" in part] if not found else ()
    if len(nodes) == 1 and "type" in item:  # the representation of an object in another
        return _text_field(nodes[0], what, may_be_json=may_be_json)
    if len(texts := found - {""} or found) == 1:
        return texts.pop()
    problem = "with different texts in" if texts else "without"
    names = f"{', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}"
    raise UsageError(
        f"has a{'n' * (what == 'answer')} {what} that is an object {problem} {names}: use strings, or objects with one "
        "of these fields"
    )
