"""OTLP messages for tests: simple ones, and strategies for any message of a type."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

SCOPE = "openinference.instrumentation.langchain"


def any_value(value: Any) -> AnyValue:
    """Return a Python value as an OTLP value."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
    return AnyValue(string_value=value)


def pairs(values: dict[str, Any]) -> list[KeyValue]:
    """Return a dict as OTLP attributes."""
    return [KeyValue(key=name, value=any_value(value)) for name, value in values.items()]


def span(
    *,
    trace_id: bytes | None = None,
    span_id: bytes | None = None,
    parent: Span | None = None,
    attributes: dict[str, Any] | None = None,
    **given: Any,
) -> Span:
    """Return a span that started now, in a trace of its own unless it has a parent."""
    now = time.time_ns()
    if parent is not None:
        trace_id, given["parent_span_id"] = parent.trace_id, parent.span_id
    return Span(
        **{
            "trace_id": os.urandom(16) if trace_id is None else trace_id,
            "span_id": os.urandom(8) if span_id is None else span_id,
            "name": "a span",
            "start_time_unix_nano": now,
            "end_time_unix_nano": now + 1_000_000,
            "attributes": pairs(attributes or {}),
            **given,
        }
    )


def chain(question: str, answer: str, **given: Any) -> Span:
    """Return the root span of an answer, in OpenInference's convention."""
    attributes = {"openinference.span.kind": "CHAIN", "input.value": question, "output.value": answer}
    return span(name="Chain", attributes=attributes | given.pop("attributes", {}), **given)


def model_call(question: str, answer: str, **given: Any) -> Span:
    """Return the span of a model's answer, in OpenInference's convention."""
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "small",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": question,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    return span(name="Chat", attributes=attributes, **given)


def trace_request(*spans: Span, service: str = "", scope: str = SCOPE) -> ExportTraceServiceRequest:
    """Return a request with these spans."""
    resource = Resource(attributes=pairs({"service.name": service} if service else {}))
    scoped = ScopeSpans(scope=InstrumentationScope(name=scope), spans=spans)
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scoped])])


def log_record(parent: Span, name: str, body: dict[str, Any]) -> LogRecord:
    """Return an event of a span."""
    return LogRecord(
        trace_id=parent.trace_id,
        span_id=parent.span_id,
        event_name=name,
        body=any_value(body),
        time_unix_nano=parent.start_time_unix_nano,
    )


def log_request(*records: LogRecord, scope: str = "an application") -> ExportLogsServiceRequest:
    """Return a request with these log records."""
    scoped = ScopeLogs(scope=InstrumentationScope(name=scope), log_records=records)
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[scoped])])


TEXT = st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace").decode())
NAMES = st.sampled_from(
    ["input.value", "output.value", "openinference.span.kind", "gen_ai.operation.name", "gen_ai.input.messages", "x"]
)
VALUES = st.recursive(
    TEXT
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=True)
    | st.binary(max_size=10)
    | st.sampled_from(["CHAIN", "LLM", "chat", '[{"role":"user","content":"Why?"}]', "[[", '{"a":']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(NAMES | TEXT, VALUES, max_size=5)
IDS: Callable[[int], st.SearchStrategy[bytes]] = lambda size: st.one_of(  # noqa: E731
    st.sampled_from([bytes(size - 1) + b"\x01", bytes(size - 1) + b"\x02"]), st.binary(max_size=2 * size)
)
SPANS = st.builds(
    span,
    trace_id=IDS(16),
    span_id=IDS(8),
    attributes=ATTRIBUTES,
    parent_span_id=IDS(8),
    name=TEXT,
    flags=st.integers(0, 2**32 - 1),
    kind=st.integers(0, 9),
    start_time_unix_nano=st.integers(0, 2**64 - 1),
    end_time_unix_nano=st.integers(0, 2**64 - 1),
    events=st.lists(
        st.builds(lambda name, values: Span.Event(name=name, attributes=pairs(values)), TEXT, ATTRIBUTES), max_size=2
    ),
)


def export_requests() -> st.SearchStrategy[ExportTraceServiceRequest]:
    """Return a strategy for requests with any spans."""
    return st.lists(SPANS, max_size=5).flatmap(
        lambda spans: st.builds(
            lambda service, scope: trace_request(*spans, service=service, scope=scope),
            TEXT,
            st.sampled_from([SCOPE, "germane", "", "http"]) | TEXT,
        )
    )
