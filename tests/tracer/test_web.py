"""Handlers behind Starlette and FastAPI."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from opentelemetry import trace
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from tests.cases import each

import germane


def body_of(endpoint: Any, question: str = "Why?") -> str:
    """Return the body that a client gets from this endpoint."""
    with TestClient(Starlette(routes=[Route("/", endpoint)])) as client:
        return client.get("/", params={"q": question}).text


def streaming(body: Callable[[], Any], kind: str = "async", media_type: str = "text/plain", **options: Any) -> Any:
    """Create an endpoint whose handler returns this body as a streaming response."""

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
    """An asynchronous iterable that is not a generator."""

    def __aiter__(self) -> AsyncIterator[str]:
        return words_later()


class Reader:
    """An asynchronous iterator that is not a generator."""

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


@each("kind", ["sync", "async"])
@each("body", BODIES)
def test_the_body_of_a_streaming_response_is_captured(traced: Any, body: Any, kind: str) -> None:
    """The client and the exchange both get the complete body, whatever its type."""
    traced.clear()
    assert body_of(streaming(body, kind)) == "Hello!"
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello!", "ok")


def test_a_response_body_is_produced_under_the_span_of_the_handler(traced: Any) -> None:
    """A span that starts on a pool thread while the body is produced is a child span."""

    def body() -> Iterator[str]:
        traced.provider.get_tracer("app").start_span("inside").end()
        yield "a"

    body_of(streaming(body))

    assert traced.span("inside").parent.span_id == traced.span("ask").context.span_id


def test_a_response_keeps_its_background_task(traced: Any) -> None:
    """The response is the same object, with its headers and background task."""
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
    """Cut a text into pieces of this size."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


EVENTS = frames("Hel", "l\u00f6", "! \U0001f600") + ": a comment\n\nid: 7\nretry: 10\n\n" + frames("[DONE]")


@each("size", [1, 2, 3, 5, 7, 11, 1000])
@each("form", ["text", "bytes", "crlf"])
def test_server_sent_events_of_a_response_are_parsed(traced: Any, size: int, form: str) -> None:
    """The answer is the data of the events without the end marker, even if chunks end within a character."""
    traced.clear()
    text = EVENTS.replace("\n", "\r\n") if form == "crlf" else EVENTS
    sent: str | bytes = text.encode() if form == "bytes" else text

    assert body_of(streaming(lambda: cut(sent, size), media_type="text/event-stream")) == text
    assert traced.exchange.answer == "Hell\u00f6! \U0001f600"


@each("size", [1, 4, 9, 1000])
def test_a_selector_reads_the_text_from_json_events(traced: Any, size: int) -> None:
    """``chunk=`` reads the data of each event. Events without that key are skipped."""
    traced.clear()
    deltas = [{"choices": [{"delta": {"content": text}}]} for text in ("Hel", "lo")] + [{"usage": {"tokens": 3}}]
    text = frames(*map(json.dumps, deltas), "[DONE]")
    endpoint = streaming(lambda: cut(text, size), media_type="text/event-stream", chunk="choices.0.delta.content")

    assert body_of(endpoint) == text
    assert traced.exchange.answer == "Hello"


def test_the_last_event_of_a_stream_without_a_final_empty_line_is_read(traced: Any) -> None:
    """Many servers omit the last empty line."""
    body_of(streaming(lambda: cut("data: Hel\n\ndata: lo", 100), media_type="text/event-stream"))

    assert traced.exchange.answer == "Hello"


@each("selected", [{"content": "Hello"}, {"type": "text", "text": "Hello"}, "Hello", '{"content": "Hello"}'])
def test_a_structure_that_a_chunk_selector_returns_is_read_like_a_chunk(traced: Any, selected: Any) -> None:
    """A selector may stop at the message that contains the text. Text that it returns is never parsed."""
    traced.clear()

    @germane.observe(chunk="delta")
    def ask(_question: str) -> Iterator[Any]:
        yield {"delta": selected}
        yield {"delta": selected}

    list(ask("Why?"))

    assert traced.exchange.answer == 2 * (selected if isinstance(selected, str) else "Hello")


