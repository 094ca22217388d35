"""OTLP over gRPC: the ``Export`` methods of TraceService and LogsService."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from google.protobuf.any_pb2 import Any as AnyMessage  # type: ignore[import-untyped]
from google.protobuf.duration_pb2 import Duration  # type: ignore[import-untyped]
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from germane.otlp import Signal
from germane.receiver.requests import PROTOBUF, InvalidRequest, Overloaded
from germane.receiver.service import ExportService
from germane.web_server import REQUEST_TIMEOUT, ListenError, TLSFiles

_SERVICES: Final[dict[str, Signal]] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}


class GRPCServer:
    """Serves OTLP over gRPC, on an event loop in a thread of its own.

    In contrast to grpc's threads, of which each waits for the rest of a request, slow clients keep no other waiting.

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
        self._service = service
        self._codes = grpc.StatusCode
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="germane-grpc", daemon=True)
        self._thread.start()
        options = [
            ("grpc.max_receive_message_length", max_request_size),
            ("grpc.max_metadata_size", 16 * 1024),
            ("grpc.so_reuseport", 0),  # otherwise, two receivers could share a port without noticing
        ]
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self._server, self.port = self._run(self._bind(grpc, options, address, tls))
        except RuntimeError:
            self._close_loop()
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
        self._run(self._server.start())

    def stop(self, timeout: float) -> None:
        """Stop accepting requests, and wait up to ``timeout`` seconds for active ones."""
        with suppress(FutureTimeout):
            self._run(self._server.stop(timeout), timeout + 1.0)
        self._close_loop()

    def _run(self, work: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def _close_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _bind(
        self, grpc: Any, options: list[tuple[str, int]], address: str, tls: TLSFiles | None
    ) -> tuple[Any, int]:
        """Return a server and the port that it listens on."""
        server = import_module("grpc.aio").server(options=options)
        is_authorized = self._service.is_authorized
        # A method of this kind is called before the request is read.
        kind = grpc.stream_unary_rpc_method_handler
        methods = {
            f"/{name}/Export": kind(
                self._method(signal), response_serializer=lambda message: message.SerializeToString()
            )
            for name, signal in _SERVICES.items()
        }
        unauthorized = kind(
            lambda _requests, context: context.abort(
                self._codes.UNAUTHENTICATED, "a token is required: authorization: Bearer TOKEN"
            )
        )

        class Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # has no type information
            def service(self, details: Any) -> Any:
                token = dict(details.invocation_metadata).get("authorization", "")
                return methods.get(details.method) if isinstance(token, str) and is_authorized(token) else unauthorized

        server.add_generic_rpc_handlers((Handlers(),))
        if tls is None:
            return server, server.add_insecure_port(address)
        authorities = None if tls.client_ca is None else tls.client_ca.read_bytes()
        credentials = grpc.ssl_server_credentials(
            [(tls.key.read_bytes(), tls.certificate.read_bytes())],
            root_certificates=authorities,
            require_client_auth=authorities is not None,
        )
        return server, server.add_secure_port(address, credentials)

    def _method(self, signal: Signal) -> Callable[[AsyncIterator[bytes], Any], Awaitable[Any]]:
        async def export(requests: AsyncIterator[bytes], context: Any) -> Any:
            try:
                with self._service.request(context.peer().rpartition(":")[0]) as active:
                    async with asyncio.timeout(REQUEST_TIMEOUT):
                        body = await anext(requests, b"")
                    self._service.reserve(active, len(body))
                    return await self._service.receive(active, signal, body, PROTOBUF)
            except TimeoutError:
                await context.abort(self._codes.DEADLINE_EXCEEDED, "the request did not arrive in time")
            except InvalidRequest as error:
                await context.abort(self._codes.INVALID_ARGUMENT, str(error))
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
                await context.abort(code, str(error))

        return export
