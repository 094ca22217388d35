"""Running a scorer: every outcome becomes a score."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers import is_retryable, run_scorer

Make = Callable[..., Exchange]


class Own:
    """A scorer written by a user."""

    name = "own"
    fingerprint = "abc"
    range = (0.0, 1.0)

    def __init__(self, result: Any, requires: set[str] | None = None) -> None:
        self.result = result
        self.requires = frozenset(requires or {"question", "answer"})
        self.asked = 0

    async def score(self, exchange: Exchange) -> Any:
        self.asked += 1
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def own_score(value: float, **more: Any) -> Score:
    """Return a score from the user's scorer."""
    return Score(scorer="own", fingerprint="abc", value=value, **more)


@each("blank", [None, "", "  \n\t", "\x00", "\u200b\u200e"])
@each("absent", ["question", "answer", "contexts"])
def test_an_exchange_without_required_input_is_skipped_without_a_call(
    exchange: Make, score: Any, absent: str, blank: str | None
) -> None:
    """Missing and blank texts do not count as input."""
    texts = {"question": "Why?", "answer": "Because.", "contexts": "A passage."}
    given = exchange(*(blank if name == absent else text for name, text in texts.items() if name != "contexts"))
    if absent != "contexts":
        given = exchange(given.question, given.answer, texts["contexts"])
    elif blank is not None:
        given = exchange(given.question, given.answer, blank)
    scorer = Own(0.5, set(texts))

    (result,) = score(scorer, given)

    assert (result.state, result.reason, result.value) == ("skipped", UnscoredReason.MISSING_INPUT, None)
    assert result.explanation == f"there is no {absent.removesuffix('s')}"
    assert scorer.asked == 0


def test_a_failed_score_has_the_reason_and_message_of_its_error(exchange: Make, score: Any) -> None:
    """The score also has the retry delay that the server requested."""
    error = ScoringError(UnscoredReason.JUDGE_RATE_LIMITED, "too many requests", retry_after=7)

    (result,) = score(Own(error), exchange())

    assert (result.state, result.reason, result.explanation) == (
        "failed", UnscoredReason.JUDGE_RATE_LIMITED, "too many requests",
    )  # fmt: skip
    assert result.details == {"retry_after": 7}


@each("error", [KeyError("colour"), ZeroDivisionError("by zero"), RecursionError("deep")])
def test_any_other_exception_in_a_scorer_is_a_scorer_error(exchange: Make, score: Any, error: Exception) -> None:
    """The message contains its type and text."""
    (result,) = score(Own(error), exchange())

    assert result.reason is UnscoredReason.SCORER_ERROR
    assert result.explanation == f"{type(error).__name__}: {error}"


def test_a_long_error_message_is_truncated(exchange: Make, score: Any) -> None:
    """An exception's message can contain the whole exchange."""
    (result,) = score(Own(ValueError("x" * 10_000)), exchange())

    assert len(result.explanation) == 500


@each("value", [1.5, -0.1, float("nan"), float("inf"), -float("inf")])
def test_a_score_outside_the_range_of_its_scorer_is_rejected(exchange: Make, score: Any, value: float) -> None:
    """Infinity and NaN are also rejected."""
    (result,) = score(Own(value), exchange())

    assert (result.value, result.reason) == (None, UnscoredReason.OUT_OF_RANGE)


@each(("value", "kept"), [(1 + 5e-7, 1.0), (-5e-7, 0.0), (0.25, 0.25), (1, 1.0)])
def test_rounding_errors_beyond_the_range_are_clipped(exchange: Make, score: Any, value: float, kept: float) -> None:
    """A value one millionth outside the range becomes the limit, in a score or as a plain number."""
    bare, full = score(Own(value), exchange())[0], score(Own(own_score(value)), exchange())[0]

    assert bare.value == full.value == kept
    assert (bare.scorer, bare.fingerprint) == ("own", "abc")


@each("number", [np.float64(0.5), np.float32(0.5), Fraction(1, 2)])
def test_numpy_numbers_are_valid_score_values(exchange: Make, score: Any, number: Any) -> None:
    """Means computed by NumPy have NumPy types."""
    (result,) = score(Own(number), exchange())

    assert (type(result.value), result.value) == (float, 0.5)


def test_an_integer_that_is_too_large_for_a_float_is_rejected(exchange: Make, score: Any) -> None:
    """The score fails, and no exception is raised."""
    (result,) = score(Own(10**400), exchange())

    assert result.reason is UnscoredReason.SCORER_ERROR


def test_an_unknown_required_input_is_a_scorer_error(exchange: Make, score: Any) -> None:
    """A typo in `requires` is reported and not treated as the answer."""
    (result,) = score(Own(0.5, {"anwser"}), exchange())

    assert (result.reason, result.explanation) == (UnscoredReason.SCORER_ERROR, "KeyError: 'anwser'")


