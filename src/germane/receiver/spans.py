"""Conversion of OTLP messages to staged spans and log records, and of staged items to the recognizers' data.

A trace also contains spans of web frameworks, databases and queues. A small span that no recognizer can read is staged
in full, because its attributes may contain a session or a route. A large one is staged without attributes and events:
it is only needed as a node in the tree of spans. If recognizers are registered, all spans are staged in full. Log
records are staged only if they may contain messages of a conversation.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from germane.otlp import ExportRequest, read_attributes, read_value
from germane.recognizers import MARKERS, LogData, SpanData, SpanEvent, is_watched_scope
from germane.storage import ReceivedItem

MAX_PLAIN_SIZE: Final = 1_024
"""Maximum size in bytes of a span that is staged with its attributes although no recognizer can read it."""
OWN_SCOPE: Final = "germane"
NAME_LENGTH: Final = 200
"""Maximum number of characters in the name of a service or scope."""
_NO_TRACE: Final = bytes(16)
_NO_SPAN: Final = bytes(8)
_MARKERS: Final = frozenset(MARKERS)
_REMOTE_PARENT: Final = 0x200
_KNOWS_PARENT: Final = 0x100
"""Flag of spans whose exporter says whether the parent is remote."""
_ENTRY_KINDS: Final = (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CONSUMER)
_KINDS: Final = {0: "INTERNAL", 1: "INTERNAL", 2: "SERVER", 3: "CLIENT", 4: "PRODUCER", 5: "CONSUMER"}
_STATUSES: Final = {0: "UNSET", 1: "OK", 2: "ERROR"}
_UNKNOWN_SERVICE: Final = "unknown_service"


@dataclass(frozen=True, slots=True)
class Waits:
    """Waiting times, in seconds, after which a trace counts as complete."""

    root: float = 10.0
    """Time without new spans once the root has arrived. Log records and other services' spans arrive a few seconds
    later, because exporters send batches."""
    remote_root: float = 60.0
    """Time without new spans if the first span's parent is in another process, which may or may not send its spans."""
    longest: float = 600.0
    """Maximum time since the first span arrived."""


@dataclass(slots=True)
class Batch:
    """The spans or log records of one request."""

    items: list[ReceivedItem] = field(default_factory=list)
    """Those to be staged."""
    received: int = 0
    """Number of spans or log records in the request."""
    rejected: int = 0
    """Number of spans with an invalid id, and of spans and log records that could not be parsed."""


def read_request(request: ExportRequest, waits: Waits, *, keeps_all: bool = False) -> Batch:
    """Return the spans or log records to stage.

    Args:
        request: The request.
        waits: Times after which traces are finished.
        keeps_all: Whether to stage every span in full, because a registered recognizer may read it.
    """
    if isinstance(request, ExportTraceServiceRequest):
        return _read_spans(request, waits, keeps_all)
    return _read_logs(request)


def _read_spans(request: ExportTraceServiceRequest, waits: Waits, keeps_all: bool) -> Batch:  # noqa: FBT001
    batch = Batch()
    for resource_spans in request.resource_spans:
        service = service_name(resource_spans.resource)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name[:NAME_LENGTH]
            is_watched = keeps_all or _is_watched(scope)
            for span in scope_spans.spans:
                batch.received += 1
                if not has_valid_ids(span):
                    batch.rejected += 1
                    continue
                payload = span.SerializeToString()
                if not is_watched and len(payload) > MAX_PLAIN_SIZE and not _has_marker(span):
                    payload = _without_content(span).SerializeToString()
                wait = wait_after(span, waits)
                started = span.start_time_unix_nano / 1e9
                ids = span.trace_id.hex(), span.span_id.hex()
                batch.items.append(ReceivedItem(*ids, False, service, scope, payload, wait, started))  # noqa: FBT003
    return batch


def _read_logs(request: ExportLogsServiceRequest) -> Batch:
    batch = Batch()
    for resource_logs in request.resource_logs:
        service = service_name(resource_logs.resource)
        for scope_logs in resource_logs.scope_logs:
            scope = scope_logs.scope.name[:NAME_LENGTH]
            for record in scope_logs.log_records:
                batch.received += 1
                trace_id = record.trace_id
                if len(trace_id) != 16 or trace_id == _NO_TRACE:
                    continue
                names = [record.event_name]
                names += [pair.value.string_value for pair in record.attributes if pair.key == "event.name"]
                if not (_is_watched(scope) or any(name.startswith("gen_ai.") for name in names)):
                    continue  # an ordinary log record, which is not an error
                payload = record.SerializeToString(deterministic=True)
                key = f"log-{blake2b(payload, digest_size=8).hexdigest()}"
                started = (record.time_unix_nano or record.observed_time_unix_nano) / 1e9
                batch.items.append(
                    ReceivedItem(trace_id.hex(), key, True, service, scope, payload, None, started)  # noqa: FBT003
                )
    return batch


