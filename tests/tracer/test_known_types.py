"""Types from common libraries: answers are captured without a selector, and streams while they are read."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import inspect
import json
import operator
import types
import weakref
from collections import ChainMap, UserDict, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Protocol, Self, TypeVar
from unittest.mock import MagicMock

import flask
import openai.types.chat as openai_chat
import pytest
import starlette.responses
from openai.types import responses as openai_responses
from pydantic import create_model
from sqlalchemy import String, column, create_engine, text
from sqlalchemy.event import listen
from sqlalchemy.orm import Session
from tests.cases import each

import germane
from germane.errors import UsageError

T = TypeVar("T")


def library_class(module: str, name: str, *bases: type, **attributes: Any) -> Any:
    """Create a class that looks like a library's class."""
    return type(name, bases, {"__module__": module, **attributes})


def library_object(module: str, name: str, **attributes: Any) -> Any:
    """Create an object whose class looks like a library's class."""
    value = library_class(module, name)()
    vars(value).update(attributes)
    return value


def observed(value: Any, **options: Any) -> Any:
    """Return what the caller of an observed handler gets if the handler returns this value."""
    return germane.observe(route="ask", **options)(lambda question: value)("Why?")


def library_model(module: str, name: str, **fields: Any) -> Any:
    """Create a Pydantic model that looks like a library's."""
    kind: Any = create_model(name, __module__=module, **dict.fromkeys(fields, (Any, None)))
    return kind(**fields)


def choice(content: str | None) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content}, "delta": {"content": content}}


def message(content: Any, name: str = "AIMessage") -> Any:
    return library_model("langchain_core.messages.ai", name, content=content, type="ai", tool_calls=[])


def delta(content: str | None) -> openai_chat.ChatCompletionChunk:
    fields = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": {"content": content}}]
    return openai_chat.ChatCompletionChunk.model_validate({**fields, "choices": choices})


OPENAI_COMPLETION = openai_chat.ChatCompletion.model_validate(
    {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Because."}}],
    }
)  # fmt: skip
ANSWERS: dict[str, Any] = {
    "LangChain message": message("Because."),
    "LangChain message of blocks": message([{"type": "text", "text": "Because."}, {"type": "image"}]),
    "LlamaIndex response": library_model("llama_index.core.base.response.schema", "Response", response="Because."),
    "LlamaIndex chat": library_model("llama_index.core.chat_engine.types", "AgentChatResponse", response="Because."),
    "OpenAI completion": OPENAI_COMPLETION,
    "OpenAI message": OPENAI_COMPLETION.choices[0].message,
    "OpenAI response": openai_responses.Response.model_construct(
        output=[
            openai_responses.ResponseOutputMessage.model_construct(
                type="message",
                role="assistant",
                content=[openai_responses.ResponseOutputText.model_construct(type="output_text", text="Because.")],
            )
        ]
    ),
    "LiteLLM response": library_model("litellm.types.utils", "ModelResponse", choices=[choice(content="Because.")]),
    "Anthropic message": library_model(
        "anthropic.types.message", "Message", role="assistant", content=[{"type": "text", "text": "Because."}]
    ),
    "Django JSON": library_object("django.http.response", "HttpResponse", content=b'{"answer": "Because.", "n": 3}'),
    "Django text": library_object("django.http.response", "HttpResponse", content=b"Because."),
    "Starlette JSON": starlette.responses.JSONResponse({"response": "Because."}),
    "Starlette text": starlette.responses.PlainTextResponse("Because."),
    "Starlette JSON text": starlette.responses.JSONResponse("Because."),
    "Flask text": flask.Response("Because."),
    "Flask JSON": flask.Response(json.dumps({"text": "Because."}), mimetype="application/json"),
}


