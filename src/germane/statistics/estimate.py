"""Weighted mean scores with 95% confidence intervals.

Scores are weighted by 1 / sampling probability (Hájek estimator). The interval covers the mean of the process that
produces the answers, not the mean of the answers in the window, so it has a positive width even if all answers are
scored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from germane.alert import Interval
from germane.annotation import EXTERNAL_FINGERPRINT
from germane.score import GRADES, LOW_SCORE, LOWEST_BAND, MIN_SAMPLES, NONCOMMITTAL, REFUSAL_SCORERS
from germane.statistics.histogram import Histogram

Z = 1.959964
"""Two-sided 95% quantile of the normal distribution."""
_T_QUANTILES = (
    12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814,
    2.20099, 2.17881, 2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596,
)  # fmt: skip
"""Two-sided 95% quantiles of Student's t distribution for 1 to 20 degrees of freedom."""
_EQUAL_TOLERANCE = 1e-12
"""Relative sum of squares below which scores count as equal, because any difference is a rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Mean, spread and confidence interval for a group of scores with one fingerprint."""

    n: int
    """Number of scores, at least 1."""
    mean: float
    deviation: float | None
    """Standard deviation of the scores; None for a single score."""
    low_share: float
    """Share of scores in the lowest band (below 0.5 unless calibrated), in [0, 1]."""
    noncommittal_share: float | None
    """Share of noncommittal answers, in [0, 1]; None if the scorer does not detect them."""
    interval: Interval | None
    """95% confidence interval of the mean; None for a single score."""
    correlation: float | None = None
    """Correlation of score and proxy score if the mean is corrected with proxy scores; None otherwise."""
    histogram: Histogram | None = field(default=None, repr=False)
    """Weighted histogram of the scores; None if not requested."""

    def percentile(self, percent: float) -> float | None:
        """Return a percentile of the scores, accurate to 0.01, or None if the histogram was not requested.

        Args:
            percent: The percentile, from 0 to 100.
        """
        return None if self.histogram is None else self.histogram.percentile(percent)

    @property
    def has_min_samples(self) -> bool:
        """Whether there are at least :data:`MIN_SAMPLES` (20) scores."""
        return self.n >= MIN_SAMPLES


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSums:
    """Sums over a group of scores y with weights w = 1 / sampling probability. ``zero`` marks the subset with y = 0."""

    n: int
    n_zero: int
    sum_w: float
    sum_w_zero: float
    sum_w2: float
    sum_w2_zero: float
    sum_wy: float
    sum_wy2: float
    sum_w2y: float
    sum_w2y2: float
    sum_w_low: float
    sum_w_noncommittal: float

    def __add__(self, other: WeightedSums) -> WeightedSums:
        """Return the sums over both groups."""
        return WeightedSums(**{name: getattr(self, name) + getattr(other, name) for name in _SUM_NAMES})

    @classmethod
    def from_mapping(cls, sums: Mapping[str, float]) -> WeightedSums:
        """Create the sums from a mapping that may contain other sums as well."""
        return cls(**{name: sums[name] for name in _SUM_NAMES})  # type: ignore[arg-type]  # counts are integers

    @classmethod
    def of_equal_weights(
        cls, *, n: int, n_zero: int, total: float, squares: float, low: int = 0, noncommittal: int = 0
    ) -> WeightedSums:
        """Create the sums over ``n`` scores with weight 1 from their sum and the sum of their squares."""
        return cls(
            n=n,
            n_zero=n_zero,
            sum_w=n,
            sum_w_zero=n_zero,
            sum_w2=n,
            sum_w2_zero=n_zero,
            sum_wy=total,
            sum_wy2=squares,
            sum_w2y=total,
            sum_w2y2=squares,
            sum_w_low=low,
            sum_w_noncommittal=noncommittal,
        )


class RunningSums:
    """Adds up the sums over a group of scores, one score at a time, for queries that rollups cannot answer."""

    def __init__(self) -> None:
        self.low = 0
        """Number of low scores, without weights."""
        self._sums = dict.fromkeys(_SUM_NAMES, 0.0)

    def add(self, value: float, label: str | None, probability: float | None) -> None:
        """Add one score with its label and its sampling probability; None stands for a probability of 1."""
        w, y = 1.0 / probability if probability else 1.0, value
        low = label == LOWEST_BAND or (label not in GRADES and y < LOW_SCORE)
        zero = float(y == 0)
        added = (
            1, zero, w, zero * w, w * w, zero * w * w, w * y, w * y * y, w * w * y, w * w * y * y, low * w,
            (label == NONCOMMITTAL) * w,
        )  # fmt: skip
        for name, term in zip(_SUM_NAMES, added, strict=True):
            self._sums[name] += term
        self.low += low

    @property
    def sums(self) -> WeightedSums:
        """The sums over all scores that have been added."""
        counts = {name: int(self._sums[name]) for name in ("n", "n_zero")}
        return WeightedSums(**{**self._sums, **counts})  # type: ignore[arg-type]  # counts are integers


_SUM_NAMES = tuple(field.name for field in fields(WeightedSums))