def service_name(resource: Resource) -> str:
    """Return the name of the service that a resource describes."""
    for attribute in resource.attributes:
        if attribute.key == "service.name" and attribute.value.string_value:
            return str(attribute.value.string_value[:NAME_LENGTH])
    return _UNKNOWN_SERVICE


@lru_cache(maxsize=1024)
def _is_watched(scope: str) -> bool:
    return scope == OWN_SCOPE or is_watched_scope(scope)


def _has_marker(span: Span) -> bool:
    return any(attribute.key in _MARKERS for attribute in span.attributes)


def _without_content(span: Span) -> Span:
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        flags=span.flags,
        name=span.name[:NAME_LENGTH],
        kind=span.kind,
        start_time_unix_nano=span.start_time_unix_nano,
        end_time_unix_nano=span.end_time_unix_nano,
        status=Status(code=span.status.code),
    )


def has_valid_ids(span: Span) -> bool:
    """Return whether a span has a trace id and a span id."""
    trace_id, span_id = span.trace_id, span.span_id
    return len(trace_id) == 16 and len(span_id) == 8 and trace_id != _NO_TRACE and span_id != _NO_SPAN


def follows_convention(span: Span, scope: str) -> bool:
    """Return whether a span that germane has not recorded itself follows a known convention."""
    return scope != OWN_SCOPE and (_is_watched(scope) or _has_marker(span))


def wait_after(span: Span, waits: Waits) -> float | None:
    """Return the number of seconds after which a local root's trace is finished; None for other spans."""
    if not span.parent_span_id or span.parent_span_id == _NO_SPAN:
        return waits.root
    return waits.remote_root if _has_remote_parent(span) else None


def _has_remote_parent(span: Span) -> bool:
    if span.flags & _KNOWS_PARENT:
        return bool(span.flags & _REMOTE_PARENT)
    return span.kind in _ENTRY_KINDS


def has_remote_parent(item: ReceivedItem) -> bool:
    """Return whether a staged span has a parent, which is in another process if the span is a local root."""
    return any(Span.FromString(item.payload).parent_span_id)


def convert_items(items: tuple[ReceivedItem, ...]) -> tuple[list[SpanData], list[LogData]]:
    """Convert the staged spans and log records of one trace."""
    spans: list[SpanData] = []
    logs: list[LogData] = []
    keys = {item.key for item in items}
    for item in items:
        if item.is_log:
            record = LogRecord.FromString(item.payload)
            span_id = record.span_id.hex() if len(record.span_id) == 8 and record.span_id != _NO_SPAN else None
            logs.append(
                LogData(
                    trace_id=item.trace_id,
                    span_id=span_id,
                    event_name=record.event_name,
                    body=read_value(record.body),
                    attributes=read_attributes(record.attributes),
                )
            )
            continue
        span = Span.FromString(item.payload)
        parent_id: str | None = span.parent_span_id.hex()
        if not parent_id or span.parent_span_id == _NO_SPAN or (parent_id not in keys and _has_remote_parent(span)):
            parent_id = None
        spans.append(
            SpanData(
                trace_id=item.trace_id,
                span_id=item.key,
                parent_id=parent_id,
                name=span.name,
                scope=item.scope,
                kind=_KINDS.get(span.kind, "INTERNAL"),
                attributes=read_attributes(span.attributes),
                events=tuple(
                    SpanEvent(name=event.name, attributes=read_attributes(event.attributes)) for event in span.events
                ),
                start=span.start_time_unix_nano,
                end=span.end_time_unix_nano,
                status=_STATUSES.get(span.status.code, "UNSET"),
            )
        )
    return spans, logs


def split_requests(
    spans: Sequence[SpanData], logs: Sequence[LogData], finished: Container[str]
) -> list[tuple[list[SpanData], list[LogData]]]:
    """Split the spans of a reopened trace into requests: each subtree whose parent is already finished is its own
    request.

    Args:
        spans: The spans that are not finished.
        logs: The log records that are not finished.
        finished: Ids of the trace's finished spans.
    """
    by_id = {span.span_id: span for span in spans}
    tops: dict[str, str] = {}
    for span in spans:
        path, top = {span.span_id: None}, span.span_id
        while top not in tops and (parent := by_id[top].parent_id) in by_id and parent not in path:
            top = str(parent)
            path[top] = None
        tops |= dict.fromkeys(path, tops.get(top, top))
    requests: dict[str, tuple[list[SpanData], list[LogData]]] = {}
    for span in spans:
        is_top = tops[span.span_id] == span.span_id and span.parent_id in finished
        request = requests.setdefault(tops[span.span_id], ([], []))
        request[0].append(replace(span, parent_id=None) if is_top else span)
    for record in logs:
        if (of := tops.get(record.span_id or "")) is not None:
            requests[of][1].append(record)
    return list(requests.values())
