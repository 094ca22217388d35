"""Serving the dashboard: on a thread, so that the main one can listen for signals or score."""

from __future__ import annotations

import errno
import gc
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from germane.errors import GermaneError

GRACE: Final = 3
"""Seconds that requests may take that are under way when it is to stop."""
_LOGGER: Final = logging.getLogger("uvicorn.error")


class CannotListen(GermaneError):
    """The address is taken, or is none of this machine."""


class Server:
    """One application at one address.

    Args:
        app: What is served.
        host: A name or an address of this machine.
        port: 0 for any that is free.

    Raises:
        CannotListen: it cannot be served there.
    """

    def __init__(self, app: ASGIApp, *, host: str, port: int) -> None:
        self._socket = _listen(host, port)
        self._server = _Announcing(_config(app))
        self._thread = threading.Thread(target=self._serve, name="germane-serving", daemon=True)

    @property
    def address(self) -> str:
        """Where it is, such as ``http://127.0.0.1:8642``."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def serves(self) -> bool:
        """Whether it does."""
        return self._thread.is_alive()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve, from the first request that is accepted until the block ends, and then for three seconds at most."""
        _LOGGER.addFilter(_WITHOUT_TEXT)
        gc.freeze()  # what was imported stays: it need not be looked through again and again
        self._thread.start()
        try:
            while not self._server.began.wait(0.1) and self.serves:
                pass
            yield
        finally:
            self._server.should_exit = True
            self._thread.join(GRACE + 2.0)
            self._socket.close()
            _LOGGER.removeFilter(_WITHOUT_TEXT)

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


class _Announcing(uvicorn.Server):
    """Says when it accepts requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.began = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.began.set()


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,  # addresses hold what people look for
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        raise CannotListen(f"cannot serve on {host} port {port}: {_why(error)}") from None


def _why(error: Exception) -> str:
    if not isinstance(error, OSError):
        return type(error).__name__
    if error.errno == errno.EADDRINUSE:
        return "another process has it. Take another port, or 0 for any that is free"
    code = None if isinstance(error, socket.gaierror) else error.errno
    return os.strerror(code) if code else error.strerror or type(error).__name__


class _WithoutText(logging.Filter):
    """Leaves of an exception its kind and its place: its words may quote what people asked."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            error, trace = record.exc_info[1], record.exc_info[2]
            record.msg, record.args = "a page could not be made: %s at %s", (type(error).__name__, _place(trace))
            record.exc_info, record.exc_text = None, None
        return True


def _place(trace: TracebackType | None) -> str:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


_WITHOUT_TEXT: Final = _WithoutText()
