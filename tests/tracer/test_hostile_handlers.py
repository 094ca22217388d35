"""Hostile handlers, generated from families. Each behaves as if undecorated, and is recorded or reported.

A handler is a kind of function with a body that returns a value or raises. It runs once undecorated and once decorated.
Both runs must have the same outcome (the same object, chunks or exception) and the same side effects in the same order,
and the exchange must have the right answer and status, or the span must say what was not captured.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import dataclasses
import enum
import functools
import io
import itertools
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any
from unittest.mock import AsyncMock, MagicMock, NonCallableMock

import flask
import numpy as np
import pytest
import starlette.responses
import werkzeug.exceptions
import werkzeug.local
from opentelemetry import trace
from pydantic import BaseModel
from tests.cases import each

import germane

Body = Callable[[str], Any]


class Pause:
    """An awaitable that suspends its task once."""

    def __await__(self) -> Iterator[None]:
        yield None


def finish(coroutine: Any) -> Any:
    """Run a coroutine to completion, without an event loop, and return its result."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as stopped:
            return stopped.value


def read(stream: Any) -> list[Any]:
    """Read a generator of any kind to its end."""
    if not hasattr(type(stream), "__anext__"):
        return list(stream)
    items = []
    while True:
        try:
            items.append(finish(anext(stream)))
        except StopAsyncIteration:
            return items


def as_function(body: Body) -> Any:
    def ask(question: str) -> Any:
        return body(question)

    return ask


def as_coroutine_function(body: Body) -> Any:
    async def ask(question: str) -> Any:
        await Pause()
        return body(question)

    return ask


def as_generator_function(body: Body) -> Any:
    def ask(question: str) -> Any:
        yield body(question)

    return ask


def as_async_generator_function(body: Body) -> Any:
    async def ask(question: str) -> Any:
        await Pause()
        yield body(question)

    return ask


def as_iterable_coroutine(body: Body) -> Any:
    @types.coroutine
    def ask(question: str) -> Any:
        yield None
        return body(question)

    return ask


class Service:
    """A class whose methods are handlers."""

    def __init__(self, body: Body) -> None:
        self.body = body

    def ask(self, question: str) -> Any:
        return self.body(question)

    def __call__(self, question: str) -> Any:
        return self.body(question)


def as_method(body: Body, decorate: Any) -> Any:
    class Decorated(Service):
        ask = decorate(Service.ask)

    return Decorated(body).ask


def as_class_method(body: Body, decorate: Any) -> Any:
    class Decorated:
        @decorate
        @classmethod
        def ask(cls, question: str) -> Any:
            return body(question)

    return Decorated.ask


def as_static_method(body: Body, decorate: Any) -> Any:
    class Decorated:
        @decorate
        @staticmethod
        def ask(question: str) -> Any:
            return body(question)

    return Decorated.ask


def as_slotted_method(body: Body, decorate: Any) -> Any:
    class Decorated:
        __slots__ = ()

        @decorate
        def ask(self, question: str) -> Any:
            return body(question)

    return Decorated().ask


def awaited(result: Any) -> Any:
    async def later() -> Any:
        return await result

    return finish(later())


