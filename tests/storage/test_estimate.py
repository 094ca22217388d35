"""What a mean's interval promises, whatever the scores and their weights."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from germane.storage.stats.estimate import Estimate, Interval, WeightedSums, _trials, estimate_mean


def sums(values: list[float], weights: list[float], times: int = 1) -> WeightedSums:
    """Return the sums over scores of these weights, each of them so many times."""
    pairs = list(zip(weights, values, strict=True))
    zeros = [w for w, y in pairs if y == 0]
    return WeightedSums(
        n=times * len(pairs), n_zero=times * len(zeros), sum_w=times * sum(weights), sum_w_zero=times * sum(zeros),
        sum_w2=times * sum(w * w for w in weights), sum_w2_zero=times * sum(w * w for w in zeros),
        sum_wy=times * sum(w * y for w, y in pairs), sum_wy2=times * sum(w * y * y for w, y in pairs),
        sum_w2y=times * sum(w * w * y for w, y in pairs), sum_w2y2=times * sum((w * y) ** 2 for w, y in pairs),
        sum_w_low=0.0, sum_w_noncommittal=0.0,
    )  # fmt: skip


def found(values: list[float], weights: list[float] | None = None, times: int = 1) -> tuple[Estimate, Interval]:
    estimated = estimate_mean(sums(values, weights or [1.0] * len(values), times))
    assert estimated.interval is not None
    return estimated, estimated.interval


def width(interval: Interval) -> float:
    return interval[1] - interval[0]


def trials(refused: list[float], others: list[float]) -> float:
    """Return what scores of these weights are worth for the share of refusals."""
    return _trials(sums([0.0] * len(refused) + [0.5] * len(others), refused + others))


def test_with_equal_weights_each_score_is_a_trial() -> None:
    """Whatever the weight is; and where all or none refuse as well."""
    assert trials([3.0] * 4, [3.0] * 16) == pytest.approx(20, abs=1e-9)
    assert trials([], [0.5] * 16) == pytest.approx(16, abs=1e-9)
    assert trials([2.0] * 12, []) == pytest.approx(12, abs=1e-9)


def test_few_refusals_of_large_weight_make_a_share_unsure() -> None:
    """Half a refusal and half an answer of the average weight, 1.6 with the square 4, are added: p (1 - p) / var."""
    # p = (4 + .8) / 9.6 = .5; squares 16 + 2 and 4 + 2; scaled so that equal weights are worth 5.
    assert trials([4.0], [1.0] * 4) == pytest.approx(0.25 * 9.6**2 / (18 * 0.25 + 6 * 0.25) * 5 / 6, abs=1e-9)


def test_refusals_that_were_picked_more_often_make_a_share_surer_once_there_are_many() -> None:
    """One of small weight says little of the next one's; a hundred do."""
    assert trials([1.0], [9.0] * 9) < 2 * 10
    assert trials([1.0] * 100, [9.0] * 900) > 4 * 1000


weights = st.lists(st.floats(1, 1000), max_size=30)


@given(refused=weights, others=weights)
def test_there_are_always_some_trials(refused: list[float], others: list[float]) -> None:
    """Whatever the weights are."""
    if refused or others:
        assert trials(refused, others) > 0


scored = st.lists(
    st.tuples(st.floats(-1, 1, allow_subnormal=False) | st.just(0.0), st.floats(1, 1000)), min_size=2, max_size=40
)


@given(scored)
def test_the_mean_lies_within_its_interval_and_that_within_what_a_score_can_be(
    pairs: list[tuple[float, float]],
) -> None:
    """Lower end <= mean <= upper end, and the two never meet."""
    estimated, (low, high) = found([y for y, _ in pairs], [w for _, w in pairs])

    assert -1 <= low <= estimated.mean <= high <= 1
    assert low < high


@given(scored, st.integers(2, 5))
def test_more_scores_of_the_same_kind_make_it_narrower(pairs: list[tuple[float, float]], times: int) -> None:
    """Each score so many times: the mean is the same, and surer."""
    values, weights = [y for y, _ in pairs], [w for _, w in pairs]
    assume(sum(y != 0 for y in values) > 1)

    assert width(found(values, weights, times)[1]) <= width(found(values, weights)[1]) + 1e-9


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.3, 0.8, 1.0])
def test_scores_that_are_all_alike_leave_a_width(value: float) -> None:
    """Sampling all of them, and finding them alike, does not make the next one certain: never "+-0"."""
    (_, few), (_, many) = found([value] * 20), found([value] * 500)

    assert width(few) > 0.1
    assert 0.003 < width(many) < width(few)


def test_scores_that_are_all_alike_may_have_others_beside_them_on_both_sides() -> None:
    """Refusals below; above, up to 1, as often as 20 scores can be without one: Wilson's upper end."""
    _, (low, high) = found([0.8] * 20)
    share = 1.959964**2 / (20 + 1.959964**2)

    assert high == pytest.approx(0.8 + 0.2 * share, abs=1e-9)
    assert low == pytest.approx(0.8 - ((0.8 * share) ** 2 + (0.2 * share) ** 2) ** 0.5, abs=1e-9)


def test_one_refusal_among_many_reaches_further_down_than_up() -> None:
    """It is rare and heavy: that there are five times as many is easier to miss than that there are none."""
    estimated, (low, high) = found([0.9, 0.88, 0.92, 0.91, 0.89] * 20 + [0.0])

    assert estimated.mean - low > 2 * (high - estimated.mean) > 0


def test_fewer_than_twenty_scores_are_not_enough() -> None:
    """To judge by; the figures are there all the same."""
    assert not found([0.5] * 19)[0].has_min_samples
    assert found([0.5] * 20)[0].has_min_samples