@each("name", ANSWERS)
def test_an_answer_with_a_known_type_needs_no_selector(
    traced: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller gets the same object, and its text is the answer."""
    traced.clear()
    value = ANSWERS[name]

    assert observed(value) is value
    assert (traced.exchange.answer, traced.exchange.status) == ("Because.", "ok")
    assert caplog.records == []


@each("body", [{"title": "a", "body": "b"}, {"text": "a", "message": "b"}, ["a", "b"], {"error": "a"}])
def test_json_without_a_known_answer_is_no_answer_and_is_reported(traced: Any, body: Any) -> None:
    """germane does not guess which of several texts is the answer, and JSON is not scored."""
    traced.clear()
    observed(starlette.responses.JSONResponse(body))

    assert traced.exchange.answer is None
    assert "found no answer in JSON" in traced.attributes()["germane.capture.error"]


ERROR_RESPONSES: dict[str, Callable[[int], Any]] = {
    "Starlette": lambda status: starlette.responses.JSONResponse({"message": "Internal error"}, status),
    "Starlette stream": lambda status: starlette.responses.StreamingResponse(iter(["Error"]), status),
    "Starlette events": lambda status: starlette.responses.StreamingResponse(
        iter(["data: Error\n\n"]), status, media_type="text/event-stream"
    ),
    "Flask": lambda status: flask.Response("Error", status),
    "Flask stream": lambda status: flask.Response((word for word in ("Er", "ror")), status),
    "Django": lambda status: library_object(
        "django.http.response", "HttpResponse", content=b"Error", status_code=status
    ),
}


async def read_body(response: Any) -> None:
    """Read the body of a response, if it is a stream."""
    if isinstance(response, starlette.responses.StreamingResponse):
        async for _ in response.body_iterator:
            pass
    elif isinstance(response, flask.Response):
        response.get_data()


@each("status", [400, 500])
@each("name", ERROR_RESPONSES)
def test_an_error_response_has_the_status_error_and_no_answer(
    traced: Any, name: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller gets the same response, and the error message is not scored as an answer."""
    traced.clear()
    response = ERROR_RESPONSES[name](status)

    assert observed(response, contexts="sources") is response
    asyncio.run(read_body(response))

    exchange = traced.exchange
    assert (exchange.answer, exchange.status, exchange.error) == (None, "error", f"HTTP {status}")
    assert (traced.span().status.is_ok, traced.span().status.description) == (False, f"HTTP {status}")
    assert (exchange.contexts, caplog.records) == ((), [])


def test_only_statuses_from_400_are_errors(traced: Any) -> None:
    """The statuses 300 to 399 are redirects, whose text is no answer."""
    observed(starlette.responses.PlainTextResponse("Moved", 399))

    assert (traced.exchange.answer, traced.exchange.status, traced.exchange.error) == (None, "ok", None)


NO_TEXT: dict[str, Callable[[], Any]] = {
    "Flask redirect": lambda: flask.redirect("/login"),
    "Starlette redirect": lambda: starlette.responses.RedirectResponse("/login"),
    "image": lambda: starlette.responses.Response(b"\x89PNG", media_type="image/png"),
    "image by header": lambda: starlette.responses.Response(b"\x89PNG", headers={"Content-Type": "image/png"}),
    "Flask image": lambda: flask.Response(b"\x89PNG", mimetype="image/png"),
    "document": lambda: flask.Response(b"PK", mimetype="application/vnd.openxmlformats-officedocument.document"),
    "file": lambda: starlette.responses.FileResponse(__file__),
}


@each("name", NO_TEXT)
def test_a_response_that_is_not_text_has_no_answer(traced: Any, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Redirects, files and media are delivered unchanged, without a warning."""
    traced.clear()
    response = NO_TEXT[name]()

    assert observed(response) is response
    asyncio.run(read_body(response))

    assert (traced.exchange.answer, traced.exchange.status, caplog.records) == (None, "ok", [])


@each(
    "media_type",
    [
        "text/html; charset=utf-8",
        "Application/JSON",
        "application/problem+json",
        "application/x-ndjson",
        "application/xml",
    ],
)
def test_the_body_of_a_response_with_a_text_media_type_is_the_answer(traced: Any, media_type: str) -> None:
    """Plain text, JSON and XML are text, whatever the media type's parameters."""
    traced.clear()
    observed(starlette.responses.Response("Because.", media_type=media_type))

    assert traced.exchange.answer == "Because."


def test_a_selector_reads_the_answer_from_any_media_type(traced: Any) -> None:
    """With ``answer=``, the media type does not matter."""
    observed(starlette.responses.Response("Because.", media_type="application/octet-stream"), answer="body")

    assert traced.exchange.answer == "Because."


CHUNKS: dict[str, list[Any]] = {
    "OpenAI": [delta(None), delta("Hel"), delta("lo")],
    "OpenAI events": [
        openai_responses.ResponseCreatedEvent.model_construct(type="response.created"),
        openai_responses.ResponseTextDeltaEvent.model_construct(type="response.output_text.delta", delta="Hel"),
        openai_responses.ResponseTextDeltaEvent.model_construct(type="response.output_text.delta", delta="lo"),
    ],
    "LangChain": [message(text, "AIMessageChunk") for text in ("Hel", "", [{"type": "text", "text": "lo"}])],
    "LlamaIndex": [
        library_model("llama_index.core.base.llms.types", "ChatResponse", delta=text) for text in ("Hel", "lo", None)
    ],
    "LiteLLM": [
        library_model("litellm.types.utils", "ModelResponseStream", choices=[choice(content=text)])
        for text in ("Hel", "lo", None)
    ],
}


@each("name", CHUNKS)
def test_stream_chunks_with_a_known_type_need_no_selector(traced: Any, name: str) -> None:
    """The stream yields the same objects, and their texts are the answer."""
    traced.clear()
    assert list(observed(iter(CHUNKS[name]))) == CHUNKS[name]
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello", "ok")


async def words_later() -> AsyncIterator[str]:
    for word in ("Hel", "lo"):
        await asyncio.sleep(0)
        yield word


class DjangoResponse:
    """Django's StreamingHttpResponse, with its property that converts the chunks."""

    __module__ = "django.http.response"
    __qualname__ = __name__ = "StreamingHttpResponse"

    def __init__(self, content: Any, content_type: str = "text/html") -> None:
        self.streaming_content = content
        self.headers = {"Content-Type": content_type}

    @property
    def streaming_content(self) -> Any:
        return map(str.encode, self._iterator)

    @streaming_content.setter
    def streaming_content(self, value: Any) -> None:
        self._iterator = iter(value)

    def __iter__(self) -> Any:
        return self.streaming_content


DjangoResponse.__name__ = "StreamingHttpResponse"


class LitestarStream:
    """Litestar's Stream, with slots and a content that may be callable."""

    __module__ = "litestar.response.streaming"
    __slots__ = ("iterator", "media_type")

    def __init__(self, content: Any) -> None:
        self.iterator = content
        self.media_type = None

    def __iter__(self) -> Any:
        return iter(self.iterator() if callable(self.iterator) else self.iterator)


LitestarStream.__name__ = "Stream"


class QuartBody:
    """Quart's IterableBody."""

    __module__ = "quart.wrappers.response"

    def __init__(self, body: Any) -> None:
        self.iter = body

    def __aiter__(self) -> Any:
        return self.iter


class LlamaResponse:
    """LlamaIndex's StreamingResponse, whose text can also be read with ``str()``."""

    __module__ = "llama_index.core.base.response.schema"

    def __init__(self, response_gen: Any) -> None:
        self.response_gen = response_gen

    def __str__(self) -> str:
        return "".join(self.response_gen)


LlamaResponse.__name__ = "StreamingResponse"


async def joined(stream: Any) -> str:
    return "".join([part async for part in stream])


STREAMS: dict[str, tuple[Callable[[], Any], Callable[[Any], str]]] = {
    "Django": (lambda: DjangoResponse(["Hel", "lo"]), lambda r: b"".join(r.streaming_content).decode()),
    "Django, iterated": (lambda: DjangoResponse(iter(["Hel", "lo"])), lambda r: b"".join(r).decode()),
    "Litestar": (lambda: LitestarStream(iter(["Hel", "lo"])), "".join),
    "Litestar, list": (lambda: LitestarStream(["Hel", "lo"]), "".join),
    "Litestar, callable": (lambda: LitestarStream(lambda: (word for word in ("Hel", "lo"))), "".join),
    "Quart": (
        lambda: library_object(
            "quart.wrappers.response", "Response", response=QuartBody(words_later()), mimetype="text/html"
        ),
        lambda r: asyncio.run(joined(r.response)),
    ),
    "LlamaIndex": (lambda: LlamaResponse(word for word in ("Hel", "lo")), str),
    "LlamaIndex, iterated": (lambda: LlamaResponse(word for word in ("Hel", "lo")), lambda r: "".join(r.response_gen)),
    "LlamaIndex, asynchronous": (
        lambda: library_object(
            "llama_index.core.base.response.schema", "AsyncStreamingResponse", async_response_gen=words_later()
        ),
        lambda r: asyncio.run(joined(r.async_response_gen)),
    ),
    "Starlette": (
        lambda: starlette.responses.StreamingResponse(words_later()),
        lambda r: asyncio.run(joined(r.body_iterator)),
    ),
    "Flask": (lambda: flask.Response(word for word in ("Hel", "lo")), lambda r: r.get_data(as_text=True)),
}  # fmt: skip


@each("name", STREAMS)
def test_a_streaming_response_is_recorded_without_being_replaced(traced: Any, name: str) -> None:
    """The caller gets the same response, and the chunks are the answer, however the caller reads the stream."""
    traced.clear()
    make, read = STREAMS[name]
    response = make()

    assert observed(response) is response
    assert read(response) == "Hello"
    del response
    gc.collect()
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello", "ok")


def test_server_sent_events_that_the_framework_encodes_are_recorded(traced: Any) -> None:
    """sse-starlette accepts dictionaries, objects and texts."""
    event = library_object("sse_starlette.event", "ServerSentEvent", event="token", data="!")
    response = library_object(
        "sse_starlette.sse", "EventSourceResponse", media_type="text/event-stream",
        body_iterator=iter([*({"event": "token", "data": text} for text in ("Hel", "lo")), event, {"event": "end"}]),
    )  # fmt: skip

    assert observed(response) is response
    assert len(list(response.body_iterator)) == 4
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello!", "ok")


class ReadOnly:
    """A response whose stream is behind a read-only property."""

    def __init__(self, body: Any) -> None:
        self._body = body

    @property
    def body_iterator(self) -> Any:
        return self._body


class Slotted:
    """A response with slots, which has no weak references."""

    __slots__ = ("body_iterator",)

    def __init__(self, body: Any) -> None:
        self.body_iterator = body


class SlottedReadOnly:
    """A response with slots and a read-only property."""

    __slots__ = ("_body",)

    def __init__(self, body: Any) -> None:
        self._body = body

    @property
    def body_iterator(self) -> Any:
        return self._body


class Frozen:
    """A response whose attributes cannot be set."""

    def __init__(self, body: Any) -> None:
        vars(self)["body_iterator"] = body

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


@each("kind", [ReadOnly, Slotted, SlottedReadOnly, Frozen])
@each("make", [lambda: (word for word in ("Hel", "lo")), lambda: iter(["Hel", "lo"])])
def test_a_stream_behind_read_only_attributes_is_recorded(traced: Any, kind: Any, make: Any) -> None:
    """This covers read-only properties, slots and frozen responses."""
    traced.clear()
    response = kind(make())

    assert observed(response) is response
    assert "".join(response.body_iterator) == "Hello"
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello", "ok")


def test_a_response_whose_stream_cannot_be_replaced_is_reported(traced: Any) -> None:
    """The caller still gets its stream, and the span reports that nothing was captured."""
    bodies = iter(["Hel", "lo"])

    class Sealed:
        __slots__ = ()
        body_iterator = property(lambda _self: bodies)

    response = Sealed()
    assert observed(response) is response
    assert "".join(response.body_iterator) == "Hello"
    assert (traced.exchange.answer, traced.exchange.status) == (None, "ok")
    assert "body_iterator cannot be replaced" in traced.attributes()["germane.capture.error"]


async def answer(text: str) -> str:
    await asyncio.sleep(0)
    return text


class TestTaskAndFuture:
    """A handler may return a task or future, which is passed to the caller."""

    def test_the_result_of_a_returned_task_is_the_answer(self, traced: Any) -> None:
        """The caller gets the same task."""

        async def serve() -> None:
            task = asyncio.create_task(answer("Because."))
            assert observed(task) is task
            assert await task == "Because."
            await asyncio.sleep(0)

        asyncio.run(serve())
        assert (traced.exchange.answer, traced.exchange.status) == ("Because.", "ok")

    def test_the_result_of_a_finished_future_is_the_answer(self, traced: Any) -> None:
        """The answer is captured immediately."""
        future: Future[str] = Future()
        future.set_result("Because.")

        assert observed(future) is future
        assert traced.exchange.answer == "Because."

    def test_the_result_of_a_returned_call_in_a_thread_is_the_answer(
        self, traced: Any, wait_until: Callable[..., None]
    ) -> None:
        """The exchange ends when the thread's call does."""
        with ThreadPoolExecutor(1) as pool:
            assert observed(pool.submit(str.upper, "a")).result() == "A"
        wait_until(lambda: traced.exchanges)

        assert (traced.exchange.answer, traced.exchange.status) == ("A", "ok")

    @each("error", [LookupError("broke"), None])
    def test_a_failed_or_canceled_task_is_recorded_and_asyncio_still_reports_it(
        self, traced: Any, error: Exception | None
    ) -> None:
        """An exception that is never retrieved is still reported to the loop's exception handler."""
        traced.clear()
        reported: list[Any] = []

        async def fail() -> None:
            if error is None:
                await asyncio.Event().wait()
            else:
                raise error

        async def serve() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
            task = germane.observe(lambda question: asyncio.create_task(fail()))("Why?")
            await asyncio.sleep(0)
            if error is None:
                task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            del task
            gc.collect()

        asyncio.run(serve())
        assert traced.exchange.status == ("cancelled" if error is None else "error")
        assert [context["exception"] for context in reported] == ([] if error is None else [error])


class TestStreamReader:
    """The caller gets asyncio's own reader object, and the data that it reads is the answer."""

    @each("way", ["read", "readline", "readexactly", "readuntil", "iteration", "pieces"])
    def test_data_that_the_caller_reads_from_a_lazy_result_is_the_answer(self, traced: Any, way: str) -> None:
        """All reading methods are recorded, and no byte is recorded twice."""

        traced.clear()

        async def serve() -> None:
            reader = asyncio.StreamReader()
            reader.feed_data(b"Hel\nlo\n")
            reader.feed_eof()
            same = observed(reader)
            assert same is reader
            if way == "read":
                assert await same.read() == b"Hel\nlo\n"
            elif way == "readexactly":
                assert await same.readexactly(7) == b"Hel\nlo\n"
            elif way == "pieces":
                assert [await same.read(4), await same.read(4)] == [b"Hel\n", b"lo\n"]
            elif way == "iteration":
                assert [line async for line in same] == [b"Hel\n", b"lo\n"]
            else:
                read = getattr(same, way)
                assert [await read(), await read()] == [b"Hel\n", b"lo\n"]
            if not same.at_eof():
                assert await same.read() == b""

        asyncio.run(serve())
        assert (traced.exchange.answer, traced.exchange.status) == ("Hel\nlo\n", "ok")


class Row:
    """A document with a text."""

    def __init__(self, number: int) -> None:
        self.text = f"row {number}"


class Query:
    """A lazy query, like Django's QuerySet: reading it runs the query, and a slice is another query."""

    def __init__(self, log: list[str], start: int = 0, stop: int = 1000) -> None:
        self.log = log
        self.range = start, stop
        self._rows: list[Row] | None = None

    def _fetch(self) -> list[Row]:
        if self._rows is None:
            self.log.append(f"{self.range[0]}..{self.range[1]}")
            self._rows = [Row(number) for number in range(*self.range)]
        return self._rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self._fetch())

    def __len__(self) -> int:
        return len(self._fetch())

    def __bool__(self) -> bool:
        return bool(self._fetch())

    def __getitem__(self, key: Any) -> Any:
        return Query(self.log, key.start or 0, key.stop) if isinstance(key, slice) else self._fetch()[key]

    def __class_getitem__(cls, _item: Any) -> Any:
        return cls

    def all(self) -> Query:
        return Query(self.log, *self.range)

    def rows(self) -> list[Row]:
        return self._fetch()

    async def later(self) -> Query:
        return Query(self.log, *self.range)

    def count(self) -> int:
        self.log.append("count")
        return self.range[1] - self.range[0]

    count.is_safe = True  # type: ignore[attr-defined]  # as Django marks methods

    @classmethod
    def create(cls) -> Query:
        return cls([])

    @staticmethod
    def of(log: list[str]) -> Query:
        return Query(log)

    def __or__(self, other: Any) -> Any:
        return Query(self.log, *self.range) if type(other) is Query else NotImplemented

    def __ior__(self, other: Any) -> Self:
        return self


USES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "unread": (lambda rows: None, 0),
    "slice": (lambda rows: [row.text for row in rows[:3]], 3),
    "index": (lambda rows: rows[:2][1].text, 1),
    "chained": (lambda rows: [row.text for row in rows.all()[:2]], 2),
    "iterated twice": (lambda rows: [(row.text, row.text) for _ in range(2) for row in rows[:2]], 2),
    "stopped early": (lambda rows: next(iter(rows)).text, 1),
    "length": (lambda rows: len(rows[:5]), 0),
    "kind": (lambda rows: (isinstance(rows, Query), rows.range, rows[:7].range), 0),
    "page": (lambda rows: [row.text for row in page(rows, 2)], 2),
    "operator": (lambda rows: [row.text for row in (rows | Query(rows.log))[:2]], 2),
    "reflected operator": (lambda rows: [row.text for row in (Query(rows.log) | rows)[:2]], 2),
    "operator of two": (lambda rows: [row.text for row in (rows | rows)[:2]], 2),
    "in-place operator": (lambda rows: [row.text for row in operator.ior(rows, None)[:2]], 2),
    "unsupported operator": (lambda rows: failure(lambda: rows | 1), 0),
    "reversed": (lambda rows: next(reversed(rows)).text, 1),
    "awaited": (lambda rows: [row.text for row in asyncio.run(rows.later())[:2]], 2),
}


