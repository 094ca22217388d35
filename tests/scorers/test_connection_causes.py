"""Causes of failed judge requests: the root cause and the URL, without secrets."""

from __future__ import annotations

import asyncio
import errno
import select
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers.judge import client
from germane.scorers.judge.client import ModelServer, _connection_cause
from germane.scorers.judge.embedders import OpenAIEmbedder
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.testing import FakeJudge, Fault
from germane.testing.judge_request import JudgeRequest
from germane.testing.judge_server import JudgeReply


def failure(base_url: str, **server: Any) -> ScoringError:
    """Return the error of a judge request."""

    async def ask() -> ScoringError:
        judge = OpenAIJudge("m", ModelServer(**{"api_key": "test", "base_url": base_url, "retries": 0} | server))
        try:
            with pytest.raises(ScoringError) as caught:
                await judge.ask([Message("user", "Why?")])
        finally:
            await judge.aclose()
        return caught.value

    return asyncio.run(ask())


@contextmanager
def listening(serve: Callable[[socket.socket], object]) -> Iterator[int]:
    """Listen on a port, and pass each connection to a function."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def open_sockets() -> set[int]:
    """Return the inodes of the process's sockets. Those of earlier tests may close at any time."""
    return {path.stat().st_ino for path in Path("/proc/self/fd").iterdir() if path.is_socket()}


