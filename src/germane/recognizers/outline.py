"""Outlines of unreadable traces: copies of limited size without values, which may contain personal data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, Final

from germane.recognizers.spans import LogData, SpanData, SpanTree
from germane.trace_outline import AttributeOutline, SpanOutline

MAX_SPANS: Final = 100
MAX_SPAN_ATTRIBUTES: Final = 60
MAX_ATTRIBUTES: Final = 1_000
"""Maximum number of attributes in one trace."""
MAX_NAME: Final = 100
"""Maximum number of characters in the name of a span, scope or attribute."""
_TYPES: Final[Mapping[str, Any]] = {
    "none": NoneType,
    "boolean": bool,
    "string": str,
    "integer": int,
    "number": float,
    "bytes": bytes,
    "object": Mapping,
    "list": list | tuple,
}


def outline_spans(spans: Iterable[SpanData], logs: Iterable[LogData] = ()) -> tuple[tuple[SpanOutline, ...], int]:
    """Describe the spans of one trace by their names, and the names of their attributes with types and lengths.

    Return the spans depth first, and the number of spans that are omitted. Log records without a known span are
    described as part of the first span.
    """
    tree = SpanTree(spans)
    ordered = list(tree.walk_depth_first())
    known = {span.span_id for span, _ in ordered}
    records: dict[str, list[LogData]] = {}
    for log in logs:
        owner = log.span_id if log.span_id in known else ordered[0][0].span_id if ordered else ""
        records.setdefault(owner or "", []).append(log)
    outlines: list[SpanOutline] = []
    left = MAX_ATTRIBUTES
    for span, depth in ordered[:MAX_SPANS]:
        attributes = list(_attributes(span, records.get(span.span_id, ())))
        kept = tuple(attributes[: min(MAX_SPAN_ATTRIBUTES, left)])
        left -= len(kept)
        outlines.append(
            SpanOutline(
                name=span.name[:MAX_NAME],
                scope=span.scope[:MAX_NAME],
                kind=span.kind,
                status=span.status,
                depth=depth,
                duration=max(0, span.end - span.start) / 1e9,
                attributes=kept,
                attributes_omitted=len(attributes) - len(kept),
            )
        )
    return tuple(outlines), len(ordered) - len(outlines)


def _attributes(span: SpanData, logs: Iterable[LogData]) -> Iterator[AttributeOutline]:
    """Yield the attributes of a span by name, then those of its events, then its log records."""
    records = [("", sorted(span.attributes.items()))]
    records += [(event.name, sorted(event.attributes.items())) for event in span.events]
    records += [(log.event_name or "log record", [("body", log.body), *sorted(log.attributes.items())]) for log in logs]
    for record, values in records:
        for name, value in values:
            kind, length = _type_and_length(value)
            yield AttributeOutline(name=name[:MAX_NAME], type=kind, length=length, record=record[:MAX_NAME])


def _type_and_length(value: Any) -> tuple[str, int | None]:
    name = next((name for name, kind in _TYPES.items() if isinstance(value, kind)), "object")
    return name, len(value) if isinstance(value, str | bytes | Mapping | list | tuple) else None
