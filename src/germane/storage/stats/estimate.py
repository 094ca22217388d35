"""A mean of scores with its 95 % interval.

Scores are weighted by 1 / sampling probability (Hajek). The interval is for the mean of the process that gives the
answers, not of this window's answers: sampling all of them still leaves one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from germane.storage.stats.histogram import Histogram

Z = 1.959964
"""Two-sided 95 % of the normal distribution."""
ENOUGH = 20
"""Fewer scores than this are not enough data to judge by."""
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a group of scores of one fingerprint says."""

    n: int
    """At least 1."""
    mean: float
    deviation: float | None
    """Standard deviation of single scores; None under 2."""
    low_share: float
    """Share of scores in the lowest band, under .5 unless it is calibrated; in [0, 1]."""
    noncommittal_share: float
    """Share of answers that did not answer, in [0, 1]."""
    interval: Interval | None
    """95 %, lower and upper end; None under 2 scores."""
    correlation: float | None = None
    """Of score and proxy, where the mean is corrected by the proxies because that makes it surer; None where not."""
    histogram: Histogram | None = field(default=None, repr=False)
    """How the scores are spread, each by its weight; None where it was not asked for."""

    def percentile(self, percent: float) -> float | None:
        """Return the score under which that much of all answers lies, ``percent`` in [0, 100], exact to .01.

        None where the spread was not asked for.
        """
        return None if self.histogram is None else self.histogram.percentile(percent)

    @property
    def enough(self) -> bool:
        """Whether there are 20 scores or more: fewer are not enough data to judge by."""
        return self.n >= ENOUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums over a group of scores y with weights w = 1 / sampling probability; ``zero`` is of those where y = 0."""

    n: int
    n_zero: int
    w: float
    w_zero: float
    ww: float
    ww_zero: float
    wy: float
    wyy: float
    wwy: float
    wwyy: float
    w_low: float
    w_noncommittal: float


def estimate(sums: Sums) -> Estimate:
    """Return mean, spread and interval of at least one score."""
    mean = max(-1.0, min(1.0, sums.wy / sums.w))  # a sum of many weights is not exact
    return Estimate(
        n=sums.n,
        mean=mean,
        deviation=_deviation(sums, mean) if sums.n > 1 else None,
        low_share=sums.w_low / sums.w,
        noncommittal_share=sums.w_noncommittal / sums.w,
        interval=interval_of(sums, mean) if sums.n > 1 else None,
    )


def _deviation(sums: Sums, mean: float) -> float:
    return math.sqrt(max(0.0, sums.wyy / sums.w - mean * mean) * sums.n / (sums.n - 1))


def interval_of(sums: Sums, mean: float, gain: float = 1.0) -> Interval:
    """Return the 95 % interval of a mean of two scores or more, cut to what a score can be.

    ``gain`` is for a mean that something else makes surer: the variance that is left of that of the scores alone.
    """
    low, high = _combined(sums, mean, gain)
    return max(-1.0, min(low, mean)), min(1.0, max(high, mean))


def _combined(sums: Sums, mean: float, gain: float) -> Interval:
    """Return an interval that fits scores of two kinds: refusals at exactly 0, and the others.

    Refusals are rare and weigh much, so that a plain t-interval misses in one of five. Share and mean of the committed
    answers have an interval each; their product's is combined from both (MOVER: G. Zou, A. Donner, Construction of
    confidence limits about effect measures, Statistics in Medicine 27, 2008). What is gained for the share counts as
    far as there are refusals to tell it by.
    """
    n = sums.n - sums.n_zero
    if n < 2:
        return _spread(sums, mean)
    share = 1 - sums.w_zero / sums.w
    committed = sums.wy / (sums.w - sums.w_zero)
    share_low, share_high = _wilson(share, _trials(sums))
    of_share = math.sqrt(1 - (1 - gain) * sums.n_zero / (sums.n_zero + 2)) * committed
    half = math.sqrt(gain) * share * _half(sums, committed, n)
    down = math.hypot(of_share * (share - share_low), half)
    up = math.hypot(of_share * (share_high - share), half)
    return (mean - down, mean + up) if committed >= 0 else (mean - up, mean + down)


_ALIKE = 1e-12
"""Share of the squares that rounding may leave of scores that are all alike."""


def _half(sums: Sums, committed: float, n: int) -> float:
    """Return half the interval of the mean of the scores that are not 0.

    Where they are all alike, others may still come as often as n scores can be without one of them.
    """
    squares = sums.wwyy - 2 * committed * sums.wwy + committed**2 * (sums.ww - sums.ww_zero)
    if squares <= _ALIKE * sums.wwyy:
        return max(0.0, 1 - abs(committed)) * (1 - _wilson(1.0, n)[0])
    return quantile(n - 1) * math.sqrt(max(0.0, squares) * n / (n - 1)) / (sums.w - sums.w_zero)


def _spread(sums: Sums, mean: float) -> Interval:
    """Return the interval of scores that are nearly all 0, which say little of how the others lie."""
    share = 1 - sums.w_zero / sums.w
    low, high = _wilson(share, _trials(sums))
    return min(mean, 0.0 if sums.wy >= 0 else -high), max(mean, high if sums.wy >= 0 else -low)


def _trials(sums: Sums) -> float:
    """Return how many trials with equal weights tell as much of the share.

    Scores that are 0 are often picked more often than others, and then tell more than as many trials. With few of them
    their own weights are a poor guide to those of the next: half a score that is 0, and half a score that is not, are
    added with the average weight, until there are enough to outweigh them.

    Source: E. Korn, B. Graubard, Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data, Survey Methodology 24, 1998; the weight of a refusal that has not come yet as in
    R. Tiwari, L. Clegg, Z. Zou, Efficient interval estimation for age-adjusted cancer rates, Statistical Methods in
    Medical Research 15, 2006.
    """
    weight, square = sums.w / sums.n, sums.ww / sums.n
    total = sums.w + weight
    zero = (sums.w_zero + weight / 2) / total
    of_zeros, of_others = sums.ww_zero + square / 2, sums.ww - sums.ww_zero + square / 2
    variance = (of_zeros * (1 - zero) ** 2 + of_others * zero**2) / total**2
    return zero * (1 - zero) / variance * sums.n / (sums.n + 1)


def _wilson(share: float, n: float) -> Interval:
    """Return the Wilson score interval of a share seen in n (effective) trials."""
    centre = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def quantile(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t: a table up to 2, Cornish-Fisher's expansion above."""
    if freedom <= 2:
        return (12.7062, 4.3027)[freedom - 1]
    z = Z
    terms = (
        z,
        (z**3 + z) / (4 * freedom),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3),
    )
    return sum(terms)
