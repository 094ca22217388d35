"""Changes of a judge, found in repeated scores of anchors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from germane.statistics.anchors import JudgeShift, estimate_shift, find_judge_shift
from germane.statistics.estimate import t_quantile

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32)
SIZES = st.sampled_from([-0.12, -0.08, 0.08, 0.12])


def differences(seed: int, rounds: int, *, anchors: int = 50, shift: float = 0.0, at: int = 0) -> Floats:
    """Return noisy scores minus noisy baselines; the judge changes in round ``at``."""
    random = np.random.default_rng(seed)
    baselines = random.normal(0, 0.06, (5, anchors)).mean(axis=0)
    scores = random.normal(0, 0.06, (rounds, anchors))
    scores[at:] += shift
    return scores - baselines


def fives(anchors: int = 50) -> Floats:
    return np.full(anchors, 5.0)


def found_in(values: Floats) -> JudgeShift:
    shift = find_judge_shift(values, fives(values.shape[1]))
    assert shift is not None
    return shift


@given(SEEDS)
def test_a_stable_judge_has_not_changed(seed: int) -> None:
    """The noise of scores and baselines is no change."""
    assert find_judge_shift(differences(seed, 60), fives()) is None


def test_few_anchors_raise_no_more_false_alerts() -> None:
    """The errors of few baselines stay the same in all rounds, and do not look like a change."""
    random, found = np.random.default_rng(0), 0
    for _ in range(2000):
        baselines = random.normal(0, 0.12, (5, 18)).mean(axis=0)
        found += find_judge_shift(random.normal(0, 0.12, (25, 18)) - baselines, np.full(18, 5.0)) is not None
    assert found <= 4


@given(SEEDS, SIZES)
def test_a_change_is_found_within_four_rounds(seed: int, size: float) -> None:
    """The first round after the change is known, and the interval is near the size of the change."""
    shift = found_in(differences(seed, 24, shift=size, at=20))

    assert abs(shift.since_round - 20) <= 1
    assert shift.size == pytest.approx(size, abs=0.04)
    assert shift.interval[0] < shift.size < shift.interval[1]
    assert shift.n == 50


@given(SEEDS, SIZES)
def test_rises_and_falls_are_found_alike(seed: int, size: float) -> None:
    """The opposite differences have the opposite change."""
    values = differences(seed, 30, shift=size, at=25)
    one, other = found_in(values), found_in(-values)

    assert (one.size, *one.interval) == pytest.approx((-other.size, -other.interval[1], -other.interval[0]))
    assert one.since_round == other.since_round


@given(SEEDS, SIZES)
def test_a_change_that_has_passed_is_forgotten(seed: int, size: float) -> None:
    """A few rounds after the judge has returned to its old scores, there is no change until the next one."""
    values = differences(seed, 60, shift=size, at=10)
    values[40:] -= size

    values[57:] += size

    assert found_in(values[:40]).since_round == pytest.approx(10, abs=1)
    assert find_judge_shift(values[:57], fives()) is None
    assert found_in(values).since_round == pytest.approx(57, abs=1)


@given(SEEDS, st.permutations(range(50)))
def test_the_order_of_anchors_does_not_matter(seed: int, order: list[int]) -> None:
    """A permutation of the columns yields the same change."""
    values = differences(seed, 12, shift=0.1, at=8)
    one, other = found_in(values), found_in(values[:, order])

    assert (one.size, *one.interval, one.since_round) == pytest.approx((other.size, *other.interval, other.since_round))


def test_a_small_difference_that_stays_is_no_change() -> None:
    """The baselines may be wrong by as much as the dead band."""
    values = differences(1, 400) - differences(1, 400).mean()

    assert find_judge_shift(values + 0.02, fives()) is None
    assert find_judge_shift(values + 0.04, fives()) is not None


def test_a_noisy_difference_counts_less() -> None:
    """Beyond the dead band, half a standard error is no change. The standard error of these rounds is 0.02."""
    spread = np.tile([-0.14, 0.14], 25)

    assert find_judge_shift(np.tile(0.0299 + spread, (400, 1)), fives()) is None
    assert find_judge_shift(np.tile(0.0310 + spread, (400, 1)), fives()) is not None


def test_one_unusual_round_is_no_change() -> None:
    """The second one is."""
    values = differences(2, 30)
    values[-1] -= 0.5
    assert find_judge_shift(values, fives()) is None

    values[-2] -= 0.5
    assert found_in(values).since_round == 28


def test_a_judge_without_noise_is_watched_too() -> None:
    """Its standard error is 0."""
    values = np.zeros((20, 30))
    assert find_judge_shift(values, fives(30)) is None

    values[17:] = -0.03
    assert found_in(values).since_round == 17

    values[12:] = -0.05
    shift = found_in(values)
    assert (shift.since_round, shift.size, shift.interval) == (12, pytest.approx(-0.05), pytest.approx((-0.05, -0.05)))


def test_the_first_round_after_the_change_is_the_most_likely_one() -> None:
    """The chart leaves 0 in round 3 by chance, but the judge changes in round 5."""
    spread = np.tile([-0.06, 0.06], 25)
    means = np.array([0.0, 0.0, 0.0, 0.035, 0.035, 0.15, 0.15, 0.15])
    shift = found_in(means[:, None] + spread)

    assert shift.since_round == 5
    assert shift.size == pytest.approx(0.15)


def test_rounds_with_few_scores_and_missing_scores_are_skipped() -> None:
    """A round with nine scores counts neither as a change nor as its end."""
    values = differences(3, 30, shift=-0.1, at=20)
    values[22:25, 9:] = np.nan
    values[22:25, :9] += 0.3
    values[np.arange(30), np.arange(30)] = np.nan
    values[29, 10:] = np.nan  # ten scores
    shift = found_in(values)

    assert shift.since_round == 20
    assert find_judge_shift(values[:22], fives()) is not None
    assert find_judge_shift(values[:20], fives()) is None
    assert find_judge_shift(np.full((9, 50), np.nan), fives()) is None
    assert find_judge_shift(np.full((9, 9), 0.5), fives(9)) is None
    assert find_judge_shift(np.zeros((0, 50)), fives()) is None


def test_replaced_anchors_have_their_own_columns() -> None:
    """An anchor without scores since the change is not part of its size."""
    values = differences(4, 30, anchors=60, shift=0.1, at=20)
    values[15:, :10] = np.nan
    values[:15, 50:] = np.nan

    assert found_in(values).n == 50
    assert found_in(values).size == pytest.approx(values[20:, 10:].mean())


def test_the_shift_between_two_judges_is_the_paired_difference() -> None:
    """With equal numbers of scores, the interval is that of Student's t test for pairs."""
    random = np.random.default_rng(5)
    old = random.random(40)
    new = old - 0.06 + random.normal(0, 0.05, 40)
    shift = estimate_shift(old, new, fives(40))

    assert shift is not None
    half = t_quantile(39) * (new - old).std(ddof=1) / np.sqrt(40)
    assert (shift.size, shift.n, shift.since_round) == (pytest.approx((new - old).mean()), 40, 0)
    assert shift.interval == pytest.approx((shift.size - half, shift.size + half))


