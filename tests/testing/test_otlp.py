"""The OTLP receiver with real exporters."""

from __future__ import annotations

import os
import subprocess
import sys
from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from germane.testing import OTLPReceiver

EXPORTING = """
import logging, sys
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
if sys.argv[1] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

resource = Resource.create({"service.name": "sender"})
tracing, logs = TracerProvider(resource=resource), LoggerProvider(resource=resource)
tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
tracer = tracing.get_tracer("sender.scope")
with tracer.start_as_current_span("outer") as outer:
    attributes = {"text": "a", "number": 1, "share": 0.5, "flag": True, "list": ["x", "y"]}
    links = [Link(outer.get_span_context(), {"why": "test"})]
    with tracer.start_as_current_span("inner", kind=SpanKind.CLIENT, attributes=attributes, links=links) as inner:
        inner.add_event("happened", {"what": "this"})
        inner.set_status(Status(StatusCode.ERROR, "broke"))
        event_logger = logs.get_logger("sender.logs")
        event_logger.emit(event_name="happened", body={"a": [1, None]}, attributes={"k": "v"}, timestamp=7)
        meter = meters.get_meter("sender.meter")
        meter.create_histogram("size", "By", explicit_bucket_boundaries_advisory=[1, 10]).record(5, {"kind": "small"})
        meter.create_counter("count", "1").add(3)
        meter.create_observable_gauge("depth", [lambda _: []])
for provider in (tracing, logs, meters):
    provider.shutdown()
"""


def send(receiver: OTLPReceiver, protocol: str, **environment: str) -> None:
    """Export a trace, a log record and metrics from another process."""
    variables = {**os.environ, **receiver.environment(protocol), **environment}
    subprocess.run([sys.executable, "-c", EXPORTING, protocol], env=variables, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_otlp_receiver_records_everything_that_is_exported(protocol: str) -> None:
    """All spans, log records and metrics arrive over both protocols, whether compressed or not."""
    with OTLPReceiver() as receiver:
        send(receiver, protocol, OTEL_EXPORTER_OTLP_COMPRESSION="gzip")
        outer = receiver.wait_for(lambda received: received.span("outer"))
        inner = receiver.wait_for(lambda received: received.span("inner"))
        (log,) = receiver.wait_for(lambda received: received.logs)
        metrics = {metric.name: metric for metric in receiver.wait_for(lambda received: received.metrics)}

    assert inner.attributes == {"text": "a", "number": 1, "share": 0.5, "flag": True, "list": ["x", "y"]}
    assert (inner.parent_span_id, inner.trace_id) == (outer.span_id, outer.trace_id)
    assert outer.parent_span_id is None
    assert (inner.kind, inner.status, inner.status_message) == ("CLIENT", "ERROR", "broke")
    assert [(event.name, event.attributes) for event in inner.events] == [("happened", {"what": "this"})]
    assert [(link.span_id, link.attributes) for link in inner.links] == [(outer.span_id, {"why": "test"})]
    assert outer.start <= inner.start <= inner.end <= outer.end
    assert (inner.resource["service.name"], inner.scope, inner.dropped_attributes) == ("sender", "sender.scope", 0)
    assert (log.event_name, log.body, log.attributes, log.time) == ("happened", {"a": [1, None]}, {"k": "v"}, 7)
    assert (log.trace_id, log.span_id) == (inner.trace_id, inner.span_id)
    (size,), (count,) = metrics["size"].points, metrics["count"].points
    assert (metrics["size"].type, metrics["size"].unit, metrics["count"].type) == ("histogram", "By", "sum")
    assert (size.attributes, size.value, size.count) == ({"kind": "small"}, 5, 1)
    assert (size.bounds, size.buckets) == ((1, 10), (0, 1, 0))
    assert size.exemplars == ((inner.trace_id, inner.span_id, 5),)
    assert count.value == 3


def test_the_error_of_a_wait_timeout_lists_what_was_received() -> None:
    """The error lists the received spans and counts."""
    with OTLPReceiver() as receiver, pytest.raises(TimeoutError, match=r"not met within 0.01 s; received: spans \[\]"):
        receiver.wait_for(lambda received: received.spans, timeout=0.01)


def test_the_otlp_receiver_returns_status_404_for_an_unknown_path() -> None:
    """A wrong endpoint fails in the same way as with a collector."""
    with OTLPReceiver() as receiver, pytest.raises(HTTPError, match="404") as refused:
        urlopen(Request(f"{receiver.endpoint}/v1/nothing", data=b""))
    refused.value.close()


def test_closing_the_otlp_receiver_twice_has_no_effect() -> None:
    """A receiver can be closed inside its `with` block."""
    with OTLPReceiver() as receiver:
        assert receiver.grpc_endpoint == receiver.grpc_endpoint
        receiver.close()


def test_clear_discards_everything_that_was_received() -> None:
    """There are no spans, log records or metrics afterwards."""
    with OTLPReceiver() as receiver:
        send(receiver, "http/protobuf")
        receiver.wait_for(lambda received: received.metrics and received.logs and received.spans)
        receiver.clear()

        assert (receiver.spans, receiver.logs, receiver.metrics) == ([], [], [])


def test_a_request_body_in_chunks_is_received() -> None:
    """Exporters for Node.js do not send the length of the body in advance."""
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.name, span.trace_id, span.span_id = "chunked", b"t" * 16, b"s" * 8
    body = request.SerializeToString()
    with OTLPReceiver() as receiver:
        connection = HTTPConnection(urlsplit(receiver.endpoint).netloc)
        connection.request("POST", "/v1/traces", iter([body[:5], body[5:]]), encode_chunked=True)
        status = connection.getresponse().status
        connection.close()

        assert status == 200
        assert [span.name for span in receiver.spans] == ["chunked"]