@each("chunk", [None, "delta"])
def test_server_sent_events_from_a_generator_are_recognized(traced: Any, chunk: str | None) -> None:
    """No media type is needed."""

    traced.clear()

    @germane.observe(chunk=chunk)
    def ask(_question: str) -> Iterator[str]:
        for word in words():
            yield frames(word if chunk is None else json.dumps({"delta": word}))

    list(ask("Why?"))

    assert traced.exchange.answer == "Hello!"


@each("text", ["data is what counts", "id: a name\nfor a thing", "note: this", ": -)"])
def test_plain_text_that_looks_like_an_event_is_not_parsed(traced: Any, text: str) -> None:
    """An answer may begin like an event."""

    traced.clear()

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield text

    list(ask("Why?"))

    assert traced.exchange.answer == text


def test_plain_text_items_of_an_event_stream_are_joined(traced: Any) -> None:
    """If a library creates the events, the handler gives it plain texts."""
    body_of(streaming(words_later, media_type="text/event-stream"))

    assert traced.exchange.answer == "Hello!"


@each("size", [1, 2, 3])
def test_chunks_that_end_in_the_middle_of_a_character_are_decoded(traced: Any, size: int) -> None:
    """UTF-8 in chunks of any size is decoded correctly."""
    traced.clear()
    text = "gr\u00fc\u00dfe \U0001f600"

    assert body_of(streaming(lambda: cut(text.encode(), size))) == text
    assert traced.exchange.answer == text


def test_a_chunk_selector_reads_plain_text_chunks(traced: Any) -> None:
    """A path reads JSON in text or bytes. A callable gets the chunk itself."""
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


def test_a_streaming_response_is_captured_up_to_the_maximum_length(unconnected: Any) -> None:
    """Further chunks are passed on without being read. An event that never ends is also abandoned."""
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


def test_a_client_disconnect_gives_the_exchange_the_status_abandoned_or_cancelled(
    traced: Any, wait_until: Callable[..., None]
) -> None:
    """The server drops the stream, and the span ends."""

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


@each("called", [False, True])
@each("kind", ["sync", "async"])
def test_fastapi_resolves_the_dependencies_of_decorated_handlers(traced: Any, kind: str, called: bool) -> None:
    """Dependencies, body models and postponed annotations work through the decorator."""
    traced.clear()
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
    assert traced.exchange.question == "Why?"
    assert dict(traced.exchange.attributes) == ({"tenant": "x"} if called else {})


def test_a_decorated_fastapi_dependency_with_yield_runs_its_cleanup(traced: Any) -> None:
    """FastAPI recognizes the dependency as a generator function."""
    app = FastAPI()
    STEPS.clear()

    @app.get("/")
    def ask(using: Annotated[str, Depends(connection)]) -> str:
        STEPS.append(using)
        return using

    with TestClient(app) as client:
        assert client.get("/").json() == "connection"
    assert STEPS == ["open", "connection", "close"]


def test_fastapi_streams_a_decorated_generator(traced: Any) -> None:
    """A path operation that yields is streamed, decorated or not."""

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


def test_a_response_that_is_not_streamed_is_not_changed(traced: Any) -> None:
    """A selector can read it."""

    @germane.observe(answer="body")
    async def ask(request: Request) -> JSONResponse:
        return JSONResponse({"answer": "Because."})

    assert body_of(ask) == '{"answer":"Because."}'
    assert traced.exchange.answer == '{"answer":"Because."}'


def test_the_current_span_is_restored_between_chunks(traced: Any) -> None:
    """Between and after the chunks of a stream, the caller's own span is current."""
    tracer = traced.provider.get_tracer("app")

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield from words()

    with tracer.start_as_current_span("request") as request:
        for _ in ask("Why?"):
            assert trace.get_current_span() is request
        assert trace.get_current_span() is request
    assert traced.span("ask").parent.span_id == traced.span("request").context.span_id