KINDS: dict[str, tuple[Callable[[Body, Any], Any], Callable[[Any], Any]]] = {
    "function": (lambda body, decorate: decorate(as_function(body)), lambda result: result),
    "lambda": (lambda body, decorate: decorate(lambda question: body(question)), lambda result: result),
    "coroutine": (lambda body, decorate: decorate(as_coroutine_function(body)), finish),
    "generator": (lambda body, decorate: decorate(as_generator_function(body)), read),
    "async generator": (lambda body, decorate: decorate(as_async_generator_function(body)), read),
    "types.coroutine": (lambda body, decorate: decorate(as_iterable_coroutine(body)), awaited),
    "method": (as_method, lambda result: result),
    "class method": (as_class_method, lambda result: result),
    "static method": (as_static_method, lambda result: result),
    "slotted method": (as_slotted_method, lambda result: result),
    "bound method": (lambda body, decorate: decorate(Service(body).ask), lambda result: result),
    "callable object": (lambda body, decorate: decorate(Service(body)), lambda result: result),
    "partial": (lambda body, decorate: decorate(functools.partial(as_function(body))), lambda result: result),
    "partial of a generator": (
        lambda body, decorate: decorate(functools.partial(as_generator_function(body))),
        read,
    ),
    "lru_cache": (lambda body, decorate: decorate(functools.lru_cache(as_function(body))), lambda result: result),
    "twice decorated": (lambda body, decorate: decorate(decorate(as_function(body))), lambda result: result),
    "wrapped": (
        lambda body, decorate: decorate(functools.wraps(as_function(body))(lambda *args, **kwargs: body(*args))),
        lambda result: result,
    ),
    "returned coroutine": (lambda body, decorate: decorate(lambda q: as_coroutine_function(body)(q)), finish),
    "returned generator": (lambda body, decorate: decorate(lambda q: as_generator_function(body)(q)), read),
    "returned async generator": (lambda body, decorate: decorate(lambda q: as_async_generator_function(body)(q)), read),
    "returned types.coroutine": (lambda body, decorate: decorate(lambda q: as_iterable_coroutine(body)(q)), awaited),
    "returned iterator": (lambda body, decorate: decorate(lambda q: map(body, [q])), read),
    "coroutine that returns a generator": (
        lambda body, decorate: decorate(as_coroutine_function(as_generator_function(body))),
        lambda result: read(finish(result)),
    ),
}
"""How to make a decorated handler from a body, and how to get the value from the call's result."""


class Hostile:
    """A value whose special methods raise."""

    def _raise(self, *_args: object) -> Any:
        raise ZeroDivisionError("do not touch")

    __repr__ = __str__ = __iter__ = __len__ = __bool__ = __eq__ = __hash__ = __getitem__ = __int__ = __float__ = _raise
    __lt__ = __contains__ = __call__ = __enter__ = __index__ = __bytes__ = __format__ = __dir__ = _raise  # type: ignore[assignment]


class WithoutAttributes:
    """A value whose attributes cannot be read."""

    def __getattribute__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


class AnyAttribute:
    """A value that has every attribute, like some clients."""

    def __getattr__(self, name: str) -> Any:
        return AnyAttribute()


class Classless:
    """A value whose class cannot be read."""

    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class Impostor:
    """A value that claims to be a str."""

    __class__ = str  # type: ignore[assignment]


class Exiting:
    """A value that raises SystemExit on any access."""

    def __iter__(self) -> Any:
        raise SystemExit

    def __str__(self) -> str:
        raise SystemExit

    __len__ = __bool__ = __iter__


