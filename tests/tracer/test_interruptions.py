"""Signals, cancellation and exit: interruptions reach the application and are recorded with the right status."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import decimal
import functools
import itertools
import json
import queue
import random
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from xml.parsers import expat

import pytest
from opentelemetry import baggage, context, trace
from sqlalchemy import create_engine
from sqlalchemy import text as sql
from tests.cases import each

import germane
from germane.errors import UsageError
from germane.tracer.handler_recording import RECORDING_KEY


class SoftTimeLimit(Exception):
    """An exception that a signal handler raises."""


def limit(_number: int, _frame: FrameType | None) -> None:
    raise SoftTimeLimit


def limit_with_any_arguments(*_arguments: Any) -> None:
    raise SoftTimeLimit


class Limiter:
    """A signal handler that is an object."""

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        raise SoftTimeLimit

    def method(self, _number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        raise SoftTimeLimit


HANDLERS: dict[str, Any] = {
    "function": limit,
    "variable arguments": limit_with_any_arguments,
    "object": Limiter(),
    "method that unregisters itself": Limiter().method,
    "partial": functools.partial(limit),
    "lambda": lambda number, frame: limit(number, frame),
}


def interrupted(*_values: Any) -> str:
    """A user's function that is interrupted by a signal."""
    signal.raise_signal(signal.SIGUSR1)
    return "not interrupted"


INTERRUPTED: dict[str, dict[str, Any]] = {
    "question": {"question": interrupted},
    "answer": {"answer": interrupted},
    "contexts": {"contexts": interrupted},
    "history": {"history": interrupted},
    "attributes": {"attributes": {"tenant": interrupted}},
    "redact": {"redact": interrupted},
    "chunk": {"chunk": interrupted},
    "join": {"join": interrupted},
}


@pytest.fixture
def install() -> Iterator[Callable[[Any], None]]:
    """A function that installs a signal handler until the end of the test."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda handler: signal.signal(signal.SIGUSR1, handler) and None
    signal.signal(signal.SIGUSR1, before)


@each("name", HANDLERS)
@each("option", INTERRUPTED)
def test_an_exception_from_a_signal_handler_reaches_the_application(
    traced: Any, install: Any, name: str, option: str, handler: Any, take: Any
) -> None:
    """A time limit that expires in a user's callable is not swallowed, and the span ends."""
    traced.clear()
    install(HANDLERS[name])
    kind = "generator" if option in {"chunk", "join"} else "function"
    ask = handler(kind, str.upper, **INTERRUPTED[option])

    def call() -> Any:
        return list(ask("Why?")) if kind == "generator" else ask("Why?")

    with pytest.raises(SoftTimeLimit):
        call()
    assert not trace.get_current_span().get_span_context().is_valid
    assert len(traced.spans) == 1


def convert(text: str) -> str:
    try:
        return interrupted(text)
    except SoftTimeLimit:
        raise ValueError("converted") from None


def convert_implicitly(text: str) -> str:
    try:
        return interrupted(text)
    except SoftTimeLimit:
        return str({}["missing"])


def convert_twice(text: str) -> str:
    try:
        return convert(text)
    except ValueError as error:
        raise ExceptionGroup("several", [KeyError(), error]) from KeyError()


def raise_again(text: str) -> str:
    try:
        return interrupted(text)
    except SoftTimeLimit as error:
        raise error


@each("redact", [convert, convert_implicitly, convert_twice, raise_again])
def test_an_interruption_that_an_option_function_converts_reaches_the_application(
    traced: Any, install: Any, redact: Any
) -> None:
    """The application gets the error that the callable raised."""
    traced.clear()
    install(limit)
    with pytest.raises((SoftTimeLimit, ValueError, KeyError, ExceptionGroup)):
        germane.observe(redact=redact)(lambda question: "a")("Why?")


def test_an_error_during_the_handling_of_an_interruption_does_not_reach_the_application(
    traced: Any, install: Any
) -> None:
    """The interruption is the context of the error, but did not cause it."""
    install(limit)

    def fail(_text: str) -> str:
        raise KeyError

    try:
        interrupted()
    except SoftTimeLimit:
        assert germane.observe(redact=fail)(lambda question: "a")("Why?") == "a"