def page(rows: Any, size: int) -> Any:
    """Return the first page like Django's paginator, which counts with a bound method without arguments."""
    method = getattr(rows, "count", None)
    if inspect.ismethod(method) and not inspect.signature(method).parameters:
        method()
    else:
        len(rows)
    return rows[:size]


def failure(call: Callable[[], Any]) -> str:
    """Return the message of a call's error."""
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@each("use", USES)
def test_a_lazy_query_is_evaluated_only_by_the_caller(traced: Any, use: str) -> None:
    """A retriever's query runs as if undecorated, and the rows that the caller reads are the contexts."""
    traced.clear()
    read, count = USES[use]
    log, plain_log = [], []  # type: ignore[var-annotated]  # of texts

    @germane.retrieval
    def search(question: str) -> Any:
        return Query(log)

    @germane.observe
    def ask(question: str) -> str:
        return str(read(search(question)))

    assert ask("Why?") == str(read(Query(plain_log)))
    assert log == plain_log
    assert len(traced.exchange.contexts) == count


@each("name", ["all", "count", "later", "create", "of", "index", "select"])
def test_the_methods_of_a_wrapped_lazy_query_have_unchanged_signatures(traced: Any, name: str) -> None:
    """Frameworks inspect callables before they call them."""
    traced.clear()
    rows = Query([])
    for some in (rows, search := germane.retrieval(lambda question: rows)("Why?")):
        vars(some).update(index="abc".index, select=functools.partial(Query.of, []))

    method, plain = getattr(search, name), getattr(rows, name)

    checks = (inspect.ismethod, inspect.isroutine, inspect.iscoroutinefunction, callable)
    assert [check(method) for check in checks] == [check(plain) for check in checks]
    assert isinstance(method, functools.partial) == isinstance(plain, functools.partial)
    assert getattr(method, "is_safe", None) == getattr(plain, "is_safe", None)
    if name != "index":
        assert inspect.signature(method) == inspect.signature(plain)
    if inspect.ismethod(plain):
        assert method.__self__ is (search if plain.__self__ is rows else plain.__self__)


