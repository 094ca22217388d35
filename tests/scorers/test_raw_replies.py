"""Raw HTTP replies of servers and gateways: bodies without a model's reply, compression, and endless bodies."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.http_client import Decompressor, ReplyTooLarge
from germane.scorers.judge.openai_judge import OpenAIJudge

COMPLETION = json.dumps(
    {"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "4"}}]}
).encode()
Respond = Callable[[BaseHTTPRequestHandler, int], None]
"""Sends the reply to a request. Requests are numbered from 1."""


class RawServer:
    """A server that calls a function to reply to each request."""

    def __init__(self, respond: Respond) -> None:
        self.requests = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.requests += 1
                self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    respond(self, outer.requests)
                except OSError:  # the client has read enough
                    self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def ask(self) -> str:
        """Return the judge's text or, if it failed, the reason."""

        async def use() -> str:
            url = f"http://127.0.0.1:{self._server.server_port}/v1"
            judge = OpenAIJudge("m", ModelServer(api_key="test", base_url=url, timeout=20))
            try:
                return (await judge.ask([Message("user", "Rate it.")])).texts[0]
            except ScoringError as error:
                return f"{error.reason}: {error}"
            finally:
                await judge.aclose()

        return asyncio.run(use())

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def serve() -> Iterator[Callable[[Respond], RawServer]]:
    """Return a function that starts a server."""
    servers: list[RawServer] = []

    def start(respond: Respond) -> RawServer:
        servers.append(RawServer(respond))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def body(content: bytes, status: int = 200, **headers: str) -> Respond:
    """Return a function that sends a body."""

    def respond(handler: BaseHTTPRequestHandler, _: int) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return respond


def endless(status: int) -> Respond:
    """Return a function that sends an endless body."""

    def respond(handler: BaseHTTPRequestHandler, _: int) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        handler.close_connection = True
        while True:
            handler.wfile.write(b" " * 65_536)

    return respond


WITHOUT_REPLY: tuple[Any, ...] = (
    {}, {"detail": "internal"}, {"message": "Service Unavailable", "status": 503}, {"errors": [{"message": "x"}]},
    {"object": "error", "message": "x", "code": 500}, {"type": "error", "message": "overloaded"}, {"choices": None},
    {"choices": {}}, {"choices": "none"}, {"success": False}, {"status": "error", "data": None},
    {"title": "Bad Gateway", "status": 502}, [], None, "upstream error", 4,
)  # fmt: skip


@pytest.mark.parametrize("reply", WITHOUT_REPLY, ids=json.dumps)
def test_a_successful_response_without_a_completion_is_retried(serve: Any, reply: Any) -> None:
    """HTTP 200 with an object other than a completion is treated like a 5xx: one retry, then the task waits."""
    broken, working = body(json.dumps(reply).encode()), body(COMPLETION)

    recovering = serve(lambda handler, number: (broken if number == 1 else working)(handler, number))
    failing = serve(broken)

    assert (recovering.ask(), recovering.requests) == ("4", 2)
    assert failing.ask().startswith("judge_unreachable: HTTP 200")
    assert failing.requests == 2


@pytest.mark.parametrize(
    ("reply", "reason", "requests"),
    [
        ({"object": "error", "message": "no such model", "code": 404}, UnscoredReason.JUDGE_REJECTED, 1),
        ({"message": "slow down", "status": 429}, UnscoredReason.JUDGE_RATE_LIMITED, 2),
        ({"detail": "bad key", "status_code": 401}, UnscoredReason.JUDGE_REJECTED, 1),
        ({"type": "error", "code": "insufficient_quota"}, UnscoredReason.JUDGE_REJECTED, 1),
    ],
)
def test_an_error_status_in_the_response_body_determines_the_reason(
    serve: Any, reply: Any, reason: UnscoredReason, requests: int
) -> None:
    """Gateways put the status of the server behind them into the body."""
    server = serve(body(json.dumps(reply).encode()))

    assert server.ask().startswith(str(reason))
    assert server.requests == requests


@pytest.mark.parametrize("status", [500, 503, 404])
def test_only_the_beginning_of_a_long_error_body_is_read(serve: Any, status: int) -> None:
    """Only the beginning of the body is read, however long it is."""
    server = serve(endless(status))

    assert server.ask().startswith("judge_rejected: HTTP 404" if status == 404 else f"judge_unreachable: HTTP {status}")
    assert server.requests == (1 if status == 404 else 2)


def raw_deflate(content: bytes) -> bytes:
    """Compress without the zlib header, as some servers do."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(content) + compressor.flush()


COMPRESSED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress), "upper case": ("GZIP", gzip.compress), "x-gzip": ("x-gzip", gzip.compress),
    "two members": ("gzip", lambda content: gzip.compress(content[:50]) + gzip.compress(content[50:])),
    "deflate": ("deflate", zlib.compress), "raw deflate": ("deflate", raw_deflate),
    "identity": ("identity", bytes), "empty": ("", bytes), "identity and gzip": ("identity, gzip", gzip.compress),
}  # fmt: skip


@pytest.mark.parametrize(("encoding", "compress"), COMPRESSED.values(), ids=COMPRESSED.keys())
def test_compressed_replies_are_decompressed(serve: Any, encoding: str, compress: Callable[[bytes], bytes]) -> None:
    """Some servers compress replies even though germane does not accept compression."""
    assert serve(body(compress(COMPLETION), Content_Encoding=encoding)).ask() == "4"
    assert (
        "invalid key"
        in serve(body(compress(b'{"error": {"message": "invalid key"}}'), 401, Content_Encoding=encoding)).ask()
    )


def test_the_error_names_an_unsupported_compression(serve: Any) -> None:
    """The explanation says which compression germane did not accept."""
    assert serve(body(b"\x0b\x02\x80", Content_Encoding="br")).ask() == (
        "unparsable: the reply is compressed (br), which germane did not accept"
    )


def test_a_reply_with_damaged_compression_is_retried(serve: Any) -> None:
    """Damaged compression is treated like an incomplete body."""
    server = serve(body(b"no gzip", Content_Encoding="gzip"))

    assert server.ask().startswith("judge_unreachable")
    assert server.requests == 2


def test_a_compressed_reply_that_expands_beyond_the_limit_is_rejected(serve: Any) -> None:
    """The limit applies to the decompressed reply."""
    assert serve(body(gzip.compress(b" " * 5_000_000), Content_Encoding="gzip")).ask() == (
        "unparsable: the reply is too large"
    )


@settings(max_examples=50, deadline=None)
@given(
    content=st.binary(max_size=2_000).map(lambda content: content * 100),
    name=st.sampled_from(["gzip", "two members", "deflate", "raw deflate", "empty"]),
    size=st.integers(1, 5_000),
)
def test_a_response_body_is_decompressed_in_small_parts(content: bytes, name: str, size: int) -> None:
    """This holds however the body is split in transit, and however much it expands."""
    encoding, compress = COMPRESSED[name]
    compressed, decompressor = compress(content), Decompressor(encoding)

    parts = [
        part
        for start in range(0, len(compressed), size)
        for part in decompressor.decompress(compressed[start : start + size])
    ]

    assert b"".join(parts) == content
    assert max(map(len, parts), default=0) <= max(65_536, size)


def test_an_unknown_content_encoding_is_rejected() -> None:
    """Combinations of encodings are also refused."""
    for encoding in ("br", "zstd", "gzip,gzip"):
        with pytest.raises(ReplyTooLarge, match="compressed"):
            Decompressor(encoding)
