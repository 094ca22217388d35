"""Limits and failures: huge, malformed or infinite values, and errors in unexpected places."""

from __future__ import annotations

import contextlib
import gc
import inspect
import logging
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from opentelemetry.sdk.trace import SpanProcessor
from tests.cases import each

import germane
from germane.tracer.handler_recording import enclosing_recording

KINDS = ["function", "coroutine", "generator", "async generator"]


def broken(*_args: object) -> Any:
    raise ZeroDivisionError("a user's mistake")


class FailingFilter(logging.Filter):
    """A logging filter that raises."""

    def filter(self, record: logging.LogRecord) -> bool:
        raise ZeroDivisionError


def test_an_error_in_a_logging_filter_does_not_reach_the_handler(traced: Any, handler: Any, take: Any) -> None:
    """Logging a problem may fail without affecting the handler."""
    logger, failing = logging.getLogger("germane.tracer"), FailingFilter()
    logger.addFilter(failing)
    try:
        assert take("function", handler("function", lambda _: {}, attributes={"told once here": broken})) == {}
    finally:
        logger.removeFilter(failing)


@each("raised", [StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt, SystemExit])
def test_control_flow_exceptions_such_as_system_exit_propagate(traced: Any, raised: type[BaseException]) -> None:
    """Exceptions such as SystemExit reach the caller as if the handler were undecorated."""
    traced.clear()
    error = raised("x")

    def fail(_question: str) -> Any:
        raise error

    with pytest.raises(raised) as caught:
        germane.observe(fail)("Why?")
    assert caught.value is error


@each("kind", KINDS)
def test_exceptions_of_a_handler_are_unchanged(traced: Any, kind: str, handler: Any, take: Any) -> None:
    """The caller gets the same object, with its cause, context, notes and traceback frames."""

    traced.clear()

    class Refused(Exception):
        pass

    cause, error = KeyError("a"), Refused("no answer")
    error.add_note("a note")

    def fail(_question: str) -> Any:
        try:
            raise IndexError("before")
        except IndexError:
            raise error from cause

    with pytest.raises(Refused) as caught:
        take(kind, handler(kind, fail))

    assert caught.value is error
    assert error.__cause__ is cause
    assert isinstance(error.__context__, IndexError)
    assert error.__notes__ == ["a note"]
    assert caught.traceback[-1].name == "fail"
    assert (traced.exchange.status, traced.exchange.error) == ("error", "Refused: no answer")


def test_exceptions_of_a_handler_create_no_reference_cycles(traced: Any) -> None:
    """An exception that was thrown into a stream is freed without the garbage collector."""

    @germane.observe
    def ask(_question: str) -> Iterator[str]:
        yield "a"

    thrown: list[weakref.ref[Exception]] = []

    class Thrown(Exception):
        def __init__(self) -> None:
            thrown.append(weakref.ref(self))

    stream = ask("Why?")
    next(stream)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(Thrown):
            stream.throw(Thrown())
        assert thrown[0]() is None
    finally:
        gc.enable()


@each("kind", [*KINDS, "iterator"])
def test_captured_data_is_freed_when_the_call_ends(traced: Any, kind: str, handler: Any, take: Any) -> None:
    """Captured texts may be large, so they are freed without the garbage collector."""
    traced.clear()
    recordings: list[weakref.ref[Any]] = []

    def note(question: str) -> str:
        recordings.append(weakref.ref(enclosing_recording()))  # type: ignore[arg-type]  # not None inside a handler
        return question

    gc.collect()
    gc.disable()
    try:
        if kind == "iterator":
            list(germane.observe(lambda question: map(note, [question]))("Why?"))
        else:
            take(kind, handler(kind, note))
        assert [recording() for recording in recordings] == [None]
    finally:
        gc.enable()


def test_a_recursive_handler_yields_one_exchange(traced: Any) -> None:
    """Each call has its own span."""

    @germane.observe
    def count(question: str, depth: int) -> str:
        return question if depth == 0 else count(question, depth - 1) + "!"

    assert count("a", 50) == "a" + "!" * 50
    assert (traced.exchange.answer, len(traced.spans)) == ("a" + "!" * 50, 51)


def test_infinite_recursion_raises_recursion_error(traced: Any, handler: Any, take: Any) -> None:
    """The caller gets the same RecursionError as from an undecorated handler, and the next call works."""

    @germane.observe
    def endless(question: str) -> str:
        return endless(question)

    with pytest.raises(RecursionError):
        endless("Why?")
    traced.exchanges.clear()

    assert take("function", handler("function", str.upper)) == "WHY?"
    assert traced.exchange.answer == "WHY?"


@each("left", range(1, 40))
def test_an_observed_handler_runs_near_the_recursion_limit(traced: Any, left: int, handler: Any) -> None:
    """If no stack is left for germane, the handler still runs, with one additional frame."""
    traced.clear()
    ask = handler("function", len)

    def deep(depth: int) -> Any:
        return ask("Why?") if depth == 0 else deep(depth - 1)

    def frames() -> int:
        return len(inspect.stack(0))

    room = sys.getrecursionlimit() - frames()
    try:
        assert deep(room - 8 - left) == 4
    except RecursionError:
        assert left < 4


