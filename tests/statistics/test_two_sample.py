"""Two-sample comparison: exact results and statistical properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from germane.statistics.estimate import Estimate, WeightedSums, estimate_mean
from germane.statistics.two_sample import (
    Comparison,
    effect_size,
    mark_significant_drops,
    mean_difference,
    standardize,
)


def make_estimate(
    mean: float, low: float, high: float, *, n: int = 100, deviation: float | None = 0.2, low_share: float = 0.1
) -> Estimate:
    return Estimate(
        n=n, mean=mean, deviation=deviation, low_share=low_share, noncommittal_share=0.0, interval=(low, high)
    )


def estimate_of(values: np.ndarray) -> Estimate:  # type: ignore[type-arg]  # of floats
    """Return the estimate of scores with weight 1."""
    n, zeros, total, squares = len(values), int((values == 0).sum()), float(values.sum()), float((values**2).sum())
    return estimate_mean(
        WeightedSums(n=n, n_zero=zeros, sum_w=n, sum_w_zero=zeros, sum_w2=n, sum_w2_zero=zeros,
             sum_wy=total, sum_wy2=squares, sum_w2y=total,
             sum_w2y2=squares, sum_w_low=0.0, sum_w_noncommittal=0.0)
    )  # fmt: skip


def make_comparison(found: float, low: float, high: float, route: str = "ask") -> Comparison:
    return Comparison(
        service="shop", route=route, scorer="relevancy", fingerprint="f1", before=None, after=None,
        finding="lower" if high < 0 else "unclear", difference=found, interval=(low, high),
    )  # fmt: skip


def test_difference_interval_combines_the_intervals_of_both_means() -> None:
    """The lower arm combines the later mean's lower arm and the earlier mean's upper arm, and vice versa."""
    found, (low, high) = mean_difference(make_estimate(0.8, 0.7, 0.84), make_estimate(0.6, 0.52, 0.63))

    assert found == pytest.approx(-0.2, abs=1e-9)
    assert low == pytest.approx(-0.2 - math.hypot(0.08, 0.04), abs=1e-9)
    assert high == pytest.approx(-0.2 + math.hypot(0.03, 0.1), abs=1e-9)


def test_the_effect_size_is_hedges_g() -> None:
    """The pooled standardized difference with small-sample correction; None without any variance."""
    pair = (make_estimate(0.8, 0.7, 0.9, n=20, deviation=0.1), make_estimate(0.7, 0.6, 0.8, n=40, deviation=0.3))
    pooled = math.sqrt((19 * 0.01 + 39 * 0.09) / 58)

    assert effect_size(*pair) == pytest.approx((1 - 3 / (4 * 58 - 1)) * -0.1 / pooled, abs=1e-9)
    same = make_estimate(0.8, 0.7, 0.9, deviation=0.0)
    assert effect_size(same, same) is None
    assert effect_size(make_estimate(0.8, 0.7, 0.9, n=1, deviation=None), same) is None


@pytest.mark.parametrize(
    ("size", "name"), [(0.1, "negligible"), (-0.2, "small"), (0.5, "medium"), (-0.8, "large"), (9.0, "large")]
)
def test_effect_size_has_a_verbal_label(size: float, name: str) -> None:
    """The name depends on the absolute value."""
    comparison = make_comparison(0.0, -1, 1)
    assert (
        Comparison(**{name: getattr(comparison, name) for name in comparison.__slots__} | {"effect": size}).effect_name
        == name
    )
    assert comparison.effect_name is None


def test_standardized_estimate_weights_routes_by_the_given_shares() -> None:
    """Mean, interval and within-route standard deviation of a service combine those of its routes."""
    found = standardize(
        [make_estimate(0.9, 0.85, 0.92, deviation=0.1), make_estimate(0.5, 0.3, 0.6, deviation=0.3, low_share=0.5)],
        [0.75, 0.25],
    )

    assert (found.n, found.mean, found.low_share) == (200, pytest.approx(0.8, abs=1e-9), pytest.approx(0.2, abs=1e-9))
    assert found.deviation == pytest.approx(math.sqrt(0.75 * 0.01 + 0.25 * 0.09), abs=1e-9)
    assert found.interval is not None
    assert found.interval[0] == pytest.approx(0.8 - math.hypot(0.75 * 0.05, 0.25 * 0.2), abs=1e-9)
    assert found.interval[1] == pytest.approx(0.8 + math.hypot(0.75 * 0.02, 0.25 * 0.1), abs=1e-9)


estimates = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=30).map(
    lambda values: estimate_of(np.array(values))
)


@given(st.lists(st.tuples(estimates, st.integers(1, 1000)), min_size=1, max_size=8))
def test_traffic_shift_between_unchanged_routes_makes_no_difference(
    routes: list[tuple[Estimate, int]],
) -> None:
    """Both windows are weighted by the earlier traffic."""
    route_estimates, total = [one for one, _ in routes], sum(count for _, count in routes)
    whole = standardize(route_estimates, [count / total for _, count in routes])

    found, (low, high) = mean_difference(whole, whole)

    assert found == 0
    assert low <= 0 <= high
    assert (
        min(estimate.mean for estimate in route_estimates) - 1e-9
        <= whole.mean
        <= max(estimate.mean for estimate in route_estimates) + 1e-9
    )


@given(estimates, estimates)
def test_swapping_the_windows_flips_the_sign_of_the_difference(first: Estimate, second: Estimate) -> None:
    """The difference, its interval and the effect size change sign; the interval contains the difference."""
    (found, (low, high)) = mean_difference(first, second)
    (back, (back_low, back_high)) = mean_difference(second, first)

    assert low <= found <= high
    assert (back, back_low, back_high) == pytest.approx((-found, -high, -low), abs=1e-9)
    size = effect_size(first, second)
    assume(size is not None)
    assert effect_size(second, first) == pytest.approx(-(size or 0.0), abs=1e-9)


def test_a_single_comparison_is_tested_at_a_significance_level_of_one_in_eighty() -> None:
    """The arm is scaled by 2.241403 / 1.959964, and the drop has to exceed ``min_drop``."""
    arm = 0.1 * 1.959964 / 2.241402728
    assert mark_significant_drops([make_comparison(-0.1, -0.15, -0.1 + arm - 1e-9)], 0.0)[0].finding == "dropped"
    assert mark_significant_drops([make_comparison(-0.1, -0.2, -0.1 + arm + 1e-6)], 0.0)[0].finding == "lower"
    assert mark_significant_drops([make_comparison(-0.1, -0.2, 0.001)], 0.0)[0].finding == "unclear"
    assert mark_significant_drops([make_comparison(-0.1, -0.15, -0.05)], 0.04)[0].finding == "dropped"
    assert mark_significant_drops([make_comparison(-0.1, -0.15, -0.05)], 0.06)[0].finding == "lower"


def test_multiple_comparisons_are_corrected_with_the_holm_method() -> None:
    """Among 20, the clearest is tested at 1/80/20 and the next at 1/80/19; comparisons without data do not count."""
    clear, doubtful = make_comparison(-0.1, -0.15, -0.05), make_comparison(-0.1, -0.2, -0.015)
    quiet = [make_comparison(0.0, -0.1, 0.1, f"r{number}") for number in range(18)]
    unknown = Comparison(
        service="s", route="r", scorer="x", fingerprint="f", before=None, after=None, finding="not_enough_data"
    )

    found = mark_significant_drops([doubtful, *quiet, clear, unknown], 0.0)

    assert found[0].finding == "lower"
    assert found[-2].finding == "dropped"
    assert found[-1] == unknown
    assert mark_significant_drops([doubtful, unknown, unknown], 0.0)[0].finding == "dropped"


def test_a_drop_is_rarely_reported_for_unchanged_routes() -> None:
    """With 12 unchanged routes, at most 5% of 400 deployments report a drop."""
    random, failed = np.random.default_rng(5), 0
    for _ in range(400):
        comparisons = []
        for route in range(12):
            values = np.where(random.random(160) < 0.05, 0.0, random.beta(16, 4, 160))
            found, (low, high) = mean_difference(estimate_of(values[:80]), estimate_of(values[80:]))
            comparisons.append(make_comparison(found, low, high, str(route)))
        failed += any(comparison.finding == "dropped" for comparison in mark_significant_drops(comparisons, 0.0))

    assert failed / 400 <= 0.05


@pytest.mark.parametrize(("after", "refusals"), [(20, 0.02), (30, 0.05), (50, 0.15)])
def test_a_drop_is_rarely_reported_for_unchanged_scores_in_a_small_and_a_large_window(
    after: int, refusals: float
) -> None:
    """A few refusals among 20 to 50 answers are not reported as a drop in more than 3.5% of runs."""
    random, failed = np.random.default_rng(11), 0

    def drawn(n: int) -> Estimate:
        return estimate_of(np.where(random.random(n) < refusals, 0.0, random.beta(35, 5, n)))

    for _ in range(2000):
        found, (low, high) = mean_difference(drawn(2000), drawn(after))
        failed += mark_significant_drops([make_comparison(found, low, high)], 0.0)[0].finding == "dropped"

    assert failed / 2000 <= 0.035
