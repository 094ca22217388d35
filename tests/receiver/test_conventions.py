"""Traces of every convention survive the way over OTLP and through the database's format unchanged."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status
from tests.receiver.conftest import QUICK
from tests.receiver.messages import any_value, pairs
from tests.spans.recordings import load_recordings
from tests.spans.samples import SAMPLES, Texts

from germane.receiver.requests import JSON, PROTOBUF, parse_request
from germane.receiver.spans import convert_items, read_request
from germane.recognizers import LogData, SpanData
from germane.recognizers.recognition import recognize

SHARED = Path(__file__).resolve().parents[3] / "shared" / "spans"
KINDS = {name: Span.SpanKind.Value(f"SPAN_KIND_{name}") for name in ("SERVER", "CLIENT", "PRODUCER", "CONSUMER")}
STATUSES = {"UNSET": Status.STATUS_CODE_UNSET, "OK": Status.STATUS_CODE_OK, "ERROR": Status.STATUS_CODE_ERROR}


def attributes(values: Any) -> Any:
    """Return attributes as OTLP; tuples are lists there."""
    return pairs({name: list(value) if isinstance(value, tuple) else value for name, value in values.items()})


def otlp_span(span: SpanData) -> ScopeSpans:
    """Return a span as OTLP."""
    message = Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id or ""),
        flags=0x100,
        name=span.name,
        kind=KINDS.get(span.kind, Span.SPAN_KIND_INTERNAL),
        attributes=attributes(span.attributes),
        events=[Span.Event(name=event.name, attributes=attributes(event.attributes)) for event in span.events],
        start_time_unix_nano=span.start,
        end_time_unix_nano=span.end,
        status=Status(code=STATUSES[span.status]),
    )
    return ScopeSpans(scope=InstrumentationScope(name=span.scope), spans=[message])


def otlp_log(log: LogData) -> LogRecord:
    """Return a log record as OTLP."""
    return LogRecord(
        trace_id=bytes.fromhex(log.trace_id),
        span_id=bytes.fromhex(log.span_id or ""),
        event_name=log.event_name,
        body=any_value(log.body),
        attributes=attributes(log.attributes),
    )


def as_json(message: Any) -> bytes:
    """Return a request in OTLP's JSON, in which ids are hexadecimal."""
    document = json_format.MessageToDict(message)

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return [convert(item) for item in value]
        if not isinstance(value, dict):
            return value
        ids = {"traceId", "spanId", "parentSpanId"}
        return {key: base64.b64decode(item).hex() if key in ids else convert(item) for key, item in value.items()}

    return json.dumps(convert(document)).encode()


def received(spans: Sequence[SpanData], logs: Sequence[LogData], content_type: str) -> Any:
    """Return what is recognized in spans and log records that arrive over OTLP."""
    traces = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=map(otlp_span, spans))])
    scoped = ScopeLogs(scope=InstrumentationScope(name="logger"), log_records=map(otlp_log, logs))
    records = ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[scoped])])
    encode = as_json if content_type == JSON else lambda message: message.SerializeToString()
    items = [
        *read_request(parse_request("traces", encode(traces), content_type)[0], QUICK).items,
        *read_request(parse_request("logs", encode(records), content_type)[0], QUICK).items,
    ]
    assert len({item.trace_id for item in items}) == 1
    return recognize(*convert_items(tuple(items)))


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_received_trace_is_recognized_like_a_watched_trace(name: str, content_type: str) -> None:
    """The attributes, events and log records that the recognizers need are staged."""
    sample = SAMPLES[name](Texts())

    assert received(sample.spans, sample.logs, content_type) == recognize(sample.spans, sample.logs)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings are not here")
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_received_recordings_are_recognized_like_watched_recordings(content_type: str) -> None:
    """Traces of real instrumentations, recorded elsewhere."""
    recordings = list(load_recordings(SHARED))
    differences = [
        str(one) for one in recordings if received(one.spans, one.logs, content_type) != recognize(one.spans, one.logs)
    ]

    assert len(recordings) > 40
    assert differences == []
