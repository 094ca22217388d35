"""Hostile handlers: callers observe no difference, whatever the handlers do."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from opentelemetry import trace
from tests.cases import each

import germane
from germane.errors import UsageError
from germane.tracer import observed_routes

KINDS = ["function", "coroutine", "generator", "async generator"]


def chunks(kind: str, *texts: str) -> Callable[[str], Any]:
    """Create an observed handler that streams these texts in the given way."""

    def stream(_question: str) -> Iterator[str]:
        germane.add_contexts(["some context"])
        yield from texts

    async def stream_later(_question: str) -> AsyncIterator[str]:
        germane.add_contexts(["some context"])
        for text in texts:
            await asyncio.sleep(0)
            yield text

    async def returned_later(question: str) -> Any:
        return stream_later(question)

    ways = {
        "generator": stream,
        "async generator": stream_later,
        "returned generator": lambda question: stream(question),
        "returned async generator": lambda question: stream_later(question),
        "generator from a coroutine": returned_later,
        "iterator": lambda question: map(str, stream(question)),
    }
    return germane.observe(route="ask")(ways[kind])


STREAMS = [
    "generator",
    "async generator",
    "returned generator",
    "returned async generator",
    "generator from a coroutine",
    "iterator",
]


async def read(stream: Any, most: int = 100) -> list[str]:
    """Read up to the given number of chunks from a stream of any kind, then drop it."""
    if inspect.iscoroutine(stream):
        stream = await stream
    taken: list[str] = []
    if hasattr(stream, "__aiter__"):
        async for chunk in stream:
            taken.append(chunk)
            if len(taken) == most:
                break
    else:
        for chunk in stream:
            taken.append(chunk)
            if len(taken) == most:
                break
    return taken


@each("kind", STREAMS)
def test_the_answer_is_the_complete_text_of_a_stream(traced: Any, kind: str) -> None:
    """The chunks are joined, contexts are added, and the span ends with the last chunk."""
    traced.clear()
    taken = asyncio.run(read(chunks(kind, "Hel", "lo", "!")("Why?")))

    assert taken == ["Hel", "lo", "!"]
    assert (traced.exchange.question, traced.exchange.answer, traced.exchange.status) == ("Why?", "Hello!", "ok")
    assert [context.text for context in traced.exchange.contexts] == ["some context"]
    assert traced.attributes("invoke_workflow ask")["output.value"] == "Hello!"


def test_the_span_of_a_stream_ends_with_the_last_chunk(traced: Any) -> None:
    """The span stays open until the caller has read the last chunk."""
    stream = chunks("generator", "Hel", "lo")("Why?")
    next(stream)

    assert [span.name for span in traced.spans] == ["retrieval ask"]
    assert list(stream) == ["lo"]
    assert traced.exchange.answer == "Hello"


@each("kind", STREAMS)
def test_a_stream_that_is_closed_early_is_recorded_as_abandoned(traced: Any, kind: str) -> None:
    """The chunks read so far are the answer. The span has the status abandoned, and no error."""

    traced.clear()

    async def drop() -> list[str]:
        taken = await read(chunks(kind, "Hel", "lo", "!")("Why?"), most=1)
        gc.collect()
        await asyncio.sleep(0)  # an event loop closes asynchronous generators in a task
        await asyncio.sleep(0)
        return taken

    assert asyncio.run(drop()) == ["Hel"]
    span = traced.span("invoke_workflow ask")
    assert (traced.exchange.answer, traced.exchange.status, traced.exchange.error) == ("Hel", "abandoned", None)
    assert (span.attributes["germane.abandoned"], span.status.status_code) == (True, trace.StatusCode.UNSET)


@each("kind", ["returned generator", "returned async generator", "iterator"])
def test_a_stream_that_is_never_read_is_recorded_as_abandoned(traced: Any, kind: str) -> None:
    """Dropping the stream ends its span."""
    traced.clear()
    chunks(kind, "Hel")("Why?")
    gc.collect()

    assert (traced.exchange.answer, traced.exchange.status) == (None, "abandoned")


@each("kind", ["coroutine", "async generator", "returned coroutine"])
def test_a_cancellation_reaches_the_caller(traced: Any, kind: str) -> None:
    """The caller gets the CancelledError, and the span ends with the status cancelled."""

    traced.clear()

    async def wait(_question: str) -> None:
        await asyncio.Event().wait()

    async def stream(question: str) -> AsyncIterator[str]:
        yield "Hel"
        await wait(question)

    ways = {"coroutine": wait, "async generator": stream, "returned coroutine": lambda question: wait(question)}
    ask: Any = germane.observe(route="ask")(ways[kind])

    async def cancel() -> None:
        task = asyncio.create_task(read(ask("Why?")) if kind == "async generator" else asyncio.wait_for(ask("Why?"), 9))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert (traced.exchange.status, traced.exchange.error) == ("cancelled", None)
    assert traced.attributes("ask")["germane.cancelled"] is True
    assert traced.span("ask").status.status_code is trace.StatusCode.UNSET


class Hostile:
    """A value whose methods all raise."""

    def _raise(self, *_args: object) -> Any:
        raise ZeroDivisionError("do not touch")

    __repr__ = __str__ = __iter__ = __len__ = __bool__ = __eq__ = __hash__ = __deepcopy__ = __getitem__ = _raise
    __dict__ = property(_raise)  # type: ignore[assignment]


class Unreachable:
    """A value whose attributes and class cannot be read."""

    def __getattribute__(self, name: str) -> Any:
        raise ZeroDivisionError(f"do not touch {name}")


class Exiting:
    """A value that pretends to be of another type, and raises SystemExit."""

    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


CIRCULAR: dict[str, Any] = {}


CIRCULAR["self"] = CIRCULAR


ODD_VALUES = {
    "hostile": Hostile(),
    "unreachable": Unreachable(),
    "classless": Exiting(),
    "circular": CIRCULAR,
    "array": np.array([1.0, 2.0]),
    "nothing": None,
    "class": Hostile,
    "exception": ValueError("returned, not raised"),
    "not implemented": NotImplemented,
}


@each("kind", KINDS)
@each("name", ODD_VALUES)
def test_unusual_return_values_reach_the_caller(traced: Any, kind: str, name: str, handler: Any, take: Any) -> None:
    """The caller gets the same object, and the span ends."""
    traced.clear()
    value = ODD_VALUES[name]

    assert take(kind, handler(kind, lambda _question: value)) is value
    assert (traced.exchange.question, traced.exchange.answer, traced.exchange.status) == ("Why?", None, "ok")


@each("kind", KINDS)
@each("name", ODD_VALUES)
def test_unusual_arguments_reach_the_handler(traced: Any, kind: str, name: str, handler: Any, take: Any) -> None:
    """The handler gets the same objects."""
    traced.clear()
    value, seen = ODD_VALUES[name], []
    ask = handler(kind, lambda question: seen.append(question) or "Because.")

    assert take(kind, ask, value) == "Because."
    assert seen[0] is value
    assert (traced.exchange.question, traced.exchange.answer) == (None, "Because.")


def test_the_question_is_found_among_unusual_arguments(traced: Any) -> None:
    """Arguments that cannot be inspected are skipped."""
    germane.observe(lambda *values: "Because.")(*ODD_VALUES.values(), "Why?")

    assert traced.exchange.question == "Why?"


def test_the_span_reports_a_failed_capture(traced: Any, handler: Any, take: Any) -> None:
    """The report names the value's type, but does not quote the value."""
    take("function", handler("function", lambda _question: Exiting()))

    problem = traced.attributes()["germane.capture.error"]
    assert problem == "answer of ask: Exiting is not text: select the part that contains the text with a selector"