class UnhashableType(type):
    """A metaclass whose classes cannot be hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        return True


class Unhashable(metaclass=UnhashableType):
    """A value whose class cannot be hashed."""


class NamelessType(type):
    """A metaclass whose classes have no usable name."""

    __name__ = property(lambda cls: 1 / 0)  # type: ignore[assignment]


class Nameless(metaclass=NamelessType):
    """A value whose class has no usable name."""


class Slotted:
    """A value without weak references."""

    __slots__ = ("text",)


class Text(str):
    """A str whose methods return wrong results."""

    def __str__(self) -> str:
        return "a lie"

    def __len__(self) -> int:
        return 10**9

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Color(enum.StrEnum):
    """A str that is a member of an enumeration."""

    RED = "red"


class Model(BaseModel):
    """An iterable model."""

    text: str = "a"


@dataclasses.dataclass(frozen=True)
class Reply:
    """A frozen data class."""

    text: str = "a"


Pair = collections.namedtuple("Pair", ["text", "sources"])  # noqa: PYI024 - an untyped one is also used
CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)
PLAIN: dict[str, tuple[Any, str | None]] = {
    "text": ("Because.", "Because."),
    "empty text": ("", ""),
    "long text": ("x" * 500_000, "x" * 100_000),
    "surrogates": ("a\ud800b", "a?b"),
    "NUL": ("a\0b", "a\ufffdb"),
    "lying text": (Text("truth"), "truth"),
    "enumeration": (Color.RED, "red"),
    "bytes": (b"Because.", "Because."),
    "invalid bytes": (b"\xff", "\ufffd"),
    "bytearray": (bytearray(b"a"), "a"),
    "memoryview": (memoryview(b"a"), "a"),
    "integer": (3, "3"),
    "float": (0.5, "0.5"),
    "NaN": (float("nan"), "nan"),
    "fraction": (Fraction(1, 2), "1/2"),
    "NumPy text": (np.str_("a"), "a"),
    "NumPy number": (np.float64(0.5), "0.5"),
    "Starlette": (starlette.responses.PlainTextResponse("Because."), "Because."),
    "Starlette JSON": (starlette.responses.JSONResponse({"answer": "Because."}), "Because."),
    "Flask": (flask.Response("Because."), "Because."),
    "dict": ({"text": "a"}, "a"),
    "tuple": (("a", 200), "a"),
    "data class": (Reply(), "a"),
    "named tuple": (Pair("a", ()), "a"),
    "model": (Model(), "a"),
    "nothing": (None, None),
}
REPORTED: dict[str, Any] = {
    "bool": True,
    "complex": 1j,
    "decimal": Decimal("0.5"),
    "dict": {"title": "a", "link": "b"},
    "list": ["a"],
    "tuple": ("a", "b"),
    "set": {"a"},
    "frozenset": frozenset("a"),
    "range": range(3),
    "deque": collections.deque(["a"]),
    "defaultdict": collections.defaultdict(list),
    "mapping proxy": types.MappingProxyType({"a": 1}),
    "dict view": {"a": 1}.keys(),
    "circular": CIRCULAR,
    "namespace": types.SimpleNamespace(text="a"),
    "path": PurePosixPath("a/b"),
    "array": np.array([1.0, 2.0]),
    "exception": ValueError("returned"),
    "base exception": KeyboardInterrupt("returned"),
    "class": Hostile,
    "unhashable class": Unhashable,
    "function": len,
    "module": io,
    "ellipsis": ...,
    "not implemented": NotImplemented,
    "file": io.StringIO("a\nb"),
    "binary file": io.BytesIO(b"a"),
    "lock": threading.Lock(),
    "event": threading.Event(),
    "context variable": contextvars.ContextVar("v"),
    "hostile": Hostile(),
    "no attributes": WithoutAttributes(),
    "any attribute": AnyAttribute(),
    "no class": Classless(),
    "impostor": Impostor(),
    "exiting": Exiting(),
    "unhashable type": Unhashable(),
    "nameless type": Nameless(),
    "slotted": Slotted(),
    "mock": MagicMock(),
    "mock of a text": MagicMock(spec=str),
    "mock without calls": NonCallableMock(),
    "async mock": AsyncMock(),
    "mock of a response": MagicMock(spec=starlette.responses.StreamingResponse),
    "unbound proxy": werkzeug.local.LocalProxy(werkzeug.local.LocalStack()),
}
"""Values without an answer: the span names the type."""


class HostileText(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise ZeroDivisionError

    __repr__ = __str__


class HostileClass(Exception):
    """An exception whose class cannot be read."""

    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class NeedsArguments(Exception):
    """An exception that cannot be created again from its arguments."""

    def __init__(self, code: int, *, detail: str) -> None:
        super().__init__()
        self.detail = detail


class SlottedError(Exception):
    """An exception with slots and a custom comparison."""

    __slots__ = ("code",)

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Exception.__hash__


class Abort(BaseException):
    """An exception that handlers of Exception do not catch."""


def caused() -> Exception:
    """Return an exception with a cause."""
    try:
        raise LookupError("cause")
    except LookupError as error:
        outer = RuntimeError("outer")
        outer.__cause__ = error
        return outer


ERRORS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "exception": (lambda: ValueError("broke"), "error"),
    "no message": (Exception, "error"),
    "unreadable text": (HostileText, "error"),
    "unreadable class": (HostileClass, "error"),
    "arguments": (lambda: NeedsArguments(3, detail="a"), "error"),
    "slots": (SlottedError, "error"),
    "cause": (caused, "error"),
    "group": (lambda: ExceptionGroup("several", [ValueError(), KeyError()]), "error"),
    "key": (lambda: KeyError(Hostile()), "error"),
    "unicode": (lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "error"),
    "surrogates": (lambda: ValueError("\ud800\0"), "error"),
    "recursion": (RecursionError, "error"),
    "memory": (MemoryError, "error"),
    "assertion": (lambda: AssertionError("a"), "error"),
    "warning": (lambda: UserWarning("a"), "error"),
    "operating system": (lambda: OSError(2, "gone", "file"), "error"),
    "timeout": (TimeoutError, "error"),
    "interrupt": (KeyboardInterrupt, "error"),
    "exit": (lambda: SystemExit(3), "error"),
    "abort": (Abort, "error"),
    "cancellation": (asyncio.CancelledError, "cancelled"),
    "generator exit": (GeneratorExit, "abandoned"),
    "Flask's": (werkzeug.exceptions.NotFound, "error"),
}


class Run:
    """The outcome of one run: the caller's result, and the side effects in order."""

    def __init__(self, kind: str, decorate: Any, body: Callable[[list[str]], Any]) -> None:
        self.effects: list[str] = []
        make, get = KINDS[kind]

        def logged(question: str) -> Any:
            self.effects.append(f"begin {question}")
            try:
                return body(self.effects)
            finally:
                self.effects.append("end")

        function = make(logged, decorate)
        try:
            self.value: Any = get(function("Why?"))
            self.error: BaseException | None = None
        except BaseException as error:  # noqa: BLE001 - the outcome, whatever it is
            self.value, self.error = None, error
        self.is_current_span_left = trace.get_current_span().get_span_context().is_valid

    def has_same_outcome_as(self, other: Run) -> bool:
        """Return whether both callers got the same object, chunks or exception."""
        if self.error is not None or other.error is not None:
            same_type = type(self.error) is type(other.error)
            # A generator that raises StopIteration raises a new RuntimeError; every other exception is the same object.
            return same_type and (self.error is other.error or type(self.error) is RuntimeError)
        if type(self.value) is list and type(other.value) is list and self.value is not other.value:
            return [id(item) for item in self.value] == [id(item) for item in other.value]
        return self.value is other.value


