"""Intervals of weighted means, for any scores and weights."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cases import each

from germane.alert import Interval
from germane.statistics.estimate import Estimate, RunningSums, WeightedSums, _trials, estimate_mean, t_quantile


def weighted_sums(values: list[float], weights: list[float], times: int = 1) -> WeightedSums:
    """Return the sums over weighted scores, each repeated the given number of times."""
    pairs = list(zip(weights, values, strict=True))
    zeros = [w for w, y in pairs if y == 0]
    return WeightedSums(
        n=times * len(pairs), n_zero=times * len(zeros), sum_w=times * sum(weights), sum_w_zero=times * sum(zeros),
        sum_w2=times * sum(w * w for w in weights), sum_w2_zero=times * sum(w * w for w in zeros),
        sum_wy=times * sum(w * y for w, y in pairs), sum_wy2=times * sum(w * y * y for w, y in pairs),
        sum_w2y=times * sum(w * w * y for w, y in pairs), sum_w2y2=times * sum((w * y) ** 2 for w, y in pairs),
        sum_w_low=0.0, sum_w_noncommittal=0.0,
    )  # fmt: skip


def estimate_with_interval(
    values: list[float], weights: list[float] | None = None, times: int = 1
) -> tuple[Estimate, Interval]:
    estimate = estimate_mean(weighted_sums(values, weights or [1.0] * len(values), times))
    assert estimate.interval is not None
    return estimate, estimate.interval


def interval_width(interval: Interval) -> float:
    return interval[1] - interval[0]


def effective_trials(refused: list[float], others: list[float]) -> float:
    """Return the effective number of trials of these scores for the share of refusals."""
    return _trials(weighted_sums([0.0] * len(refused) + [0.5] * len(others), refused + others))


def test_each_score_is_weighted_by_inverse_probability() -> None:
    """Without a probability, the weight is 1. Low scores and refusals are counted by weight, too."""
    running = RunningSums()
    for value, label, probability in ((0.9, None, 0.25), (0.0, "noncommittal", 0.5), (0.4, None, None)):
        running.add(value, label, probability)

    expected = weighted_sums([0.9, 0.0, 0.4], [4, 2, 1])
    assert running.sums == replace(expected, sum_w_low=3, sum_w_noncommittal=2)
    assert running.low == 2


def t_coverage(quantile: float, freedom: int) -> float:
    """Return the probability of Student's t between -quantile and quantile (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = math.atan2(quantile, math.sqrt(freedom))
    odd = freedom % 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for step in range(1 + odd, freedom, 2):
        total += term
        term *= math.cos(angle) ** 2 * step / (step + 1)
    return (2 / math.pi * (angle + math.sin(angle) * total)) if odd else math.sin(angle) * total


@each("freedom", [*range(1, 61), 100, 365, 1000, 9999])
def test_quantiles_are_those_of_the_t_distribution(freedom: int) -> None:
    """Of all values, 95% lie between the quantile and its negative, exact to four decimal places for all sizes."""
    quantile = t_quantile(freedom)

    assert t_coverage(quantile - 5e-5, freedom) < 0.95 < t_coverage(quantile + 5e-5, freedom)


@each(("freedom", "quantile"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (20, 2.0860), (21, 2.0796)])
def test_quantiles_are_the_published_ones(freedom: int, quantile: float) -> None:
    """Printed tables of Student's distribution contain these values."""
    assert t_quantile(freedom) == pytest.approx(quantile, abs=6e-5)


def test_the_mean_of_three_scores_uses_the_quantile_for_two_degrees_of_freedom() -> None:
    """The upper limit is that of the textbook formula. The lower one also allows for zeros that were not seen."""
    _, (_, high) = estimate_with_interval([0.45, 0.5, 0.55])

    assert high == pytest.approx(0.5 + 4.30265 * 0.05 / math.sqrt(3))


def test_equally_weighted_scores_count_as_one_trial_each() -> None:
    """The weight does not matter, nor whether all or no scores are refusals."""
    assert effective_trials([3.0] * 4, [3.0] * 16) == pytest.approx(20, abs=1e-9)
    assert effective_trials([], [0.5] * 16) == pytest.approx(16, abs=1e-9)
    assert effective_trials([2.0] * 12, []) == pytest.approx(12, abs=1e-9)


