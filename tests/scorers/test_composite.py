"""Arithmetic of composite scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each

from germane.errors import ScoringError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.scorers.base.composite import (
    CompositeScorer,
    ScorePart,
    combined_usage,
    raise_if_incomplete,
    weighted_mean,
)

VALUES = st.floats(-1, 1)
WEIGHTS = st.floats(0.01, 100)


def part(value: float | None, weight: float = 1.0, **more: Any) -> ScorePart:
    """Return a part with a value, or without one."""
    reason = {"reason": UnscoredReason.UNPARSABLE} if value is None and "reason" not in more else {}
    return ScorePart("p", Score(scorer="p", fingerprint="f", value=value, **reason, **more), weight)


def test_mean_of_the_parts_is_weighted() -> None:
    """The weighted mean is exact."""
    assert weighted_mean([part(0.9, 0.3), part(0.5, 0.4), part(0.1, 0.3)]) == pytest.approx(0.5, abs=1e-12)


def test_a_missing_part_does_not_count_as_0() -> None:
    """The weights of the remaining parts are renormalized."""
    assert weighted_mean([part(0.9, 0.3), part(None, 0.4), part(0.3, 0.1)]) == pytest.approx(0.75, abs=1e-12)


def test_truncation_in_a_part_is_recorded_in_the_composite_score() -> None:
    """The score shows that only a part of the answer was used."""
    cut = {"answer": {"shown": 16_000, "of": 1_000_000}}

    assert part(0.5, details={"cut": cut, "more": 1}).details()["cut"] == cut
    assert "cut" not in part(0.5).details()


def test_a_negative_part_counts_as_0() -> None:
    """Parts are clipped to [0, 1]."""
    assert weighted_mean([part(-0.8), part(0.5)]) == pytest.approx(0.25, abs=1e-12)


@given(st.lists(st.tuples(VALUES, WEIGHTS), min_size=1, max_size=6))
def test_weighted_mean_lies_between_the_lowest_and_the_highest_part(pairs: list[tuple[float, float]]) -> None:
    """This holds for any weights."""
    clipped = [max(value, 0.0) for value, _ in pairs]

    assert min(clipped) - 1e-9 <= weighted_mean([part(*pair) for pair in pairs]) <= max(clipped) + 1e-9


@given(st.lists(st.tuples(VALUES, WEIGHTS), min_size=1, max_size=6), WEIGHTS)
def test_scaling_all_weights_does_not_change_the_mean(pairs: list[tuple[float, float]], scale: float) -> None:
    """This holds with and without a missing part."""
    scaled = [part(value, weight * scale) for value, weight in pairs]

    assert weighted_mean([*scaled, part(None, 7.0)]) == pytest.approx(
        weighted_mean([part(*pair) for pair in pairs]), abs=1e-9
    )


def test_a_composite_score_without_any_part_is_an_error() -> None:
    """The error has the reason of the first missing part."""
    missing = [part(None, reason=UnscoredReason.JUDGE_REFUSED, explanation="it would not"), part(None)]

    with pytest.raises(ScoringError, match="no value for p, p: it would not") as caught:
        weighted_mean(missing)
    with pytest.raises(ScoringError, match="no part has a weight"):
        weighted_mean([])

    assert caught.value.reason is UnscoredReason.JUDGE_REFUSED


@each(
    "awaited",
    [
        part(None, reason=UnscoredReason.JUDGE_TIMEOUT),
        part(None, reason=UnscoredReason.JUDGE_REJECTED),
        part(None, reason=UnscoredReason.EMBEDDER_ERROR, details={"retry_after": 7.0}),
    ],
)
def test_a_retryable_part_failure_postpones_the_score(awaited: ScorePart) -> None:
    """Examples are an unreachable server and a rejected key."""
    with pytest.raises(ScoringError) as caught:
        raise_if_incomplete([part(0.5), part(None), awaited])

    assert caught.value.reason is awaited.score.reason
    assert caught.value.retry_after == awaited.score.details.get("retry_after")


def test_the_longest_retry_delay_of_the_parts_applies() -> None:
    """After a shorter delay, one of the servers would reject the request."""
    waits = [part(None, reason=UnscoredReason.JUDGE_RATE_LIMITED, details={"retry_after": wait}) for wait in (2, 9, 4)]

    with pytest.raises(ScoringError) as caught:
        raise_if_incomplete(waits)

    assert caught.value.retry_after == 9


def test_permanent_part_failures_do_not_postpone_the_score() -> None:
    """Another attempt would fail in the same way."""
    reasons = [
        UnscoredReason.UNPARSABLE,
        UnscoredReason.JUDGE_REFUSED,
        UnscoredReason.EMBEDDER_ERROR,
        UnscoredReason.SCORER_ERROR,
    ]

    raise_if_incomplete([part(0.5), *(part(None, reason=reason) for reason in reasons)])


def test_the_usage_of_all_parts_is_summed() -> None:
    """The sum is None if no usage is known. Each judge is listed once."""
    reported = part(0.5, judge="j", input_tokens=10, output_tokens=2, cost=0.25)
    other = part(0.5, judge="j", embedder="e", input_tokens=5)

    assert combined_usage([reported, other, part(0.5)]) == {
        "judge": "j", "embedder": "e", "input_tokens": 15, "output_tokens": 2, "cost": 0.25,
    }  # fmt: skip
    assert combined_usage([part(0.5)])["input_tokens"] is None


def test_parts_run_concurrently_and_do_not_affect_each_other(exchange: Callable[..., Exchange]) -> None:
    """A part that raises becomes a failed part."""
    meeting = asyncio.Barrier(2)

    class Meets:
        name, fingerprint, requires, range = "meets", "m", frozenset({"answer"}), (0.0, 1.0)

        async def score(self, exchange: Exchange) -> float:
            await meeting.wait()
            return 0.5

    class Raises(Meets):
        async def score(self, exchange: Exchange) -> float:
            raise KeyError("colour")

    class Parts(CompositeScorer):
        name = "parts"

        async def score(self, exchange: Exchange) -> Score:
            raise NotImplementedError

    async def run_all() -> dict[str, Score]:
        async with asyncio.timeout(20):
            scorers = {"one": Meets(), "two": Meets(), "three": Raises()}
            parts = Parts(scorers, dict.fromkeys(scorers, 1.0), "renormalize")
            return {part.name: part.score for part in await parts.score_parts(exchange())}

    scores = asyncio.run(run_all())

    assert [(name, score.value, score.reason) for name, score in scores.items()] == [
        ("one", 0.5, None), ("two", 0.5, None), ("three", None, UnscoredReason.SCORER_ERROR),
    ]  # fmt: skip
