"""The choice of the tracer provider, private exporters, connections and forks."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

import germane
from germane.testing import OTLPReceiver
from germane.tracer import connect, disconnect, flush

SETUP = """
import json, sys
import germane, germane.tracer
from opentelemetry import metrics, trace
from opentelemetry._logs import get_logger_provider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from germane.score import Score
exchanges, exporter = [], InMemorySpanExporter()
own = TracerProvider(shutdown_on_exit=False)
own.add_span_processor(SimpleSpanProcessor(exporter))
ask = germane.observe(route="ask")(lambda question: question)
def connect(): germane.tracer.connect(sink=exchanges.append, service="shop")
def names(): return [span.name for span in exporter.get_finished_spans()]
"""


def test_the_tracer_provider_of_the_application_is_used(run: Any) -> None:
    """A provider that is set before germane starts gets all spans."""
    code = "trace.set_tracer_provider(own); connect(); ask('a'); print(names())"

    assert run(SETUP + code) == "['invoke_workflow ask']"


@pytest.mark.parametrize("endpoint", [False, True])
def test_a_tracer_provider_that_is_set_late_is_used_for_later_spans(run: Any, endpoint: bool) -> None:
    """If the application sets its provider after the first span, later spans go to that provider."""
    code = (
        "connect(); ask('a'); trace.set_tracer_provider(own); ask('b'); ask('c'); print(len(names()), len(exchanges))"
    )
    with OTLPReceiver() as receiver:
        environment = receiver.environment() if endpoint else {}
        assert run(SETUP + code + "; germane.tracer.disconnect()", **environment) == "2 3"
        assert [span.attributes["input.value"] for span in receiver.spans] == (["a"] if endpoint else [])


@pytest.mark.parametrize("endpoint", [False, True])
def test_the_global_tracer_provider_is_never_set(run: Any, endpoint: bool) -> None:
    """The application decides about the tracer, meter and logger providers."""
    code = """
connect()
ask('a')
germane.tracer.attach_scores(exchanges[0], [Score(scorer="s", fingerprint="f", value=1.0)])
print(*[type(get()).__name__ for get in (trace.get_tracer_provider, metrics.get_meter_provider, get_logger_provider)])
germane.tracer.disconnect()
"""
    with OTLPReceiver() as receiver:
        environment = receiver.environment() if endpoint else {}
        assert run(SETUP + code, **environment) == "ProxyTracerProvider _ProxyMeterProvider ProxyLoggerProvider"


def test_nothing_is_exported_without_an_otlp_endpoint(run: Any) -> None:
    """Spans still have valid ids. No exporter, thread or gRPC library is loaded."""
    code = """
import threading
connect()
ask('a')
exchange = exchanges[0]
print(json.dumps([len(exchange.trace_id), int(exchange.trace_id, 16) > 0, int(exchange.span_id, 16) > 0,
                  [thread.name for thread in threading.enumerate()],
                  [name for name in ("grpc", "requests", "opentelemetry.exporter") if name in sys.modules]]))
"""
    assert json.loads(run(SETUP + code)) == [32, True, True, ["MainThread"], []]


SCORED = """
connect()
with germane.tracer.suppress_tracing():
    pass
ask('Why?')
print(germane.tracer.attach_scores(exchanges[0], [Score(scorer="relevancy", fingerprint="f", value=0.87, latency=0.5)]))
print(germane.tracer.attach_scores(exchanges[0], [Score(scorer="late", fingerprint="f", value=0.5)]))
print("grpc" in sys.modules, germane.tracer.flush(10))
germane.tracer.disconnect()
"""


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_private_provider_exports_to_the_otlp_endpoint(run: Any, protocol: Any) -> None:
    """Spans with scores, carrier spans of late scores, events and metrics arrive."""
    with OTLPReceiver() as receiver:
        output = run(SETUP + SCORED, **receiver.environment(protocol)).split()
        receiver.wait_for(lambda received: len(received.spans) == 2 and len(received.logs) == 2 and received.metrics)
        (span,) = [span for span in receiver.spans if span.name == "invoke_workflow ask"]
        (carrier,) = [span for span in receiver.spans if span.name == "evaluation"]
        measured = {metric.name for metric in receiver.metrics}

    assert output == ["original", "carrier", str(protocol == "grpc"), "True"]
    assert span.attributes["germane.evaluation.relevancy"] == 0.87
    assert (span.attributes["input.value"], span.kind, span.scope) == ("Why?", "INTERNAL", "germane")
    assert carrier.attributes["germane.evaluation.late"] == 0.5
    assert (carrier.links[0].span_id, carrier.parent_span_id) == (span.span_id, None)
    assert {log.event_name for log in receiver.logs} == {"gen_ai.evaluation.result"}
    assert {(log.trace_id, log.span_id) for log in receiver.logs} == {(span.trace_id, span.span_id)}
    assert {"germane.evaluation.score", "germane.evaluation.duration"} <= measured
    assert span.resource["service.name"] == receiver.logs[0].resource["service.name"] == "shop"


@pytest.mark.parametrize(
    ("environment", "arrived"),
    [
        ({"OTEL_TRACES_EXPORTER": "none"}, (0, 2, True)),
        ({"OTEL_LOGS_EXPORTER": "none"}, (2, 0, True)),
        ({"OTEL_METRICS_EXPORTER": "none"}, (2, 2, False)),
        ({"OTEL_SDK_DISABLED": "true"}, (0, 0, False)),
        ({"OTEL_SERVICE_NAME": "named by the environment"}, (2, 2, True)),
    ],
)
def test_standard_opentelemetry_variables_disable_signals(run: Any, environment: dict[str, str], arrived: Any) -> None:
    """Each signal can be turned off with OpenTelemetry's environment variables."""
    with OTLPReceiver() as receiver:
        run(SETUP + SCORED, **receiver.environment(), **environment)
        if arrived[0]:
            receiver.wait_for(lambda received: len(received.spans) == arrived[0])

        assert (len(receiver.spans), len(receiver.logs), bool(receiver.metrics)) == arrived


