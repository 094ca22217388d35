"""Transparency: every use of a callable has the same effects with and without the decorator."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import germane

Log = list[Any]


class Hostile:
    """A value whose methods all raise."""

    def _raise(self, *_args: object) -> Any:
        raise ZeroDivisionError("do not touch")

    __repr__ = __str__ = __iter__ = __len__ = __bool__ = __eq__ = __hash__ = __getattr__ = _raise


class Classless:
    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class Unprintable(Exception):
    __str__ = __repr__ = lambda self: 1 / 0  # type: ignore[assignment]


CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)
VALUES = [
    None, "text", "", "data: x\n\n", "\ud800\0", b"\xff", 0, True, 1.5, Hostile(), Classless(), CIRCULAR, {"text": "a"},
    np.zeros(3), NotImplemented, ValueError("a value"), Hostile, ("a", 1), "x" * 300_000,
]  # fmt: skip
ERRORS: list[type[BaseException]] = [
    ValueError, KeyError, Unprintable, StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt, SystemExit,
    asyncio.CancelledError, RuntimeError,
]  # fmt: skip
SIGNATURES = {
    "(question)": lambda v: [((v,), {}), ((), {"question": v}), ((), {}), ((v, v), {}), ((), {"query": v})],
    "(question, k=3)": lambda v: [((v,), {}), ((v, v), {}), ((), {"k": v, "question": v}), ((), {"k": v})],
    "(k, *, question='q')": lambda v: [((v,), {}), ((v,), {"question": v}), ((v, v), {})],
    "(question, /, *rest, flag=False, **more)": lambda v: [
        ((v,), {}),
        ((v, v, v), {"flag": v, "x": v}),
        ((), {"x": v}),
    ],
    "(*args, **kwargs)": lambda v: [((), {}), ((v, v), {"function": v, "args": v, "begin": v})],
    "()": lambda v: [((), {}), ((v,), {})],
}
KINDS = ["function", "coroutine", "generator", "async generator"]
RESULTS = {"function": ["value", *KINDS[1:], "iterator"], "coroutine": ["value", *KINDS[1:], "iterator"]}
BINDINGS = ["function", "method", "classmethod", "staticmethod"]


def fail(*_args: object) -> Any:
    raise ZeroDivisionError("a user's mistake")


OPTIONS: dict[str, list[Any]] = {
    "question": [fail, "question", "no.such.part", lambda call: call.arguments["question"], lambda: "asked"],
    "answer": [fail, "text", lambda result: result],
    "contexts": [fail, "0", lambda result: [result]],
    "history": [fail, lambda: ["a"], "question"],
    "attributes": [{"a": fail}, {"model": "question"}],
    "chunk": [fail, "text", lambda chunk: chunk],
    "join": [fail, " ".join, lambda pieces: None],
    "redact": [fail, str.upper, lambda text: None],
    "capture": ["span+store", "store", "none"],
}


@dataclass(frozen=True)
class Step:
    """The action of a body at one point, and its reaction to an error thrown in at that point."""

    does: str
    which: int
    thrown: str = "passes"


@dataclass(frozen=True)
class Program:
    """A callable, and one way to use it."""

    kind: str
    result: str
    binding: str
    signature: str
    call: int
    argument: int
    steps: tuple[Step, ...]
    consumption: tuple[tuple[str, int], ...]
    catches_exit: bool


STEPS = st.builds(
    Step,
    does=st.sampled_from(["yield", "yield", "yield", "pause", "raise", "return", "effect"]),
    which=st.integers(0, 40),
    thrown=st.sampled_from(["passes", "passes", "swallowed", "replaced", "caused", "returns"]),
)
OPERATIONS = st.tuples(st.sampled_from(["next", "next", "next", "send", "throw", "close"]), st.integers(0, 40))


@st.composite
def programs(draw: Callable[..., Any]) -> Program:
    kind = draw(st.sampled_from(KINDS))
    signature = draw(st.sampled_from(list(SIGNATURES)))
    return Program(
        kind=kind,
        result=draw(st.sampled_from(RESULTS.get(kind, ["value"]))),
        binding=draw(st.sampled_from(BINDINGS)),
        signature=signature,
        call=draw(st.integers(0, len(SIGNATURES[signature](None)) - 1)),
        argument=draw(st.integers(0, 40)),
        steps=tuple(draw(st.lists(STEPS, max_size=5))),
        consumption=tuple(draw(st.lists(OPERATIONS, max_size=7))),
        catches_exit=draw(st.booleans()),
    )


def choose(pool: list[Any], number: int) -> Any:
    return pool[number % len(pool)]


def identity(value: Any) -> Any:
    """Represent a value in a log by its position among the values, so that only identical objects are equal."""
    for number, known in enumerate(VALUES):
        if known is value:
            return number
    if type(value) is tuple:
        return [identity(part) for part in value]
    if type(value) is dict:
        return {name: identity(part) for name, part in value.items()}
    return value if type(value) in {str, int} else type(value).__name__


class Pause:
    """An awaitable that yields to the event loop."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __await__(self) -> Generator[str, Any, None]:
        self.log.append(("resumed with", identity((yield "pause"))))