@each(
    "use",
    [
        lambda rows: rows.count(),
        lambda rows: (rows | rows).count(),
        lambda rows: rows[:2].count(),
        lambda rows: copy.copy(rows)[0],
        lambda rows: Query([], *rows.range)[0],
        lambda rows: rows.rows(),
    ],
)
def test_a_lazy_query_whose_result_was_not_captured_is_reported(traced: Any, use: Callable[[Any], Any]) -> None:
    """If there are no contexts, the span says why, whatever was derived from the query."""
    traced.clear()
    search = germane.retrieval(source="rows")(lambda question: Query([], 0, 2))
    germane.observe(lambda question: str(use(search(question))))("Why?")
    gc.collect()

    assert traced.exchange.contexts == ()
    assert "through its own methods or attributes" in traced.attributes("rows")["germane.capture.error"]


class LazyDocument(Mapping[str, Any]):
    """A mapping that loads a value when it is looked up."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __getitem__(self, key: str) -> Any:
        self.log.append(key)
        return {"text": "Thirty days.", "id": "7"}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("text", "id"))

    def __len__(self) -> int:
        return 2


LOOKUPS: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "unread": (lambda document: None, []),
    "key": (lambda document: document["text"], ["Thirty days."]),
    "get": (lambda document: document.get("text"), ["Thirty days."]),
    "missing": (lambda document: document.get("content", "none"), ["none"]),
    "another key": (lambda document: document["id"], []),
    "unpacked": (lambda document: dict(**document), ["Thirty days."]),
    "copied": (dict, ["Thirty days."]),
    "kind": (lambda document: (isinstance(document, Mapping), len(document), list(document)), []),
}


@each("use", LOOKUPS)
@each("nested", [False, True])
def test_a_lazy_mapping_is_read_only_by_the_caller(traced: Any, use: str, nested: bool) -> None:
    """The text that the caller looks up is the context."""
    traced.clear()
    read, texts = LOOKUPS[use]
    log, plain_log = list[str](), list[str]()
    search = germane.retrieval(lambda question: LazyDocument(log))
    outer = germane.retrieval(lambda question: search(question)) if nested else search

    answer = germane.observe(lambda question: str(read(outer(question))))("Why?")

    assert answer == str(read(LazyDocument(plain_log)))
    assert log == plain_log
    assert [context.text for context in traced.exchange.contexts] == texts


@each("make", [lambda log: [LazyDocument(log)], LazyDocument])
def test_a_lazy_mapping_is_not_read_before_the_caller_reads_it(traced: Any, make: Any) -> None:
    """If it is in a list, or if a function selects the text, a warning says that nothing was captured."""
    traced.clear()
    log: list[str] = []
    retrieve = germane.retrieval(source="s", content=lambda item: item["text"] if isinstance(make, type) else None)
    assert retrieve(lambda question: make(log))("Why?") is not None
    assert log == []
    assert "germane.capture.error" in traced.attributes("s")


@each(
    "document",
    [
        UserDict(text="Thirty days."),
        ChainMap({"text": "Thirty days."}),
        types.MappingProxyType({"text": "Thirty days."}),
        defaultdict(list, text="Thirty days."),
        type("Computed", (dict,), {"get": None, "__getitem__": None})(text="Thirty days."),
    ],
)
def test_a_mapping_that_is_in_memory_is_a_context(traced: Any, document: Any) -> None:
    """Reading its items has no side effects."""
    traced.clear()
    search = germane.retrieval(lambda question: [document])

    germane.observe(lambda question: str(search(question) == [document]))("Why?")

    assert [context.text for context in traced.exchange.contexts] == ["Thirty days."]


def test_a_sqlalchemy_query_is_evaluated_only_by_the_caller(traced: Any) -> None:
    """A query without a length is also lazy: only the rows that the caller reads are contexts."""
    engine = create_engine("sqlite://")
    statements: list[str] = []
    listen(engine, "before_cursor_execute", lambda _c, _cursor, text, *_rest: statements.append(text))
    with Session(engine) as session:
        values = " UNION ALL ".join(f"SELECT 'row {number}' AS text" for number in range(5))
        rows = text(values).columns(column("text", String)).subquery()
        search = germane.retrieval(lambda question: session.query(rows.c.text))

        answer = germane.observe(lambda question: "|".join(row.text for row in search(question)[1:3]))("?")

    assert answer == "row 1|row 2"
    assert "|".join(context.text for context in traced.exchange.contexts) == answer
    assert len(statements) == 1


@each("use", USES)
def test_a_lazy_query_in_nested_retrievers_is_evaluated_only_by_the_caller(traced: Any, use: str) -> None:
    """Both retrievers' spans show the rows that the caller reads, and each row is one context of the exchange."""
    traced.clear()
    read, count = USES[use]
    log, plain_log = [], []  # type: ignore[var-annotated]  # of texts
    inner = germane.retrieval(source="inner")(lambda question: Query(log))
    outer = germane.retrieval(source="outer")(lambda question: inner(question))

    assert germane.observe(lambda question: str(read(outer(question))))("Why?") == str(read(Query(plain_log)))
    gc.collect()

    assert log == plain_log
    assert len(traced.exchange.contexts) == count
    for source in ("inner", "outer"):
        attributes = traced.attributes(source)
        assert len({text for name, text in attributes.items() if name.endswith("content")}) == count


