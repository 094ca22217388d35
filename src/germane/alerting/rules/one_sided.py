"""One-sided 95 % limits of means and shares, from what an estimate says."""

from __future__ import annotations

import math
from typing import Final

from germane.storage import Estimate

ONE_SIDED: Final = 1.644854
"""95 % of the normal distribution lie below."""
TWO_SIDED: Final = 1.959964
"""95 % of it lie within this, on both sides."""
Interval = tuple[float, float]


def upper(mean: float, interval: Interval) -> float:
    """Return the limit that the mean lies under with 95 %, from its two-sided interval: the same shape, narrower."""
    return mean + (interval[1] - mean) * ONE_SIDED / TWO_SIDED


def share_interval(estimate: Estimate, share: float) -> Interval:
    """Return a two-sided 95 % interval of a share of the scores of an estimate.

    Wilson's, of as many scores as there are, less what unequal weights make them worth: as much as they widen the
    interval of the mean beyond that of equal ones.
    Source: E. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927.
    """
    return wilson(share, trials(estimate), TWO_SIDED)


def lower_of_share(estimate: Estimate, share: float) -> float:
    """Return the limit that a share lies above with 95 %."""
    return wilson(share, trials(estimate), ONE_SIDED)[0]


def trials(estimate: Estimate) -> float:
    """Return how many scores of equal weight would tell as much."""
    if estimate.interval is None or not estimate.deviation:
        return float(estimate.n)
    half = (estimate.interval[1] - estimate.interval[0]) / 2
    plain = TWO_SIDED * estimate.deviation / math.sqrt(estimate.n)
    return estimate.n / max(1.0, (half / plain) ** 2)


def wilson(share: float, n: float, z: float) -> Interval:
    """Return the interval of a share of n trials, for so many standard deviations."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(max(0.0, share * (1 - share)) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)
