"""Means corrected with proxies (control variates)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from germane.statistics.control_variate import ProxySums, ScoreSums, correct_mean, narrow_interval
from germane.statistics.estimate import WeightedSums, estimate_mean, mean_interval


def score_sums(y: Any, x: Any, probabilities: Any) -> ScoreSums:
    """Return the sums over scores; NaN marks a missing proxy."""
    w, has = 1 / probabilities, ~np.isnan(x)
    u, a, b = w[has], x[has], y[has]
    sums = {
        "sum_w": w, "sum_w2": w**2, "sum_wy": w * y, "sum_w2y": w**2 * y, "sum_w2y2": w**2 * y**2,
        "sum_w_with_x": u, "sum_w2_with_x": u**2, "sum_wx": u * a,
        "sum_wy_with_x": u * b, "sum_wx2": u * a**2, "sum_wxy": u * a * b, "sum_wy2_with_x": u * b**2,
        "sum_w2x": u**2 * a, "sum_w2y_with_x": u**2 * b,
        "sum_w2x2": u**2 * a**2, "sum_w2xy": u**2 * a * b,
    }  # fmt: skip
    return ScoreSums(n_with_x=int(has.sum()), **{name: float(terms.sum()) for name, terms in sums.items()})


def proxy_sums(x: Any, probabilities: Any) -> ProxySums:
    v = 1 / probabilities
    sums = {
        "sum_v": v,
        "sum_v2": v**2,
        "sum_vx": v * x,
        "sum_vx2": v * x**2,
        "sum_v2x": v**2 * x,
        "sum_v2x2": v**2 * x**2,
    }
    return ProxySums(n=len(x), **{name: float(terms.sum()) for name, terms in sums.items()})


def test_corrected_mean_is_the_regression_estimate() -> None:
    """With equal weights: mean(y) + b (X - mean(x)), with the least-squares slope and the residual variance."""
    random = np.random.default_rng(1)
    x, noise, others = random.random(50), random.normal(0, 0.1, 50), random.random(400)
    y = 0.3 + 0.5 * x + noise
    b, a = np.polyfit(x, y, 1)

    found = correct_mean(score_sums(y, x, np.full(50, 0.1)), proxy_sums(others, np.full(400, 0.5)))

    assert found is not None
    assert found.mean == pytest.approx(a + b * others.mean(), abs=1e-9)
    assert found.slope == pytest.approx(b, abs=1e-9)
    assert found.correlation == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)
    residuals = ((y - a - b * x) ** 2).sum() / 48 / 50
    assert found.variance == pytest.approx(residuals + b**2 * others.var() / 400, abs=1e-9)


def test_scores_without_a_proxy_score_count_in_the_corrected_mean() -> None:
    """Such scores are included without a correction."""
    y, x = np.linspace(0, 1, 60), np.concatenate([np.linspace(0, 1, 40), np.full(20, np.nan)])
    sums = score_sums(y, x, np.full(60, 0.5))

    found = correct_mean(sums, proxy_sums(x[:40], np.ones(40)))

    assert found is not None
    assert found.mean == pytest.approx(y.mean(), abs=1e-9)


def test_mean_proxy_score_is_weighted_by_inverse_probability() -> None:
    """An exchange with half the probability of having a proxy counts twice."""
    x = np.linspace(0, 1, 40)
    sums = score_sums(x, x, np.ones(40))

    found = correct_mean(sums, proxy_sums(np.array([0.2, 0.8]), np.array([0.5, 0.25])))

    assert found is not None
    assert found.mean == pytest.approx((2 * 0.2 + 4 * 0.8) / 6, abs=1e-9)


def test_correction_needs_30_scores_and_varying_proxy_scores() -> None:
    """With fewer scores or equal proxies, there is no corrected mean."""
    x, y = np.linspace(0, 1, 29), np.linspace(0, 1, 29)
    proxies = proxy_sums(x, np.ones(29))

    assert correct_mean(score_sums(y, x, np.ones(29)), proxies) is None
    assert correct_mean(score_sums(np.ones(40), np.full(40, 0.5), np.ones(40)), proxies) is None
    assert correct_mean(score_sums(np.ones(40), np.linspace(0, 1, 40), np.ones(40)), proxy_sums(x[:0], x[:0])) is None


def test_the_interval_of_a_corrected_mean_covers_the_true_mean() -> None:
    """In 600 simulated windows, the estimates are unbiased, and about 95% of the intervals contain the true mean."""
    random = np.random.default_rng(11)
    means, covered = [], []
    for _ in range(600):
        x = random.random(1500)
        y = np.clip(0.4 + 0.5 * x + random.normal(0, 0.15, 1500), 0, 1)
        probabilities = np.clip(0.12 * (1.4 - x), 0.01, 1)
        picked, known = random.random(1500) < probabilities, random.random(1500) < 0.6
        proxies = np.where(known, x, np.nan)
        found = correct_mean(
            score_sums(y[picked], proxies[picked], probabilities[picked]),
            proxy_sums(x[known], np.full(known.sum(), 0.6)),
        )
        assert found is not None
        means.append(found.mean)
        covered.append(found.interval)

    truth = 0.6466  # 0.65 minus the effect of clipping at 1, from ten million draws
    low, high = np.array(covered).T
    assert abs(np.mean(means) - truth) < 0.001
    assert 0.93 < np.mean((low <= truth) & (truth <= high)) < 0.97


def estimate_sums(y: Any, w: Any) -> WeightedSums:
    """Return the sums of the scores without proxies."""
    zero = y == 0
    sums = {
        "sum_w": w, "sum_w_zero": w[zero], "sum_w2": w**2, "sum_w2_zero": w[zero] ** 2, "sum_wy": w * y,
        "sum_wy2": w * y**2,
        "sum_w2y": w**2 * y, "sum_w2y2": w**2 * y**2, "sum_w_low": w[:0], "sum_w_noncommittal": w[:0],
    }  # fmt: skip
    return WeightedSums(n=len(y), n_zero=int(zero.sum()), **{name: float(terms.sum()) for name, terms in sums.items()})


def test_correction_with_proxy_scores_narrows_the_interval() -> None:
    """The narrowed interval is around the corrected mean and keeps the shape of the uncorrected one."""
    random = np.random.default_rng(4)
    x = random.random(400)
    y = np.clip(0.4 + 0.5 * x + random.normal(0, 0.05, 400), 0.01, 1)
    some, ones = slice(0, 100), np.ones(100)
    with_refusals = np.where(x[some] < 0.2, 0.0, y[some])

    for values in (y[some], with_refusals):
        sums, scores = estimate_sums(values, ones), score_sums(values, x[some], ones)
        alone, found = estimate_mean(sums).interval, narrow_interval(sums, scores, proxy_sums(x, np.ones(400)))
        assert alone is not None
        assert found is not None
        bare = correct_mean(scores, proxy_sums(x, np.ones(400)))
        assert bare is not None
        assert found.mean == pytest.approx(bare.mean, abs=1e-9)
        assert found.interval[0] < found.mean < found.interval[1]
        assert found.interval[1] - found.interval[0] < alone[1] - alone[0]
        assert found.interval == pytest.approx(
            mean_interval(sums, found.mean, found.variance / variance_of(values)), abs=1e-9
        )


def variance_of(y: Any) -> float:
    """Return the variance of the mean of scores with weight 1."""
    return float(y.var(ddof=1) / len(y))


def test_uncorrelated_proxy_scores_are_not_used_for_correction() -> None:
    """A proxy whose correlation depends on a single answer is not used either."""
    x = np.linspace(0, 1, 60)
    alternating = np.where(np.arange(60) % 2, 0.4, 0.8)
    one = np.concatenate([np.full(1, 0.5), np.zeros(59)])

    for y in (alternating, one):
        sums, scores = estimate_sums(y, np.ones(60)), score_sums(y, x, np.ones(60))
        assert narrow_interval(sums, scores, proxy_sums(x[:30], np.ones(30))) is None
