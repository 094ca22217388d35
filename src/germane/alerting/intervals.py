"""95% confidence limits for means, weighted means, shares and their difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from germane.alert import Interval, ScoreLevel
from germane.statistics import Estimate, wilson_interval

ONE_SIDED_Z: Final = 1.644854
"""One-sided 95% quantile of the normal distribution."""
TWO_SIDED_Z: Final = 1.959964
"""Two-sided 95% quantile of the normal distribution."""


def mean_upper_limit(mean: float, interval: Interval) -> float:
    """Return the one-sided upper 95% confidence limit for a mean, from its two-sided interval."""
    return mean + (interval[1] - mean) * ONE_SIDED_Z / TWO_SIDED_Z


def combine_levels(
    levels: Sequence[ScoreLevel], weights: Sequence[float], limits: Interval = (-math.inf, math.inf)
) -> ScoreLevel:
    """Return the weighted mean of independent levels. It has an interval only if all levels have one.

    Source: G. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27, 2008.

    Args:
        levels: At least one level.
        weights: The weights of the levels. Their sum is 1.
        limits: The range of the mean, to which the interval is clipped.
    """
    mean = sum(weight * level.mean for weight, level in zip(weights, levels, strict=True))
    interval: Interval | None = None
    parts = [(weight, level.mean, level.interval) for weight, level in zip(weights, levels, strict=True)]
    if all(ends is not None for _, _, ends in parts):
        below = math.hypot(*(weight * (center - ends[0]) for weight, center, ends in parts if ends))
        above = math.hypot(*(weight * (ends[1] - center) for weight, center, ends in parts if ends))
        interval = (max(limits[0], mean - below), min(limits[1], mean + above))
    return ScoreLevel(mean=mean, n=sum(level.n for level in levels), interval=interval)


def share_interval(estimate: Estimate, share: float) -> Interval:
    """Return the two-sided 95% Wilson score interval for a share of an estimate's scores."""
    return wilson_interval(share, effective_sample_size(estimate), TWO_SIDED_Z)


def share_lower_limit(estimate: Estimate, share: float) -> float:
    """Return the one-sided lower 95% confidence limit for a share of an estimate's scores."""
    return wilson_interval(share, effective_sample_size(estimate), ONE_SIDED_Z)[0]


def effective_sample_size(estimate: Estimate) -> float:
    """Return the number of equally weighted scores whose interval would be as wide as the estimate's."""
    if estimate.interval is None or not estimate.deviation:
        return float(estimate.n)
    half_width = (estimate.interval[1] - estimate.interval[0]) / 2
    unweighted = TWO_SIDED_Z * estimate.deviation / math.sqrt(estimate.n)
    return estimate.n / max(1.0, (half_width / unweighted) ** 2)


def is_higher(share: float, n: float, other: float, other_n: float, z: float = TWO_SIDED_Z) -> bool:
    """Return whether a proportion is significantly higher than another: the interval of the difference excludes 0.

    Source: R. Newcombe, Interval estimation for the difference between independent proportions, Statistics in Medicine
    17, 1998, method 10.
    """
    lower, upper = wilson_interval(share, n, z)[0], wilson_interval(other, other_n, z)[1]
    return share - other > math.hypot(share - lower, upper - other)
