"""Records as JSON: an encoder for ``json.dumps``, and selected attributes of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any


def encode(value: object) -> Any:
    """Encode a time as ISO 8601, a dataclass or mapping as an object, and anything else as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(value) if isinstance(value, Mapping) else str(value)


def select(record: object, *names: str) -> dict[str, Any]:
    """Return attributes of a record by name."""
    return {name: getattr(record, name) for name in names}
