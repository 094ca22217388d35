"""An OTLP receiver on this machine: what an application exports, over real HTTP or gRPC, can be looked at."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

from germane.testing.otlp_records import (
    ReceivedLog,
    ReceivedMetric,
    ReceivedSpan,
    logs_in,
    metrics_in,
    spans_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Protocol = Literal["http/protobuf", "grpc"]
T = TypeVar("T")

# signal -> request, response, and the name of the gRPC service
_MESSAGES: Mapping[str, tuple[Any, Any, str]] = {
    "traces": (traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse, "trace.v1.TraceService"),
    "logs": (logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse, "logs.v1.LogsService"),
    "metrics": (metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse, "metrics.v1.MetricsService"),
}


class OTLPReceiver:
    """Receives spans, log records and metrics on 127.0.0.1.

    ::

        with OTLPReceiver() as receiver:
            subprocess.run([sys.executable, "app.py"], env={**os.environ, **receiver.environment()})
            span = receiver.wait_for(lambda received: received.span("invoke_workflow ask"))

    The gRPC side starts when its address is first asked for; grpcio is imported then.
    """

    def __init__(self) -> None:
        """Listen on a free port."""
        self._changed = threading.Condition()
        self._spans: list[ReceivedSpan] = []
        self._logs: list[ReceivedLog] = []
        self._metrics: list[ReceivedMetric] = []
        self._grpc: tuple[Any, int] | None = None
        self._server = _HTTPServer(("127.0.0.1", 0), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="germane-otlp-receiver", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def endpoint(self) -> str:
        """Where it listens for HTTP, such as ``http://127.0.0.1:40123``: exporters add ``/v1/traces`` and the like."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def grpc_endpoint(self) -> str:
        """Where it listens for gRPC, such as ``http://127.0.0.1:40124``."""
        if self._grpc is None:
            self._grpc = self._serve_grpc()
        return f"http://127.0.0.1:{self._grpc[1]}"

    @property
    def spans(self) -> list[ReceivedSpan]:
        """The spans so far, in order of arrival."""
        with self._changed:
            return list(self._spans)

    @property
    def logs(self) -> list[ReceivedLog]:
        """The log records and events so far, in order of arrival."""
        with self._changed:
            return list(self._logs)

    @property
    def metrics(self) -> list[ReceivedMetric]:
        """The metrics so far, in order of arrival: each export tells the sums up to then again."""
        with self._changed:
            return list(self._metrics)

    def span(self, name: str) -> ReceivedSpan | None:
        """Return the first span of this name; None when none has come."""
        return next((span for span in self.spans if span.name == name), None)

    def wait_for(self, predicate: Callable[[OTLPReceiver], T], timeout: float = 10.0) -> T:
        """Wait until ``predicate`` of this receiver is true, and return what it said.

        Raises:
            TimeoutError: it was not within ``timeout`` seconds; the message tells what has come.
        """
        with self._changed:
            found = self._changed.wait_for(lambda: predicate(self), timeout)
            if not found:
                names = [span.name for span in self._spans]
                counts = f"{len(self._logs)} log records and {len(self._metrics)} metrics"
                raise TimeoutError(f"not within {timeout} s; received: spans {names}, {counts}")
            return found

    def environment(self, protocol: Protocol = "http/protobuf") -> dict[str, str]:
        """Return the environment variables that make a process export to this receiver."""
        address = self.grpc_endpoint if protocol == "grpc" else self.endpoint
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}

    def clear(self) -> None:
        """Forget what has come so far."""
        with self._changed:
            self._spans.clear()
            self._logs.clear()
            self._metrics.clear()

    def close(self) -> None:
        """Stop listening. Closing twice is no error."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._grpc is not None:
            self._grpc[0].stop(grace=None).wait()

    def take(self, signal: str, request: Any) -> None:
        """Keep what came; the servers call it."""
        with self._changed:
            if signal == "traces":
                self._spans.extend(spans_in(request))
            elif signal == "logs":
                self._logs.extend(logs_in(request))
            else:
                self._metrics.extend(metrics_in(request))
            self._changed.notify_all()

    def _serve_grpc(self) -> tuple[Any, int]:
        grpc = import_module("grpc")
        server = grpc.server(ThreadPoolExecutor(4, thread_name_prefix="germane-otlp-receiver"))
        for signal, (request, response, service) in _MESSAGES.items():
            name = f"opentelemetry.proto.collector.{service}"
            method = grpc.unary_unary_rpc_method_handler(
                self._answer(signal, response),
                request_deserializer=request.FromString,
                response_serializer=response.SerializeToString,
            )
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Export": method}),))
        port: int = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return server, port

    def _answer(self, signal: str, response: Any) -> Callable[[Any, Any], Any]:
        def answer(request: Any, _call: Any) -> Any:
            self.take(signal, request)
            return response()

        return answer


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them

    def __init__(self, address: tuple[str, int], receiver: OTLPReceiver) -> None:
        self.receiver = receiver
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    timeout = 5
    """Seconds that a client may take to say what it wants: closing waits no longer."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        signal = self.path.removeprefix("/v1/")
        if signal not in _MESSAGES:
            self.send_error(404)
            return
        request, response, _ = _MESSAGES[signal]
        self.server.receiver.take(signal, request.FromString(_unpacked(body, self.headers.get("Content-Encoding"))))
        self._send(response().SerializeToString())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _unpacked(body: bytes, encoding: str | None) -> bytes:
    if encoding == "gzip":
        return gzip.decompress(body)
    return zlib.decompress(body) if encoding == "deflate" else body