HUGE = "x" * 10_000_000


@each("kind", KINDS)
def test_huge_captured_texts_are_truncated(traced: Any, kind: str, handler: Any, take: Any) -> None:
    """The caller gets all ten megabytes; the exchange and the span get texts of the maximum length."""
    traced.clear()
    assert take(kind, handler(kind, lambda question: question), HUGE) is HUGE

    assert (len(traced.exchange.question), len(traced.exchange.answer)) == (100_000, 100_000)
    assert sum(len(str(value)) for value in traced.attributes().values()) < 200_000


def test_huge_error_messages_are_truncated(traced: Any, handler: Any, take: Any) -> None:
    """An exception with a message of ten megabytes does not create a huge span."""
    with pytest.raises(ValueError, match="x"):
        take("function", handler("function", lambda question: (_ for _ in ()).throw(ValueError(HUGE))))

    span = traced.span("ask")
    assert len(traced.exchange.error) < 200_000
    assert len(span.status.description) < 10_000
    assert sum(len(str(value)) for value in span.events[0].attributes.values()) < 100_000


ODD_TEXTS = {
    "surrogate": ("a\ud800b", "a?b"),
    "nul": ("a\0b", "a\ufffdb"),
    "binary": (b"\xff\xfea\x00", "\ufffd\ufffda\ufffd"),
    "bytearray": (bytearray(b"abc"), "abc"),
    "memoryview": (memoryview(b"abc"), "abc"),
    "number": (3, "3"),
    "numpy number": (np.float32(0.5), "0.5"),
}


@each("kind", KINDS)
@each("name", ODD_TEXTS)
def test_characters_that_cannot_be_encoded_are_replaced_in_captured_texts(
    traced: Any, kind: str, name: str, handler: Any, take: Any
) -> None:
    """The captured text is valid UTF-8 without NUL. The caller gets the original."""
    traced.clear()
    value, expected = ODD_TEXTS[name]

    assert take(kind, handler(kind, lambda _question: value)) is value
    assert traced.exchange.answer == expected
    assert traced.exchange.answer.encode()


def test_all_captured_texts_can_be_encoded(traced: Any) -> None:
    """Lone surrogates and NUL characters in any text reach neither exporters nor databases."""
    odd = "a\ud800\0b"

    @germane.observe(route=odd, history=lambda: [(odd, odd)])
    def ask(question: str) -> str:
        germane.set_attribute(odd, odd)
        germane.set_attribute("model", odd)
        germane.set_attribute("big", 2**80)
        germane.set_attribute("endless", float("inf"))
        germane.set_attribute("array", np.int64(3))
        germane.add_contexts([{"text": odd, "id": odd, "score": float("nan")}])
        raise ValueError(odd)

    with pytest.raises(ValueError, match="a"):
        ask(odd)

    text = repr(traced.exchange) + "".join(span.to_json() for span in traced.spans)
    assert "\\ud800" not in text
    assert "\\x00" not in text
    assert "\\u0000" not in text
    assert traced.exchange.attributes["big"] == str(2**80)
    assert traced.exchange.attributes["endless"] == "inf"
    assert traced.exchange.attributes["array"] == 3
    assert traced.exchange.contexts[0].score is None


def test_an_error_in_the_sink_does_not_reach_the_handler(unconnected: Any, handler: Any, take: Any) -> None:
    """The caller gets the answer."""
    unconnected.connect(sink=broken)

    assert take("function", handler("function", str.upper)) == "WHY?"
    assert traced_names(unconnected) == ["invoke_workflow ask"]


def traced_names(traced: Any) -> list[str]:
    return [span.name for span in traced.spans]


@each("hook", ["on_start", "on_end"])
def test_an_error_in_a_span_processor_does_not_reach_the_handler(
    unconnected: Any, hook: str, handler: Any, take: Any
) -> None:
    """The handler runs, and the exchange is captured."""
    processor = type("Raising", (SpanProcessor,), {hook: broken})()
    unconnected.connect(processor=processor)

    assert take("function", handler("function", str.upper)) == "WHY?"
    assert unconnected.exchanges.pop().answer == "WHY?"


def test_every_call_in_concurrent_threads_is_captured(traced: Any, handler: Any) -> None:
    """Eight threads with 200 calls each yield 1,600 exchanges, each with its own question and answer."""
    ask = handler("function", str.upper)
    errors: list[BaseException] = []

    def call(thread: int) -> None:
        try:
            for number in range(200):
                assert ask(f"q{thread}-{number}") == f"Q{thread}-{number}"
        except BaseException as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert len({(exchange.question, exchange.answer, exchange.id) for exchange in traced.exchanges}) == 1600
    assert all(exchange.answer == exchange.question.upper() for exchange in traced.exchanges)
