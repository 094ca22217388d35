"""Conversion of arbitrary values to text that spans, databases and judges accept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from germane.errors import UsageError
from germane.tracer.known_types import is_collection, is_lazy_mapping, is_lazy_sequence, pretends

if TYPE_CHECKING:
    from germane.exchange import AttributeValue

encode = json.JSONEncoder(ensure_ascii=False).encode

NAME_LIMIT = 200
"""Maximum number of characters in the name of a route, a data source or an attribute."""


def as_text(value: Any) -> str:
    """Convert a string, bytes (decoded as UTF-8) or a number to text. Raise a usage error for any other type."""
    kind = type(value)  # isinstance() would evaluate a lazy object
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if issubclass(kind, Real) and not issubclass(kind, bool):
        return str(value)
    raise UsageError(f"{kind.__name__} is not text: select the part that contains the text with a selector")


def json_strings(texts: list[str]) -> list[str] | None:
    """Return the strings of which each text is the JSON form; None if any text is something else."""
    try:
        strings = [json.loads(text) for text in texts if text[:1] == '"']
    except ValueError:
        return None
    return strings if len(strings) == len(texts) else None


def clean(text: str, limit: int) -> str:
    """Truncate text, and replace characters that UTF-8 or PostgreSQL cannot store (lone surrogates and NUL)."""
    text = text[:limit]
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\ufffd") if "\0" in text else text


def as_attribute(value: Any, limit: int) -> AttributeValue:
    """Convert text, a Boolean or a number to a type that spans and JSON accept. Raise a usage error for others."""
    kind = type(value)
    if kind is bool:
        return value  # type: ignore[no-any-return]  # its type is bool
    if issubclass(kind, Integral):
        whole = int(value)
        return whole if -(2**63) <= whole < 2**63 else clean(str(whole), limit)
    if issubclass(kind, Real) and math.isfinite(value):
        return float(value)
    return clean(as_text(value), limit)


def items_of(value: Any) -> Iterable[Any]:
    """Return the items of an in-memory collection. Any other value is a single item; None has no items.

    An iterator is also a single item, because reading it would consume it before the handler does.

    Raises:
        UsageError: Reading the value may run code, such as a database query.
    """
    if value is None:
        return ()
    kind = type(value)
    if is_collection(kind):
        return value  # type: ignore[no-any-return]  # a collection
    if is_lazy_sequence(kind) or is_lazy_mapping(kind) or pretends(kind):
        raise UsageError(f"{kind.__name__} is lazy: germane does not read it before the handler does; pass a list")
    return (value,)
