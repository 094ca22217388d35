"""One-sided 95 % confidence limits for means, and Wilson intervals for shares and their difference."""

from __future__ import annotations

import math
from typing import Final

from germane.alert import Interval
from germane.storage import Estimate

ONE_SIDED_Z: Final = 1.644854
"""One-sided 95 % quantile of the normal distribution."""
TWO_SIDED_Z: Final = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""


def mean_upper_limit(mean: float, interval: Interval) -> float:
    """Return the one-sided upper 95 % confidence limit for a mean, from its two-sided interval."""
    return mean + (interval[1] - mean) * ONE_SIDED_Z / TWO_SIDED_Z


def share_interval(estimate: Estimate, share: float) -> Interval:
    """Return the two-sided 95 % Wilson score interval for a share of an estimate's scores."""
    return wilson_interval(share, effective_sample_size(estimate), TWO_SIDED_Z)


def share_lower_limit(estimate: Estimate, share: float) -> float:
    """Return the one-sided lower 95 % confidence limit for a share of an estimate's scores."""
    return wilson_interval(share, effective_sample_size(estimate), ONE_SIDED_Z)[0]


def effective_sample_size(estimate: Estimate) -> float:
    """Return the number of equally weighted scores that would result in an interval as wide as the estimate's."""
    if estimate.interval is None or not estimate.deviation:
        return float(estimate.n)
    half_width = (estimate.interval[1] - estimate.interval[0]) / 2
    unweighted = TWO_SIDED_Z * estimate.deviation / math.sqrt(estimate.n)
    return estimate.n / max(1.0, (half_width / unweighted) ** 2)


def wilson_interval(share: float, n: float, z: float = TWO_SIDED_Z) -> Interval:
    """Return the Wilson score interval for a proportion observed in ``n`` trials.

    Source: E. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927.
    """
    center = (share + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z * math.sqrt(max(0.0, share * (1 - share)) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, center - half_width), min(1.0, center + half_width)


def is_higher(share: float, n: float, other: float, other_n: float) -> bool:
    """Return whether a proportion is significantly higher than another: the 95 % interval of the difference excludes 0.

    Source: R. Newcombe, Interval estimation for the difference between independent proportions, Statistics in Medicine
    17, 1998, method 10.
    """
    lower, upper = wilson_interval(share, n)[0], wilson_interval(other, other_n)[1]
    return share - other > math.hypot(share - lower, upper - other)
