"""Rules as pure functions: states at their limits, and confidence limits with exact figures."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alerting.intervals import (
    ONE_SIDED_Z,
    TWO_SIDED_Z,
    effective_sample_size,
    mean_upper_limit,
    share_interval,
    share_lower_limit,
)
from germane.alerting.rules.scoring_health import evaluate_budget_exhausted, evaluate_no_data, evaluate_scorer_error
from germane.alerting.rules.window import evaluate_low_score_rate, evaluate_mean_threshold, evaluate_noncommittal_rate
from germane.settings import Budget, BudgetExhausted, LowScoreRate, MeanThreshold, NoData, NoncommittalRate, ScorerError
from germane.statistics import wilson_interval
from germane.storage import BudgetDay, RouteMean, ScoringFlow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_mean(mean: float = 0.5, n: int = 100, half: float = 0.05, **given_: Any) -> RouteMean:
    fields = {
        "deviation": 0.25, "low_share": 0.0, "noncommittal_share": 0.0, "interval": (mean - half, mean + half),
        "service": "shop", "route": "ask", "scorer": "s", "fingerprint": "f", "newest": True, "latest": NOON, **given_,
    }  # fmt: skip
    return RouteMean(n=n, mean=mean, **fields)


def test_a_one_sided_limit_is_closer_to_the_mean_than_a_two_sided_limit() -> None:
    """The one-sided limit uses 1.645 standard deviations instead of 1.96."""
    assert mean_upper_limit(0.5, (0.3, 0.6)) == pytest.approx(0.5 + 0.1 * 1.644854 / 1.959964, abs=1e-9)


def test_the_wilson_interval_matches_published_figures() -> None:
    """The interval for 10 of 100 is 0.0552 to 0.1744. For 0 of 10, it starts at 0 and is not empty."""
    low, high = wilson_interval(0.1, 100, TWO_SIDED_Z)
    assert low == pytest.approx(0.05522914, abs=1e-6)
    assert high == pytest.approx(0.17436566, abs=1e-6)
    low, high = wilson_interval(0.0, 10, TWO_SIDED_Z)
    assert low == 0
    assert high == pytest.approx(0.27753279, abs=1e-6)


@given(st.floats(0, 1), st.floats(1, 1e6))
def test_an_estimated_share_lies_within_its_interval(share: float, n: float) -> None:
    """The one-sided limit lies within the two-sided interval."""
    low, high = wilson_interval(share, n, TWO_SIDED_Z)
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1
    assert low <= wilson_interval(share, n, ONE_SIDED_Z)[0] + 1e-12


def test_unequal_weights_reduce_the_effective_sample_size() -> None:
    """An interval twice as wide corresponds to a quarter of the scores."""
    plain = TWO_SIDED_Z * 0.25 / math.sqrt(100)
    assert effective_sample_size(a_mean(half=plain)) == pytest.approx(100, abs=1e-6)
    assert effective_sample_size(a_mean(half=2 * plain)) == pytest.approx(25, abs=1e-6)
    assert effective_sample_size(a_mean(half=plain / 2)) == 100
    assert effective_sample_size(a_mean(interval=None)) == 100
    low, high = share_interval(a_mean(half=plain), 0.1)
    assert low < share_lower_limit(a_mean(half=plain), 0.1) < 0.1 < high


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
def test_a_mean_is_bad_if_significantly_below_the_threshold_and_good_above_the_margin(
    mean: float, half: float, n: int, state: str
) -> None:
    """The mean is good from the recovery margin upward, and unclear in between."""
    result = evaluate_mean_threshold(MeanThreshold(threshold=0.6), a_mean(mean, n, half))
    assert result.state == state
    assert (result.value, result.threshold, result.keep_firing_for) == (mean, 0.6, 21_600)
    assert result.labels == {"service": "shop", "scorer": "s", "route": "ask"}


@pytest.mark.parametrize(
    ("share", "n", "state"),
    [(0.5, 100, "bad"), (0.33, 100, "unclear"), (0.28, 100, "unclear"), (0.27, 100, "good"), (0.9, 29, "unclear")],
)
def test_a_share_is_bad_if_significantly_above_the_threshold_and_good_below_the_margin(
    share: float, n: int, state: str
) -> None:
    """The share is good up to the recovery margin, and unclear in between."""
    low = evaluate_low_score_rate(LowScoreRate(threshold=0.3), a_mean(0.5, n, low_share=share))
    refused = evaluate_noncommittal_rate(NoncommittalRate(threshold=0.3), a_mean(0.5, n, noncommittal_share=share))
    assert (low.state, refused.state) == (state, state)
    assert low.current is not None
    assert (low.value, low.current.mean, low.current.n) == (share, share, n)


def a_flow(minutes: float | None, *, scored: bool = True) -> ScoringFlow:
    waiting = None if minutes is None else NOON - timedelta(minutes=minutes)
    return ScoringFlow(
        service="shop",
        scorer="s",
        last_scored_minute=NOON if scored else None,
        waiting_since=waiting,
        waiting=3 if waiting else 0,
    )


@pytest.mark.parametrize(
    ("minutes", "usual", "state"),
    [(16, 5, "bad"), (14, 5, "good"), (16, 10, "good"), (21, 10, "bad"), (119, None, "good"), (121, None, "bad")],
)
def test_a_no_data_rule_is_bad_after_twice_the_typical_gap(minutes: float, usual: float | None, state: str) -> None:
    """The wait is at least 15 minutes, and two hours if the typical gap is unknown."""
    wait = None if usual is None else timedelta(minutes=usual)
    assert evaluate_no_data(NoData(), a_flow(minutes), NOON, wait).state == state


def test_a_no_data_rule_does_not_count_a_backlog_as_missing_data() -> None:
    """Answers wait for hours, but scores are being computed."""
    backlog = replace(a_flow(180), last_score_at=NOON - timedelta(minutes=1))
    assert evaluate_no_data(NoData(), backlog, NOON, timedelta(minutes=5)).state == "good"
    assert (
        evaluate_no_data(NoData(), replace(backlog, last_score_at=NOON - timedelta(hours=1)), NOON, None).state
        == "good"
    )
    assert (
        evaluate_no_data(NoData(), replace(backlog, last_score_at=NOON - timedelta(hours=2.1)), NOON, None).state
        == "bad"
    )


def test_a_no_data_rule_is_unclear_without_traffic() -> None:
    """Without traffic, there is nothing to score."""
    assert evaluate_no_data(NoData(), a_flow(None, scored=False), NOON, None).state == "unclear"
    assert evaluate_no_data(NoData(), a_flow(None), NOON, None).state == "good"


@pytest.mark.parametrize(
    ("scored", "failed", "state"),
    [(80, 21, "bad"), (80, 20, "unclear"), (89, 11, "unclear"), (90, 10, "good"), (0, 19, "unclear"), (0, 20, "bad")],
)
def test_a_scorer_error_rule_is_bad_if_more_than_a_fifth_of_attempts_fail(scored: int, failed: int, state: str) -> None:
    """The rule requires at least 20 attempts. The result is good again at a tenth or less."""
    reasons = Counter({"judge_timeout": failed - 1, "unparsable": 1})
    result = evaluate_scorer_error(ScorerError(), "shop", "s", scored, reasons)
    assert result.state == state
    assert result.details == {"tried": scored + failed, "failed": failed, "reason": "judge_timeout"}


def test_a_scorer_error_alert_resolves_when_a_quiet_service_is_scored_without_failures() -> None:
    """At night, there may never be enough attempts for a share."""
    assert evaluate_scorer_error(ScorerError(), "shop", "s", 1, Counter()).state == "good"
    assert evaluate_scorer_error(ScorerError(), "shop", "s", 0, Counter()).state == "unclear"


@pytest.mark.parametrize(
    ("budget", "calls", "hour", "state"),
    [
        (Budget(requests_per_day=10), 10, 12, "bad"),
        (Budget(requests_per_day=10), 9, 12, "good"),
        (Budget(requests_per_day=10), 10, 22, "unclear"),
        (Budget(requests_per_hour=1), 13, 12, "good"),
        (None, 10, 12, "good"),
    ],
)
def test_a_budget_exhausted_rule_needs_a_daily_budget_and_enough_time_left_in_the_day(
    budget: Budget | None, calls: int, hour: int, state: str
) -> None:
    """Only the daily budget counts, and more than two hours of the day must be left."""
    now = NOON.replace(hour=hour)
    assert (
        evaluate_budget_exhausted(BudgetExhausted(), budget, BudgetDay(day=now.date(), requests=calls), now).state
        == state
    )
