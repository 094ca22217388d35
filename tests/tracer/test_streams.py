"""Returned streams: the caller gets an equivalent stream, and its items are captured."""

from __future__ import annotations

import asyncio
import collections.abc
import contextvars
import copy
import csv
import gc
import io
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing
from types import TracebackType
from typing import Any, Self

import pytest
from opentelemetry import trace
from tests.cases import each

import germane
from germane.errors import UsageError
from germane.testing import strict


class Stream:
    """A stream like those returned by clients of language models: an iterator with ``close`` and attributes."""

    model = "m1"

    def __init__(self, *texts: str, fails: BaseException | None = None) -> None:
        self.texts = list(texts)
        self.fails = fails
        self.closed = False

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> str:
        if self.texts:
            return self.texts.pop(0)
        if self.fails is not None:
            raise self.fails
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: TracebackType | None) -> bool:
        self.close()
        return kind is KeyError

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, number: int) -> str:
        return self.texts[number]

    def __call__(self, word: str = "called") -> str:
        return word

    def __eq__(self, other: object) -> bool:
        return other == "equal"

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "Stream()"

    def __lt__(self, other: object) -> bool:
        return True

    def close(self) -> str:
        self.closed = True
        return "closed"


class AsyncStream:
    """The asynchronous counterpart of :class:`Stream`."""

    def __init__(self, *texts: str, fails: BaseException | None = None) -> None:
        self.stream = Stream(*texts, fails=fails)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> str:
        await asyncio.sleep(0)
        try:
            return next(self.stream)
        except StopIteration:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    async def aclose(self) -> str:
        return self.stream.close()


def returning(stream: Any) -> Any:
    """Return the result that the caller of a handler gets if the handler returns this stream."""
    return germane.observe(route="ask")(lambda question: stream)("Why?")


