"""What an OTLP receiver was sent, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry.proto.trace.v1 import trace_pb2

if TYPE_CHECKING:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Exemplar, Metric

Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event on a span."""

    name: str
    attributes: Attributes
    time: int
    """Nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class ReceivedLink:
    """A link from a span to another."""

    trace_id: str
    span_id: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A span as it came over the wire. Trace ids are 32, span ids 16 hexadecimal digits; times are nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_span_id: str | None
    """None for a root."""
    kind: str
    """``INTERNAL``, ``SERVER``, ``CLIENT``, ``PRODUCER`` or ``CONSUMER``."""
    attributes: Attributes
    events: tuple[ReceivedEvent, ...]
    links: tuple[ReceivedLink, ...]
    status: str
    """``UNSET``, ``OK`` or ``ERROR``."""
    status_message: str
    start: int
    end: int
    resource: Attributes
    scope: str
    dropped_attributes: int


@dataclass(frozen=True, slots=True)
class ReceivedLog:
    """A log record or event as it came over the wire."""

    event_name: str
    body: Any
    attributes: Attributes
    trace_id: str | None
    span_id: str | None
    time: int
    """Nanoseconds since 1970; 0 when it was not told."""
    resource: Attributes
    scope: str


@dataclass(frozen=True, slots=True)
class ReceivedPoint:
    """One data point of a metric. A histogram's ``value`` is its sum."""

    attributes: Attributes
    value: float
    count: int | None = None
    bounds: tuple[float, ...] = ()
    buckets: tuple[int, ...] = ()
    exemplars: tuple[tuple[str, str, float], ...] = ()
    """Trace id, span id and value of each."""


@dataclass(frozen=True, slots=True)
class ReceivedMetric:
    """A metric as it came over the wire."""

    name: str
    unit: str
    kind: Literal["gauge", "sum", "histogram", "other"]
    points: tuple[ReceivedPoint, ...]
    resource: Attributes
    scope: str


def spans_in(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    """Read the spans of an export."""
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                yield _span(span, resource, scoped.scope.name)


def logs_in(request: ExportLogsServiceRequest) -> Iterator[ReceivedLog]:
    """Read the log records of an export."""
    for group in request.resource_logs:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_logs:
            for record in scoped.log_records:
                yield ReceivedLog(
                    event_name=record.event_name,
                    body=_value(record.body),
                    attributes=_attributes(record.attributes),
                    trace_id=record.trace_id.hex() or None,
                    span_id=record.span_id.hex() or None,
                    time=record.time_unix_nano,
                    resource=resource,
                    scope=scoped.scope.name,
                )


def metrics_in(request: ExportMetricsServiceRequest) -> Iterator[ReceivedMetric]:
    """Read the metrics of an export."""
    for group in request.resource_metrics:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_metrics:
            for metric in scoped.metrics:
                kind = _metric_kind(metric)
                points = tuple(_points(metric))
                yield ReceivedMetric(metric.name, metric.unit, kind, points, resource, scoped.scope.name)


def _span(span: trace_pb2.Span, resource: Attributes, scope: str) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex() or None,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        attributes=_attributes(span.attributes),
        events=tuple(ReceivedEvent(e.name, _attributes(e.attributes), e.time_unix_nano) for e in span.events),
        links=tuple(ReceivedLink(k.trace_id.hex(), k.span_id.hex(), _attributes(k.attributes)) for k in span.links),
        status=trace_pb2.Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
        status_message=span.status.message,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        resource=resource,
        scope=scope,
        dropped_attributes=span.dropped_attributes_count,
    )


def _metric_kind(metric: Metric) -> Literal["gauge", "sum", "histogram", "other"]:
    found = metric.WhichOneof("data")
    return found if found in {"gauge", "sum", "histogram"} else "other"


def _points(metric: Metric) -> Iterator[ReceivedPoint]:
    for number in (*metric.gauge.data_points, *metric.sum.data_points):
        value = number.as_int if number.WhichOneof("value") == "as_int" else number.as_double
        yield ReceivedPoint(_attributes(number.attributes), value, exemplars=_exemplars(number.exemplars))
    for point in metric.histogram.data_points:
        yield ReceivedPoint(
            _attributes(point.attributes),
            point.sum,
            point.count,
            tuple(point.explicit_bounds),
            tuple(point.bucket_counts),
            _exemplars(point.exemplars),
        )


def _exemplars(exemplars: Iterable[Exemplar]) -> tuple[tuple[str, str, float], ...]:
    return tuple((one.trace_id.hex(), one.span_id.hex(), one.as_double or one.as_int) for one in exemplars)


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind)
