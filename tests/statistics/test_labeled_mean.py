"""Means of labels, corrected with the judge's scores."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from germane.statistics.estimate import WeightedSums, t_quantile
from germane.statistics.labeled_mean import LabeledMean, estimate_labeled_mean, labels_for

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32)
# Equal scores, labels and weights of all kinds, also without rare labels.
Y = (np.arange(24) * 7 % 3) / 2
F = np.round(0.3 + 0.5 * Y + 0.02 * (np.arange(24) * 5 % 11), 3)
V = 1.0 + np.arange(24) % 4
ALL = np.round(np.arange(60) * 37 % 61 / 61, 3)
W = 1.0 + np.arange(60) % 5


def sums_of(f: Floats, w: Floats) -> WeightedSums:
    """Return the sums that the database computes."""
    sums: dict[str, Any] = {
        "sum_w": w, "sum_w2": w * w, "sum_wy": w * f, "sum_wy2": w * f * f, "sum_w2y": w * w * f,
        "sum_w2y2": (w * f) ** 2, "sum_w_zero": w[f == 0], "sum_w2_zero": w[f == 0] ** 2,
    }  # fmt: skip
    plain = {name: float(terms.sum()) for name, terms in sums.items()}
    return WeightedSums(n=len(f), n_zero=int((f == 0).sum()), sum_w_low=0.0, sum_w_noncommittal=0.0, **plain)


def estimate(y: Floats, f: Floats, v: Floats, scores: WeightedSums) -> LabeledMean:
    found = estimate_labeled_mean(y, f, v, scores)
    assert found is not None
    return found


def window(seed: int, n: int = 60) -> tuple[Floats, Floats, Floats, WeightedSums]:
    """Return labels, scores, weights and the sums of a random window in which labels and scores are related."""
    random = np.random.default_rng(seed)
    y = random.choice([0.0, 0.5, 1.0], n, p=random.dirichlet([1, 1, 1]))
    f = np.clip(0.2 + random.random() * 0.6 * y + random.normal(0, 0.1, n), 0, 1)
    everything = np.concatenate([f, random.random(200)])
    return y, f, random.uniform(1, 9, n), sums_of(everything, random.uniform(1, 5, n + 200))


def test_the_mean_is_that_of_ppi_python_with_the_same_slope() -> None:
    """ppi-python 0.2.3: ppi_mean_pointestimate(Y, F, ALL, lam=1.851996207996902, w=V, w_unlabeled=W)."""
    found = estimate(Y, F, V, sums_of(ALL, W))

    assert found.slope == pytest.approx(1.851996207996902, abs=1e-12)
    assert found.mean == pytest.approx(0.2866809, abs=5e-8)


def test_the_interval_combines_the_variances_of_labels_and_scores() -> None:
    """The part of the labels is that of statsmodels 0.14: WLS(Y, [1, F - mean], weights=V).fit(cov_type="HC3")."""
    found = estimate(Y, F, V, sums_of(ALL, W))

    judge_mean = np.average(ALL, weights=W)
    of_judge = float(((W * (ALL - judge_mean)) ** 2).sum() / W.sum() ** 2 * 60 / 59)
    assert found.n == 24
    assert found.n_effective == pytest.approx(V.sum() ** 2 / (V**2).sum())
    assert found.judge_mean == pytest.approx(judge_mean)
    assert found.judge_variance == pytest.approx(found.slope**2 * of_judge)
    half = t_quantile(20 - 2) * math.sqrt(0.0011106564405169168 + found.judge_variance)
    assert found.half_width == pytest.approx(half)
    assert found.interval == pytest.approx((found.mean - half, found.mean + half))
    alone = t_quantile(20 - 2) * math.sqrt(0.00934845833281698)
    assert found.labels_only == pytest.approx((0.5 - alone, 0.5 + alone))
    assert not found.is_widened


def test_the_correlation_is_weighted() -> None:
    """It is that of labels and scores which are repeated according to their weights."""
    repeats = V.astype(int)
    expected = np.corrcoef(np.repeat(Y, repeats), np.repeat(F, repeats))[0, 1]

    assert estimate(Y, F, V, sums_of(ALL, W)).correlation == pytest.approx(expected)
    assert estimate(Y, 1 - F, V, sums_of(ALL, W)).correlation == pytest.approx(-expected)


def assert_same(one: LabeledMean, other: LabeledMean) -> None:
    flat = [np.hstack(astuple(each)) for each in (one, other)]
    assert flat[0] == pytest.approx(flat[1], abs=1e-9)


@given(SEEDS, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_only_ratios_of_weights_matter(seed: int, of_labels: float, of_scores: float) -> None:
    """Label weights and score weights may each be multiplied by a constant."""
    y, f, v, scores = window(seed)
    scaled = replace(
        scores,
        **{name: getattr(scores, name) * of_scores for name in ("sum_w", "sum_wy")},
        **{name: getattr(scores, name) * of_scores**2 for name in ("sum_w2", "sum_w2y", "sum_w2y2")},
    )

    assert_same(estimate(y, f, v, scores), estimate(y, f, v * of_labels, scaled))


@given(SEEDS)
def test_the_order_of_labels_does_not_matter(seed: int) -> None:
    """A permutation yields the same numbers."""
    y, f, v, scores = window(seed)
    order = np.random.default_rng(seed).permutation(len(y))

    assert_same(estimate(y, f, v, scores), estimate(y[order], f[order], v[order], scores))


@given(SEEDS, st.booleans())
def test_a_judge_that_does_not_help_is_ignored(seed: int, are_equal: bool) -> None:
    """With equal scores, or scores that fall as labels rise, the estimate is that of the labels alone."""
    y, f, v, scores = window(seed)
    f = np.full(len(y), 0.7) if are_equal else 1 - y
    found = estimate(y, f, v, scores)

    assert found.slope == found.judge_variance == 0
    assert found.mean == pytest.approx(np.average(y, weights=v))
    assert found.interval == pytest.approx(found.labels_only)
    assert found.correlation == 0 if are_equal else found.correlation <= 0


@given(SEEDS)
def test_a_constant_bias_of_the_judge_cancels_out(seed: int) -> None:
    """Scores that are all lower by 0.15 change only the judge's mean."""
    y, f, v, _ = window(seed)
    everything, w = np.concatenate([f, np.linspace(0, 1, 200)]), np.ones(260)
    found = estimate(y, f, v, sums_of(everything, w))
    biased = estimate(y, f - 0.15, v, sums_of(everything - 0.15, w))

    assert biased.judge_mean == pytest.approx(found.judge_mean - 0.15)
    assert_same(replace(biased, judge_mean=found.judge_mean), found)


