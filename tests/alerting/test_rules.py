"""Rules as functions of numbers: floors and shares at their limits, with exact figures."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alerting.rules import budget_exhausted, mean_threshold, no_data, rates, scorer_error
from germane.alerting.rules.one_sided import ONE_SIDED, TWO_SIDED, lower_of_share, share_interval, trials, upper, wilson
from germane.settings import Budget, BudgetExhausted, Floor, LowRate, NoData, NoncommittalRate, ScorerError
from germane.storage import RouteMean, Spent
from germane.storage.alerting.scoring_flow import Flow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_mean(mean: float = 0.5, n: int = 100, half: float = 0.05, **given_: Any) -> RouteMean:
    told = {
        "deviation": 0.25, "low_share": 0.0, "noncommittal_share": 0.0, "interval": (mean - half, mean + half),
        "service": "shop", "route": "ask", "scorer": "s", "fingerprint": "f", "newest": True, "latest": NOON, **given_,
    }  # fmt: skip
    return RouteMean(n=n, mean=mean, **told)


def test_a_one_sided_limit_is_nearer_than_the_two_sided_one() -> None:
    """1.645 instead of 1.96 standard deviations."""
    assert upper(0.5, (0.3, 0.6)) == pytest.approx(0.5 + 0.1 * 1.644854 / 1.959964, abs=1e-9)


def test_a_wilson_interval_has_its_known_figures() -> None:
    """10 of 100, 95 %: .0552 to .1744; at 0 of 10 it begins at 0 and is not empty."""
    low, high = wilson(0.1, 100, TWO_SIDED)
    assert low == pytest.approx(0.05522914, abs=1e-6)
    assert high == pytest.approx(0.17436566, abs=1e-6)
    low, high = wilson(0.0, 10, TWO_SIDED)
    assert low == 0
    assert high == pytest.approx(0.27753279, abs=1e-6)


@given(st.floats(0, 1), st.floats(1, 1e6))
def test_a_share_lies_within_its_interval(share: float, n: float) -> None:
    """Between 0 and 1, and the one-sided limit within the two-sided one."""
    low, high = wilson(share, n, TWO_SIDED)
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1
    assert low <= wilson(share, n, ONE_SIDED)[0] + 1e-12


def test_unequal_weights_are_worth_fewer_scores() -> None:
    """An interval twice as wide as that of equal weights is that of a quarter of the scores."""
    plain = TWO_SIDED * 0.25 / math.sqrt(100)
    assert trials(a_mean(half=plain)) == pytest.approx(100, abs=1e-6)
    assert trials(a_mean(half=2 * plain)) == pytest.approx(25, abs=1e-6)
    assert trials(a_mean(half=plain / 2)) == 100
    assert trials(a_mean(interval=None)) == 100
    low, high = share_interval(a_mean(half=plain), 0.1)
    assert low < lower_of_share(a_mean(half=plain), 0.1) < 0.1 < high


@pytest.mark.parametrize(
    ("mean", "half", "n", "state"),
    [
        (0.50, 0.05, 100, "bad"),
        (0.50, 0.13, 100, "unclear"),  # its one-sided limit is above the threshold
        (0.60, 0.05, 100, "unclear"),
        (0.629, 0.05, 100, "unclear"),
        (0.63, 0.05, 100, "good"),
        (0.10, 0.05, 29, "unclear"),
        (0.90, 0.05, 29, "unclear"),
    ],
)
def test_a_floor(mean: float, half: float, n: int, state: str) -> None:
    """Bad under the threshold beyond chance, good from the recovery on, unclear between and among too few."""
    verdict = mean_threshold.judge(Floor(threshold=0.6), a_mean(mean, n, half))
    assert verdict.state == state
    assert (verdict.value, verdict.threshold, verdict.keep_firing) == (mean, 0.6, 21_600)
    assert verdict.labels == {"service": "shop", "scorer": "s", "route": "ask"}


@pytest.mark.parametrize(
    ("share", "n", "state"),
    [(0.5, 100, "bad"), (0.33, 100, "unclear"), (0.28, 100, "unclear"), (0.27, 100, "good"), (0.9, 29, "unclear")],
)
def test_a_rate(share: float, n: int, state: str) -> None:
    """The same for shares, the other way round; each rule takes its own."""
    low = rates.judge(LowRate(threshold=0.3), a_mean(0.5, n, low_share=share))
    refused = rates.judge_noncommittal_rate(NoncommittalRate(threshold=0.3), a_mean(0.5, n, noncommittal_share=share))
    assert (low.state, refused.state) == (state, state)
    assert low.current is not None
    assert (low.value, low.current.mean, low.current.n) == (share, share, n)


def a_flow(minutes: float | None, *, scored: bool = True) -> Flow:
    waiting = None if minutes is None else NOON - timedelta(minutes=minutes)
    return Flow(
        service="shop",
        scorer="s",
        scored_at=NOON if scored else None,
        waiting_since=waiting,
        waiting=3 if waiting else 0,
    )


@pytest.mark.parametrize(
    ("minutes", "usual", "state"),
    [(16, 5, "bad"), (14, 5, "good"), (16, 10, "good"), (21, 10, "bad"), (119, None, "good"), (121, None, "bad")],
)
def test_missing_scores(minutes: float, usual: float | None, state: str) -> None:
    """Twice the usual gap, at least a quarter of an hour; two hours where nothing is known."""
    wait = None if usual is None else timedelta(minutes=usual)
    assert no_data.judge(NoData(), a_flow(minutes), NOON, wait).state == state


def test_a_backlog_is_no_missing_score() -> None:
    """Answers of three hours wait, and one was scored a minute ago."""
    backlog = replace(a_flow(180), made_at=NOON - timedelta(minutes=1))
    assert no_data.judge(NoData(), backlog, NOON, timedelta(minutes=5)).state == "good"
    assert no_data.judge(NoData(), replace(backlog, made_at=NOON - timedelta(hours=1)), NOON, None).state == "good"
    assert no_data.judge(NoData(), replace(backlog, made_at=NOON - timedelta(hours=2.1)), NOON, None).state == "bad"


def test_where_nobody_asks_nothing_is_missing() -> None:
    """Neither good nor bad, with nothing scored and nothing to be scored."""
    assert no_data.judge(NoData(), a_flow(None, scored=False), NOON, None).state == "unclear"
    assert no_data.judge(NoData(), a_flow(None), NOON, None).state == "good"


@pytest.mark.parametrize(
    ("scored", "failed", "state"),
    [(80, 21, "bad"), (80, 20, "unclear"), (89, 11, "unclear"), (90, 10, "good"), (0, 19, "unclear"), (0, 20, "bad")],
)
def test_failing_scores(scored: int, failed: int, state: str) -> None:
    """Above a fifth of at least twenty bad, from a tenth on good; the commonest reason is named."""
    reasons = Counter({"judge_timeout": failed - 1, "unparsable": 1})
    verdict = scorer_error.judge(ScorerError(), "shop", "s", scored, reasons)
    assert verdict.state == state
    assert verdict.details == {"tried": scored + failed, "failed": failed, "reason": "judge_timeout"}


@pytest.mark.parametrize(
    ("budget", "calls", "hour", "state"),
    [
        (Budget(calls_per_day=10), 10, 12, "bad"),
        (Budget(calls_per_day=10), 9, 12, "good"),
        (Budget(calls_per_day=10), 10, 22, "unclear"),
        (Budget(calls_per_hour=1), 13, 12, "good"),
        (None, 10, 12, "good"),
    ],
)
def test_a_spent_budget(budget: Budget | None, calls: int, hour: int, state: str) -> None:
    """Only that of the day, and only with more than two hours to go."""
    now = NOON.replace(hour=hour)
    assert budget_exhausted.judge(BudgetExhausted(), budget, Spent(day=now.date(), calls=calls), now).state == state
