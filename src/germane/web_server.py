"""A web server in its own thread, so that the main thread can handle signals or score answers."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from germane.errors import GermaneError, SettingsError, error_location

SHUTDOWN_TIMEOUT: Final = 3
"""Seconds for which the server waits for in-flight requests when it stops."""
_LOGGER: Final = logging.getLogger("uvicorn.error")


REQUEST_TIMEOUT: Final = 10.0
"""Seconds within which a client must send a complete request, so that idle connections do not pile up."""


class ListenError(GermaneError):
    """The server cannot listen on this address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSFiles:
    """PEM files with which a server encrypts connections."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Certificates of the authorities that must have signed a client's certificate. None accepts any client."""

    def check(self) -> None:
        """Raise a settings error unless all files can be read, and the key is that of the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except (OSError, ValueError) as error:  # SSLError is an OSError
            reason = getattr(error, "reason", None) or type(error).__name__
            raise SettingsError(
                f"the certificate {self.certificate} and the key {self.key} cannot be used: {reason}"
            ) from None
        try:
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise SettingsError(f"the client CA {self.client_ca} cannot be used: {reason}") from None


class WebServer:
    """Serves one application at one address.

    Port 0 is any free port. Without ``tls``, it serves HTTP.

    Raises:
        ListenError: The address is in use or does not belong to this machine.
    """

    def __init__(self, app: ASGIApp, *, host: str, port: int, tls: TLSFiles | None = None) -> None:
        self._scheme = "http" if tls is None else "https"
        self._socket = _listen(host, port)
        # Connections inherit this option, which asyncio sets only on sockets with a protocol number. Without it, the
        # kernel delays the end of a response by 40 ms, until the client has acknowledged its beginning.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=_TimeLimitedProtocol,
            ws="none",
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,  # URLs contain search terms
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
            ssl_ca_certs=None if tls is None or tls.client_ca is None else str(tls.client_ca),
            ssl_cert_reqs=ssl.CERT_NONE if tls is None or tls.client_ca is None else ssl.CERT_REQUIRED,
        )
        self._server = _SignalingServer(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="germane-serving", daemon=True
        )

    @property
    def address(self) -> str:
        """The URL, such as ``http://127.0.0.1:8642``."""
        host, port = self._socket.getsockname()[:2]
        return f"{self._scheme}://[{host}]:{port}" if ":" in host else f"{self._scheme}://{host}:{port}"

    @property
    def is_serving(self) -> bool:
        """Whether the server is running."""
        return self._thread.is_alive()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve requests while the block runs, which starts once they are accepted. Stopping takes up to 5 seconds."""
        _LOGGER.addFilter(_REDACT_EXCEPTIONS)
        gc.freeze()  # imported modules stay in memory, so the garbage collector can skip them
        self._thread.start()
        try:
            while not self._server.started_event.wait(0.1) and self.is_serving:
                pass
            yield
        finally:
            self._server.should_exit = True
            self._thread.join(SHUTDOWN_TIMEOUT + 2.0)
            self._socket.close()
            _LOGGER.removeFilter(_REDACT_EXCEPTIONS)


class _TimeLimitedProtocol(H11Protocol):
    """An HTTP connection that is closed if a request, including its body, does not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start the deadline if a request is incomplete, and cancel it if not."""
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._cancel()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_TIMEOUT, self.transport.close)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _SignalingServer(uvicorn.Server):
    """A uvicorn server that sets an event once it accepts requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.started_event = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_event.set()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = type(error).__name__
        if isinstance(error, OSError):
            code = None if isinstance(error, socket.gaierror) else error.errno
            reason = os.strerror(code) if code else error.strerror or reason
            if error.errno == errno.EADDRINUSE:
                reason = "the port is in use. Choose another port, or 0 for any free port"
        raise ListenError(f"cannot listen on {host} port {port}: {reason}") from None


class _RedactExceptions(logging.Filter):
    """Reduces a logged exception to its type and location, because its message may quote captured text."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            record.msg, record.args = "request failed: %s", (error_location(record.exc_info[1]),)
            record.exc_info, record.exc_text = None, None
        return True


_REDACT_EXCEPTIONS: Final = _RedactExceptions()
