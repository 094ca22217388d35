"""The mean label of all answers of a window, from a random sample of labels and all scores of the judge.

A judge may score too high or too low, so its mean score is not the mean label. With labels y and scores f of the same
answers, the mean score F of all scored answers, and all means weighted by 1 / inclusion probability (Hájek)::

    mean  = y_H + b (F - f_H)          b = max(0, sum v (f - f_H)(y - y_H) / sum v (f - f_H)^2)

A bias of the judge cancels out, and the closer the scores are to the labels, the narrower is the interval. The mean
holds for the labeled window only: how the judge errs changes with the answers.

Sources: A. Angelopoulos, J. Duchi, T. Zrnic, PPI++: Efficient prediction-powered inference, 2023; C.-E. Särndal,
B. Swensson, J. Wretman, Model Assisted Survey Sampling, 1992, chapter 6; J. MacKinnon, H. White, Some
heteroskedasticity-consistent covariance matrix estimators with improved finite sample properties, Journal of
Econometrics 29, 1985 (HC3); L. Kish, Survey Sampling, 1965 (effective sample size).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from germane.alert import Interval
from germane.score import MIN_SAMPLES
from germane.statistics.estimate import WeightedSums, t_quantile, wilson_interval

Floats = NDArray[np.float64]
MIDDLE: Final = 0.5
"""The label between those of bad and good answers."""
MIN_PER_SIDE: Final = 5
"""Minimum number of labels on each side of the middle for an interval that relies on the judge alone."""
_MAX_LABELS: Final = 100_000  # larger numbers are not suggested
_TINY: Final = 1e-12  # smaller variances are rounding errors


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledMean:
    """The mean label of all answers of a window, in [0, 1]."""

    n: int
    """Number of labels, at least 20."""
    n_effective: float
    """Number of labels with equal weights that would be as precise."""
    mean: float
    interval: Interval
    """95% confidence interval, clipped to [0, 1]."""
    half_width: float
    """Half the width of the interval before it was clipped."""
    labels_only: Interval
    """The interval that the same labels yield without scores."""
    slope: float
    """Change in the label per unit of the score; 0 if the scores do not help."""
    correlation: float
    """Correlation of labels and scores, in [-1, 1]; 0 if the labels or the scores are equal."""
    judge_mean: float
    """Mean of all scores."""
    judge_variance: float
    """The part of the mean's variance that is due to the number of scores, not labels."""
    few_low: bool
    """Whether fewer than 5 labels are below 0.5."""
    few_high: bool
    """Whether fewer than 5 labels are above 0.5."""

    @property
    def is_widened(self) -> bool:
        """Whether the interval is at least as wide as Wilson's, because good or bad answers are rare."""
        return self.few_low or self.few_high


def estimate_labeled_mean(y: Floats, f: Floats, v: Floats, scores: WeightedSums) -> LabeledMean | None:
    """Return the mean label of all answers of a window, or None with fewer than 20 labels.

    With fewer than 5 labels below or above the middle, the interval is widened to the distances of Wilson's limits for
    a proportion, because a few more of these labels would have changed it. The mean stays: labels that decide between
    two estimates would bias it.

    Args:
        y: Labels in [0, 1] of randomly drawn answers.
        f: The judge's scores of these answers.
        v: 1 / the probability with which each of these answers was labeled.
        scores: Sums over all scores of the window, including those of labeled answers.
    """
    if len(y) < MIN_SAMPLES:
        return None
    v = v / v.sum()
    n_effective = 1 / float(v @ v)
    y_mean, f_mean, judge_mean = float(v @ y), float(v @ f), scores.sum_wy / scores.sum_w
    from_mean, offset = f - f_mean, judge_mean - f_mean
    of_y, of_f, of_both = (float(v @ terms) for terms in ((y - y_mean) ** 2, from_mean**2, from_mean * (y - y_mean)))
    both_vary = min(of_f, of_y) > _TINY  # the spread of equal values is a rounding error
    slope = max(0.0, of_both / of_f) if both_vary else 0.0
    squares = scores.sum_w2y2 - 2 * judge_mean * scores.sum_w2y + judge_mean**2 * scores.sum_w2
    judge_variance = slope**2 * max(0.0, squares) / scores.sum_w**2 * scores.n / max(1, scores.n - 1)
    used, leverage = v, v  # the weight of a label in the mean, and its leverage on its own residual
    if slope:
        used, leverage = v * (1 + from_mean * offset / of_f), v * (1 + from_mean**2 / of_f)
    half = _half_width(n_effective, _variance(used * (y - y_mean - slope * from_mean), leverage) + judge_variance)
    half_alone = _half_width(n_effective, _variance(v * (y - y_mean), v))
    few_low, few_high = int((y < MIDDLE).sum()) < MIN_PER_SIDE, int((y > MIDDLE).sum()) < MIN_PER_SIDE
    low, high = wilson_interval(y_mean, n_effective) if few_low or few_high else (y_mean, y_mean)
    down, up = max(half, y_mean - low), max(half, high - y_mean)
    mean = y_mean + slope * offset
    return LabeledMean(
        n=len(y), n_effective=n_effective, mean=_clip(mean), interval=(_clip(mean - down), _clip(mean + up)),
        half_width=(down + up) / 2,
        labels_only=(_clip(min(low, y_mean - half_alone)), _clip(max(high, y_mean + half_alone))),
        slope=slope,
        correlation=max(-1.0, min(1.0, of_both / math.sqrt(of_f * of_y))) if both_vary else 0.0,
        judge_mean=judge_mean, judge_variance=judge_variance, few_low=few_low, few_high=few_high,
    )  # fmt: skip


def labels_for(half_width: float, known: LabeledMean | None = None) -> int | None:
    """Return the total number of labels for an interval of mean ± ``half_width``.

    Args:
        half_width: The width to reach. Half of that of ``known`` needs about four times as many labels.
        known: The estimate from the labels so far. Before the first, half of the answers are assumed to be bad.

    Returns:
        The number, or None if no number of labels is enough, because there are too few scores.
    """
    per_label, judge_variance, ratio = 0.25, 0.0, 1.0
    if known is not None:
        judge_variance, ratio = known.judge_variance, known.n_effective / known.n
        unit = _half_width(known.n_effective, 1.0)
        per_label = max(0.0, (known.half_width / unit) ** 2 - judge_variance) * known.n
    counts = range(MIN_SAMPLES, _MAX_LABELS)
    place = bisect_left(counts, -half_width, key=lambda n: -_half_width(ratio * n, per_label / n + judge_variance))
    return counts[place] if place < len(counts) else None


def _variance(terms: Floats, leverage: Floats) -> float:
    """Return the variance (HC3) of a sum of residuals, corrected for the fit of each residual to its own label."""
    return float(np.sum((terms / np.maximum(1 - leverage, _TINY)) ** 2))


def _half_width(n_effective: float, variance: float) -> float:
    freedom = int(n_effective + 1e-6) - 2  # rounding errors must not cost a degree of freedom
    return t_quantile(max(1, freedom)) * math.sqrt(variance)


def _clip(value: float) -> float:
    return max(0.0, min(1.0, value))