@each("result", [None, True, np.True_, "0.5", [0.5]])
def test_a_result_that_is_not_a_score_is_a_scorer_error(exchange: Make, score: Any, result: Any) -> None:
    """The message names what the scorer returned."""
    (given,) = score(Own(result), exchange())

    assert given.reason is UnscoredReason.SCORER_ERROR
    assert type(result).__name__ in given.explanation


@each(
    ("field", "given", "problem"),
    [
        ("label", 3, "label is a int"),
        ("explanation", b"x", "explanation is a bytes"),
        ("details", [1], "details is a list"),
        ("judge", 4.0, "judge is a float"),
        ("input_tokens", "7", "input_tokens is a str"),
        ("cost", "0.5", "cost is a str"),
        ("cost", float("nan"), "cost is nan"),
        ("cost", float("inf"), "cost is inf"),
    ],
)
def test_a_score_with_a_field_of_the_wrong_type_is_a_scorer_error(
    exchange: Make, score: Any, field: str, given: Any, problem: str
) -> None:
    """Not every scorer is type-checked. Such a field must not end the loop or lose a report that was paid for."""
    (result,) = score(Own(own_score(0.5, **{field: given})), exchange())

    explanation = f"the scorer returned a score whose {problem}"
    assert (result.reason, result.explanation) == (UnscoredReason.SCORER_ERROR, explanation)


def test_an_unknown_reason_is_a_scorer_error(exchange: Make, score: Any) -> None:
    """Scorers cannot add reasons."""
    unknown: Any = "nobody_knows"
    (result,) = score(Own(Score(reason=unknown)), exchange())

    assert (result.reason, result.explanation) == (
        UnscoredReason.SCORER_ERROR, "the scorer returned a score whose reason is a str",
    )  # fmt: skip


def test_numpy_numbers_are_valid_in_every_field_of_a_score(exchange: Make, score: Any) -> None:
    """Other fields accept the same numbers as the value."""
    value: Any = np.float32(0.5)
    (result,) = score(Own(own_score(value, input_tokens=np.int64(7), cost=value)), exchange())

    numbers = (result.value, result.input_tokens, result.cost)
    assert numbers == (0.5, 7, 0.5)
    assert [type(number) for number in numbers] == [float, int, float]  # databases do not accept NumPy types


def test_a_score_without_a_value_is_returned_unchanged(exchange: Make, score: Any) -> None:
    """A scorer can state why there is no value."""
    absent = Score(scorer="own", fingerprint="abc", reason=UnscoredReason.FILTERED)

    (result,) = score(Own(absent), exchange())

    assert (result.state, result.reason) == ("skipped", UnscoredReason.FILTERED)


def test_a_score_without_name_and_fingerprint_gets_those_of_its_scorer(exchange: Make, score: Any) -> None:
    """Scorer authors do not need to repeat them. This also applies to scores without a value."""
    for bare in (Score(value=0.5), Score(reason=UnscoredReason.FILTERED)):
        (result,) = score(Own(bare), exchange())

        assert (result.scorer, result.fingerprint, result.value) == ("own", "abc", bare.value)


def test_a_score_gets_its_latency_and_time(exchange: Make) -> None:
    """The time comes from the caller's clock."""
    then = datetime(2026, 1, 2, tzinfo=UTC)

    result = asyncio.run(run_scorer(Own(0.5), exchange(), clock=lambda: then))

    assert result.scored_at == then
    assert result.latency is not None
    assert result.latency >= 0


def test_cancellation_propagates_through_a_scorer(exchange: Make) -> None:
    """Cancellation does not result in a failed score."""

    class Slow(Own):
        async def score(self, exchange: Exchange) -> Any:
            await asyncio.sleep(3600)

    async def stop() -> None:
        async with asyncio.timeout(0):
            await run_scorer(Slow(0.5), exchange())

    with pytest.raises(TimeoutError):
        asyncio.run(stop())


def test_a_scorer_that_raises_a_cancellation_itself_fails(exchange: Make, score: Any) -> None:
    """The caller did not cancel it. An exchange that always causes this must not be retried forever."""
    (result,) = score(Own(asyncio.CancelledError()), exchange())

    assert result.reason is UnscoredReason.SCORER_ERROR


@each(
    ("reason", "details", "expected"),
    [
        (UnscoredReason.JUDGE_TIMEOUT, {}, True),
        (UnscoredReason.JUDGE_REJECTED, {}, False),
        (UnscoredReason.EMBEDDER_ERROR, {}, False),
        (UnscoredReason.EMBEDDER_ERROR, {"retry_after": 0.0}, True),
        (UnscoredReason.NO_USABLE_QUESTION, {}, False),
    ],
)
def test_only_temporary_failures_can_be_retried(
    reason: UnscoredReason, details: dict[str, Any], expected: bool
) -> None:
    """An unreachable, slow or busy server can recover; bad data cannot."""
    assert is_retryable(Score(scorer="own", fingerprint="abc", reason=reason, details=details)) is expected


def test_a_score_with_a_value_is_not_retried() -> None:
    """A score with a value has succeeded."""
    assert not is_retryable(own_score(0.5))