def compare(kind: str, body: Callable[[list[str]], Any]) -> None:
    """Run a handler with and without the decorator, and check that the two runs are indistinguishable."""
    plain = Run(kind, lambda function: function, body)
    observed = Run(kind, germane.observe(route="ask"), body)

    assert observed.has_same_outcome_as(plain)
    assert observed.effects == plain.effects
    assert not observed.is_current_span_left


@pytest.mark.parametrize("kind", KINDS)
@each("name", PLAIN)
def test_a_returned_value_with_text_is_unchanged_and_recorded(traced: Any, kind: str, name: str) -> None:
    """The caller gets the same object, and its text is the answer."""
    traced.clear()
    value, answer = PLAIN[name]

    compare(kind, lambda _effects: value)

    assert (traced.exchange.question, traced.exchange.status) == ("Why?", "ok")
    assert (traced.exchange.answer or "") == (answer or "")


@pytest.mark.parametrize("kind", KINDS)
@each("name", REPORTED)
def test_a_returned_value_without_text_is_unchanged_and_reported(traced: Any, kind: str, name: str) -> None:
    """The caller gets the same object, and the span says that there is no answer."""
    traced.clear()
    value = REPORTED[name]

    compare(kind, lambda _effects: value)

    assert (traced.exchange.question, traced.exchange.answer, traced.exchange.status) == ("Why?", None, "ok")
    assert traced.spans[-1].attributes["germane.capture.error"]


@pytest.mark.parametrize("kind", KINDS)
@each("name", ERRORS)
def test_an_exception_reaches_the_caller_and_is_recorded(traced: Any, kind: str, name: str) -> None:
    """The caller gets the same exception, and the exchange has its status."""
    traced.clear()
    make, status = ERRORS[name]
    error = make()

    def fail(effects: list[str]) -> Any:
        effects.append("raise")
        raise error

    compare(kind, fail)

    assert (traced.exchange.question, traced.exchange.answer, traced.exchange.status) == ("Why?", None, status)