def test_scores_with_less_noise_have_more_weight() -> None:
    """The weight is 1 / (1 / scores by the new judge + 1 / scores by the old one)."""
    old, new = np.zeros(20), np.full((3, 20), np.nan)
    new[0], new[1:, :10] = 0.1, 0.2
    counts = np.repeat([5.0, 1.0], [10, 10])
    shift = estimate_shift(old, new, counts)

    assert shift is not None
    means, weights = np.repeat([0.5 / 3, 0.1], 10), np.repeat([1 / (1 / 3 + 1 / 5), 1 / 2], 10)
    assert shift.size == pytest.approx(np.average(means, weights=weights))


def test_baselines_with_less_noise_have_more_weight_in_each_round() -> None:
    """The mean over all anchors is 0.01, but those with one score in their baselines are half as important."""
    values = np.tile(np.repeat([0.1, -0.08], 25), (60, 1))

    assert find_judge_shift(values, fives()) is None
    assert find_judge_shift(values, np.repeat([5.0, 1.0], 25)) is not None


def test_the_shift_of_fewer_than_ten_anchors_is_unknown() -> None:
    """Anchors with a missing baseline or score do not count."""
    old, new = np.zeros(12), np.full(12, 0.1)
    old[0], new[1] = np.nan, np.nan
    assert (shift := estimate_shift(old, new, fives(12))) is not None
    assert shift.n == 10

    new[2] = np.nan
    assert estimate_shift(old, new, fives(12)) is None