@each("read", [list, lambda rows: None])
def test_a_lazy_query_that_a_handler_returns_is_not_the_answer(traced: Any, read: Any) -> None:
    """A retriever's rows are not a streamed answer, whether the caller reads them or not."""
    traced.clear()
    search = germane.retrieval(lambda question: Query([], 0, 2))
    rows = germane.observe(lambda question: search(question))("Why?")

    assert isinstance(rows, Query)
    read(rows)
    del rows
    gc.collect()
    assert (traced.exchange.answer, traced.exchange.status) == (None, "ok")


def test_a_lazy_query_whose_class_the_user_names_is_recorded_as_a_stream(traced: Any) -> None:
    """``stream=`` also applies to objects that a retriever returned."""
    search = germane.retrieval(lambda question: Query([], 0, 2))
    rows = germane.observe(stream=Query, chunk="text")(lambda question: search(question))("Why?")

    assert [row.text for row in rows] == ["row 0", "row 1"]
    assert traced.exchange.answer == "row 0row 1"


def test_a_lazy_query_that_is_passed_to_add_contexts_is_read(traced: Any) -> None:
    """An application that passes a query wants it to be read."""

    @germane.observe
    def ask(question: str) -> str:
        germane.add_contexts(Query([], 0, 2))
        return "a"

    ask("Why?")

    assert [context.text for context in traced.exchange.contexts] == ["row 0", "row 1"]


