"""Conversion of spans, log records and metrics in OTLP export requests to dataclasses."""

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
    """The time in nanoseconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class ReceivedLink:
    """A link from one span to another."""

    trace_id: str
    span_id: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """A received span. Trace ids have 32 hexadecimal digits, and span ids 16. Times are in nanoseconds since the Unix
    epoch.
    """

    name: str
    trace_id: str
    span_id: str
    parent_span_id: str | None
    """The id of the parent span; None for a root span."""
    kind: str
    """The span kind: ``INTERNAL``, ``SERVER``, ``CLIENT``, ``PRODUCER`` or ``CONSUMER``."""
    attributes: Attributes
    events: tuple[ReceivedEvent, ...]
    links: tuple[ReceivedLink, ...]
    status: str
    """The status code: ``UNSET``, ``OK`` or ``ERROR``."""
    status_message: str
    start: int
    end: int
    resource: Attributes
    scope: str
    dropped_attributes: int


@dataclass(frozen=True, slots=True)
class ReceivedLog:
    """A received log record or event."""

    event_name: str
    body: Any
    attributes: Attributes
    trace_id: str | None
    span_id: str | None
    time: int
    """The time in nanoseconds since the Unix epoch; 0 if unknown."""
    resource: Attributes
    scope: str


@dataclass(frozen=True, slots=True)
class ReceivedDataPoint:
    """A data point of a metric. For a histogram, ``value`` is the sum."""

    attributes: Attributes
    value: float
    count: int | None = None
    bounds: tuple[float, ...] = ()
    buckets: tuple[int, ...] = ()
    exemplars: tuple[tuple[str, str, float], ...] = ()
    """The trace id, span id and value of each exemplar."""


@dataclass(frozen=True, slots=True)
class ReceivedMetric:
    """A received metric."""

    name: str
    unit: str
    type: Literal["gauge", "sum", "histogram", "other"]
    points: tuple[ReceivedDataPoint, ...]
    resource: Attributes
    scope: str


def parse_spans(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    """Yield the spans in an export request."""
    for resource, scope, span in _each(request.resource_spans, "scope_spans", "spans"):
        yield ReceivedSpan(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_span_id=span.parent_span_id.hex() or None,
            kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
            attributes=_attributes(span.attributes),
            events=tuple(
                ReceivedEvent(event.name, _attributes(event.attributes), event.time_unix_nano) for event in span.events
            ),
            links=tuple(
                ReceivedLink(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes))
                for link in span.links
            ),
            status=trace_pb2.Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
            status_message=span.status.message,
            start=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
            resource=resource,
            scope=scope,
            dropped_attributes=span.dropped_attributes_count,
        )


def parse_logs(request: ExportLogsServiceRequest) -> Iterator[ReceivedLog]:
    """Yield the log records in an export request."""
    for resource, scope, record in _each(request.resource_logs, "scope_logs", "log_records"):
        yield ReceivedLog(
            event_name=record.event_name,
            body=_value(record.body),
            attributes=_attributes(record.attributes),
            trace_id=record.trace_id.hex() or None,
            span_id=record.span_id.hex() or None,
            time=record.time_unix_nano,
            resource=resource,
            scope=scope,
        )


def parse_metrics(request: ExportMetricsServiceRequest) -> Iterator[ReceivedMetric]:
    """Yield the metrics in an export request."""
    for resource, scope, metric in _each(request.resource_metrics, "scope_metrics", "metrics"):
        data = metric.WhichOneof("data")
        yield ReceivedMetric(
            name=metric.name,
            unit=metric.unit,
            type=data if data in {"gauge", "sum", "histogram"} else "other",
            points=tuple(_data_points(metric)),
            resource=resource,
            scope=scope,
        )


def _each(resources: Iterable[Any], scopes: str, items: str) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield each item with the attributes of its resource and the name of its scope."""
    for resource in resources:
        attributes = _attributes(resource.resource.attributes)
        for scoped in getattr(resource, scopes):
            for item in getattr(scoped, items):
                yield attributes, scoped.scope.name, item


def _data_points(metric: Metric) -> Iterator[ReceivedDataPoint]:
    for number in (*metric.gauge.data_points, *metric.sum.data_points):
        value = number.as_int if number.WhichOneof("value") == "as_int" else number.as_double
        yield ReceivedDataPoint(_attributes(number.attributes), value, exemplars=_exemplars(number.exemplars))
    for point in metric.histogram.data_points:
        yield ReceivedDataPoint(
            _attributes(point.attributes),
            point.sum,
            point.count,
            tuple(point.explicit_bounds),
            tuple(point.bucket_counts),
            _exemplars(point.exemplars),
        )


def _exemplars(exemplars: Iterable[Exemplar]) -> tuple[tuple[str, str, float], ...]:
    return tuple(
        (exemplar.trace_id.hex(), exemplar.span_id.hex(), exemplar.as_double or exemplar.as_int)
        for exemplar in exemplars
    )


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
