"""What may stand in a cell: text, contexts, turns of a conversation, a plain attribute."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from germane.errors import UsageError
from germane.exchange import AttributeValue, Context, Turn

TEXT = ("text", "content", "page_content")
"""Where the text of a context or a turn stands that is an object."""
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "agent": "assistant", "ai": "assistant"}
_SPOKEN = re.compile(r"\s*(user|human|assistant|agent|ai|system)\s*:\s*", re.IGNORECASE)
_SURROGATES = re.compile("[\ud800-\udfff]")


def text(cell: Any, name: str) -> str | None:
    """Return text, or a number as text; None for what a frame or a file has where nothing stands.

    Raises:
        UsageError: it is a list or an object.
    """
    if isinstance(cell, str):
        return _SURROGATES.sub("\ufffd", cell)
    number = attribute(cell)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return str(number)
    if isinstance(cell, Mapping) or (_is_many(cell) and len(list(cell))):
        raise UsageError(f"has a {type(cell).__name__} as its {name}, not text: name the column that holds the text")
    return None


def contexts(cell: Any) -> tuple[Context, ...]:
    """Return contexts out of a list, a JSON list in a string, or one text.

    Raises:
        UsageError: one of them is an object without text.
    """
    found = _opened(cell)
    return tuple(context for one in found for context in _context(one))


def turns(cell: Any) -> tuple[Turn, ...]:
    """Return the turns of a conversation: objects with ``role`` and ``content`` or ``text``, or strings.

    A string may start with its role, as in ``user: Hello``; those that do not take turns, the user first.

    Raises:
        UsageError: one of them is neither.
    """
    return tuple(turn for place, one in enumerate(_opened(cell)) if (turn := _turn(one, place)) is not None)


def attribute(cell: Any) -> AttributeValue | None:
    """Return a plain value; None for anything else, and for a number that is not finite."""
    cell = cell.item() if hasattr(cell, "item") and hasattr(cell, "dtype") and not getattr(cell, "shape", ()) else cell
    if isinstance(cell, (bool, str)):
        return cell if isinstance(cell, bool) else _SURROGATES.sub("\ufffd", cell)
    if isinstance(cell, Integral):
        return int(cell)
    return float(cell) if isinstance(cell, Real) and math.isfinite(cell) else None


def is_conversation(cell: Any) -> bool:
    """Return whether a cell holds turns rather than a text: a list, or a JSON list of objects in a string."""
    if isinstance(cell, str):
        return cell.lstrip().startswith("[{") and all(isinstance(one, Mapping) for one in _listed(cell))
    return _is_many(cell) and not isinstance(cell, Mapping)


def _is_many(cell: Any) -> bool:
    return isinstance(cell, Iterable) and not isinstance(cell, (str, bytes)) and getattr(cell, "shape", (1,)) != ()


def _opened(cell: Any) -> list[Any]:
    if isinstance(cell, str):
        return _listed(cell)
    if isinstance(cell, Mapping):
        return [cell]
    return list(cell) if _is_many(cell) else []


def _listed(cell: str) -> list[Any]:
    """Read a list as JSON writes it, or Python, as frames do in a CSV file; any other text is one item."""
    for read in (json.loads, _python):
        try:
            found = read(cell)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, list):
            return found
    return [cell] if cell.strip() else []


def _python(cell: str) -> Any:
    try:
        return ast.literal_eval(cell.strip()) if cell.lstrip().startswith("[") else None
    except (SyntaxError, TypeError, MemoryError) as error:
        raise ValueError from error


def _context(one: Any) -> list[Context]:
    if isinstance(one, str):
        return [Context(text(one, "context") or "")]
    if not isinstance(one, Mapping):
        return []
    identity, score = attribute(one.get("id")), attribute(one.get("score"))
    number = float(score) if isinstance(score, (int, float)) else None
    return [Context(_text_of(one, "context"), None if identity is None else str(identity), number)]


def _text_of(one: Mapping[str, Any], what: str) -> str:
    for name in TEXT:
        if (found := text(one.get(name), what)) is not None:
            return found
    raise UsageError(
        f"has a {what} that is an object without {', '.join(TEXT[:-1])} or {TEXT[-1]}: give texts, or objects with one"
    )


def _turn(one: Any, place: int) -> Turn | None:
    if isinstance(one, str):
        spoken = _SPOKEN.match(one)
        role = spoken[1].lower() if spoken else ("user", "assistant")[place % 2]
        return Turn(_ROLES.get(role, role), text(one[spoken.end() :] if spoken else one, "turn") or "")
    if isinstance(one, Mapping):
        role = str(one.get("role") or one.get("type") or "user").lower()
        return Turn(_ROLES.get(role, role), _text_of(one, "turn"))
    if one is None:
        return None
    raise UsageError(f"has a {type(one).__name__} in its history: turns are strings, or objects with role and content")