class JobTimeout(Exception):
    """An exception that is raised by another thread or greenlet."""


def loop(_text: str) -> str:
    while True:
        pass


def loop_over_items(_text: str) -> str:
    return str([item for item in itertools.count() if not item >= 0])


def loop_with_a_condition(_text: str) -> str:
    number = 0
    while number >= 0:
        number += 1
    return ""


def call_functions(text: str) -> str:
    while text:
        text = str(identity(text))
    return text


def call_with_variable_arguments(text: str) -> str:
    while text:
        text = identity(*(text,))
    return text


def identity(value: Any) -> Any:
    return value


def sleep(text: str) -> str:
    for _ in range(10_000):
        time.sleep(0.001)
    return text


def search_pattern(text: str) -> str:
    while True:
        text = re.sub("[a-z]", "x", text)


def call_from_a_compiled_function(text: str) -> str:
    return max(itertools.repeat(text), key=identity)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="the test calls a function of CPython")
@each(
    "redact",
    [
        *(loop, loop_over_items, loop_with_a_condition, call_functions, call_with_variable_arguments),
        *(sleep, search_pattern, call_from_a_compiled_function),
    ],
)
@each("kind", [JobTimeout, TimeoutError])
def test_an_exception_raised_by_another_thread_reaches_the_application(
    traced: Any, redact: Any, kind: type[Exception]
) -> None:
    """A job's time limit that expires in a user's callable is not swallowed, wherever it runs."""
    traced.clear()
    started, raised = threading.Event(), list[BaseException]()

    def redact_when_started(text: str) -> str:
        if started.is_set():  # the exception was swallowed
            return text
        started.set()
        return str(redact(text))

    def work() -> None:
        try:
            germane.observe(redact=redact_when_started)(lambda question: "a")("Why?")
        except kind as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    time.sleep(random.uniform(0.001, 0.02))
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(kind))
    thread.join()

    assert [type(error) for error in raised] == [kind]


@each("package", ["gevent.hub", "eventlet.hubs.hub"])
def test_an_exception_raised_by_another_greenlet_reaches_the_application(traced: Any, package: str) -> None:
    """The exception arrives where greenlets switch. Errors in the greenlet library's functions are swallowed."""
    traced.clear()
    library: Any = {"__name__": package}
    exec("def switch(error):\n    raise error\ndef sleep(error):\n    switch(error)\n", library)
    exec("def get(error):\n    raise error\n", library)
    empty = type("Empty", (Exception,), {"__module__": package})

    with pytest.raises(JobTimeout):
        germane.observe(redact=lambda text: library["sleep"](JobTimeout("late")))(lambda question: "a")("Why?")
    for fail in (lambda text: library["get"](JobTimeout()), lambda text: library["sleep"](empty())):
        assert germane.observe(redact=fail)(lambda question: "a")("Why?") == "a"


def raise_in_generator(_text: str) -> str:
    return next(raising_generator())


def raising_generator() -> Iterator[str]:
    yield from ()
    raise JobTimeout


def throw_into_generator(_text: str) -> str:
    steps = (step for step in "ab")
    next(steps)
    return str(steps.throw(JobTimeout))


def throw_into_new_generator(_text: str) -> str:
    return str(raising_generator().throw(JobTimeout))  # type: ignore[attr-defined]  # an iterator that is a generator


def raise_job_timeout(*_values: Any) -> Any:
    raise JobTimeout


def call_back(_text: str) -> None:
    """Let compiled code call a compiled function that raises. Like Cython's, it adds an entry to the traceback."""
    future = asyncio.Future[str](loop=asyncio.new_event_loop())
    future.get_loop().close()
    future.set_exception(JobTimeout())
    parser = expat.ParserCreate()
    parser.EndCdataSectionHandler = future.result
    parser.Parse("<a><![CDATA[]]></a>")


def recur(text: str) -> str:
    return recur(text)


def assert_nothing(text: str) -> str:
    assert not text
    return text


