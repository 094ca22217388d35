"""Handlers behind Starlette and FastAPI (cases D12 and D13 of the hostile suite)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from opentelemetry import trace
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

import germane


def body_of(endpoint: Any, question: str = "Why?") -> str:
    """What a client of this endpoint reads."""
    with TestClient(Starlette(routes=[Route("/", endpoint)])) as client:
        return client.get("/", params={"q": question}).text


def streaming(body: Callable[[], Any], kind: str = "async", media_type: str = "text/plain", **options: Any) -> Any:
    """An endpoint whose handler returns this body as a streaming response."""

    def ask(question: str) -> StreamingResponse:
        return StreamingResponse(body(), media_type=media_type)

    async def ask_later(question: str) -> StreamingResponse:
        return ask(question)

    handler = germane.observe(route="ask", **options)(ask if kind == "sync" else ask_later)

    async def endpoint(request: Request) -> Any:
        answer = handler(request.query_params["q"])
        return answer if kind == "sync" else await answer

    return endpoint


def words() -> Iterator[str]:
    yield from ("Hel", "lo", "!")


async def words_later() -> AsyncIterator[str]:
    for word in words():
        await asyncio.sleep(0)
        yield word


class Words:
    """An asynchronous iterable that is no generator."""

    def __aiter__(self) -> AsyncIterator[str]:
        return words_later()


class Reader:
    """An asynchronous iterator that is no generator."""

    def __init__(self) -> None:
        self.words = words()

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> str:
        word = next(self.words, None)
        if word is None:
            raise StopAsyncIteration
        return word


BODIES = [words, words_later, Words, Reader, lambda: ["Hel", "lo", "!"]]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("body", BODIES)
def test_d12_the_body_of_a_streaming_response_is_captured(traced: Any, body: Any, kind: str) -> None:
    """Whatever the body is made of, the client reads it whole, and so does the exchange."""
    assert body_of(streaming(body, kind)) == "Hello!"
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello!", "ok")


def test_d12_the_body_runs_under_the_handlers_span(traced: Any) -> None:
    """A span made while the body is produced, on a thread of the pool, is a child of the handler's."""

    def body() -> Iterator[str]:
        traced.provider.get_tracer("app").start_span("inside").end()
        yield "a"

    body_of(streaming(body))

    assert traced.span("inside").parent.span_id == traced.span("ask").context.span_id


def test_d12_a_response_keeps_its_background_task(traced: Any) -> None:
    """The response is the handler's own object: headers and background task stay."""
    done = threading.Event()

    @germane.observe
    async def ask(request: Request) -> StreamingResponse:
        return StreamingResponse(words(), headers={"x-a": "b"}, background=BackgroundTask(done.set))

    with TestClient(Starlette(routes=[Route("/", ask)])) as client:
        assert client.get("/").headers["x-a"] == "b"
    assert done.is_set()
    assert traced.exchange.answer == "Hello!"


def frames(*data: str) -> str:
    return "".join(f"event: message\ndata: {text}\n\n" for text in data)


