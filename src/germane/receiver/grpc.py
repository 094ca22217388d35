"""OTLP over gRPC: the ``Export`` methods of TraceService and LogsService."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from importlib import import_module
from typing import Any, Final

from google.protobuf.any_pb2 import Any as AnyMessage  # type: ignore[import-untyped]
from google.protobuf.duration_pb2 import Duration  # type: ignore[import-untyped]
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from germane.receiver.requests import PROTOBUF, InvalidRequest, Overloaded, Signal
from germane.receiver.service import COMMIT_TIMEOUT, MAX_CONCURRENT_REQUESTS, ExportService
from germane.receiver.staging import STORAGE_RETRY
from germane.web_server import ListenError, TLSFiles

_SERVICES: Final[dict[str, Signal]] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
_SPARE_THREADS: Final = 8
"""Threads that tell clients to wait while all other threads are busy."""


class GRPCServer:
    """Serves OTLP over gRPC.

    Args:
        service: Receives the requests.
        host: A host name or address of this machine.
        port: The port to listen on; 0 for any free port.
        tls: The files for TLS; None for plain text.
        max_request_size: Maximum size of a decompressed request in bytes.

    Raises:
        ListenError: The address is in use, or does not belong to this machine.
    """

    def __init__(
        self, service: ExportService, *, host: str, port: int, tls: TLSFiles | None, max_request_size: int
    ) -> None:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # otherwise, each failed TLS handshake prints several lines
        grpc: Any = import_module("grpc")  # has no type information
        self._service, is_authorized = service, service.is_authorized
        self._codes = grpc.StatusCode
        self._server = grpc.server(
            ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS + _SPARE_THREADS, thread_name_prefix="germane-grpc"),
            options=[
                ("grpc.max_receive_message_length", max_request_size),
                ("grpc.max_metadata_size", 16 * 1024),
                ("grpc.so_reuseport", 0),  # otherwise, two receivers could share a port without noticing
            ],
        )
        methods = {
            f"/{name}/Export": grpc.unary_unary_rpc_method_handler(
                self._method(signal), response_serializer=lambda message: message.SerializeToString()
            )
            for name, signal in _SERVICES.items()
        }
        # A method of this kind is called before the request is read.
        unauthorized = grpc.stream_unary_rpc_method_handler(
            lambda _requests, context: context.abort(
                grpc.StatusCode.UNAUTHENTICATED, "a token is required: authorization: Bearer TOKEN"
            )
        )

        class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # has no type information
            def service(self, details: Any) -> Any:
                token = dict(details.invocation_metadata).get("authorization", "")
                return methods.get(details.method) if isinstance(token, str) and is_authorized(token) else unauthorized

        self._server.add_generic_rpc_handlers((Handlers(),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                self.port: int = self._server.add_insecure_port(address)
            else:
                authorities = None if tls.client_ca is None else tls.client_ca.read_bytes()
                credentials = grpc.ssl_server_credentials(
                    [(tls.key.read_bytes(), tls.certificate.read_bytes())],
                    root_certificates=authorities,
                    require_client_auth=authorities is not None,
                )
                self.port = self._server.add_secure_port(address, credentials)
        except RuntimeError:
            raise ListenError(
                f"cannot listen on {host} port {port} with gRPC: the port is in use, or the address does not belong to "
                "this machine. Choose another port, or 0 for any free port"
            ) from None
        self.host = host
        self._scheme = "http" if tls is None else "https"

    @property
    def address(self) -> str:
        """The URL for exporters, such as ``http://127.0.0.1:4317``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{self.port}"

    def start(self) -> None:
        """Accept requests."""
        self._server.start()

    def stop(self, timeout: float) -> None:
        """Stop accepting requests, and wait up to ``timeout`` seconds for active ones."""
        self._server.stop(timeout).wait(timeout + 1.0)

    def _method(self, signal: Signal) -> Callable[[bytes, Any], Any]:
        def export(body: bytes, context: Any) -> Any:
            try:
                with self._service.slot() as slot:
                    slot.grow(len(body))
                    batch, committed = self._service.submit(signal, body, PROTOBUF)
                    try:
                        committed.result(COMMIT_TIMEOUT)
                    except FutureTimeout:  # it may still be committed; the repeated spans will be recognized
                        raise Overloaded("the database is slow", STORAGE_RETRY, 503) from None
                    return self._service.respond(signal, batch)
            except InvalidRequest as error:
                context.abort(self._codes.INVALID_ARGUMENT, str(error))
            except Overloaded as error:
                # Without RetryInfo, clients do not retry after RESOURCE_EXHAUSTED.
                code = self._codes.RESOURCE_EXHAUSTED if error.status == 429 else self._codes.UNAVAILABLE
                retry = RetryInfo(retry_delay=Duration(seconds=error.retry_after))
                details = AnyMessage()
                details.Pack(retry)
                status = Status(code=code.value[0], message=str(error), details=[details])
                context.set_trailing_metadata(
                    (
                        ("grpc-status-details-bin", status.SerializeToString()),
                        # OpenTelemetry's Python exporter reads this.
                        ("google.rpc.retryinfo-bin", retry.SerializeToString()),
                    )
                )
                context.abort(code, str(error))

        return export