ROW = create_engine("sqlite://").connect().execute(sql("SELECT 1 AS a")).mappings().one()
FAILURES: dict[str, Callable[[str], Any]] = {
    "raised class": raise_job_timeout,
    "raised in a sort": lambda text: sorted(text, key=raise_job_timeout),
    "raised in a generator": raise_in_generator,
    "thrown into a generator": throw_into_generator,
    "thrown into a new generator": throw_into_new_generator,
    "raised in compiled code": call_back,
    "assertion": assert_nothing,
    "recursion": recur,
    "memory": lambda text: bytearray(2**62),
    "exhausted iterator": lambda text: next(iter(())),
    "empty queue": lambda text: queue.SimpleQueue[str]().get_nowait(),
    "missing key": lambda text: {}[text],
    "key of a compiled class": lambda text: ROW["missing"],
    "number": int,
    "decimal": decimal.Decimal,
    "JSON": json.loads,
    "file": lambda text: Path(f"/missing/{text}").read_text(),
    "pattern": lambda text: re.sub("(", "", text),
    "socket": lambda text: socket.create_connection(("127.0.0.1", 1), timeout=0.1),
    "future that is late": lambda text: concurrent.futures.Future[str]().result(timeout=0.001),
    "task that is late": lambda text: asyncio.run(asyncio.wait_for(asyncio.sleep(9), 0.001)),
    "too many arguments": lambda text: identity(text, text),  # type: ignore[call-arg]  # fails
}


@each("name", FAILURES)
def test_an_error_in_an_option_function_does_not_reach_the_application(traced: Any, name: str) -> None:
    """An error raised by the callable, or by a function that it calls, is not mistaken for an interruption."""
    traced.clear()
    redact: Any = FAILURES[name]
    assert germane.observe(redact=redact)(lambda question: "a")("Why?") == "a"
    assert (traced.exchange.question, traced.exchange.answer) == (None, None)


def test_a_selector_error_does_not_reach_the_application_while_a_signal_handler_is_installed(
    traced: Any, install: Any
) -> None:
    """Only errors from the signal handler itself are raised."""
    install(limit)

    def fail(_call: Any) -> str:
        raise SoftTimeLimit

    assert germane.observe(question=fail)(lambda question: "a")("Why?") == "a"
    assert traced.exchange.question is None


class CancelledSubclass(asyncio.CancelledError):
    """A framework's own cancellation."""


def class_of(module: str, name: str, base: type = BaseException) -> Any:
    return type(name, (base,), {"__module__": module})


CANCELLATIONS: dict[str, BaseException] = {
    "asyncio": asyncio.CancelledError(),
    "subclass": CancelledSubclass(),
    "trio": class_of("trio", "Cancelled")(),
    "gevent": class_of("greenlet", "GreenletExit")(),
    "gevent subclass": class_of("app", "Killed", class_of("greenlet", "GreenletExit"))(),
    "future": concurrent.futures.CancelledError(),
    "group": BaseExceptionGroup("", [asyncio.CancelledError(), class_of("trio", "Cancelled")()]),
}


@each("kind", ["function", "coroutine", "generator", "async generator"])
@each("name", CANCELLATIONS)
def test_a_canceled_handler_has_the_status_cancelled(
    traced: Any, name: str, kind: str, handler: Any, take: Any
) -> None:
    """The caller gets the same exception, whatever cancels the handler."""
    traced.clear()
    error = CANCELLATIONS[name]

    def cancel(_question: str) -> str:
        raise error

    with pytest.raises(type(error)) as caught:
        take(kind, handler(kind, cancel))
    assert caught.value is error or kind == "coroutine"  # asyncio.run() raises another CancelledError
    assert (traced.exchange.status, traced.exchange.error) == ("cancelled", None)
    assert traced.span("ask").status.status_code is trace.StatusCode.UNSET


@each("error", [BaseExceptionGroup("", [asyncio.CancelledError(), KeyError()]), TimeoutError()])
def test_an_exception_group_with_a_cancellation_and_an_error_has_the_status_error(
    traced: Any, error: BaseException
) -> None:
    """A group that contains another error is not a cancellation."""

    traced.clear()

    def fail(question: str) -> str:
        raise error

    with pytest.raises(type(error)):
        germane.observe(fail)("Why?")
    assert traced.exchange.status == "error"