class TestIterator:
    """Iterators that are not generators."""

    def test_a_stream_keeps_its_class_under_nested_decorators(self, traced: Any) -> None:
        """The stream has the original's class, and both handlers record it."""
        stream = germane.observe(route="outer")(lambda question: returning(Stream("a", "b")))("Why?")

        assert isinstance(stream, Stream)
        assert stream.__class__ is Stream
        assert list(stream) == ["a", "b"]
        assert traced.exchange.answer == "ab"
        assert [span.attributes["output.value"] for span in traced.spans] == ["ab", "ab"]

    def test_a_stream_keeps_its_class_and_attributes(self, traced: Any) -> None:
        """Class, attributes, methods and operators work as on the original."""
        original = Stream("a", "b")
        stream = returning(original)

        assert isinstance(stream, Stream)
        assert isinstance(stream, collections.abc.Iterator)
        assert not hasattr(stream, "__anext__")
        assert (stream.model, len(stream), stream[1], stream("x"), repr(stream)) == ("m1", 2, "b", "x", "Stream()")
        assert (stream == "equal", hash(stream), stream < 3, bool(stream)) == (True, 7, True, True)
        assert iter(stream) is stream
        stream.model = "m2"
        assert original.model == "m2"
        del stream.model
        assert original.model == "m1"
        with pytest.raises(AttributeError, match="nothing"):
            stream.nothing  # noqa: B018 - it raises

    def test_an_observed_stream_can_be_copied(self, traced: Any) -> None:
        """A copy is a copy of the original stream."""
        copied = copy.copy(returning(Stream("a", "b")))

        assert (type(copied), list(copied)) == (Stream, ["a", "b"])

    def test_an_error_in_a_stream_reaches_the_caller(self, traced: Any) -> None:
        """The exchange contains the items before the error."""
        error = LookupError("broke")
        stream = returning(Stream("a", fails=error))

        assert next(stream) == "a"
        with pytest.raises(LookupError) as caught:
            next(stream)
        assert caught.value is error
        assert (traced.exchange.answer, traced.exchange.status) == ("a", "error")

    @each("how", ["close", "with", "dropped"])
    def test_a_stream_that_is_stopped_early_is_recorded_as_abandoned(self, traced: Any, how: str) -> None:
        """The stream may be closed, exited or garbage-collected. The items read so far are the answer."""
        traced.clear()
        original = Stream("a", "b")
        stream = returning(original)
        next(stream)
        if how == "close":
            assert stream.close() == "closed"
        elif how == "with":
            with stream as entered:
                assert entered is stream
                raise KeyError
        del stream
        gc.collect()

        assert (traced.exchange.answer, traced.exchange.status) == ("a", "abandoned")
        assert original.closed == (how != "dropped")

    def test_an_iterable_that_returns_another_iterator_is_captured(self, traced: Any) -> None:
        """The items of the inner iterator are captured."""

        class Odd(Stream):
            def __iter__(self) -> Any:
                return Stream(*self.texts)

        assert list(returning(Odd("a", "b"))) == ["a", "b"]
        assert traced.exchange.answer == "ab"

    def test_a_stream_used_as_a_context_manager_returns_the_value_of_the_original(self, traced: Any) -> None:
        """``with`` binds the object that the original returns."""

        class Odd(Stream):
            def __enter__(self) -> Any:
                return "entered"

        with returning(Odd("a")) as entered:
            assert entered == "entered"

    @each(
        "make",
        [
            lambda: map(str.upper, ["a"]),
            lambda: zip(["a"], ["b"], strict=True),
            lambda: csv.reader(["a,b"]),
            lambda: iter(["a"]),
            lambda: iter({"a": 1}),
            lambda: (text for text in "a"),
            lambda: enumerate("a"),
        ],
    )
    def test_built_in_iterators_still_yield_their_items(self, traced: Any, make: Callable[[], Any]) -> None:
        """Iterators such as ``map`` and ``zip`` are captured."""
        traced.clear()
        assert list(returning(make())) == list(make())
        assert traced.exchange.status == "ok"

    def test_a_database_cursor_is_captured_as_a_stream(self, traced: Any) -> None:
        """A cursor is an iterator with additional methods."""
        with closing(sqlite3.connect(":memory:")) as database:
            cursor = returning(database.execute("select 1, 2"))

            assert (cursor.description[0][0], cursor.fetchone(), cursor.fetchone()) == ("1", (1, 2), None)

    def test_a_file_is_not_captured_as_a_stream(self, traced: Any) -> None:
        """An open file is returned unchanged."""
        file = io.StringIO("a\nb\n")

        assert returning(file) is file

    def test_items_of_a_stream_are_produced_under_the_span_of_the_handler(self, traced: Any) -> None:
        """A span that starts while an item is produced is a child of the handler's span."""
        tracer = traced.provider.get_tracer("app")

        def produce(text: str) -> str:
            tracer.start_span("inside").end()
            return text

        assert list(returning(map(produce, ["a"]))) == ["a"]
        assert traced.span("inside").parent.span_id == traced.span("ask").context.span_id
        assert not trace.get_current_span().get_span_context().is_valid

    def test_several_threads_can_share_an_observed_stream(self, traced: Any, caplog: pytest.LogCaptureFixture) -> None:
        """Each item is read once, and all items are captured."""

        class Shared(Stream):
            lock = threading.Lock()

            def __next__(self) -> str:
                with self.lock:
                    return super().__next__()

        stream = returning(Shared(*[f"{n} " for n in range(400)]))
        taken: list[str] = []
        threads = [threading.Thread(target=lambda: taken.extend(stream)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(taken) == sorted(f"{n} " for n in range(400))
        assert caplog.records == []


class TestAsynchronousIterator:
    """Asynchronous iterators that are not generators."""

    def test_the_items_of_an_asynchronous_stream_are_the_answer(self, traced: Any) -> None:
        """Reading the stream to its end captures all items."""

        async def read() -> list[str]:
            return [text async for text in returning(AsyncStream("a", "b"))]

        assert asyncio.run(read()) == ["a", "b"]
        assert (traced.exchange.answer, traced.exchange.status) == ("ab", "ok")

    def test_an_error_in_an_asynchronous_stream_reaches_the_caller(self, traced: Any) -> None:
        """The exchange contains the items before the error."""

        async def read() -> None:
            async for _ in returning(AsyncStream("a", fails=LookupError("broke"))):
                pass

        with pytest.raises(LookupError, match="broke"):
            asyncio.run(read())
        assert (traced.exchange.answer, traced.exchange.status) == ("a", "error")

    @each("how", ["aclose", "with"])
    def test_an_asynchronous_stream_that_is_stopped_early_is_recorded_as_abandoned(self, traced: Any, how: str) -> None:
        """The stream may be closed or exited. The items read so far are the answer."""
        traced.clear()
        original = AsyncStream("a", "b")

        async def read() -> None:
            stream = returning(original)
            await anext(stream)
            if how == "aclose":
                assert await stream.aclose() == "closed"
            else:
                async with stream as entered:
                    assert entered is stream

        asyncio.run(read())
        assert (traced.exchange.answer, traced.exchange.status) == ("a", "abandoned")
        assert original.stream.closed

    def test_an_asynchronous_iterable_is_captured(self, traced: Any) -> None:
        """The loop only keeps the iterator alive, and the recording continues until the iterator ends."""

        class Iterable:
            async def __aiter__(self) -> AsyncIterator[str]:
                yield "a"
                await asyncio.sleep(0)
                yield "b"

        async def read() -> list[str]:
            return [text async for text in returning(Iterable())]

        assert asyncio.run(read()) == ["a", "b"]
        assert (traced.exchange.answer, traced.exchange.status) == ("ab", "ok")


class TestGenerator:
    """Generators and coroutines."""

    def test_send_throw_and_return_work_on_observed_generators(self, traced: Any) -> None:
        """The body gets everything that the caller sends or throws; the caller gets the yielded and returned values."""

        @germane.observe
        def ask(question: str) -> Generator[str, str, str]:
            got = yield question
            try:
                yield got.upper()
            except LookupError as error:
                yield str(error)
            return "returned"

        stream = ask("a")
        assert (next(stream), stream.send("b"), stream.throw(LookupError("c"))) == ("a", "B", "c")
        with pytest.raises(StopIteration) as stopped:
            next(stream)
        assert stopped.value.value == "returned"
        assert (traced.exchange.answer, traced.exchange.status) == ("aBc", "ok")

    def test_yield_from_returns_the_value_of_an_observed_generator(self, traced: Any) -> None:
        """A generator that delegates to an observed generator sees no difference."""

        @germane.observe
        def ask(question: str) -> Generator[str, None, str]:
            yield question
            return "returned"

        def outer() -> Generator[str, None, None]:
            returned = yield from ask("a")
            yield returned

        assert list(outer()) == ["a", "returned"]

    def test_an_unstarted_generator_can_be_closed(self, traced: Any) -> None:
        """The body never ran, so there is no exchange."""

        @germane.observe
        def ask(question: str) -> Iterator[str]:
            yield question

        ask("a").close()

        assert (traced.exchanges, traced.spans) == ([], [])

    def test_the_cleanup_of_a_closed_generator_runs_under_the_span_of_the_call(self, traced: Any) -> None:
        """Code that runs on ``close`` runs under the span."""
        done: list[bool] = []

        @germane.observe
        def ask(question: str) -> Iterator[str]:
            try:
                yield question
            finally:
                done.append(trace.get_current_span().get_span_context().is_valid)

        stream = ask("a")
        next(stream)
        stream.close()

        assert (done, traced.exchange.status) == ([True], "abandoned")

    def test_a_coroutine_that_is_never_awaited_is_recorded_as_abandoned(self, traced: Any) -> None:
        """A returned coroutine can be closed or awaited as it can be without the decorator."""

        async def later(question: str) -> str:
            return question

        germane.observe(lambda question: later(question))("a").close()
        gc.collect()

        assert (traced.exchange.answer, traced.exchange.status) == (None, "abandoned")

    @each("kind", ["function", "returned"])
    def test_a_coroutine_can_be_closed_from_another_context(
        self, traced: Any, caplog: pytest.LogCaptureFixture, kind: str
    ) -> None:
        """This happens to coroutines that are still waiting when their event loop ends. No error is logged."""

        traced.clear()

        async def later(question: str) -> str:
            await asyncio.sleep(60)
            return question

        ask = germane.observe(later) if kind == "function" else germane.observe(lambda question: later(question))

        async def begin() -> Any:
            coroutine = ask("a")
            contextvars.copy_context().run(coroutine.send, None)
            return coroutine

        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin()).close()
        loop.close()

        assert caplog.records == []
        assert traced.exchange.status == "abandoned"
        assert not trace.get_current_span().get_span_context().is_valid

    def test_the_result_of_a_returned_coroutine_is_the_answer(self, traced: Any) -> None:
        """A function may return a coroutine."""

        async def later(question: str) -> str:
            await asyncio.sleep(0.01)
            return question.upper()

        assert asyncio.run(germane.observe(lambda question: later(question))("a")) == "A"
        assert traced.exchange.answer == "A"
        assert traced.exchange.duration >= 0.01


@each("way", ["function", "returned"])
def test_open_streams_are_closed_once_when_the_event_loop_ends(
    traced: Any, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """The event loop closes all open streams concurrently, and each body completes its cleanup."""
    traced.clear()
    closed: list[str] = []
    kept: list[AsyncIterator[str]] = []

    async def body(question: str) -> AsyncIterator[str]:
        try:
            yield question
        finally:
            await asyncio.sleep(0.001)
            closed.append(question)

    ask = germane.observe(body) if way == "function" else germane.observe(lambda question: body(question))

    async def serve() -> None:
        for question in "abc":
            kept.append(ask(question))
            await anext(kept[-1])

    asyncio.run(serve())

    assert sorted(closed) == ["a", "b", "c"]
    assert [exchange.status for exchange in traced.exchanges] == ["abandoned"] * 3
    assert caplog.records == []


def test_an_object_with_an_asynchronous_call_method_can_be_observed(traced: Any) -> None:
    """An object whose ``__call__`` is asynchronous can also be a handler."""

    class Asker:
        async def __call__(self, question: str) -> str:
            return question.upper()

    assert asyncio.run(germane.observe(Asker())("a")) == "A"
    assert (traced.exchange.route, traced.exchange.answer) == ("Asker", "A")


@each("broken", ["question", "answer"])
def test_strict_mode_raises_errors_in_reading_chunks(traced: Any, broken: str) -> None:
    """In tests, a selector that does not match a chunk can make the call fail."""
    traced.clear()
    options: dict[str, Any] = {broken: "no.such.part"}
    ask = germane.observe(**options)(lambda question: {"text": question})

    with strict(), pytest.raises(UsageError, match="does not match"):
        ask("a")


@each("step", ["--1", "²", "7", "first"])
def test_a_step_that_is_no_index_of_a_list_does_not_match(traced: Any, step: str) -> None:
    """Steps that only look like numbers get the same message as others."""
    traced.clear()
    ask = germane.observe(answer=f"texts.{step}")(lambda question: {"texts": [question]})

    with strict(), pytest.raises(UsageError, match=f"does not match: list has no '{step}'"):
        ask("a")


def test_streams_are_returned_unchanged_without_a_connection() -> None:
    """The caller gets the original stream."""
    germane.tracer.disconnect()
    original = Stream("a")

    assert returning(original) is original
    assert asyncio.run(germane.observe(asyncio.sleep)(0, "a")) == "a"