def test_a_lazy_query_that_is_read_with_an_unknown_method_is_reported(traced: Any) -> None:
    """A row returned by another method is not captured, and the span reports this."""

    class Rows(Query):
        def first(self) -> Row:
            return self._fetch()[0]

    search = germane.retrieval(source="rows")(lambda question: Rows([], 0, 2))
    assert germane.observe(lambda question: search(question).first().text)("Why?") == "row 0"
    gc.collect()
    assert "its own methods" in traced.attributes("rows")["germane.capture.error"]


class Proxy:
    """A lazy object that claims the class of a value, which it computes when it is accessed."""

    def __init__(self, evaluated: list[str]) -> None:
        object.__setattr__(self, "_evaluated", evaluated)

    def _evaluate(self, *_args: object) -> Any:
        object.__getattribute__(self, "_evaluated").append("evaluated")
        return "Because."

    __class__ = property(lambda self: type(self._evaluate()))  # type: ignore[assignment]
    __getattr__ = __iter__ = __aiter__ = __len__ = __str__ = __eq__ = __hash__ = __bool__ = __next__ = _evaluate  # type: ignore[assignment]


class Forwarding:
    """A lazy object that does not claim another class, but forwards each attribute to a value that it computes."""

    def __init__(self, evaluated: list[str]) -> None:
        self._evaluated = evaluated

    def __getattr__(self, name: str) -> Any:
        self._evaluated.append(name)
        raise AttributeError(name)