@each("kind", KINDS)
def test_an_exception_keeps_its_cause_and_traceback(traced: Any, kind: str) -> None:
    """The innermost frame is the handler's, and no other exception becomes its context."""
    traced.clear()
    cause = LookupError("cause")

    def fail(_effects: list[str]) -> Any:
        raise ValueError("broke") from cause

    error = Run(kind, germane.observe, fail).error

    assert error is not None
    assert (error.__cause__, error.__suppress_context__) == (cause, True)
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback is not None
    assert traceback.tb_frame.f_code is fail.__code__


@each("kind", KINDS)
def test_context_variables_behave_as_in_an_undecorated_handler(kind: str, traced: Any) -> None:
    """A variable that the handler sets is visible to the caller exactly if it would be without the decorator."""
    traced.clear()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    def change(effects: list[str]) -> str:
        effects.append(variable.get())
        variable.set("set")
        return "a"

    def seen(decorate: Any) -> tuple[list[str], str]:
        effects = Run(kind, decorate, change).effects
        return effects, variable.get()

    plain = contextvars.copy_context().run(seen, lambda function: function)
    assert contextvars.copy_context().run(seen, germane.observe) == plain


@each("kind", KINDS)
def test_a_recursive_handler_yields_one_exchange(traced: Any, kind: str) -> None:
    """A handler that calls itself is recorded once, for the outermost call."""
    traced.clear()
    depth = iter(range(5, 0, -1))

    def descend(effects: list[str]) -> str:
        left = next(depth, 0)
        effects.append(str(left))
        if left:
            assert Run(kind, germane.observe(route="inner"), lambda _inner: descend(effects)).error is None
        return "a"

    run = Run(kind, germane.observe(route="ask"), descend)

    assert run.error is None
    assert [exchange.route for exchange in traced.exchanges] == ["ask"]


@each("kind", KINDS)
def test_calls_in_parallel_threads_are_recorded_separately(traced: Any, kind: str) -> None:
    """Every call has its own exchange, in its own trace."""
    traced.clear()
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda number: Run(kind, germane.observe, lambda _effects: f"a{number}"), range(12)))

    assert [run.error for run in runs] == [None] * 12
    assert {exchange.answer for exchange in traced.exchanges} == {f"a{number}" for number in range(12)}
    assert len({exchange.trace_id for exchange in traced.exchanges}) == 12


@pytest.mark.parametrize("kind", ["function", "coroutine", "generator", "method"])
@each("name", [*REPORTED, *PLAIN])
def test_arguments_reach_the_handler_unchanged(traced: Any, kind: str, name: str) -> None:
    """The handler gets the same object, and only text becomes the question."""
    traced.clear()
    value = REPORTED[name] if name in REPORTED else PLAIN[name][0]
    make, get = KINDS[kind]
    seen: list[Any] = []

    def body(first: Any) -> str:
        seen.append(first)
        return "a"

    assert get(make(body, germane.observe)(value)) in ("a", ["a"])
    assert [id(item) for item in seen] == [id(value)]
    is_text = issubclass(type(value), str) and not issubclass(type(value), enum.Enum) and value != ""
    is_question = is_text or name in {"data class", "named tuple", "model"}  # with a field named text
    assert ((traced.exchange.question is not None), traced.exchange.status) == (is_question, "ok")


SIGNATURES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], str | None]] = {
    "positional only": (lambda question, /: question, ("Why?",), {}, "Why?"),
    "keyword only": (lambda *, question: question, (), {"question": "Why?"}, "Why?"),
    "default": (lambda question="Why?": question, (), {}, "Why?"),
    "variable": (lambda *args: args[0], ("Why?",), {}, "Why?"),
    "keywords": (lambda **kwargs: kwargs["self"], (), {"self": "Why?"}, "Why?"),
    "own names": (
        lambda function, args, kwargs, recording, result: args,
        (),
        {"function": 1, "args": "Why?", "kwargs": 2, "recording": 3, "result": 4},
        "Why?",
    ),
    "positional and same keyword": (lambda a, /, **kwargs: a, ("Why?",), {"a": 3}, "Why?"),
    "no arguments": (lambda: "a", (), {}, None),
    "lazy first": (lambda lazy, question: question, (Classless(), "Why?"), {}, "Why?"),
    "enumeration first": (lambda color, text: text, (Color.RED, "Why?"), {}, "Why?"),
}


