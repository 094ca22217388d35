"""From any value to text that a span, a database and a judge can take, or to an honest error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from germane.errors import UsageError

encode = json.JSONEncoder(ensure_ascii=False).encode


def as_text(value: Any) -> str:
    """Return text, bytes (read as UTF-8) or a number as text.

    Raises:
        UsageError: the value is none of these; the message says which selector would help.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{type(value).__name__} is not text: name the part that is with a selector")


def clean(text: str, limit: int) -> str:
    """Cut text to a length, and replace what UTF-8 or PostgreSQL cannot hold (lone surrogates, NUL)."""
    text = text[:limit]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\ufffd") if "\0" in text else text


def items_of(value: Any) -> Iterable[Any]:
    """Return the items of a collection; text, a mapping or any other value is one item, None is none.

    An iterator is one item too: reading it would take it away from the handler.
    """
    if value is None:
        return ()
    if isinstance(value, str | bytes | Mapping):
        return (value,)
    if isinstance(value, Sequence | AbstractSet) or (
        hasattr(type(value), "__iter__") and hasattr(type(value), "__len__")
    ):
        return value  # type: ignore[no-any-return]  # Any narrowed by isinstance stays Any
    return (value,)
