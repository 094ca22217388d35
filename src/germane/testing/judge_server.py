"""The HTTP server of a fake judge, and faults at the connection level."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from germane.testing.fault import Fault
from germane.testing.judge_request import JudgeRequest


@dataclass
class JudgeReply:
    """An HTTP response. If the body is not bytes, it is sent as JSON."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class JudgeBackend(Protocol):
    """The interface of a fake judge that its server uses."""

    model: str
    embedding_model: str
    closing: threading.Event

    def track_request(self, request: JudgeRequest) -> AbstractContextManager[Fault | None]:
        """Count a request as in flight while the block runs, and yield its fault."""

    def reply(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
        """Return the reply to a request, with a fault applied."""


class JudgeServer(ThreadingHTTPServer):
    """A server that tracks its connections and threads, so that closing it shuts them all down."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], judge: JudgeBackend) -> None:
        self.judge = judge
        self.connections: set[socket.socket] = set()
        self.threads: list[threading.Thread] = []
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in a separate thread. :meth:`end_connections` waits for these threads."""
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self.threads.append(thread)
        thread.start()

    def end_connections(self) -> None:
        """Shut down all connections, and wait for their threads to exit."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors from disconnected clients, because tests disconnect on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: JudgeServer

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)
        if self.server.judge.closing.is_set():
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        judge = self.server.judge
        if self.path.endswith("/models"):
            models = [{"id": name, "object": "model"} for name in (judge.model, judge.embedding_model)]
            self._send(JudgeReply({"object": "list", "data": models}))
        else:
            self._send(JudgeReply({"status": "ok"}, 200 if self.path == "/health" else 404))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = JudgeRequest(path, json.loads(raw or b"{}"), headers, query)
        judge = self.server.judge
        with judge.track_request(request) as fault:
            failed = fault is not None and self._fail(fault, request)
            reply = None if failed else judge.reply(request, fault)
        # Reply only when the request no longer counts as in flight, because the client may send another one
        # immediately.
        if reply is not None:
            self._send(reply)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Suppress access logs."""

    def _send(self, reply: JudgeReply) -> None:
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self._send_head(reply.status, {"Content-Type": "application/json", **reply.headers}, len(body))
        self.wfile.write(body)
        self.wfile.flush()

    def _send_head(self, status: int, headers: dict[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _fail(self, fault: Fault, request: JudgeRequest) -> bool:
        """Apply a fault that prevents a complete reply. Return False for faults that are complete replies."""
        closing = self.server.judge.closing
        if fault.kind == "hang":
            closing.wait()
        elif fault.kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif fault.kind == "truncated":
            body = json.dumps(self.server.judge.reply(request, None).body).encode()
            self._send_head(200, {"Content-Type": "application/json"}, len(body))
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
        elif fault.kind == "endless":
            self._send_head(200, {"Content-Type": "application/json"}, 10**12)
            with contextlib.suppress(OSError):
                while not closing.is_set():
                    self.wfile.write(b" " * 65_536)
        elif fault.kind == "drip":
            self._send_head(200, {"Content-Type": "application/json"}, 10**9)
            with contextlib.suppress(OSError):
                while not closing.wait(0.02):
                    self.wfile.write(b" ")
                    self.wfile.flush()
        else:
            return False
        self.close_connection = True
        return True