def test_refusals_with_large_weights_reduce_the_effective_trials() -> None:
    """Half a refusal and half an answer with the average weight (1.6, square 4) are added: p (1 - p) / variance."""
    # p = (4 + .8) / 9.6 = .5; squares 16 + 2 and 4 + 2; scaled so that equal weights are worth 5.
    assert effective_trials([4.0], [1.0] * 4) == pytest.approx(0.25 * 9.6**2 / (18 * 0.25 + 6 * 0.25) * 5 / 6, abs=1e-9)


def test_many_oversampled_refusals_increase_the_effective_trials() -> None:
    """A single oversampled refusal does not increase them; a hundred do."""
    assert effective_trials([1.0], [9.0] * 9) < 2 * 10
    assert effective_trials([1.0] * 100, [9.0] * 900) > 4 * 1000


weights = st.lists(st.floats(1, 1000), max_size=30)


@given(refused=weights, others=weights)
def test_number_of_effective_trials_is_positive(refused: list[float], others: list[float]) -> None:
    """The effective number of trials is positive for any weights."""
    if refused or others:
        assert effective_trials(refused, others) > 0


weighted_scores = st.lists(
    st.tuples(st.floats(-1, 1, allow_subnormal=False) | st.just(0.0), st.floats(1, 1000)), min_size=2, max_size=40
)


@given(weighted_scores)
def test_confidence_interval_contains_the_mean_and_stays_within_the_score_range(
    pairs: list[tuple[float, float]],
) -> None:
    """-1 <= low <= mean <= high <= 1, and low < high."""
    estimate, (low, high) = estimate_with_interval([y for y, _ in pairs], [w for _, w in pairs])

    assert -1 <= low <= estimate.mean <= high <= 1
    assert low < high


@given(weighted_scores, st.integers(2, 5))
def test_repeated_scores_do_not_widen_the_interval(pairs: list[tuple[float, float]], times: int) -> None:
    """Repeating every score keeps the mean and does not widen its interval."""
    values, weights = [y for y, _ in pairs], [w for _, w in pairs]
    assume(sum(y != 0 for y in values) > 1)

    assert (
        interval_width(estimate_with_interval(values, weights, times)[1])
        <= interval_width(estimate_with_interval(values, weights)[1]) + 1e-9
    )


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.3, 0.8, 1.0])
def test_identical_scores_still_have_a_nonzero_interval(value: float) -> None:
    """Identical scores do not make the next one certain, so the interval is never "+-0"."""
    (_, few), (_, many) = estimate_with_interval([value] * 20), estimate_with_interval([value] * 500)

    assert interval_width(few) > 0.1
    assert 0.003 < interval_width(many) < interval_width(few)


def test_interval_of_identical_scores_has_wilson_bounds_on_both_sides() -> None:
    """The interval extends toward 0 and toward 1 by the share that Wilson's upper bound allows for unseen scores."""
    _, (low, high) = estimate_with_interval([0.8] * 20)
    share = 1.959964**2 / (20 + 1.959964**2)

    assert high == pytest.approx(0.8 + 0.2 * share, abs=1e-9)
    assert low == pytest.approx(0.8 - ((0.8 * share) ** 2 + (0.2 * share) ** 2) ** 0.5, abs=1e-9)


def test_rare_refusal_makes_the_interval_asymmetric() -> None:
    """Refusals are rare and have large weights: missing several is more likely than overcounting one."""
    estimate, (low, high) = estimate_with_interval([0.9, 0.88, 0.92, 0.91, 0.89] * 20 + [0.0])

    assert estimate.mean - low > 2 * (high - estimate.mean) > 0


def test_an_estimate_needs_at_least_twenty_scores() -> None:
    """``has_min_samples`` is false below 20; the estimate is still returned."""
    assert not estimate_with_interval([0.5] * 19)[0].has_min_samples
    assert estimate_with_interval([0.5] * 20)[0].has_min_samples