@each("kind", ["generator", "async generator"])
def test_errors_in_reading_chunks_are_reported_once_per_stream(traced: Any, kind: str) -> None:
    """The span has one report, regardless of the number of chunks."""

    traced.clear()

    def stream(_question: str) -> Iterator[Any]:
        yield from [{1}, {2}, {3}]

    async def stream_later(question: str) -> AsyncIterator[Any]:
        for chunk in stream(question):
            yield chunk

    asyncio.run(read(germane.observe(route="ask")(stream if kind == "generator" else stream_later)("Why?")))

    problem = traced.attributes()["germane.capture.error"]
    assert problem == "chunk of ask: set is not text: select the part that contains the text with a selector"


def broken(*_args: object) -> Any:
    raise ZeroDivisionError("a user's mistake")


BROKEN_OPTIONS: dict[str, dict[str, Any]] = {
    "question": {"question": broken},
    "question path": {"question": "question.no.such"},
    "answer": {"answer": broken},
    "contexts": {"contexts": broken},
    "history": {"history": broken},
    "attributes": {"attributes": {"tenant": broken}},
    "chunk": {"chunk": broken},
    "join": {"join": broken},
    "redact": {"redact": broken},
}


@each("kind", KINDS)
@each("option", BROKEN_OPTIONS)
def test_an_error_in_an_option_function_does_not_reach_the_caller(
    traced: Any, kind: str, option: str, handler: Any, take: Any
) -> None:
    """If a selector, ``join`` or ``redact`` raises, the exchange is still captured."""
    traced.clear()
    assert take(kind, handler(kind, str.upper, **BROKEN_OPTIONS[option])) == "WHY?"
    assert traced.exchange.status == "ok"


