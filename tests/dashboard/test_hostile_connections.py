"""Clients that never finish a request, connections that stay open, and compressed responses."""

from __future__ import annotations

import gzip
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import httpx2
import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import Week, now

from germane import web_server
from germane.dashboard import create_app
from germane.settings import load_settings
from germane.web_server import WebServer

UNFINISHED = {
    "nothing": b"",
    "half a request line": b"GET / HT",
    "headers without an end": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: 1\r\n",
    "half a form": b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nby=",
    "half a second request": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HTTP/1.1\r\nHo",
}


@pytest.fixture
def address(week: Week, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """The address of a server that waits half a second for a complete request."""
    monkeypatch.setattr(web_server, "REQUEST_TIMEOUT", 0.5)
    app = create_app(load_settings(database="sqlite://"), store=week.store, now=now)
    running = WebServer(app, host="127.0.0.1", port=0)
    with running.running():
        host, _, port = running.address.removeprefix("http://").partition(":")
        yield host, int(port)


@pytest.mark.slow
@each("sent", UNFINISHED)
def test_connections_with_unfinished_requests_are_closed(address: tuple[str, int], sent: str) -> None:
    """Connections are closed within the time limit, while other requests are answered."""
    with socket.create_connection(address, timeout=20) as client:
        client.sendall(UNFINISHED[sent])
        assert httpx2.get(f"http://{address[0]}:{address[1]}/healthz").status_code == 200
        while client.recv(4096):
            pass  # a response to the finished request, then the end


def test_later_responses_on_a_connection_are_not_delayed(address: tuple[str, int]) -> None:
    """The kernel does not hold back the end of a response until the client has acknowledged its beginning."""

    def seconds(connection: HTTPConnection) -> float:
        started = time.perf_counter()
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        return time.perf_counter() - started

    kept, first, later = HTTPConnection(*address), [], []
    seconds(kept)
    for _ in range(15):
        with closing(HTTPConnection(*address)) as new:
            first.append(seconds(new))
        later.append(seconds(kept))
    kept.close()

    # An acknowledgment is held back for 40 ms, a hundred times as long as a response takes.
    assert statistics.median(later) < 10 * statistics.median(first)


def test_pages_are_compressed_for_clients_that_accept_it(page: TestClient) -> None:
    """Pages and downloads are compressed for clients that accept it; small responses are not compressed."""
    for path in ("/", "/answers", "/answers.csv?window=24h", "/answers.json?window=24h", "/static/germane.js"):
        plain = page.get(path, headers={"accept-encoding": "identity"})
        packed = page.get(path, headers={"accept-encoding": "gzip"})

        assert packed.headers["content-encoding"] == "gzip"
        assert "accept-encoding" in packed.headers["vary"].lower()
        assert "content-security-policy" in packed.headers
        assert len(gzip.compress(plain.content)) < len(plain.content) / 2
        assert len(packed.text) == len(plain.text)
    assert "content-encoding" not in page.get("/healthz").headers
