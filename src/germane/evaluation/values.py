"""Parsers for data set cells: text, contexts, messages and scalar attributes."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from germane.errors import UsageError
from germane.exchange import AttributeValue, Context, Message
from germane.sanitize import clean_text

TEXT_FIELDS = ("text", "content", "page_content")
"""Fields that may contain the text of a context or message."""
_MISSING = frozenset({"None", "nan", "<NA>", "NaT"})
"""The values that Python, NumPy and pandas use for missing data, as text."""
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "agent": "assistant", "ai": "assistant"}
_ROLE_PREFIX = re.compile(r"\s*(user|human|assistant|agent|ai|system)\s*:\s*", re.IGNORECASE)


def parse_text(cell: Any, column: str) -> str | None:
    """Return a cell as text, or None if the value is missing. Numbers are converted to text.

    Raises:
        UsageError: the cell contains a list or an object.
    """
    if isinstance(cell, str):
        return clean_text(str(cell))  # NumPy has its own class of strings
    number = parse_attribute(cell)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return str(number)
    if isinstance(cell, Mapping) or (_is_collection(cell) and len(list(cell))):
        raise UsageError(
            f"has a {type(cell).__name__} as its {column}, not text: name the column that contains the text"
        )
    return None


def parse_contexts(cell: Any) -> tuple[Context, ...]:
    """Parse contexts from a list, a single text, number or object, or a JSON list or object in a string.

    A JSON object without a text field is itself the text. Missing values are omitted.

    Raises:
        UsageError: a context is an object without text, or neither text, a number nor an object.
    """
    contexts = []
    if isinstance(cell, str):
        items = _parse_list(cell, TEXT_FIELDS)
    else:
        items = _to_list(cell) if _is_collection(cell) else [cell]
    for item in items:
        if isinstance(item, Mapping):
            context_id, score = parse_attribute(item.get("id")), parse_attribute(item.get("score"))
            contexts.append(
                Context(
                    _text_field(item, "context"),
                    None if context_id is None else str(context_id),
                    float(score) if isinstance(score, (int, float)) else None,
                )
            )
        elif (text := parse_text(item, "context")) is not None:
            contexts.append(Context(text))
        elif str(item) not in _MISSING:
            raise UsageError(
                f"has a {type(item).__name__} as a context: contexts must be texts, numbers, or objects with a text"
            )
    return tuple(contexts)


def parse_messages(cell: Any) -> tuple[Message, ...]:
    """Parse the messages of a conversation: objects with ``role`` and ``content`` or ``text``, or strings.

    A string can start with its role, as in ``user: Hello``. Otherwise the roles alternate, starting with the user.

    Raises:
        UsageError: a message is neither an object with text nor a string.
    """
    messages = []
    for index, item in enumerate(_to_list(cell)):
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
    """Return a cell as text, a number or a Boolean. Return None for other types and for non-finite numbers."""
    cell = cell.item() if hasattr(cell, "item") and hasattr(cell, "dtype") and not getattr(cell, "shape", ()) else cell
    if isinstance(cell, (bool, str)):
        return cell if isinstance(cell, bool) else clean_text(str(cell))
    if isinstance(cell, Integral):
        return int(cell)
    return float(cell) if isinstance(cell, Real) and math.isfinite(cell) else None


def is_conversation(cell: Any) -> bool:
    """Return whether a cell contains messages rather than text: a list, or a JSON list of objects in a string."""
    if isinstance(cell, str):
        return cell.lstrip().startswith("[{") and all(isinstance(item, Mapping) for item in _parse_list(cell))
    return _is_collection(cell) and not isinstance(cell, Mapping)


def _is_collection(cell: Any) -> bool:
    return isinstance(cell, Iterable) and not isinstance(cell, (str, bytes)) and getattr(cell, "shape", (1,)) != ()


def _to_list(cell: Any) -> list[Any]:
    if isinstance(cell, str):
        return _parse_list(cell)
    if isinstance(cell, Mapping):
        return [cell]
    return list(cell) if _is_collection(cell) else []


def _parse_list(cell: str, object_fields: Iterable[str] = ()) -> list[Any]:
    """Parse a list, in JSON or in Python syntax as pandas writes it to CSV. Any other text becomes a single item.

    An object that has one of ``object_fields`` becomes a single item, too.
    """

    def parse_python(text: str) -> Any:
        try:
            return ast.literal_eval(text.strip()) if text.lstrip().startswith(("[", "{")) else None
        except (SyntaxError, TypeError, MemoryError) as error:
            raise ValueError from error

    for parse in (json.loads, parse_python):
        try:
            value = parse(cell)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list):
            return value
        if isinstance(value, Mapping) and not value.keys().isdisjoint(object_fields):
            return [value]
    return [cell] if cell.strip() else []


def _text_field(item: Mapping[str, Any], what: str) -> str:
    for name in TEXT_FIELDS:
        if (text := parse_text(item.get(name), what)) is not None:
            return text
    raise UsageError(
        f"has a {what} that is an object without {', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}: use strings, or "
        "objects with one of these fields"
    )