@each("name", SIGNATURES)
def test_arguments_are_bound_as_in_an_undecorated_call(traced: Any, name: str) -> None:
    """Any signature works, and the question is found."""
    traced.clear()
    function, args, kwargs, question = SIGNATURES[name]

    assert germane.observe(function)(*args, **kwargs) is function(*args, **kwargs)
    assert traced.exchange.question == question


@each("arguments", [((), {}), (("a", "b"), {}), ((), {"other": "a"}), (("a",), {"question": "b"})])
@each("kind", ["function", "coroutine", "generator", "async generator", "types.coroutine"])
def test_wrong_arguments_raise_the_same_type_error_as_without_the_decorator(
    traced: Any, kind: str, arguments: Any
) -> None:
    """Python's own error is raised, at the same step."""
    traced.clear()
    args, kwargs = arguments
    make, get = KINDS[kind]

    def message(decorate: Any) -> str:
        with pytest.raises(TypeError) as caught:
            get(make(str.upper, decorate)(*args, **kwargs))
        return str(caught.value)

    assert message(germane.observe) == message(lambda function: function)


class Source:
    """A stream with side effects: an iterator of texts that may fail, and that knows whether it was closed."""

    def __init__(self, effects: list[str], error: BaseException | None) -> None:
        self.effects = effects
        self.texts = iter(["Hel", "lo"])
        self.error = error

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> str:
        for text in self.texts:
            self.effects.append(text)
            return text
        if self.error is not None:
            raise self.error
        raise StopIteration

    def close(self) -> None:
        self.effects.append("closed")


class AsyncSource(Source):
    """An asynchronous iterator."""

    def __aiter__(self) -> AsyncSource:
        return self

    async def __anext__(self) -> str:
        await Pause()
        try:
            return super().__next__()
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.close()

    __next__ = __iter__ = None  # type: ignore[assignment]


def generated(effects: list[str], error: BaseException | None) -> Any:
    try:
        yield from Source(effects, error)
    finally:
        effects.append("closed")


async def generated_later(effects: list[str], error: BaseException | None) -> Any:
    try:
        async for text in AsyncSource(effects, error):
            yield text
    finally:
        effects.append("closed")


STREAMS: dict[str, tuple[Callable[[list[str], BaseException | None], Any], Callable[[Any], Any]]] = {
    "generator": (generated, lambda stream: stream),
    "async generator": (generated_later, lambda stream: stream),
    "iterator": (Source, lambda stream: stream),
    "async iterator": (AsyncSource, lambda stream: stream),
    "map": (lambda effects, error: map(str, Source(effects, error)), lambda stream: stream),
    "chain": (lambda effects, error: itertools.chain(Source(effects, error)), lambda stream: stream),
    "Starlette": (
        lambda effects, error: starlette.responses.StreamingResponse(generated_later(effects, error)),
        lambda response: response.body_iterator,
    ),
    "Flask": (
        lambda effects, error: flask.Response(generated(effects, error)),
        lambda response: response.response,
    ),
}
ENDS = ["read", "closed", "dropped", "unread", "failed", "interrupted"]


