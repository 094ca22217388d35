"""The HTTP side of the fake judge: what a server of the OpenAI protocol says, and the ways in which it fails."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from germane.testing.fault import Fault
from germane.testing.judge_request import Request

if TYPE_CHECKING:
    from germane.testing.fake_judge import FakeJudge

_WORD = re.compile(r"\w+")


@dataclass
class Reply:
    """One reply as it goes out."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class JudgeServer(ThreadingHTTPServer):
    """Keeps its connections and threads, so that closing ends them all."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], judge: FakeJudge) -> None:
        self.judge = judge
        self.connections: set[socket.socket] = set()
        self.threads: list[threading.Thread] = []
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on a thread of its own, which closing waits for."""
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self.threads.append(thread)
        thread.start()

    def end_connections(self) -> None:
        """Wake every thread that waits for a next request, and wait for them all."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away: tests make them do so."""


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
            self._send(Reply({"object": "list", "data": models}))
        else:
            self._send(Reply({"status": "ok"}, 200 if self.path == "/health" else 404))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(path, json.loads(raw or b"{}"), headers, query)
        judge = self.server.judge
        with judge.serving(request) as fault:
            failed = fault is not None and self._fail(fault, request)
            reply = None if failed else judge.reply(request, fault)
        if reply is not None:  # no longer in flight: whoever has its reply may ask again at once
            self._send(reply)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def _send(self, reply: Reply) -> None:
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _fail(self, fault: Fault, request: Request) -> bool:
        """Fail in a way that is no reply; return False for the ways that are one."""
        if fault.kind == "hang":
            self.server.judge.closing.wait()
            self.close_connection = True
        elif fault.kind == "reset":
            self._reset()
        elif fault.kind == "truncated":
            self._half(self.server.judge.reply(request, None))
        elif fault.kind == "drip":
            self._drip()
        else:
            return False
        return True

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _half(self, reply: Reply) -> None:
        body = json.dumps(reply.body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        self.close_connection = True

    def _drip(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(10**9))
        self.end_headers()
        with contextlib.suppress(OSError):
            while not self.server.judge.closing.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()


def hashed_words(text: str, dimension: int = 256) -> list[float]:
    """Return a vector of length 1 in which each word has its place: texts that share words are similar.

    The same in every process. A text without words gets a place for itself.
    """
    vector = [0.0] * dimension
    for word in _WORD.findall(text.casefold()) or [text or " "]:
        digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        vector[int.from_bytes(digest) % dimension] += 1.0
    length = math.hypot(*vector)
    return [number / length for number in vector]