class Body:
    """Runs the steps of a program and logs what it sees, in the same way for each kind of function."""

    def __init__(self, program: Program, log: Log) -> None:
        self.program, self.log = program, log

    def answer_thrown(self, step: Step, error: BaseException) -> bool:
        """React to an error that is thrown in at a step. Return True to end the body."""
        self.log.append(("thrown in", type(error).__name__, [identity(part) for part in error.args]))
        asynchronous = "async generator" in (self.program.kind, self.program.result)
        if isinstance(error, GeneratorExit) and (asynchronous or not self.program.catches_exit):
            raise error  # if an asynchronous body ignores it, Python raises it again during garbage collection
        if step.thrown == "passes":
            raise error
        if step.thrown == "replaced":
            raise LookupError("another")
        if step.thrown == "caused":
            raise LookupError("another") from error
        return step.thrown == "returns"

    def act(self, step: Step) -> bool:
        """Run a step other than a yield. Return True to end the body."""
        self.log.append((step.does, step.which))
        if step.does == "raise":
            raise choose(ERRORS, step.which)(step.which)
        return step.does == "return"

    def generator(self) -> Generator[Any, Any, Any]:
        for step in self.program.steps:
            if step.does == "yield":
                try:
                    self.log.append(("sent in", identity((yield choose(VALUES, step.which)))))
                except BaseException as error:  # noqa: BLE001 - logged and answered
                    if self.answer_thrown(step, error):
                        return choose(VALUES, step.which)
            elif self.act(step):
                return choose(VALUES, step.which)
        self.log.append("end")

    async def async_generator(self) -> Any:
        for step in self.program.steps:
            if step.does == "yield":
                try:
                    self.log.append(("sent in", identity((yield choose(VALUES, step.which)))))
                except BaseException as error:  # noqa: BLE001 - logged and answered
                    if self.answer_thrown(step, error):
                        return
            elif step.does == "pause":
                await Pause(self.log)
            elif self.act(step):
                return
        self.log.append("end")

    async def coroutine(self) -> Any:
        for step in self.program.steps:
            if step.does == "pause":
                try:
                    await Pause(self.log)
                except BaseException as error:  # noqa: BLE001 - logged and answered
                    if self.answer_thrown(step, error):
                        return choose(VALUES, step.which)
            elif self.act(step):
                return choose(VALUES, step.which)
        return "end"

    def function(self) -> Any:
        for step in self.program.steps:
            if self.act(step):
                return choose(VALUES, step.which)
        return "end"

    def result(self) -> Any:
        """Return the result of a function or coroutine: a value, or a body that has not run yet."""
        made = {
            "value": self.function,
            "coroutine": self.coroutine,
            "generator": self.generator,
            "async generator": self.async_generator,
            "iterator": lambda: Items(self.generator()),
        }
        return made[self.program.result]()


