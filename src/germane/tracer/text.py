"""Conversion of arbitrary values to text that spans, databases and judges accept."""

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
"""Maximum characters of a route, a data source, or the name of an attribute."""


def as_text(value: Any) -> str:
    """Convert a str, bytes (decoded as UTF-8) or a number to text.

    Raises:
        UsageError: The value is of another type.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Real) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{type(value).__name__} is not text: name the part that contains it with a selector")


def clean(text: str, limit: int) -> str:
    """Truncate text, and replace characters that UTF-8 or PostgreSQL cannot encode (lone surrogates, NUL)."""
    text = text[:limit]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\ufffd") if "\0" in text else text


def as_attribute(value: Any, limit: int) -> AttributeValue:
    """Convert a value to an attribute that spans and JSON accept: text, a Boolean or a number.

    Raises:
        UsageError: The value is neither text nor a number.
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
    """Return the items of a collection. A text, a mapping or any other value is a single item; None has no items.

    An iterator is a single item, too, because reading it would consume it before the handler does.
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
