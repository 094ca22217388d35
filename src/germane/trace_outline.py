"""Outlines of unreadable traces: names of spans and attributes, without values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeOutline:
    """An attribute without its value."""

    name: str
    type: str
    """``string``, ``integer``, ``number``, ``boolean``, ``list``, ``object``, ``bytes`` or ``none``."""
    length: int | None = None
    """Number of characters, bytes or items; None for other types."""
    record: str = ""
    """Name of the event or log record that contains the attribute; empty for an attribute of the span itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanOutline:
    """A span without the values of its attributes."""

    name: str
    scope: str
    """Name of the instrumentation scope."""
    kind: str
    status: str
    """``UNSET``, ``OK`` or ``ERROR``."""
    depth: int
    """Number of ancestors."""
    duration: float
    """Seconds."""
    attributes: tuple[AttributeOutline, ...] = ()
    attributes_omitted: int = 0
    """Number of attributes that are omitted, because the trace has too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableTrace:
    """A trace from which no question and answer could be read."""

    trace_id: str
    """32 hexadecimal digits."""
    service: str
    scope: str
    """The instrumentation scope whose spans could not be read; empty if no scope is known."""
    reason: str
    started_at: datetime
    spans: tuple[SpanOutline, ...] = ()
    """Depth first, in the order of their start times."""
    spans_omitted: int = 0
    """Number of spans that are omitted, because the trace has too many."""