@given(SEEDS)
def test_with_a_perfect_judge_only_the_number_of_scores_limits_the_interval(seed: int) -> None:
    """The mean is that of all scores, and its variance that of the mean score."""
    random = np.random.default_rng(seed)
    y, everything = np.tile([0.0, 0.5, 1.0], 20), random.random(500)
    found = estimate(y, 0.2 + 0.5 * y, random.uniform(1, 9, 60), sums_of(0.2 + 0.5 * everything, np.ones(500)))

    assert found.correlation == pytest.approx(1)
    assert found.mean == pytest.approx(everything.mean())
    of_mean = t_quantile(int(found.n_effective) - 2) * everything.std(ddof=1) / math.sqrt(500)
    assert found.half_width == pytest.approx(of_mean)


@given(SEEDS)
def test_results_stay_in_the_range_of_labels(seed: int) -> None:
    """The interval contains the mean, and both are in [0, 1]."""
    found = estimate(*window(seed, 20))

    assert 0 <= found.interval[0] <= found.mean <= found.interval[1] <= 1
    assert 0 <= found.labels_only[0] <= found.labels_only[1] <= 1
    assert found.half_width >= (found.interval[1] - found.interval[0]) / 2 - 1e-12


def test_a_mean_outside_the_range_is_clipped() -> None:
    """All scores are far above those of the labeled answers."""
    assert estimate(Y, F, V, sums_of(ALL + 2, W)).mean == 1
    assert estimate(Y, F, V, sums_of(ALL - 2, W)).interval[0] == 0


