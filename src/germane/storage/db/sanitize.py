"""Conversion to JSON that both databases accept: no NUL characters, lone surrogates, NaN or infinities."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from germane.sanitize import clean_text, is_encodable


def to_json(value: Any) -> str:
    """Encode any value as JSON. NaN and infinities become null, and unknown objects become plain values or text.

    Never raises, because a row that cannot be encoded would be retried forever and block all other rows.
    """
    try:
        text = _encode(value)
    # The value contains NaN, a key that is not a string, a cycle, a lone surrogate, or an object whose methods raise.
    except Exception:  # noqa: BLE001
        return _repaired(value)
    if "\\u0000" in text or not (text.isascii() or is_encodable(text)):
        return _repaired(value)
    return text


def clean_json(value: Any) -> Any:
    """Return the value that :func:`to_json` encodes, for a column that encodes JSON itself."""
    return json.loads(to_json(value))


def _repaired(value: Any) -> str:
    try:
        return _encode(_plain(value))
    except Exception:  # noqa: BLE001 - a cycle, or an object whose methods raise
        return '{"unreadable":"a cycle, excessive nesting, or an object that raises"}'


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean_text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, int) else _plain(_default(value))


def _default(value: Any) -> Any:
    """Convert arrays and sets to lists, NumPy scalars to Python values, and bytes and other objects to text."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    # Iterators are not collections, so this does not consume them.
    if isinstance(value, Collection):
        return list(value)
    return str(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default).encode
