"""An OTLP receiver for tests. It accepts real HTTP and gRPC connections."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

from germane.testing.otlp_records import (
    ReceivedLog,
    ReceivedMetric,
    ReceivedSpan,
    parse_logs,
    parse_metrics,
    parse_spans,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_MESSAGES: Mapping[str, tuple[Any, Any, str]] = {
    "traces": (traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse, "trace.v1.TraceService"),
    "logs": (logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse, "logs.v1.LogsService"),
    "metrics": (metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse, "metrics.v1.MetricsService"),
}
"""The request type, response type and gRPC service of each signal."""

OTLPProtocol = Literal["http/protobuf", "grpc"]
T = TypeVar("T")


class OTLPReceiver:
    """Receives spans, log records and metrics on 127.0.0.1, so that tests can check what an application exports.

    ::

        with OTLPReceiver() as receiver:
            subprocess.run([sys.executable, "app.py"], env={**os.environ, **receiver.environment()})
            span = receiver.wait_for(lambda received: received.span("invoke_workflow ask"))

    The gRPC server starts when ``grpc_endpoint`` is first used. It requires grpcio.
    """

    def __init__(self) -> None:
        """Start the HTTP server on a free port."""
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

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def endpoint(self) -> str:
        """The HTTP endpoint, such as ``http://127.0.0.1:40123``. Exporters append paths such as ``/v1/traces``."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def grpc_endpoint(self) -> str:
        """The gRPC endpoint, such as ``http://127.0.0.1:40124``."""
        if self._grpc is None:
            self._grpc = self._serve_grpc()
        return f"http://127.0.0.1:{self._grpc[1]}"

    @property
    def spans(self) -> list[ReceivedSpan]:
        """The spans received so far, in order of arrival."""
        with self._changed:
            return list(self._spans)

    @property
    def logs(self) -> list[ReceivedLog]:
        """The log records and events received so far, in order of arrival."""
        with self._changed:
            return list(self._logs)

    @property
    def metrics(self) -> list[ReceivedMetric]:
        """The metrics received so far, in order of arrival. Each export repeats all cumulative metrics."""
        with self._changed:
            return list(self._metrics)

    def span(self, name: str) -> ReceivedSpan | None:
        """Return the first span with this name, or None."""
        return next((span for span in self.spans if span.name == name), None)

    def wait_for(self, predicate: Callable[[OTLPReceiver], T], timeout: float = 10.0) -> T:
        """Wait until ``predicate`` returns a truthy value for this receiver, and return that value.

        Raises:
            TimeoutError: The value was still falsy after ``timeout`` seconds. The message lists what was received.
        """
        with self._changed:
            value = self._changed.wait_for(lambda: predicate(self), timeout)
            if not value:
                names = [span.name for span in self._spans]
                counts = f"{len(self._logs)} log records and {len(self._metrics)} metrics"
                raise TimeoutError(f"condition not met within {timeout} s; received: spans {names}, {counts}")
            return value

    def environment(self, protocol: OTLPProtocol = "http/protobuf") -> dict[str, str]:
        """Return the environment variables that make a process export to this receiver."""
        endpoint = self.grpc_endpoint if protocol == "grpc" else self.endpoint
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}

    def clear(self) -> None:
        """Discard all received data."""
        with self._changed:
            self._spans.clear()
            self._logs.clear()
            self._metrics.clear()

    def close(self) -> None:
        """Stop listening. Idempotent."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._grpc is not None:
            self._grpc[0].stop(grace=None).wait()

    def receive(self, signal: str, request: Any) -> None:
        """Store an export request. The servers call this method."""
        with self._changed:
            if signal == "traces":
                self._spans.extend(parse_spans(request))
            elif signal == "logs":
                self._logs.extend(parse_logs(request))
            else:
                self._metrics.extend(parse_metrics(request))
            self._changed.notify_all()

    def _serve_grpc(self) -> tuple[Any, int]:
        grpc = import_module("grpc")

        def receiving(signal: str, response: Any) -> Callable[[Any, Any], Any]:
            def receive(request: Any, _context: Any) -> Any:
                self.receive(signal, request)
                return response()

            return receive

        server = grpc.server(ThreadPoolExecutor(4, thread_name_prefix="germane-otlp-receiver"))
        for signal, (request, response, service) in _MESSAGES.items():
            name = f"opentelemetry.proto.collector.{service}"
            method = grpc.unary_unary_rpc_method_handler(
                receiving(signal, response),
                request_deserializer=request.FromString,
                response_serializer=response.SerializeToString,
            )
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Export": method}),))
        port: int = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return server, port


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for the threads

    def __init__(self, address: tuple[str, int], receiver: OTLPReceiver) -> None:
        self.receiver = receiver
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    timeout = 5
    """Seconds within which a client must send its request. Closing the server may take that long."""

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":  # sent by exporters for Node.js
            chunks = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            body = b"".join(chunks)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        signal = self.path.removeprefix("/v1/")
        if signal not in _MESSAGES:
            self.send_error(404)
            return
        encoding = self.headers.get("Content-Encoding")
        if encoding == "gzip":
            body = gzip.decompress(body)
        elif encoding == "deflate":
            body = zlib.decompress(body)
        request, response, _ = _MESSAGES[signal]
        self.server.receiver.receive(signal, request.FromString(body))
        reply = response().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Suppress access logs."""