def answer_plainly(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_a_refused_connection_is_named() -> None:
    """Nothing listens on the port. The URL is the one that was requested."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    error = failure(f"http://127.0.0.1:{port}/v1")

    assert str(error) == f"no connection to http://127.0.0.1:{port}/v1/chat/completions: Connection refused"


@pytest.mark.compat
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse or accept what exceeds the backlog")
@each(
    ("timeout", "reason", "message"),
    [
        (60.0, UnscoredReason.JUDGE_UNREACHABLE, "no connection to {url}: Connection timed out"),
        (0.05, UnscoredReason.JUDGE_TIMEOUT, "no reply from {url} within 0.05 s"),
    ],
)
def test_a_server_that_accepts_no_connection_is_unreachable(
    timeout: float, reason: UnscoredReason, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request waits at most 5 s for a connection, within the judge's timeout. Then no attempt is left open."""
    monkeypatch.setattr(client, "MAX_CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as backlog:
        address, is_full = server.getsockname(), False
        while not is_full:
            connection = backlog.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(address)
            is_full = not select.select([], [connection], [], 0.1)[1]
        url, before = f"http://127.0.0.1:{address[1]}/v1", open_sockets()
        error = failure(url, timeout=timeout)
        after = open_sockets()

    assert (error.reason, str(error)) == (reason, message.format(url=f"{url}/chat/completions"))
    assert after <= before


@each("host", ["judge.invalid", "a.b.invalid", "xn--80ak6aa92e.invalid"])
def test_an_unknown_host_is_named(host: str) -> None:
    """The top-level domain is reserved, so no name server knows it."""
    error = failure(f"http://{host}:11434/v1")

    assert str(error).startswith(f"no connection to http://{host}:11434/v1/chat/completions: unknown host: ")
    assert error.reason is UnscoredReason.JUDGE_UNREACHABLE


def test_a_server_without_tls_is_named() -> None:
    """The fix is another base URL."""
    with listening(answer_plainly) as port:
        error = failure(f"https://127.0.0.1:{port}/v1")

    assert f"https://127.0.0.1:{port}/v1/chat/completions: no TLS: " in str(error)
    assert "http://" in (error.fix or "")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """Return a server's TLS context with a self-signed certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    directory = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=judge -keyout key.pem -out cert.pem"
    subprocess.run(command.split(), check=True, capture_output=True, cwd=directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return context


def test_an_untrusted_certificate_is_named(certificate: ssl.SSLContext) -> None:
    """The fix is to trust the certificate."""
    with listening(lambda connection: certificate.wrap_socket(connection, server_side=True)) as port:
        error = failure(f"https://127.0.0.1:{port}/v1")

    assert f"https://127.0.0.1:{port}/v1/chat/completions: untrusted certificate: self" in str(error)
    assert "SSL_CERT_FILE" in (error.fix or "")


@each("serve", [lambda connection: connection.recv(1000), lambda connection: connection.sendall(b"SSH-2.0-x\r\n")])
def test_a_connection_that_ends_without_a_reply_has_a_cause_in_words(serve: Callable[[socket.socket], object]) -> None:
    """A server of another protocol, or one that stops, is not described by the name of an exception alone."""
    with listening(serve) as port:
        cause = str(failure(f"http://127.0.0.1:{port}/v1")).rpartition("completions: ")[2]

    assert " " in cause


def test_the_cause_of_several_failed_addresses_is_that_of_the_first() -> None:
    """A host such as localhost has several addresses, whose errors come in a group."""
    error = OSError("All connection attempts failed")
    error.__cause__ = ExceptionGroup("multiple", [ConnectionRefusedError(errno.ECONNREFUSED, "x"), TimeoutError()])

    assert _connection_cause(error) == ("Connection refused", None)


class Explaining(FakeJudge):
    """A server that answers every request with a body and HTTP status 404."""

    body: Any = b""

    def reply(self, request: JudgeRequest, fault: Fault | None) -> JudgeReply:
        return JudgeReply(self.body, 404)


@pytest.fixture(scope="module")
def explaining() -> Iterator[Explaining]:
    with Explaining() as server:
        yield server


@each(
    ("body", "expected"),
    [
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required"),
        ({"message": "no such route"}, "no such route"),
        ({"error": "no such route"}, "no such route"),
        ({"error": {"message": "no such route"}}, "no such route"),
        ({"error": {"detail": "no such route"}}, "no such route"),
        ({"error": {"error": {"msg": "no such route"}}}, "no such route"),
        ({"errors": ["no such route", "another"]}, "no such route"),
        ({"errors": [{"title": "no such route"}]}, "no such route"),
        ({"title": "no such route", "status": 404}, "no such route"),
        ({"error": True, "detail": "no such route"}, '{"error": true, "detail": "no such route"}'),
        ({"message": 404, "detail": "no such route"}, "no such route"),
        ([{"message": "no such route"}], "no such route"),
        ({"reason": "no such route"}, '{"reason": "no such route"}'),
        (b"404 page not found\n", "404 page not found"),
        (b"", "no explanation"),
    ],
)
def test_the_explanation_in_an_error_is_kept(explaining: Explaining, body: Any, expected: str) -> None:
    """Servers put it into different members. Without a known one, the body itself is shown."""
    explaining.body = body

    error = str(failure(explaining.base_url))

    assert error == f"HTTP 404: {expected} ({explaining.base_url}/chat/completions)"


@each(
    ("path", "shown"),
    [
        ("", ""), ("/", ""), ("/v1", "/v1"), ("/v1/", "/v1"), ("/api/v1", "/api/v1"), ("/openai/v1", "/openai/v1"),
        ("/v1/chat/completions", "/v1/chat/completions"), ("/v1/embeddings", "/v1/embeddings"),
        ("/token-12345/v1", "/[hidden]/v1"), ("/v1?api-version=secret-9", "/v1"), ("/v1/deployments", "/v1/[hidden]"),
    ],
)  # fmt: skip
def test_the_url_of_a_request_is_shown_without_secrets(explaining: Explaining, path: str, shown: str) -> None:
    """A wrong base URL is the usual cause of HTTP 404. Long parts of its path can be secret."""
    explaining.body = {"detail": "Not Found"}
    root = explaining.base_url.removesuffix("/v1")

    error = str(failure(f"{root.replace('//', '//user:hunter22@')}{path}"))

    assert error == f"HTTP 404: Not Found ({root}{shown}/chat/completions)"


def test_an_embedders_fault_names_its_own_url(explaining: Explaining) -> None:
    """The judge and the embedder can have different servers."""
    explaining.body = {"detail": "Not Found"}

    async def embed() -> None:
        server = ModelServer(api_key="test", base_url=explaining.base_url, retries=0)
        embedder = OpenAIEmbedder("e", server)
        try:
            await embedder.embed(["text"])
        finally:
            await embedder.aclose()

    with pytest.raises(ScoringError) as caught:
        asyncio.run(embed())

    assert str(caught.value) == f"embedder: HTTP 404: Not Found ({explaining.base_url}/embeddings)"
