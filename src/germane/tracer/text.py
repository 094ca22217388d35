"""From any value to text that a span, a database and a judge can take, or to an honest error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError

if TYPE_CHECKING:
    from germane.exchange import AttributeValue

encode = json.JSONEncoder(ensure_ascii=False).encode

NAME_LIMIT = 200
"""Characters of a route, a source, or the name of an attribute."""


def as_text(value: Any) -> str:
    """Return text, bytes (read as UTF-8) or a number as text.

    Raises:
        UsageError: the value is none of these; the message says which selector would help.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Real) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{type(value).__name__} is not text: name the part that is with a selector")


def clean(text: str, limit: int) -> str:
    """Cut text to a length, and replace what UTF-8 or PostgreSQL cannot hold (lone surrogates, NUL)."""
    text = text[:limit]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\ufffd") if "\0" in text else text


def as_attribute(value: Any, limit: int) -> AttributeValue:
    """Return a value as one that a span and JSON can hold: text, or a number of theirs.

    Raises:
        UsageError: it is neither text nor a number.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        whole = int(value)
        return whole if -(2**63) <= whole < 2**63 else clean(str(whole), limit)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    return clean(as_text(value), limit)


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