@pytest.mark.parametrize("kind", ["function", "coroutine", "method", "class method", "partial", "callable object"])
@each("how", ENDS)
@each("name", STREAMS)
def test_a_decorated_stream_behaves_like_an_undecorated_one(traced: Any, kind: str, name: str, how: str) -> None:
    """Chunks, errors, cleanup and their order are the same, and the exchange has the chunks that the caller read."""
    traced.clear()
    make, open_stream = STREAMS[name]
    error = {"failed": LookupError("broke"), "interrupted": KeyboardInterrupt()}.get(how)

    def outcome(decorate: Any) -> tuple[list[Any], list[str]]:
        effects: list[str] = []
        run = Run(kind, decorate, lambda _effects: make(effects, error))
        response, run.value = run.value, None
        stream = open_stream(response)
        taken: list[Any] = []
        if how in {"read", "failed", "interrupted"}:
            try:
                while True:
                    is_async = hasattr(type(stream), "__anext__")
                    taken.append(finish(anext(stream)) if is_async else next(stream))
                    effects.append("taken")
            except BaseException as raised:  # noqa: BLE001 - the end of the stream, whatever it is
                taken.append(raised if raised is error else type(raised))
        elif how in {"closed", "dropped"}:
            taken.append(finish(anext(stream)) if hasattr(type(stream), "__anext__") else next(stream))
        if how == "closed" and hasattr(stream, "aclose"):
            finish(stream.aclose())
        elif how == "closed" and hasattr(stream, "close"):
            stream.close()
        return taken, effects

    plain, observed = outcome(lambda function: function), outcome(germane.observe(route="ask"))

    assert observed == plain
    answers = {"read": "Hello", "failed": "Hello", "interrupted": "Hello", "unread": None}
    statuses = {"read": "ok", "failed": "error", "interrupted": "error"}
    assert traced.exchange.answer == answers.get(how, "Hel")
    assert traced.exchange.status == statuses.get(how, "abandoned")


class TestFunctionIsKept:
    """The decorated function has everything that callers use on the original."""

    def test_an_observed_function_keeps_its_lru_cache_methods(self, traced: Any) -> None:
        """The cache of ``lru_cache`` can be read and cleared."""
        calls: list[str] = []
        ask = germane.observe(functools.lru_cache(maxsize=2)(lambda question: calls.append(question) or "a"))

        assert [ask("Why?"), ask("Why?")] == ["a", "a"]
        assert ask.cache_info().hits == 1
        ask.cache_clear()
        assert ask("Why?") == "a"
        assert calls == ["Why?", "Why?"]
        assert ask.cache_parameters() == {"maxsize": 2, "typed": False}

    def test_observed_functions_and_partials_keep_their_attributes(self) -> None:
        """Frameworks mark functions with attributes."""

        def ask(question: str) -> str:
            return question

        ask.marked = True  # type: ignore[attr-defined]
        assert germane.observe(ask).marked is True  # type: ignore[attr-defined]
        kept: Any = germane.observe(functools.partial(ask, "Why?"))
        assert (kept.func, kept.args, kept.keywords) == (ask, ("Why?",), {})

    def test_decorating_a_callable_object_does_not_evaluate_its_properties(self) -> None:
        """Decoration does not run the object's code."""
        evaluated: list[str] = []

        class Client:
            mode = "fast"

            @property
            def connection(self) -> None:
                evaluated.append("connection")

            @functools.cached_property
            def index(self) -> None:
                evaluated.append("index")

            def warm_up(self) -> str:
                return "warm"

            def __call__(self, question: str) -> str:
                return question

        ask: Any = germane.observe(Client())
        assert (ask.mode, ask.warm_up(), evaluated) == ("fast", "warm", [])

    def test_an_observed_types_coroutine_runs_on_an_event_loop(self, traced: Any) -> None:
        """The function stays awaitable, and can wait for futures."""

        @germane.observe(route="ask")
        @types.coroutine
        def ask(question: str) -> Any:
            yield from asyncio.sleep(0).__await__()
            return "a"

        async def serve() -> Any:
            return await ask("Why?")

        assert asyncio.run(serve()) == "a"
        assert (traced.exchange.answer, traced.exchange.status) == ("a", "ok")


@each("make", [lambda: collections.defaultdict(str), collections.Counter, dict])
def test_a_path_selector_does_not_insert_keys_into_a_returned_mapping(traced: Any, make: Callable[[], Any]) -> None:
    """A missing key is reported, and not inserted into the returned mapping."""
    traced.clear()
    reply = make()

    assert germane.observe(answer="text.first", contexts="sources")(lambda question: reply)("Why?") is reply
    assert dict(reply) == {}
    assert "'text.first' does not match" in traced.attributes()["germane.capture.error"]


def test_the_suite_contains_at_least_150_hostile_handlers() -> None:
    """The families yield far more than the promised 150."""
    bodies = len(PLAIN) + len(REPORTED) + len(ERRORS)
    streams = len(STREAMS) * len(ENDS)

    assert len(KINDS) * bodies + streams > 150