HOLDING = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
own = TracerProvider()
own.add_span_processor(germane.ScoreSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))
trace.set_tracer_provider(own)
connect()
with trace.get_tracer("app").start_as_current_span("request"):
    ask("Why?")
print(germane.tracer.attach_scores(exchanges[0], [Score(scorer="relevancy", fingerprint="f", value=0.87)]))
own.shutdown()
"""


def test_a_score_processor_works_on_the_tracer_provider_of_the_application(run: Any) -> None:
    """The processor wraps the exporting processor, and scores arrive on the original spans."""
    with OTLPReceiver() as receiver:
        assert run(SETUP + HOLDING, **receiver.environment(), OTEL_METRICS_EXPORTER="none") == "original"
        receiver.wait_for(lambda received: len(received.spans) == 2)
        request, span = receiver.span("request"), receiver.span("invoke_workflow ask")

    assert request is not None
    assert span is not None
    assert (span.trace_id, span.parent_span_id) == (request.trace_id, request.span_id)
    assert span.attributes["germane.evaluation.relevancy"] == 0.87


REFUSED = """
import logging, threading
logging.basicConfig(format="%(name)s %(message)s")
connect()
[thread.join() for thread in threading.enumerate() if thread.name == "germane-otlp-check"]
print("started", file=sys.stderr, flush=True)
for number in range(3):
    ask(f"{number}?")
    germane.tracer.attach_scores(exchanges[-1], [Score(scorer="relevancy", fingerprint="f", value=0.87)])
    germane.tracer.flush(10)
if hasattr(os, "fork"):
    child = os.fork()
    if not child:
        ask("child?")
        germane.tracer.attach_scores(exchanges[-1], [Score(scorer="relevancy", fingerprint="f", value=0.87)])
        germane.tracer.flush(10)
        os._exit(0)
    os.waitpid(child, 0)