@pytest.mark.parametrize(
    ("low", "high", "few"),
    [(4, 46, (True, False)), (5, 45, (False, False)), (45, 5, (False, False)), (46, 4, (False, True))],
)
def test_rare_labels_widen_the_interval_but_not_the_mean(low: int, high: int, few: tuple[bool, bool]) -> None:
    """Below five labels on a side, the interval reaches as far from the mean as Wilson's from the share."""
    y = np.repeat([0.0, 1.0], [low, high])
    f = 0.1 + 0.8 * y + np.linspace(-0.1, 0.1, 50)
    found = estimate(y, f, np.ones(50), sums_of(np.tile(f, 100), np.ones(5000)))

    share = high / 50
    center, half = (
        (share + 1.959964**2 / 100) / (1 + 1.959964**2 / 50),
        1.959964 / (1 + 1.959964**2 / 50) * math.sqrt(share * (1 - share) / 50 + 1.959964**2 / 10_000),
    )
    assert (found.few_low, found.few_high) == few
    assert found.is_widened == any(few)
    assert found.mean == pytest.approx(share, abs=1e-9)
    if any(few):
        assert found.interval == pytest.approx((center - half, min(1.0, center + half)), abs=1e-9)
        assert found.half_width == pytest.approx(half)
    else:
        assert found.half_width < half / 2


def test_labels_in_the_middle_are_on_neither_side() -> None:
    """Forty answers that are partly right say nothing about how rare the others are."""
    y = np.repeat([0.0, 0.5, 1.0], [4, 40, 4])
    found = estimate(y, y, np.ones(48), sums_of(ALL, W))

    assert (found.few_low, found.few_high) == (True, True)


def test_the_interval_of_equal_labels_allows_for_others() -> None:
    """After 30 good answers out of 30, up to 11% of all answers may be bad."""
    found = estimate(np.ones(30), np.linspace(0.5, 1, 30), np.ones(30), sums_of(ALL, W))

    assert found.mean == pytest.approx(1)
    assert found.slope == found.correlation == 0
    assert found.interval == pytest.approx((1 / (1 + 1.959964**2 / 30), 1))


def test_there_is_no_mean_of_fewer_than_twenty_labels() -> None:
    """The minimum is that of scores."""
    assert estimate_labeled_mean(Y[:19], F[:19], V[:19], sums_of(ALL, W)) is None
    assert estimate_labeled_mean(Y[:20], F[:20], V[:20], sums_of(ALL, W)) is not None


@given(SEEDS)
def test_the_suggested_number_of_labels_has_the_requested_width(seed: int) -> None:
    """The width of the present interval needs the present number, and half of it about four times as many or more."""
    y, f, v, _ = window(seed)
    few, many = (estimate(y, f, v, sums_of(np.tile(f, times), np.ones(60 * times))) for times in (2, 2000))
    half = labels_for(many.half_width / 2, many)

    assert labels_for(few.half_width * (1 + 1e-9), few) == labels_for(many.half_width * (1 + 1e-9), many) == 60
    assert half is not None
    assert 3.7 * 60 < half < 4.6 * 60


def test_more_labels_cannot_replace_scores() -> None:
    """With 60 scores, the judge's mean alone is less precise than requested."""
    found = estimate(Y, F, V, sums_of(ALL, W))

    assert labels_for(0.99 * t_quantile(10**6) * math.sqrt(found.judge_variance), found) is None


def test_before_the_first_label_the_suggestion_is_for_the_worst_case() -> None:
    """Half of the answers are bad: 1.96^2 / 4 / 0.05^2, and a few more because the variance is not known."""
    assert labels_for(0.05) == 387
    assert labels_for(0.4) == 20
    assert labels_for(1e-4) is None
