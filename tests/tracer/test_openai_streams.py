"""Streams from the openai client, over real HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import openai
import pytest

import germane

DELTAS = b"".join(
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%b}]}\n\n'
    % part
    for part in (b'{"role":"assistant"}', b'{"content":"Hel"}', b'{"content":"lo"}')
)


class Completions(BaseHTTPRequestHandler):
    """A server that speaks the OpenAI protocol and streams one answer."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(DELTAS + b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


@pytest.fixture
def completions() -> Iterator[str]:
    """The URL of an OpenAI-compatible server."""
    with HTTPServer(("127.0.0.1", 0), Completions) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


ASKING: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Why?"}], "stream": True}


def test_a_stream_of_the_openai_client_is_captured(traced: Any, completions: str) -> None:
    """A handler may return the client's stream. It keeps its class, and its deltas are the answer."""
    with openai.OpenAI(base_url=completions, api_key="test") as client:

        @germane.observe(chunk="choices.0.delta.content")
        def ask(question: str) -> openai.Stream[Any]:
            return client.chat.completions.create(**ASKING)

        stream = ask("Why?")
        assert isinstance(stream, openai.Stream)
        assert stream.response.status_code == 200
        with stream:
            taken = [chunk.choices[0].delta.content for chunk in stream]

    assert taken == [None, "Hel", "lo"]
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello", "ok")


def test_a_stream_of_the_asynchronous_openai_client_is_captured(traced: Any, completions: str) -> None:
    """A stream that is closed early is captured up to that point."""

    async def read() -> list[str]:
        async with openai.AsyncOpenAI(base_url=completions, api_key="test") as client:

            @germane.observe(chunk="choices.0.delta.content")
            async def ask(question: str) -> openai.AsyncStream[Any]:
                return await client.chat.completions.create(**ASKING)

            taken = []
            async with await ask("Why?") as stream:
                assert isinstance(stream, openai.AsyncStream)
                async for chunk in stream:
                    taken.append(chunk.choices[0].delta.content)
                    if taken[-1]:
                        break
            return taken

    assert asyncio.run(read()) == [None, "Hel"]
    assert (traced.exchange.answer, traced.exchange.status) == ("Hel", "abandoned")