germane.tracer.disconnect()
"""
TRACES_ALONE = "to export traces alone, set OTEL_EXPORTER_OTLP_TRACES_ENDPOINT instead of OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def backend() -> Iterator[Callable[[Mapping[str, int]], tuple[str, Counter[str]]]]:
    """A function that starts a server with a status per signal. It returns the URL, and the number of requests."""
    with ExitStack() as servers:

        def start(statuses: Mapping[str, int]) -> tuple[str, Counter[str]]:
            requests: Counter[str] = Counter()

            class Handler(BaseHTTPRequestHandler):
                def do_POST(self) -> None:
                    self.rfile.read(int(self.headers.get("Content-Length", 0)))
                    requests[f"{self.path} {self.headers.get('api-key')}"] += 1
                    self.send_response(statuses.get(self.path.rpartition("/")[2], 200))
                    self.send_header("Content-Length", "0")
                    self.end_headers()

                def log_message(self, *_: object) -> None:
                    """Suppress access logs."""

            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
            thread.start()
            servers.callback(server.server_close)
            servers.callback(thread.join)
            servers.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}", requests

        yield start


@pytest.mark.parametrize(
    ("statuses", "variable", "logged"),
    [
        ({"logs": 405, "metrics": 405}, "OTEL_EXPORTER_OTLP_ENDPOINT", {"logs": TRACES_ALONE, "metrics": TRACES_ALONE}),
        pytest.param({"logs": 404}, "OTEL_EXPORTER_OTLP_ENDPOINT", {"logs": TRACES_ALONE}, marks=pytest.mark.slow),
        pytest.param(
            {"metrics": 501},
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            {"metrics": "unset OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"},
            marks=pytest.mark.slow,
        ),
        pytest.param({"logs": 401, "metrics": 503}, None, {}, marks=pytest.mark.slow),
    ],
    ids=["traces alone", "no logs", "own endpoint", "temporary errors"],
)
def test_a_refused_signal_is_logged_once_at_the_start(
    backend: Any, statuses: dict[str, int], variable: str | None, logged: dict[str, str]
) -> None:
    """The signal is not exported, so no batch causes an error, also in a forked child. Other signals are exported."""
    url, requests = backend(statuses)
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=k", "OTEL_EXPORTER_OTLP_ENDPOINT": url}
    if variable not in {None, *environment}:
        environment = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=k", str(variable): f"{url}/v1/metrics"}
    if not logged:
        environment["OTEL_EXPORTER_OTLP_TIMEOUT"] = "1"
    run = subprocess.run(
        [sys.executable, "-c", f"import os\n{SETUP}{REFUSED}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    at_start, _, later = run.stderr.partition("started\n")

    lines = [
        f"germane.tracer {signal} are not exported, because the OTLP endpoint refuses them with HTTP status "
        f"{statuses[signal]}; {fix}"
        for signal, fix in logged.items()
    ]
    assert sorted(at_start.splitlines()) == sorted(lines)
    if logged:
        assert later == ""
    assert {path: requests[f"/v1/{path} k"] for path in logged} == dict.fromkeys(logged, 1)
    if "OTEL_EXPORTER_OTLP_ENDPOINT" in environment:
        accepted = {"traces", "logs", "metrics"} - logged.keys()
        assert all(requests[f"/v1/{path} k"] > 1 for path in accepted)


UNREACHABLE = """
connect()
ask("Why?")
print(germane.tracer.flush(0.5))
germane.tracer.disconnect()
print(len(exchanges))
"""


def test_an_unreachable_backend_does_not_affect_capture(run: Any) -> None:
    """The handler runs and the exchange is captured."""
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}

    assert run(SETUP + UNREACHABLE, **environment).split()[-1] == "1"


@pytest.fixture
def disconnected() -> Iterator[None]:
    disconnect()
    yield
    disconnect()


def test_handlers_run_without_capture_before_the_start(disconnected: None, caplog: pytest.LogCaptureFixture) -> None:
    """A warning is logged once, not once per call."""
    ask = germane.observe(lambda question: question)

    with caplog.at_level(logging.WARNING, "germane"):
        assert [ask("a"), ask("b")] == ["a", "b"]
    assert len(caplog.records) <= 1
    assert germane.current_exchange().id is None


def test_connecting_again_switches_later_exchanges_to_the_new_sink(disconnected: None) -> None:
    """A stream that started earlier still belongs to the former connection."""
    first: list[Any] = []
    second: list[Any] = []

    @germane.observe
    def ask(question: str) -> Iterator[str]:
        yield question

    connect(sink=first.append, service="first", holds_spans=False)
    open_stream = ask("of the first")
    next(open_stream)
    disconnect()
    connect(sink=second.append, service="second", holds_spans=False)
    list(ask("of the second"))
    list(open_stream)

    assert [(exchange.service, exchange.question) for exchange in (*first, *second)] == [
        ("first", "of the first"),
        ("second", "of the second"),
    ]


def test_flush_and_disconnect_can_be_called_at_any_time(disconnected: None) -> None:
    """Repeated calls and calls without a connection have no effect."""
    assert flush(1.0)
    disconnect()
    assert flush(1.0)


def test_an_unknown_connection_setting_raises_an_error() -> None:
    """The valid settings are the fields of the connection."""
    with pytest.raises(TypeError, match="sinck"):
        connect(sinck=print, service="test")


FORKING = """
import os
from germane import tracer
from germane.tracer import TelemetryState

def connect():
    tracer.connect(sink=print, service="shop", state=lambda: TelemetryState(queued=os.getpid()))

connect()
tracer.count_outcomes({("ask", "", "stored", ""): 7})
child = os.fork()
tracer.count_outcomes({("ask", "", "stored", ""): 1})
assert tracer.flush(30) and tracer.disconnect()
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(child)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_counters_of_a_private_provider_restart_in_a_forked_child(run: Any) -> None:
    """Otherwise, both processes would export the parent's counts. Gauges belong to the process that exports them."""
    with OTLPReceiver() as receiver:
        child = int(run(FORKING, **receiver.environment()))
        found = {(metric.name, point.value) for metric in receiver.metrics for point in metric.points}

    assert {value for name, value in found if name == "germane.capture.exchanges"} == {8, 1}
    depths = [value for name, value in found if name == "germane.capture.queue.depth"]
    assert len(depths) == len(set(depths)) == 2
    assert child in depths