class Items:
    """An iterator that is not a generator."""

    def __init__(self, body: Generator[Any, Any, Any]) -> None:
        self.body = body

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        return next(self.body)

    def send(self, value: Any) -> Any:
        return self.body.send(value)

    def throw(self, error: BaseException) -> Any:
        return self.body.throw(error)

    def close(self) -> None:
        self.body.close()


SOURCES = {
    "function": (
        "def ask{}:\n log.append(('called', [identity(part) for part in locals().values()]))\n return body.result()"
    ),
    "coroutine": "async def ask{}:\n await pause()\n return body.result()",
    "generator": "def ask{}:\n return (yield from body.generator())",
    "async generator": (
        "async def ask{}:\n"
        " stream, value, step = body.async_generator(), None, 'asend'\n"
        " while True:\n"
        "  try:\n   chunk = await getattr(stream, step)(value)\n"
        "  except StopAsyncIteration:\n   return\n"
        "  try:\n   value, step = (yield chunk), 'asend'\n"
        "  except BaseException as error:\n   value, step = error, 'athrow'"
    ),
}


def make(program: Program, decorate: Callable[[Any], Any], log: Log) -> Any:
    """Create the callable of a program, decorated or not, as reached through its binding."""
    body = Body(program, log)
    own = {"method": "self, ", "classmethod": "cls, "}.get(program.binding, "")
    signature = program.signature.replace("(", "(" + own, 1)
    names: dict[str, Any] = {"body": body, "log": log, "identity": identity, "pause": lambda: Pause(log)}
    exec(SOURCES[program.kind].format(signature), names)  # the source is defined above
    function = names["ask"]
    if program.binding == "classmethod":
        function = classmethod(function)
    elif program.binding == "staticmethod":
        function = staticmethod(function)
    if program.binding == "function":
        return decorate(function)
    return type("Asker", (), {"ask": decorate(function)})().ask


def comparable_error(error: BaseException) -> Any:
    """Return the properties of an error that can be compared between two runs."""
    chain, seen = [], error
    while seen is not None and len(chain) < 9:
        args = [identity(part) for part in seen.args]
        chain.append((type(seen).__name__, args, type(seen.__cause__).__name__, seen.__suppress_context__))
        seen = seen.__context__  # type: ignore[assignment]
    return chain


def observe_result(log: Log, value: Any, program: Program) -> None:
    """Log a result: the object itself, or the behavior of a body that has not run yet."""
    if any(value is known for known in VALUES):
        log.append(("value", identity(value)))
    elif inspect.iscoroutine(value):
        log.append(("coroutine", value.__name__, value.__qualname__))
        drive(log, value, program)
    elif inspect.isasyncgen(value):
        log.append(("async generator", value.__name__, value.__qualname__))
        consume_async(log, value, program)
    elif inspect.isgenerator(value) or isinstance(value, Items):
        log.append((type(value).__name__, isinstance(value, Items), iter(value) is value))
        consume(log, value, program)
    else:
        log.append(("value", identity(value)))


def attempt(log: Log, function: Callable[[], Any]) -> tuple[bool, Any]:
    """Make a call, and log the error that it raises."""
    try:
        return True, function()
    except BaseException as error:  # noqa: BLE001 - all of them are compared
        if isinstance(error, StopIteration):
            log.append(("stopped", identity(error.value)))
        else:
            log.append(("raised", comparable_error(error)))
        return False, None


def drive(log: Log, coroutine: Any, program: Program) -> None:
    """Step through a coroutine, and throw errors into it at the points that the program specifies."""
    for operation, which in (*program.consumption, *[("send", 0)] * 20):
        step = {
            "throw": lambda which=which: coroutine.throw(choose(ERRORS, which)(which)),
            "close": coroutine.close,
        }.get(operation, lambda: coroutine.send(None))
        try:
            log.append(("awaits", step()))
        except StopIteration as stop:
            observe_result(log, stop.value, program)
            break
        except BaseException as error:  # noqa: BLE001 - all of them are compared
            log.append(("raised", comparable_error(error)))
            break
    coroutine.close()