@each("decorator", [germane.observe, germane.retrieval, germane.observe(contexts=lambda v: v)])
@each("make", [Proxy, Forwarding, lambda evaluated: MagicMock(side_effect=evaluated.append)])
def test_lazy_objects_and_mocks_are_returned_without_being_evaluated(
    traced: Any, caplog: pytest.LogCaptureFixture, decorator: Any, make: Any
) -> None:
    """Not even their class is read, in arguments or results, and a warning says that nothing was captured."""
    traced.clear()
    evaluated: list[str] = []
    value = make(evaluated)

    assert decorator(lambda argument: argument)(value) is value
    assert evaluated == []
    assert not isinstance(value, MagicMock) or value.mock_calls == []


def test_the_tracer_does_not_keep_returned_objects_and_their_classes_alive(traced: Any) -> None:
    """Cached decisions about a type are dropped together with the type."""

    def call() -> list[Any]:
        kind = type("Reply", (), {"__iter__": lambda self: iter(())})
        mock, reply = MagicMock(), kind()
        for value in (mock, reply, kind):
            assert germane.observe(lambda argument: argument)(value) is value
            germane.retrieval(lambda argument: argument)(value)
        return [weakref.ref(value) for value in (mock, type(mock), reply, kind)]

    references = call()
    gc.collect()

    assert [reference() for reference in references] == [None] * 4


def test_an_object_whose_class_the_user_names_is_recorded_as_a_stream(traced: Any) -> None:
    """``stream=`` takes iterable classes whose objects germane would otherwise return unread."""

    class Reply:
        sources = ("a",)

        def __iter__(self) -> Iterator[str]:
            return iter(["Hel", "lo"])

    reply = observed(Reply(), stream=Reply)
    assert (isinstance(reply, Reply), reply.sources) == (True, ("a",))
    assert list(reply) == ["Hel", "lo"]
    assert (traced.exchange.answer, traced.exchange.status) == ("Hello", "ok")


