"""Custom scorers: functions of an exchange, with and without the decorator."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.cases import each

import germane
from germane import registry
from germane.errors import UsageError
from germane.exchange import Exchange
from germane.registry import build_declaration
from germane.score import Score, UnscoredReason
from germane.scorers import run_scorer
from germane.scorers.plugins import FunctionScorer

Make = Callable[..., Exchange]


@pytest.fixture(autouse=True)
def declarations(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Empty the registry, which is shared by the whole process."""
    empty: dict[str, Any] = {}
    monkeypatch.setattr(registry, "_declarations", empty)
    return empty


@pytest.fixture
def custom() -> Iterator[Callable[..., FunctionScorer]]:
    """Return a function that turns a function into a scorer. The scorer's threads end with the test."""
    made: list[FunctionScorer] = []

    def make(function: Callable[..., Any], **options: Any) -> FunctionScorer:
        made.append(FunctionScorer(build_declaration(function, name="own", **options)))
        return made[-1]

    yield make
    for scorer in made:
        asyncio.run(scorer.aclose())


def as_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an async function with the same result."""

    @functools.wraps(function)
    async def coroutine(exchange: Exchange) -> Any:
        return function(exchange)

    return coroutine


@pytest.fixture(params=["plain", "async"])
def kind(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run the test with a plain function and with a coroutine function."""
    return (lambda function: function) if request.param == "plain" else as_coroutine


def test_a_decorated_function_can_still_be_called() -> None:
    """The decorator works with and without parentheses."""

    def brevity(exchange: Exchange) -> float:
        return 0.5

    async def tone(exchange: Exchange) -> float:
        return 0.5

    assert germane.scorer(brevity) is brevity
    assert germane.scorer(name="politeness", requires={"answer"}, range=(0, 1), version="1")(tone) is tone
    assert registry.declared_names() == ["brevity", "politeness"]


def test_a_returned_number_becomes_a_score(exchange: Make, score: Any, custom: Any, kind: Any) -> None:
    """The score has the name and the fingerprint of the scorer."""
    scorer = custom(kind(lambda exchange: len(exchange.answer) / 100))

    (result,) = score(scorer, exchange("Why?", "x" * 25))

    assert (result.value, result.scorer, result.fingerprint) == (0.25, "own", scorer.fingerprint)


def test_a_returned_score_object_keeps_its_fields(exchange: Make, score: Any, custom: Any, kind: Any) -> None:
    """The score gets the scorer's name, and the scorer's fingerprint if it has none."""
    written = Score(scorer="mine", value=0.5, explanation="because", details={"words": 3})

    (found,) = score(scorer := custom(kind(lambda exchange: written)), exchange())

    assert (found.scorer, found.fingerprint) == ("own", scorer.fingerprint)
    assert (found.value, found.explanation, found.details) == (0.5, "because", {"words": 3})


def test_a_returned_score_object_keeps_its_own_fingerprint(exchange: Make, score: Any, custom: Any) -> None:
    """A function that calls a judge knows all inputs that determine its value."""
    (result,) = score(custom(lambda exchange: Score(fingerprint="judge-7", value=0.5)), exchange())

    assert result.fingerprint == "judge-7"


@pytest.mark.parametrize("error", [KeyError("colour"), StopIteration(3), SystemExit(2), RecursionError("deep")])
def test_an_exception_becomes_a_failed_score(exchange: Make, score: Any, custom: Any, kind: Any, error: Any) -> None:
    """Other scorers are not affected."""

    def fails(exchange: Exchange) -> float:
        raise error

    (result,) = score(custom(kind(fails)), exchange())

    assert (result.value, result.reason) == (None, UnscoredReason.SCORER_ERROR)
    assert type(error).__name__ in result.explanation


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, -0.1])
def test_a_returned_number_outside_the_range_is_rejected(
    exchange: Make, score: Any, custom: Any, kind: Any, value: float
) -> None:
    """The number is not clipped to the range."""
    (result,) = score(custom(kind(lambda exchange: value)), exchange())

    assert (result.value, result.reason) == (None, UnscoredReason.OUT_OF_RANGE)


@pytest.mark.parametrize("result", [None, "0.5", True, [0.5]])
def test_a_returned_value_that_is_not_a_number_is_rejected(
    exchange: Make, score: Any, custom: Any, kind: Any, result: Any
) -> None:
    """The error message contains the returned value."""
    (found,) = score(custom(kind(lambda exchange: result)), exchange())

    assert found.reason is UnscoredReason.SCORER_ERROR
    assert type(result).__name__ in found.explanation


def test_a_custom_range_includes_both_ends(exchange: Make, score: Any, custom: Any) -> None:
    """Values at either end are valid."""
    scorer = custom(lambda exchange: float(exchange.answer), range=(-1, 0.5))

    assert [found.value for found in score(scorer, *(exchange("Q?", text) for text in ("-1", "0.5", "0.6")))] == [
        -1.0, 0.5, None,
    ]  # fmt: skip


@pytest.mark.parametrize(("requires", "state"), [("answer", "skipped"), ({"question"}, "scored"), ((), "scored")])
def test_an_exchange_without_a_required_input_is_skipped(
    exchange: Make, score: Any, custom: Any, requires: Any, state: str
) -> None:
    """The function is not called."""
    (result,) = score(custom(lambda exchange: 0.5, requires=requires), exchange("Why?", " "))

    assert result.state == state