class TestAsynchronousOptions:
    """germane calls selectors and redaction without awaiting them, so asynchronous functions are rejected."""

    @staticmethod
    async def coroutine(value: Any) -> str:
        return str(value)

    @staticmethod
    async def generator(value: Any) -> AsyncIterator[str]:
        yield str(value)

    class Callable:
        """An object with an asynchronous ``__call__``."""

        async def __call__(self, value: Any) -> str:
            return str(value)

    FUNCTIONS = (coroutine, generator, Callable(), functools.partial(coroutine.__func__))  # type: ignore[attr-defined]

    @each("function", FUNCTIONS)
    @each("option", ["question", "answer", "contexts", "history", "chunk", "join", "redact"])
    def test_an_async_function_as_an_option_is_rejected_at_decoration(self, option: str, function: Any) -> None:
        """The error explains why."""
        function = getattr(function, "__func__", function)
        with pytest.raises(UsageError, match=r"must not be async|must be a synchronous function"):
            germane.observe(**{option: function})(lambda question: "a")

    @each("option", ["query", "contexts", "content", "id", "score"])
    def test_an_async_function_as_a_retriever_option_is_rejected(self, option: str) -> None:
        """The same applies to attribute selectors."""
        with pytest.raises(UsageError, match="async"):
            germane.retrieval(**{option: self.coroutine})(lambda query: [])
        with pytest.raises(UsageError, match="async"):
            germane.observe(attributes={"tenant": self.coroutine})(lambda question: "a")

    def test_an_async_redaction_setting_is_rejected_at_start(self) -> None:
        """germane does not start with such a function."""
        with pytest.raises(UsageError, match="async"):
            germane.start(redact=self.coroutine)  # type: ignore[arg-type]

    def test_a_redaction_that_returns_a_coroutine_drops_the_text(self, traced: Any) -> None:
        """This cannot be detected at decoration. The text is dropped, and Python does not warn about the coroutine."""
        germane.observe(redact=lambda text: self.coroutine(text))(lambda question: "a")("Why?")  # type: ignore[arg-type, return-value]

        assert (traced.exchange.question, traced.exchange.answer) == (None, None)
        assert "redaction of the question" in traced.attributes()["germane.capture.error"]


class TestContextOfTheCaller:
    """The caller's context is restored after the call, whatever changes the handler made."""

    @each("inside", [False, True])
    def test_the_caller_can_detach_a_context_token_that_the_handler_attached(self, traced: Any, inside: bool) -> None:
        """The ended span does not become current."""
        traced.clear()
        tokens: list[Any] = []

        @germane.observe
        def ask(question: str) -> str:
            tokens.append(context.attach(baggage.set_baggage("k", "v")))
            return "a"

        def call() -> None:
            before = trace.get_current_span()
            ask("Why?")
            context.detach(tokens.pop())
            assert trace.get_current_span() is before
            assert baggage.get_baggage("k") is None
            assert context.get_value(RECORDING_KEY) is None

        if inside:
            with traced.provider.get_tracer("app").start_as_current_span("request"):
                call()
        else:
            call()

    def test_a_context_attached_inside_a_handler_is_not_visible_to_its_caller(self, traced: Any) -> None:
        """This documented behavior differs from that of an undecorated function."""

        @germane.observe
        def ask(question: str) -> str:
            context.attach(baggage.set_baggage("k", "v"))
            return "a"

        ask("Why?")

        assert baggage.get_baggage("k") is None


EXIT = """
import atexit
import germane
{0}
@germane.observe
def ask(question):
    return "Because."
{1}
germane.start(database="sqlite:///{path}", scorers=[], role="capture")
{2}
ask("first")
{3}
"""


@each("position", range(4))
@each("imports", ["", "import multiprocessing.util"])
def test_a_call_during_interpreter_exit_is_captured(
    run: Callable[..., str], tmp_path: Path, position: int, imports: str
) -> None:
    """An exit callback of the application may call a handler, wherever it is registered after ``import germane``."""
    path = tmp_path / "germane.db"
    code = [""] * 4
    code[position] = f"{imports}\natexit.register(lambda: ask('at exit'))"

    run(EXIT.format(*code, path=path))

    answers = germane.Store(f"sqlite:///{path}").answers.list_exchanges()
    assert {exchange.question for exchange in answers} == {"first", "at exit"}
