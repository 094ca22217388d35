"""Outlines of unreadable traces: what was there, without any value."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from germane.recognizers import LogData, SpanData, SpanEvent, outline_spans
from germane.recognizers.outline import MAX_ATTRIBUTES, MAX_NAME, MAX_SPANS
from germane.trace_outline import AttributeOutline

SECRET = "the secret text"


def make_span(number: int, parent: int | None = None, **given: Any) -> SpanData:
    """Return a span that starts after those with smaller numbers."""
    parent_id = None if parent is None else f"{parent:016x}"
    own: dict[str, Any] = {"name": f"span {number}", "start": number, "end": number + 10**9}
    return SpanData(trace_id="0" * 32, span_id=f"{number:016x}", parent_id=parent_id, **own | given)


def test_an_outline_lists_spans_depth_first() -> None:
    """Children follow their parent in the order of their start times, also if the spans arrive in another order."""
    spans = [make_span(3, 1), make_span(2, 1), make_span(1), make_span(4, 2)]
    outlines, omitted = outline_spans(spans)

    assert [(span.name, span.depth) for span in outlines] == [
        ("span 1", 0),
        ("span 2", 1),
        ("span 4", 2),
        ("span 3", 1),
    ]
    assert (outlines[0].duration, omitted) == (1.0, 0)


def test_an_outline_lists_attributes_with_type_and_length() -> None:
    """Attributes of events and log records are listed under the name of their record."""
    attributes = {
        "text": SECRET,
        "count": 7,
        "rate": 0.5,
        "yes": True,
        "parts": ["a", "b"],
        "map": {"a": 1},
        "no": None,
    }
    event = SpanEvent(name="gen_ai.choice", attributes={"index": 0})
    log = LogData(trace_id="0" * 32, span_id=None, event_name="gen_ai.user.message", body={"content": SECRET})
    ((outline,), _) = outline_spans([make_span(1, attributes=attributes, events=(event,))], [log])

    def made(name: str, kind: str, length: int | None = None, record: str = "") -> AttributeOutline:
        return AttributeOutline(name=name, type=kind, length=length, record=record)

    assert outline.attributes == (
        made("count", "integer"),
        made("map", "object", 1),
        made("no", "none"),
        made("parts", "list", 2),
        made("rate", "number"),
        made("text", "string", len(SECRET)),
        made("yes", "boolean"),
        made("index", "integer", None, "gen_ai.choice"),
        made("body", "object", 1, "gen_ai.user.message"),
    )


VALUES = st.recursive(
    st.just(SECRET), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("key"), inner), max_leaves=5
)


@given(st.dictionaries(st.sampled_from(["a", "b", "input.value"]), VALUES), VALUES)
def test_an_outline_never_contains_attribute_values(attributes: dict[str, Any], body: Any) -> None:
    """This holds for any structure of attributes, events and log records."""
    event = SpanEvent(name="event", attributes=attributes)
    log = LogData(trace_id="0" * 32, body=body, attributes=attributes)
    outlines, _ = outline_spans([make_span(1, attributes=attributes, events=(event,))], [log])

    assert SECRET not in json.dumps([asdict(outline) for outline in outlines])


@given(st.lists(st.tuples(st.integers(0, 300), st.none() | st.integers(0, 300), st.integers(0, 90)), max_size=150))
def test_outlines_have_a_limited_size(shape: list[tuple[int, int | None, int]]) -> None:
    """For any trace, also with cycles and repeated spans, the numbers of names and their lengths are limited."""
    spans = [
        make_span(number, parent, attributes={f"{key} {'x' * 500}": SECRET for key in range(keys)})
        for number, parent, keys in shape
    ]
    outlines, omitted = outline_spans(spans)

    assert len(outlines) <= MAX_SPANS
    assert len(outlines) + omitted == len({span.span_id for span in spans})
    assert sum(len(outline.attributes) for outline in outlines) <= MAX_ATTRIBUTES
    assert all(len(each.name) <= MAX_NAME for outline in outlines for each in outline.attributes)
