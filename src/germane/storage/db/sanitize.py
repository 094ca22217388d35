"""Text that both databases take: no NUL, no half surrogate, no JSON that is none."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any, overload

REPLACEMENT = "\ufffd"


@overload
def clean(text: str) -> str: ...
@overload
def clean(text: None) -> None: ...
def clean(text: str | None) -> str | None:
    """Return the text with what PostgreSQL refuses (NUL) or nobody can encode (lone surrogates) replaced by U+FFFD."""
    if text is None:
        return None
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    return text if text.isascii() or _encodable(text) else _without_surrogates(text)


def to_json(value: Any) -> str:
    """Return JSON for whatever is given: NaN and infinities become null, other objects their plain or text form.

    Never raises: a row that cannot be made would be tried again and again, and hold up all others.
    """
    try:
        text = _encode(value)
    # NaN, keys that are no text, a circle, a lone surrogate further down, or an object whose methods raise.
    except Exception:  # noqa: BLE001
        return _repaired(value)
    if "\\u0000" in text or not (text.isascii() or _encodable(text)):
        return _repaired(value)
    return text


def tidy(value: Any) -> Any:
    """Return the value as :func:`to_json` writes it: for a column that makes JSON of it by itself."""
    return json.loads(to_json(value))


def _repaired(value: Any) -> str:
    try:
        return _encode(_plain(value))
    except Exception:  # noqa: BLE001 - the same
        return '{"unreadable":"a circle, nested too deeply, or an object that raises"}'


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, int) else _plain(_default(value))


def _default(value: Any) -> Any:
    """Return the plain form of what is not JSON: arrays and sets as lists, numbers of numpy as numbers, else text."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Collection) and not isinstance(
        value, (bytes, bytearray)
    ):  # what can be read once stays unread
        return list(value)
    return str(value)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_surrogates(text: str) -> str:
    """Join surrogates that make a pair, replace those that do not."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default).encode