async def cut(text: str | bytes, size: int) -> AsyncIterator[str | bytes]:
    """A text in pieces of a size, cut wherever that falls."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


EVENTS = frames("Hel", "l\u00f6", "! \U0001f600") + ": a comment\n\nid: 7\nretry: 10\n\n" + frames("[DONE]")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
@pytest.mark.parametrize("form", ["text", "bytes", "crlf"])
def test_d12_server_sent_events_are_unwrapped(traced: Any, size: int, form: str) -> None:
    """Frames may be cut anywhere, also inside a character: the answer is their data, without the mark of the end."""
    text = EVENTS.replace("\n", "\r\n") if form == "crlf" else EVENTS
    sent: str | bytes = text.encode() if form == "bytes" else text

    assert body_of(streaming(lambda: cut(sent, size), media_type="text/event-stream")) == text
    assert traced.exchange.answer == "Hell\u00f6! \U0001f600"


@pytest.mark.parametrize("size", [1, 4, 9, 1000])
def test_d12_a_path_finds_the_text_in_the_json_of_an_event(traced: Any, size: int) -> None:
    """`chunk=` looks into the data of each event; events without that part are passed over."""
    deltas = [{"choices": [{"delta": {"content": text}}]} for text in ("Hel", "lo")] + [{"usage": {"tokens": 3}}]
    text = frames(*map(json.dumps, deltas), "[DONE]")
    endpoint = streaming(lambda: cut(text, size), media_type="text/event-stream", chunk="choices.0.delta.content")

    assert body_of(endpoint) == text
    assert traced.exchange.answer == "Hello"


def test_an_event_stream_without_its_last_empty_line_is_read_to_the_end(traced: Any) -> None:
    """Many servers leave the last empty line out."""
    body_of(streaming(lambda: cut("data: Hel\n\ndata: lo", 100), media_type="text/event-stream"))

    assert traced.exchange.answer == "Hello"


@pytest.mark.parametrize("chunk", [None, "delta"])
def test_frames_are_recognised_in_a_plain_generator(traced: Any, chunk: str | None) -> None:
    """A generator that yields frames needs no media type to be understood."""

    @germane.observe(chunk=chunk)
    def ask(_question: str) -> Iterator[str]:
        for word in words():
            yield frames(word if chunk is None else json.dumps({"delta": word}))

    list(ask("Why?"))

    assert traced.exchange.answer == "Hello!"


@pytest.mark.parametrize("text", ["data is what counts", "id: a name\nfor a thing", "note: this", ": -)"])
def test_plain_text_is_not_taken_for_frames(traced: Any, text: str) -> None:
    """An answer may begin like an event does."""

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield text

    list(ask("Why?"))

    assert traced.exchange.answer == text


def test_an_event_stream_of_plain_items_is_joined(traced: Any) -> None:
    """Libraries that make the frames themselves are handed the plain texts."""
    body_of(streaming(words_later, media_type="text/event-stream"))

    assert traced.exchange.answer == "Hello!"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_bytes_may_be_cut_inside_a_character(traced: Any, size: int) -> None:
    """UTF-8 that is streamed in pieces of any size comes out right."""
    text = "gr\u00fc\u00dfe \U0001f600"

    assert body_of(streaming(lambda: cut(text.encode(), size))) == text
    assert traced.exchange.answer == text


def test_the_json_of_plain_chunks(traced: Any) -> None:
    """`chunk=` looks into chunks of JSON, text or bytes, and a callable gets a chunk as it is."""
    lines = [json.dumps({"delta": word}) for word in words()]

    @germane.observe(chunk="delta")
    def by_path(_question: str) -> Iterator[Any]:
        yield lines[0]
        yield lines[1].encode()
        yield json.loads(lines[2])

    @germane.observe(chunk=lambda chunk: chunk.decode().upper())
    def by_call(_question: str) -> Iterator[bytes]:
        yield b"hel"
        yield b"lo"

    list(by_path("Why?"))
    list(by_call("Why?"))

    assert [exchange.answer for exchange in traced.exchanges] == ["Hello!", "HELLO"]


def test_a_stream_is_read_no_further_than_texts_are_kept(unconnected: Any) -> None:
    """Once the answer is as long as may be, chunks pass unread; an event that never ends is given up too."""
    unconnected.connect(max_text_length=100)

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield from ["ab"] * 1000

    @germane.observe
    def endless(_question: str) -> Iterator[str]:
        yield "data: a\n\n"
        yield from ["data: b"] * 1_000

    assert len(list(ask("Why?"))) == 1000
    assert len(list(endless("Why?"))) == 1001
    assert [exchange.answer[:2] for exchange in unconnected.exchanges] == ["ab", "a" + "b"]
    assert [len(exchange.answer) <= 100 for exchange in unconnected.exchanges] == [True, True]


def test_a_client_that_goes_away_leaves_an_abandoned_or_cancelled_exchange(
    traced: Any, wait_until: Callable[..., None]
) -> None:
    """The server drops the stream; the span ends."""

    async def body() -> AsyncIterator[str]:
        yield "Hel"
        await asyncio.Event().wait()

    handler = streaming(body)

    async def visit() -> None:
        gone = asyncio.Event()
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if message.get("body"):
                gone.set()

        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"q=Why", "headers": []}
        await Starlette(routes=[Route("/", handler)])(scope, receive, send)

    asyncio.run(visit())

    assert traced.exchange.status in {"abandoned", "cancelled"}
    assert traced.exchange.answer == "Hel"


class Body(BaseModel):
    query: str


def tenant(t: str = "acme") -> str:
    return t


STEPS: list[str] = []


@germane.observe
def connection() -> Iterator[str]:
    STEPS.append("open")
    yield "connection"
    STEPS.append("close")


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_d13_fastapi_does_not_notice(traced: Any, kind: str, called: bool) -> None:
    """Dependencies, body models and postponed annotations are resolved through the decorator."""
    app = FastAPI()
    observe: Any = germane.observe(question="body.query", attributes={"tenant": "who"}) if called else germane.observe

    if kind == "sync":

        @app.post("/ask")
        @observe
        def ask(body: Body, who: Annotated[str, Depends(tenant)]) -> dict[str, str]:
            return {"answer": f"{body.query} {who}"}

    else:

        @app.post("/ask")
        @observe
        async def ask_later(body: Body, who: Annotated[str, Depends(tenant)]) -> dict[str, str]:
            return {"answer": f"{body.query} {who}"}

    with TestClient(app) as client:
        response = client.post("/ask", params={"t": "x"}, json={"query": "Why?"})
        assert response.json() == {"answer": "Why? x"}
        assert client.post("/ask", json={}).status_code == 422
        schema = client.get("/openapi.json").json()
    assert "Body" in schema["components"]["schemas"]
    assert traced.exchange.question == ("Why?" if called else "x")
    assert dict(traced.exchange.attributes) == ({"tenant": "x"} if called else {})


def test_d13_a_decorated_dependency_still_cleans_up(traced: Any) -> None:
    """A dependency that yields is a generator function to FastAPI, decorated or not."""
    app = FastAPI()
    STEPS.clear()

    @app.get("/")
    def ask(using: Annotated[str, Depends(connection)]) -> str:
        STEPS.append(using)
        return using

    with TestClient(app) as client:
        assert client.get("/").json() == "connection"
    assert STEPS == ["open", "connection", "close"]


def test_d13_fastapi_streams_what_a_handler_yields(traced: Any) -> None:
    """A path operation that yields is a stream to FastAPI, decorated or not."""

    def stream(question: str) -> Iterator[dict[str, str]]:
        for word in words():
            yield {"delta": word}

    def serve(function: Any) -> str:
        app = FastAPI()
        app.get("/")(function)
        with TestClient(app) as client:
            return client.get("/", params={"question": "Why?"}).text

    assert serve(germane.observe(chunk="delta")(stream)) == serve(stream)
    assert traced.exchange.answer == "Hello!"


def test_another_response_passes_as_it_is(traced: Any) -> None:
    """A response that is no stream is the handler's own; a selector may look into it."""

    @germane.observe(answer="body")
    async def ask(request: Request) -> JSONResponse:
        return JSONResponse({"answer": "Because."})

    assert body_of(ask) == '{"answer":"Because."}'
    assert traced.exchange.answer == '{"answer":"Because."}'


def test_the_current_span_of_a_request_is_the_applications_again(traced: Any) -> None:
    """After a stream was read, and between its chunks, the caller has its own span."""
    tracer = traced.provider.get_tracer("app")

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield from words()

    with tracer.start_as_current_span("request") as request:
        for _ in ask("Why?"):
            assert trace.get_current_span() is request
        assert trace.get_current_span() is request
    assert traced.span("ask").parent.span_id == traced.span("request").context.span_id
