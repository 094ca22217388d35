"""Stored OTLP messages: attributes as plain data, and requests by trace."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Container, Iterator
from typing import Any, Final, Literal

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Signal = Literal["traces", "logs"]
ExportRequest = ExportTraceServiceRequest | ExportLogsServiceRequest
REQUESTS: Final[dict[Signal, type[ExportRequest]]] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
}
_COMPRESSION_LEVEL: Final = 1
"""The fastest one: spans are repetitive, and the requests are deleted soon."""


def compress_request(body: bytes) -> bytes:
    """Compress a request for the queue."""
    return gzip.compress(body, _COMPRESSION_LEVEL)


def read_item(payload: bytes, *, is_log: bool) -> dict[str, Any]:
    """Return the attributes of a span or log record. A damaged one has none."""
    try:
        return read_attributes((LogRecord if is_log else Span).FromString(payload).attributes)
    except DecodeError:
        return {}


def read_request(signal: Signal, body: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the trace id and attributes of each span or log record in a compressed request, unless it is damaged."""
    try:
        request = REQUESTS[signal].FromString(gzip.decompress(body))
    except (DecodeError, OSError, EOFError, zlib.error):
        return []
    return [(item.trace_id.hex(), read_attributes(item.attributes)) for items in _item_lists(request) for item in items]


def without_traces(signal: Signal, body: bytes, trace_ids: Container[str]) -> bytes | None:
    """Return a compressed request without the spans or log records of some traces; None if nothing remains."""
    request, is_empty = REQUESTS[signal].FromString(gzip.decompress(body)), True
    for items in _item_lists(request):
        kept = [item for item in items if item.trace_id.hex() not in trace_ids]
        del items[:]
        items.extend(kept)
        is_empty = is_empty and not kept
    return None if is_empty else compress_request(request.SerializeToString())


def _item_lists(request: ExportRequest) -> Iterator[Any]:
    if isinstance(request, ExportTraceServiceRequest):
        return (scope.spans for resource in request.resource_spans for scope in resource.scope_spans)
    return (scope.log_records for resource in request.resource_logs for scope in resource.scope_logs)


def read_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes of a span, a log record or an event."""
    return {pair.key: pair.value.string_value or read_value(pair.value) for pair in attributes}


def read_value(value: AnyValue) -> Any:
    """Return a value as plain data."""
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "array_value":
            return [read_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return {pair.key: read_value(pair.value) for pair in value.kvlist_value.values}
        case "bytes_value":
            return value.bytes_value.decode("utf-8", "replace")
    return None
