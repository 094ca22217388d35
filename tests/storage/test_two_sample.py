"""How two stretches of time are compared: exact numbers, and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from germane.storage.stats.estimate import Estimate, WeightedSums, estimate_mean
from germane.storage.stats.two_sample import (
    Comparison,
    EstimatePair,
    effect_size,
    mark_significant_drops,
    mean_difference,
    standardize,
)


def an_estimate(
    mean: float, low: float, high: float, *, n: int = 100, deviation: float | None = 0.2, low_share: float = 0.1
) -> Estimate:
    return Estimate(
        n=n, mean=mean, deviation=deviation, low_share=low_share, noncommittal_share=0.0, interval=(low, high)
    )


def estimate_of(values: np.ndarray) -> Estimate:  # type: ignore[type-arg]  # of floats
    """Return the estimate of scores of weight 1."""
    n, zeros, total, squares = len(values), int((values == 0).sum()), float(values.sum()), float((values**2).sum())
    return estimate_mean(
        WeightedSums(n=n, n_zero=zeros, sum_w=n, sum_w_zero=zeros, sum_w2=n, sum_w2_zero=zeros, sum_wy=total, sum_wy2=squares, sum_w2y=total,
             sum_w2y2=squares, sum_w_low=0.0, sum_w_noncommittal=0.0)
    )  # fmt: skip


def a_line(found: float, low: float, high: float, route: str = "ask") -> Comparison:
    return Comparison(
        service="shop", route=route, scorer="relevancy", fingerprint="f1", before=None, after=None,
        finding="lower" if high < 0 else "unclear", difference=found, interval=(low, high),
    )  # fmt: skip


def test_the_interval_of_a_difference_is_made_from_those_of_both_means() -> None:
    """Downwards from the later one's lower arm and the earlier one's upper arm; upwards from the others."""
    found, (low, high) = mean_difference(EstimatePair(an_estimate(0.8, 0.7, 0.84), an_estimate(0.6, 0.52, 0.63)))

    assert found == pytest.approx(-0.2, abs=1e-9)
    assert low == pytest.approx(-0.2 - math.hypot(0.08, 0.04), abs=1e-9)
    assert high == pytest.approx(-0.2 + math.hypot(0.03, 0.1), abs=1e-9)


def test_the_effect_is_hedges_g() -> None:
    """In pooled deviations, times 1 - 3 / (4 (n1 + n2 - 2) - 1); none where all scores are alike, or there is one."""
    pair = EstimatePair(
        an_estimate(0.8, 0.7, 0.9, n=20, deviation=0.1), an_estimate(0.7, 0.6, 0.8, n=40, deviation=0.3)
    )
    pooled = math.sqrt((19 * 0.01 + 39 * 0.09) / 58)

    assert effect_size(pair) == pytest.approx((1 - 3 / (4 * 58 - 1)) * -0.1 / pooled, abs=1e-9)
    same = an_estimate(0.8, 0.7, 0.9, deviation=0.0)
    assert effect_size(EstimatePair(same, same)) is None
    assert effect_size(EstimatePair(an_estimate(0.8, 0.7, 0.9, n=1, deviation=None), same)) is None


@pytest.mark.parametrize(
    ("size", "name"), [(0.1, "negligible"), (-0.2, "small"), (0.5, "medium"), (-0.8, "large"), (9.0, "large")]
)
def test_an_effect_has_a_name(size: float, name: str) -> None:
    """Whichever its direction."""
    line = a_line(0.0, -1, 1)
    assert Comparison(**{name: getattr(line, name) for name in line.__slots__} | {"effect": size}).effect_name == name
    assert line.effect_name is None


def test_a_service_weighs_its_routes_as_they_were_before() -> None:
    """Its mean by their shares, its interval from theirs, its deviation that within routes."""
    found = standardize(
        [an_estimate(0.9, 0.85, 0.92, deviation=0.1), an_estimate(0.5, 0.3, 0.6, deviation=0.3, low_share=0.5)],
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
def test_routes_that_stay_as_they_are_make_no_difference_whatever_the_traffic(
    routes: list[tuple[Estimate, int]],
) -> None:
    """The earlier traffic weighs both sides: what moves between routes does not count."""
    sides, total = [one for one, _ in routes], sum(count for _, count in routes)
    whole = standardize(sides, [count / total for _, count in routes])

    found, (low, high) = mean_difference(EstimatePair(whole, whole))

    assert found == 0
    assert low <= 0 <= high
    assert min(one.mean for one in sides) - 1e-9 <= whole.mean <= max(one.mean for one in sides) + 1e-9


@given(estimates, estimates)
def test_before_and_after_swapped_turn_the_sign(first: Estimate, second: Estimate) -> None:
    """Of the difference, its interval and the effect; 0 is in the interval of a stretch compared with itself."""
    pair, swapped = EstimatePair(first, second), EstimatePair(second, first)
    (found, (low, high)), (back, (back_low, back_high)) = mean_difference(pair), mean_difference(swapped)

    assert low <= found <= high
    assert (back, back_low, back_high) == pytest.approx((-found, -high, -low), abs=1e-9)
    size = effect_size(pair)
    assume(size is not None)
    assert effect_size(swapped) == pytest.approx(-(size or 0.0), abs=1e-9)


def test_one_comparison_alone_drops_for_sure_where_its_interval_lies_clearly_below_0() -> None:
    """By 2.241403 / 1.959964 of its arm, which one in eighty does; or below the smallest drop that counts."""
    arm = 0.1 * 1.959964 / 2.241402728
    assert mark_significant_drops([a_line(-0.1, -0.15, -0.1 + arm - 1e-9)], 0.0)[0].finding == "dropped"
    assert mark_significant_drops([a_line(-0.1, -0.2, -0.1 + arm + 1e-6)], 0.0)[0].finding == "lower"
    assert mark_significant_drops([a_line(-0.1, -0.2, 0.001)], 0.0)[0].finding == "unclear"
    assert mark_significant_drops([a_line(-0.1, -0.15, -0.05)], 0.04)[0].finding == "dropped"
    assert mark_significant_drops([a_line(-0.1, -0.15, -0.05)], 0.06)[0].finding == "lower"


def test_among_many_comparisons_a_drop_has_to_be_surer() -> None:
    """Holm: of twenty, the surest against 1/80 / 20, the next against 1/80 / 19; what cannot be told does not count."""
    clear, doubtful = a_line(-0.1, -0.15, -0.05), a_line(-0.1, -0.2, -0.015)
    quiet = [a_line(0.0, -0.1, 0.1, f"r{number}") for number in range(18)]
    unknown = Comparison(
        service="s", route="r", scorer="x", fingerprint="f", before=None, after=None, finding="not_enough_data"
    )

    found = mark_significant_drops([doubtful, *quiet, clear, unknown], 0.0)

    assert found[0].finding == "lower"
    assert found[-2].finding == "dropped"
    assert found[-1] == unknown
    assert mark_significant_drops([doubtful, unknown, unknown], 0.0)[0].finding == "dropped"


def test_a_service_without_a_change_rarely_fails() -> None:
    """Of 400 deploys of twelve routes that change nothing, at most about one in forty says that something dropped."""
    random, failed = np.random.default_rng(5), 0
    for _ in range(400):
        lines = []
        for route in range(12):
            values = np.where(random.random(160) < 0.05, 0.0, random.beta(16, 4, 160))
            found, (low, high) = mean_difference(EstimatePair(estimate_of(values[:80]), estimate_of(values[80:])))
            lines.append(a_line(found, low, high, str(route)))
        failed += any(line.finding == "dropped" for line in mark_significant_drops(lines, 0.0))

    assert failed / 400 <= 0.05


@pytest.mark.parametrize(("after", "refusals"), [(20, 0.02), (30, 0.05), (50, 0.15)])
def test_a_few_scores_beside_many_without_a_change_rarely_fail(after: int, refusals: float) -> None:
    """Two refusals among twenty answers are a matter of chance, however well the days before are known."""
    random, failed = np.random.default_rng(11), 0

    def drawn(n: int) -> Estimate:
        return estimate_of(np.where(random.random(n) < refusals, 0.0, random.beta(35, 5, n)))

    for _ in range(2000):
        found, (low, high) = mean_difference(EstimatePair(drawn(2000), drawn(after)))
        failed += mark_significant_drops([a_line(found, low, high)], 0.0)[0].finding == "dropped"

    assert failed / 2000 <= 0.035