def test_an_unknown_iterable_is_returned_unchanged_and_reported(traced: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The warning names the option that declares it as a stream."""

    class Pages:
        count = 2

        def __iter__(self) -> Iterator[str]:
            return iter(["a", "b"])

    pages = Pages()
    assert observed(pages) is pages
    assert traced.exchange.answer is None
    assert "pass its class with stream=" in caplog.text


def test_an_object_that_supports_only_iteration_is_a_stream(traced: Any) -> None:
    """An object that only has a generator method must be a stream."""

    class Words:
        def __iter__(self) -> Iterator[str]:
            yield from ("Hel", "lo")

    assert list(observed(Words())) == ["Hel", "lo"]
    assert traced.exchange.answer == "Hello"


OTHER_USES = [
    *("add", "radd", "iadd", "and", "or", "matmul", "neg", "eq", "ne", "lt", "hash", "bool", "int", "float", "index"),
    *("call", "contains", "len", "length_hint", "getitem", "setitem", "missing", "reversed", "enter", "aenter", "exit"),
    *("getattr", "getattribute", "setattr", "get", "set", "await", "str", "repr", "bytes", "format", "copy", "reduce"),
    *("dataclass_fields", "match_args", "fspath", "array", "rich", "html", "json", "getstate", "class"),
]


@each("use", [*(f"__{name}__" for name in OTHER_USES), "rows", "send", "read"])
@each("inherited", [False, True])
def test_an_iterable_with_additional_methods_is_returned_unchanged(traced: Any, use: str, inherited: bool) -> None:
    """It may be a value, such as a vector, whose own methods compare its class and identity."""

    traced.clear()

    def iterate(self: Any) -> Iterator[str]:
        yield "a"

    def other_use(self: Any, *arguments: Any) -> Any:
        raise AssertionError("not called")

    attributes = {"__iter__": iterate, use: property(lambda self: type(self)) if use == "__class__" else other_use}
    if use == "__eq__":
        attributes["__hash__"] = object.__hash__
    elif use in {"__setattr__", "__getattribute__"}:
        attributes[use] = getattr(object, use)
    kind = type("Value", (), attributes)
    value = type("Derived", (kind,), {})() if inherited else kind()

    assert observed(value) is value


@each("bases", [(Iterable,), (Iterable, Generic[T]), (Protocol,)])
def test_an_iterable_with_only_abstract_or_generic_base_classes_is_a_stream(
    traced: Any, bases: tuple[Any, ...]
) -> None:
    """Such base classes do not add ways to use the object."""

    traced.clear()

    def write_body(namespace: dict[str, Any]) -> None:
        def iterate(self: Any) -> Iterator[str]:
            yield from self._words

        namespace["__iter__"] = iterate
        namespace["__init__"] = lambda self: setattr(self, "_words", ("Hel", "lo"))

    kind = types.new_class("Words", bases, exec_body=write_body)
    words = types.new_class("Derived", (kind,))()

    assert list(observed(words)) == ["Hel", "lo"]
    assert traced.exchange.answer == "Hello"


@each("stream", [int, "Stream", (list, int), lambda: None])
def test_the_stream_option_accepts_only_iterable_classes(stream: Any) -> None:
    """Anything else is rejected at decoration."""
    with pytest.raises(UsageError, match="stream must be"):
        germane.observe(stream=stream)(lambda question: question)


class TestStandIn:
    """An iterator is replaced by a proxy, which the caller cannot distinguish from the original."""

    def test_a_stream_proxy_has_only_the_attributes_of_the_original(self, traced: Any) -> None:
        """The proxy adds no names of its own."""

        class Stream:
            def __init__(self) -> None:
                self._body, self._source, self._recording, self.state = "b", "s", "r", "t"

            def __iter__(self) -> Stream:
                return self

            def __next__(self) -> str:
                raise StopIteration

        stream = observed(Stream())
        assert (stream._body, stream._source, stream._recording, stream.state) == ("b", "s", "r", "t")
        assert sorted(vars(stream)) == ["_body", "_recording", "_source", "state"]
        assert (type(stream).__doc__, type(stream).__module__) == (Stream.__doc__, Stream.__module__)

    def test_a_stream_that_is_read_with_its_own_methods_is_not_recorded_as_abandoned(self, traced: Any) -> None:
        """The text returned by ``read`` methods is the answer."""

        class File:
            def __init__(self) -> None:
                self.left = ["Hel", "lo", ""]

            def __next__(self) -> str:
                raise NotImplementedError

            def read(self) -> str:
                return self.left.pop(0)

        file = observed(File())
        assert [file.read(), file.read(), file.read()] == ["Hel", "lo", ""]
        assert (traced.exchange.answer, traced.exchange.status) == ("Hello", "ok")

    def test_a_stream_that_is_read_with_an_unknown_method_is_reported(
        self, traced: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The stream is not recorded as abandoned, and a warning says that its text was not captured."""

        class Cursor:
            def __next__(self) -> str:
                raise NotImplementedError

            def fetchall(self) -> list[str]:
                return ["Hel", "lo"]

        assert observed(Cursor()).fetchall() == ["Hel", "lo"]
        gc.collect()
        assert (traced.exchange.answer, traced.exchange.status) == (None, "ok")
        assert "its own methods" in traced.attributes()["germane.capture.error"]