def consume(log: Log, stream: Any, program: Program) -> None:
    for operation, which in program.consumption:
        step = {
            "send": lambda which=which: stream.send(choose(VALUES, which)),
            "throw": lambda which=which: stream.throw(choose(ERRORS, which)(which)),
            "close": stream.close,
        }.get(operation, lambda: next(stream))
        came, value = attempt(log, step)
        if came:
            log.append((operation, identity(value)))
    for _ in program.steps:  # a body may ignore being closed, at each of its steps
        attempt(log, stream.close)
    attempt(log, stream.close)


def consume_async(log: Log, stream: Any, program: Program) -> None:
    for operation, which in (*program.consumption, *[("close", 0)] * (len(program.steps) + 1)):
        step = {
            "send": lambda which=which: stream.asend(choose(VALUES, which)),
            "throw": lambda which=which: stream.athrow(choose(ERRORS, which)(which)),
            "close": stream.aclose,
        }.get(operation, lambda: anext(stream))

        def run(step: Callable[[], Any] = step) -> Any:
            awaited = step().__await__()
            while True:
                try:
                    log.append(("awaits", next(awaited)))
                except StopIteration as stop:
                    return stop.value

        came, value = attempt(log, run)
        if came:
            log.append((operation, identity(value)))


def observed(program: Program, decorate: Callable[[Any], Any]) -> Log:
    """Return everything observable in a run of a program."""
    log: Log = []
    ask = make(program, decorate, log)
    log.append((ask.__name__, ask.__qualname__, str(inspect.signature(ask)), ask.__doc__))
    predicates = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
        inspect.ismethod,
        inspect.isfunction,
        inspect.isroutine,
        asyncio.iscoroutinefunction,
    )
    log.append([predicate(ask) for predicate in predicates])
    args, kwargs = SIGNATURES[program.signature](choose(VALUES, program.argument))[program.call]
    came, value = attempt(log, lambda: ask(*args, **kwargs))
    if came:
        observe_result(log, value, program)
    return log


def fits(program: Program) -> bool:
    """Return whether the arguments of a call match the signature."""
    args, kwargs = SIGNATURES[program.signature](None)[program.call]
    names: dict[str, Any] = {}
    exec(f"def ask{program.signature}: ...", names)  # the signatures are defined above
    try:
        inspect.signature(names["ask"]).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


CHOSEN = st.fixed_dictionaries({}, optional={name: st.sampled_from(pool) for name, pool in OPTIONS.items()})


@pytest.fixture
def collected() -> Iterator[None]:
    """Run the garbage collector in the test that dropped the objects, because freeing them may cause warnings."""
    yield
    gc.collect()


# If a body ignores being closed, or fails at it, Python reports this when the body is collected, decorated or not.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(program=programs(), options=CHOSEN, decorator=st.sampled_from(["observe", "bare", "retrieval"]))
def test_the_decorator_is_not_observable_by_the_caller(
    traced: Any, collected: None, program: Program, options: dict[str, Any], decorator: str
) -> None:
    """Values, errors, order of effects, signature, name and kind are the same as without the decorator."""
    decorators = {
        "observe": germane.observe(**options),
        "bare": germane.observe,
        "retrieval": germane.retrieval(**{name: options[name] for name in options if name == "contexts"}),
    }
    if program.kind != "function" and not fits(program):
        return  # see below

    assert observed(program, decorators[decorator]) == observed(program, lambda function: function)


@pytest.mark.parametrize("program", [SimpleNamespace(kind=kind) for kind in KINDS])
def test_wrong_arguments_raise_type_error(traced: Any, program: Any) -> None:
    """Known difference: generators and coroutines raise the error when they are first advanced.

    The wrapper must be a generator function, so that frameworks recognize it. It cannot pass on arguments earlier.
    """
    names: dict[str, Any] = {}
    exec(SOURCES[program.kind].format("(question)"), names)  # the source is defined above
    ask = germane.observe(names["ask"])

    with pytest.raises(TypeError, match=r"ask\(\) missing 1 required positional argument: 'question'"):
        advance(program.kind, ask())


def advance(kind: str, body: Any) -> None:
    if kind == "generator":
        next(body)
    else:
        (body if kind == "coroutine" else anext(body)).__await__().__next__()