def estimate_mean(sums: WeightedSums, scorer: str | None = None, fingerprint: str = "") -> Estimate:
    """Return the mean, standard deviation and interval for a non-empty group of one scorer's scores."""
    noncommittal_share = sums.sum_w_noncommittal / sums.sum_w
    is_own = fingerprint != EXTERNAL_FINGERPRINT  # a scorer of this name elsewhere may not detect refusals
    detects_refusals = noncommittal_share > 0 or (is_own and scorer in REFUSAL_SCORERS)
    mean = max(-1.0, min(1.0, sums.sum_wy / sums.sum_w))  # long sums have rounding errors
    return Estimate(
        n=sums.n,
        mean=mean,
        deviation=math.sqrt(max(0.0, sums.sum_wy2 / sums.sum_w - mean * mean) * sums.n / (sums.n - 1))
        if sums.n > 1
        else None,
        low_share=sums.sum_w_low / sums.sum_w,
        noncommittal_share=noncommittal_share if detects_refusals else None,
        interval=mean_interval(sums, mean) if sums.n > 1 else None,
    )


def mean_interval(sums: WeightedSums, mean: float, gain: float = 1.0) -> Interval:
    """Return the 95% confidence interval for a mean of at least two scores, clipped to [-1, 1].

    Scores are a mixture of refusals, which score exactly 0, and other answers. Refusals are rare and have a large
    effect, so the coverage of a plain t interval is only 80%. Instead, the share and the mean of nonzero scores get
    separate intervals, which are combined into an interval for their product (MOVER: G. Zou, A. Donner, Construction of
    confidence limits about effect measures, Statistics in Medicine 27, 2008). If there are few refusals, ``gain``
    narrows the interval of the share less. ``gain`` is, for a mean corrected with proxy scores, the ratio of its
    variance to that of the uncorrected mean.
    """
    share = 1 - sums.sum_w_zero / sums.sum_w
    share_low, share_high = wilson_interval(share, _trials(sums))
    n = sums.n - sums.n_zero
    if n < 2:  # nearly all scores are 0
        low, high = (0.0, share_high) if sums.sum_wy >= 0 else (-share_high, -share_low)
        return max(-1.0, min(low, mean)), min(1.0, max(high, mean))
    committed = sums.sum_wy / (sums.sum_w - sums.sum_w_zero)
    squares = sums.sum_w2y2 - 2 * committed * sums.sum_w2y + committed**2 * (sums.sum_w2 - sums.sum_w2_zero)
    if squares <= _EQUAL_TOLERANCE * sums.sum_w2y2:
        # All nonzero scores are equal: allow for other values at the highest rate that is consistent with not having
        # seen any in n scores.
        half = max(0.0, 1 - abs(committed)) * (1 - wilson_interval(1.0, n)[0])
    else:
        half = t_quantile(n - 1) * math.sqrt(max(0.0, squares) * n / (n - 1)) / (sums.sum_w - sums.sum_w_zero)
    half *= math.sqrt(gain) * share
    of_share = math.sqrt(1 - (1 - gain) * sums.n_zero / (sums.n_zero + 2)) * committed
    down = math.hypot(of_share * (share - share_low), half)
    up = math.hypot(of_share * (share_high - share), half)
    low, high = (mean - down, mean + up) if committed >= 0 else (mean - up, mean + down)
    return max(-1.0, min(low, mean)), min(1.0, max(high, mean))


def _trials(sums: WeightedSums) -> float:
    """Return the effective number of trials for the share of zeros.

    Zeros are often oversampled, and then carry more information than the same number of trials. If there are few zeros,
    their own weights are unreliable, so half a zero and half a nonzero score with the average weight are added.

    Source: E. Korn, B. Graubard, Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data, Survey Methodology 24, 1998. The weight of an unseen refusal follows
    R. Tiwari, L. Clegg, Z. Zou, Efficient interval estimation for age-adjusted cancer rates, Statistical Methods in
    Medical Research 15, 2006.
    """
    weight, square = sums.sum_w / sums.n, sums.sum_w2 / sums.n
    total = sums.sum_w + weight
    zero = (sums.sum_w_zero + weight / 2) / total
    of_zeros, of_others = sums.sum_w2_zero + square / 2, sums.sum_w2 - sums.sum_w2_zero + square / 2
    variance = (of_zeros * (1 - zero) ** 2 + of_others * zero**2) / total**2
    return zero * (1 - zero) / variance * sums.n / (sums.n + 1)


def wilson_interval(share: float, n: float, z: float = Z) -> Interval:
    """Return the Wilson score interval for a proportion observed in ``n`` effective trials.

    Source: E. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927.
    """
    center = (share + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z * math.sqrt(max(0.0, share * (1 - share)) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, center - half_width), min(1.0, center + half_width)


def t_quantile(freedom: int) -> float:
    """Return the two-sided 95% quantile of Student's t distribution, exact to four decimal places.

    Uses table values for up to 20 degrees of freedom, and the Cornish-Fisher expansion for more.
    """
    if freedom <= len(_T_QUANTILES):
        return _T_QUANTILES[freedom - 1]
    z = Z
    terms = (
        z,
        (z**3 + z) / (4 * freedom),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3),
    )
    return sum(terms)