@each("kind", KINDS)
def test_an_error_in_redaction_drops_the_text(traced: Any, kind: str, handler: Any, take: Any) -> None:
    """A text whose redaction fails is not recorded anywhere."""
    traced.clear()
    take(kind, handler(kind, str.upper, redact=broken))

    assert (traced.exchange.question, traced.exchange.answer) == (None, None)
    shown = " ".join(map(str, traced.attributes().values()))
    assert "Why" not in shown
    assert "WHY" not in shown


@each("kind", KINDS)
def test_function_kind_and_signature_are_unchanged(kind: str, handler: Any) -> None:
    """Frameworks that inspect the handler see the original kind and signature."""

    def ask(question: str, *, k: int = 3) -> str:
        """Answers."""
        return question

    made = handler(kind, str.upper)
    plain = made.__wrapped__  # type: ignore[attr-defined]
    kept = germane.observe(ask)

    for ask_kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert ask_kind(made) == ask_kind(plain)
    assert (made.__name__, made.__qualname__, made.__module__) == (
        plain.__name__,
        plain.__qualname__,
        plain.__module__,
    )
    assert (inspect.signature(kept), kept.__doc__) == (inspect.signature(ask), "Answers.")
    assert kept.__kwdefaults__ is None or kept.__kwdefaults__ == {"k": 3}


@each("kind", ["coroutine", "async generator"])
def test_the_span_includes_the_time_that_the_handler_waits(traced: Any, kind: str, take: Any) -> None:
    """A handler that waits 50 ms has a span of at least 50 ms."""

    traced.clear()

    async def wait(_question: str) -> str:
        await asyncio.sleep(0.05)
        return "Because."

    async def stream(question: str) -> AsyncIterator[str]:
        yield await wait(question)

    ask: Any = germane.observe(route="ask")(wait if kind == "coroutine" else stream)
    started = time.perf_counter()
    take(kind, ask)
    elapsed = time.perf_counter() - started

    span = traced.span("ask")
    assert (span.end_time - span.start_time) / 1e9 >= 0.05
    assert 0.05 <= traced.exchange.duration <= elapsed


@each("kind", ["coroutine", "async generator"])
def test_all_parallel_calls_are_captured(traced: Any, kind: str, handler: Any) -> None:
    """Concurrent calls keep their own questions, answers and traces."""

    traced.clear()

    async def ask_all() -> None:
        ask = handler(kind, str.upper)
        calls = [read(ask(f"q{n}")) if kind == "async generator" else ask(f"q{n}") for n in range(20)]
        await asyncio.gather(*calls)

    asyncio.run(ask_all())
    pairs = {(exchange.question, exchange.answer) for exchange in traced.exchanges}
    assert pairs == {(f"q{n}", f"Q{n}") for n in range(20)}
    assert len({exchange.trace_id for exchange in traced.exchanges}) == 20


def test_an_observed_async_generator_can_move_between_tasks(traced: Any, caplog: pytest.LogCaptureFixture) -> None:
    """If one task advances the generator and another closes it, neither task inherits its span."""
    tracer = traced.provider.get_tracer("app")

    @germane.observe
    async def ask(_question: str) -> AsyncIterator[str]:
        for text in ("Hel", "lo"):
            with tracer.start_as_current_span(text):
                await asyncio.sleep(0)
            yield text

    async def move() -> None:
        stream = ask("Why?")
        assert await asyncio.create_task(anext(stream)) == "Hel"
        assert not trace.get_current_span().get_span_context().is_valid
        assert await asyncio.create_task(anext(stream)) == "lo"
        await asyncio.create_task(stream.aclose())
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(move())
    assert traced.exchange.status == "abandoned"
    parents = {traced.span(name).parent.span_id for name in ("Hel", "lo")}
    assert parents == {traced.span("ask").context.span_id}
    assert caplog.records == []