def test_a_blocking_function_does_not_block_the_event_loop(exchange: Make, custom: Any) -> None:
    """Each call waits for work on the event loop, so it would never return if it blocked the loop."""
    free = threading.Event()
    blocks = custom(lambda exchange: 0.5 if free.wait(30) else 0.0)

    async def all_at_once() -> list[Score]:
        calls = [asyncio.create_task(run_scorer(blocks, exchange())) for _ in range(8)]
        for _ in range(20):
            await asyncio.sleep(0.001)
        free.set()
        return await asyncio.gather(*calls)

    assert [found.value for found in asyncio.run(all_at_once())] == [0.5] * 8


def test_the_number_of_threads_for_blocking_functions_is_limited(exchange: Make, score: Any, custom: Any) -> None:
    """The number does not depend on the number of exchanges. Async functions do not use threads."""
    seen: set[int] = set()
    plain = custom(lambda exchange: seen.add(threading.get_ident()) or 0.5)
    loops: set[int] = set()
    coroutine = custom(as_coroutine(lambda exchange: loops.add(threading.get_ident()) or 0.5))

    async def all_at_once() -> None:
        await asyncio.gather(*(run_scorer(scorer, exchange()) for scorer in (plain, coroutine) for _ in range(40)))

    asyncio.run(all_at_once())

    assert 1 <= len(seen) <= 4
    assert threading.get_ident() not in seen
    assert loops == {threading.get_ident()}


def test_a_hanging_function_does_not_prevent_shutdown(exchange: Make, custom: Any) -> None:
    """Closing does not wait for the function, and its thread does not keep the program running."""
    free, began = threading.Event(), threading.Event()

    def hang(exchange: Exchange) -> float:
        began.set()
        free.wait(60)
        return 0.5

    hangs = custom(hang)

    async def stop() -> None:
        call = asyncio.create_task(run_scorer(hangs, exchange()))
        await asyncio.to_thread(began.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await hangs.aclose()

    asyncio.run(stop())
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("germane-own")]
    free.set()

    assert threads
    assert all(thread.daemon for thread in threads)


def test_a_plain_function_can_return_an_awaitable(exchange: Make, score: Any, custom: Any) -> None:
    """A wrapper around an async function is often a plain function."""
    tone = as_coroutine(lambda exchange: 0.5)

    (result,) = score(custom(lambda exchange: tone(exchange)), exchange())

    assert result.value == 0.5


class Tone:
    """Callable object."""

    async def __call__(self, exchange: Exchange) -> float:
        return 0.5

    def method(self, exchange: Exchange) -> float:
        return 0.5


@pytest.mark.parametrize(
    "function", [Tone(), Tone().method, functools.partial(lambda value, exchange: value, 0.5), lambda *given: 0.5]
)
def test_any_callable_can_be_a_scorer(exchange: Make, score: Any, custom: Any, function: Any) -> None:
    """This includes callable objects, methods and partial functions."""
    assert score(custom(function), exchange())[0].value == 0.5


def test_the_fingerprint_covers_all_declared_options() -> None:
    """It covers name, version, qualified name, range and inputs. Update it if one changes on purpose."""

    def made(**options: Any) -> str:
        return FunctionScorer(build_declaration(as_coroutine, **{"name": "own"} | options)).fingerprint

    assert made() == made(requires=("answer", "question")) == "d5f72e51464a"
    others = [made(name="other"), made(version="2"), made(range=(-1, 1)), made(requires={"answer"})]
    assert len({made(), *others, FunctionScorer(build_declaration(declare_nothing, name="own")).fingerprint}) == 6


def declare_nothing(exchange: Exchange) -> float:
    """Return a different function."""
    return 0.0


@each(
    ("function", "options", "message"),
    [
        (3, {}, "must be a function that takes an exchange, not 3"),
        (Tone, {}, "must be a function that takes an exchange, not <class"),
        (lambda: 0.5, {}, "cannot be called with one argument"),
        (lambda one, two: 0.5, {}, "cannot be called with one argument"),
        (lambda exchange: 0.5, {"name": None}, "invalid scorer name '<lambda>'"),
        (lambda exchange: (yield 0.5), {}, "is a generator"),
        (declare_nothing, {"name": ""}, "invalid scorer name"),
        (declare_nothing, {"name": "two words"}, "invalid scorer name"),
        (declare_nothing, {"name": "a,b"}, "invalid scorer name"),
        (declare_nothing, {"name": 3}, "invalid scorer name"),
        (declare_nothing, {"requires": {"anwser"}}, "not anwser"),
        (declare_nothing, {"range": (1, 0)}, "must be increasing"),
        (declare_nothing, {"range": (0, 10)}, "from -1 to 1"),
        (declare_nothing, {"range": (0, float("nan"))}, "two numbers"),
        (declare_nothing, {"range": (0, 1, 2)}, "two numbers"),
        (declare_nothing, {"range": "01"}, "two numbers"),
    ],
)
def test_invalid_functions_and_options_are_rejected_by_the_decorator(function: Any, options: Any, message: str) -> None:
    """The error is raised at the declaration, not later in the background."""
    with pytest.raises(UsageError, match=message):
        germane.scorer(**{"name": "own"} | options)(function)


def test_a_scorer_name_can_be_declared_only_once() -> None:
    """The error names the first function. Declaring the same function again, as notebooks do, replaces it."""

    def again() -> Any:
        @germane.scorer(name="own")
        def first(exchange: Exchange) -> float:
            return 0.5

        return first

    again()
    latest = again()

    with pytest.raises(UsageError, match=r"'own' is already defined by .*first; rename .*declare_nothing"):
        germane.scorer(name="own")(declare_nothing)
    found = registry.find_declaration("own")
    assert found is not None
    assert found.function is latest