def test_an_observed_generator_can_move_between_threads(traced: Any, caplog: pytest.LogCaptureFixture) -> None:
    """If each item is produced on a different thread, as in Starlette, child spans keep their parent."""
    tracer = traced.provider.get_tracer("app")

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        for text in ("Hel", "lo"):
            tracer.start_span(text).end()
            yield text

    stream = ask("Why?")
    for expected in ("Hel", "lo", None):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(next, stream, None).result() == expected
            leaked = pool.submit(lambda: trace.get_current_span().get_span_context().is_valid).result()
            assert not leaked

    assert traced.exchange.answer == "Hello"
    assert {traced.span(name).parent.span_id for name in ("Hel", "lo")} == {traced.span("ask").context.span_id}
    assert caplog.records == []


def test_several_tasks_can_read_one_observed_iterator(traced: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Tasks that wait for the next item at the same time do not block each other."""

    class Source:
        def __init__(self) -> None:
            self.left = iter(range(20))

        def __aiter__(self) -> Source:
            return self

        async def __anext__(self) -> str:
            await asyncio.sleep(0)
            number = next(self.left, None)
            if number is None:
                raise StopAsyncIteration
            return f"{number} "

    @germane.observe
    def ask(_question: str) -> Source:
        return Source()

    async def share() -> None:
        stream = ask("Why?")
        await asyncio.gather(*(read(stream) for _ in range(4)))
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(share())
    assert sorted(map(int, traced.exchange.answer.split())) == list(range(20))
    assert caplog.records == []


def test_decorator_works_with_and_without_parentheses() -> None:
    """``@observe`` and ``@observe()`` are equivalent."""

    @germane.observe
    def bare(question: str) -> str:
        return question

    @germane.observe()
    def called(question: str) -> str:
        return question

    assert (bare("a"), called("a")) == ("a", "a")


@each("thing", [Hostile, "text", 3, None])
@each("decorator", [germane.observe(), germane.retrieval()])
def test_decorating_an_object_that_is_not_callable_raises_an_error(decorator: Callable[[Any], Any], thing: Any) -> None:
    """Classes and other values are rejected at decoration."""
    with pytest.raises(UsageError, match="decorates functions"):
        decorator(thing)


def ask_plainly(question: str) -> str:
    return question


@each("make", [functools.partial, lambda function: functools.partial(functools.partial(function))])
def test_the_default_route_of_a_partial_is_the_name_of_its_function(traced: Any, make: Any) -> None:
    """``functools.partial`` objects have no name of their own."""
    traced.clear()
    germane.observe(make(ask_plainly))("Why?")

    assert traced.exchange.route == "ask_plainly"


def test_observed_routes_includes_decorated_handlers_that_have_never_run() -> None:
    """``observed_routes`` contains handlers that have never run."""

    @germane.observe(route="never called")
    def ask(question: str) -> str:
        return question

    assert "never called" in observed_routes()


def test_a_missing_answer_selector_is_logged_once(traced: Any, caplog: pytest.LogCaptureFixture) -> None:
    """If a handler returns a dict without a known part, the warning names its parts, and says what to do."""

    @germane.observe(route="reply of d15")
    def reply(question: str) -> dict[str, str]:
        return {"explanation": question}

    for _ in range(3):
        assert reply("Why?") == {"explanation": "Why?"}

    (record,) = caplog.records
    assert (
        "answer of reply of d15: found no answer in dict with explanation; select it with answer="
        in record.getMessage()
    )


@each(("answer", "expected"), [("text", "A"), ("parts.1", "b"), (lambda reply: reply["n"], "3")])
def test_an_answer_selector_reads_the_return_value(traced: Any, answer: Any, expected: str) -> None:
    """A key, a dotted path or a callable selects the answer."""

    traced.clear()

    @germane.observe(answer=answer)
    def reply(_question: str) -> dict[str, Any]:
        return {"text": "A", "parts": ["a", "b"], "n": 3}

    reply("Why?")

    assert traced.exchange.answer == expected


def test_observing_a_coroutine_adds_no_event_loop_iterations(traced: Any, handler: Any) -> None:
    """A hundred observed calls need as many iterations of the event loop as a hundred undecorated calls."""
    ask = handler("coroutine", str.upper)

    async def serve() -> int:
        calls = [asyncio.create_task(ask("Why?")) for _ in range(100)]
        for _ in range(2):  # one iteration to start, one to continue after the handler's own wait
            await asyncio.sleep(0)
        return sum(call.done() for call in calls)

    assert asyncio.run(serve()) == 100
