"""Mean scores corrected with proxy scores, which are available for many more exchanges.

If the scored exchanges happen to have higher proxy scores than the rest, their scores are expected to be higher too,
and the mean is corrected for that difference. The variance decreases by a share of about r^2, where r is the
correlation of score and proxy score.

With w = 1 / sampling probability, and X the mean of all proxy scores x, each weighted by
1 / (probability of having a proxy score * probability of being captured)::

    y_H = sum w y / sum w              x_H = sum w x / sum w over scores with a proxy
    b   = sum w (x - x_H)(y - y_H) / sum w (x - x_H)^2
    y_R = y_H + b (X - x_H)

Source: W. G. Cochran, Sampling Techniques, 3rd edition, chapter 7, with the weights of an unequal-probability
design. Like the interval in :mod:`germane.statistics.estimate`, the interval covers the mean of the process that
produces the answers. The interval in that module is also valid for scores that include refusals, so
:func:`narrow_interval` narrows it instead of using a symmetric interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from germane.alert import Interval
from germane.score import UnscoredReason
from germane.statistics.estimate import Estimate, WeightedSums, estimate_mean, mean_interval, t_quantile

MIN_PAIRS = 30
"""Minimum number of scores with a proxy score for a correction."""
MAX_SELECTED_SHARE: Final = 0.01
"""Maximum share of exchanges that have no score for a reason that may depend on their quality."""
MAX_TOTAL_DIFFERENCE: Final = 0.1
"""Maximum relative difference between the number of exchanges and the number that the proxy scores represent."""
VALUE_INDEPENDENT_REASONS: Final = frozenset(
    {
        UnscoredReason.NOT_SAMPLED,
        UnscoredReason.BUDGET,
        UnscoredReason.QUEUE_FULL,
        UnscoredReason.EXCHANGE_LIMIT,
        UnscoredReason.EXPIRED,
    }
)
"""Reasons for a missing score that do not depend on the answer's quality."""
_UNSCORED: Final = frozenset({"skipped", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSums:
    """Sums over a group of scores y with weights w, and over the subset whose exchanges have a proxy score x.

    These are plain sums that the database can compute.
    """

    sum_w: float
    sum_w2: float
    sum_wy: float
    sum_w2y: float
    sum_w2y2: float
    n_with_x: int
    """Number of scores with a proxy score. All sums below cover only these."""
    sum_w_with_x: float
    sum_w2_with_x: float
    sum_wx: float
    sum_wy_with_x: float
    sum_wx2: float
    sum_wxy: float
    sum_wy2_with_x: float
    sum_w2x: float
    sum_w2y_with_x: float
    sum_w2x2: float
    sum_w2xy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySums:
    """Sums over all exchanges with a proxy score x, scored or not, with weights v = 1 / probability of having x."""

    n: int
    sum_v: float
    sum_v2: float
    sum_vx: float
    sum_vx2: float
    sum_v2x: float
    sum_v2x2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedMean:
    """A mean score corrected with proxy scores."""

    mean: float
    variance: float
    interval: Interval
    """95% confidence interval, clipped to [-1, 1]."""
    slope: float
    """Change in the score per unit of the proxy score."""
    correlation: float
    """Correlation of score and proxy score, in [-1, 1]. Its square is about the relative reduction in variance."""


def correct_mean(scores: ScoreSums, proxies: ProxySums) -> CorrectedMean | None:
    """Return the corrected mean, or None if there are too few pairs or if all proxy scores are equal."""
    if scores.n_with_x < MIN_PAIRS or not proxies.n:
        return None
    # The names are those of the formulas above.
    y_h, x_h = scores.sum_wy / scores.sum_w, scores.sum_wx / scores.sum_w_with_x
    x_all = proxies.sum_vx / proxies.sum_v
    y_with_x = scores.sum_wy_with_x / scores.sum_w_with_x
    variance_x = scores.sum_wx2 / scores.sum_w_with_x - x_h * x_h
    if variance_x <= 1e-12:
        return None
    variance_y = max(0.0, scores.sum_wy2_with_x / scores.sum_w_with_x - y_with_x * y_with_x)
    covariance = scores.sum_wxy / scores.sum_w_with_x - x_h * y_with_x
    slope = covariance / variance_x
    mean = y_h + slope * (x_all - x_h)
    # The variance of y_H - b x_H. Scores without a proxy score contribute only to y_H.
    of_y = _squares_about(y_h, scores.sum_w2y2, scores.sum_w2y, scores.sum_w2)
    both = scores.sum_w2xy - y_h * scores.sum_w2x - x_h * scores.sum_w2y_with_x + x_h * y_h * scores.sum_w2_with_x
    of_x = _squares_about(x_h, scores.sum_w2x2, scores.sum_w2x, scores.sum_w2_with_x)
    total = (
        of_y / scores.sum_w**2
        - 2 * slope * both / (scores.sum_w * scores.sum_w_with_x)
        + slope**2 * of_x / scores.sum_w_with_x**2
    )
    variance = max(0.0, total) * scores.n_with_x / (scores.n_with_x - 2)  # two fitted parameters
    # The variance of b X.
    of_all = _squares_about(x_all, proxies.sum_v2x2, proxies.sum_v2x, proxies.sum_v2)
    variance += slope**2 * (max(0.0, of_all) / proxies.sum_v**2)
    half = t_quantile(scores.n_with_x - 2) * math.sqrt(variance)
    return CorrectedMean(
        mean=mean,
        variance=variance,
        interval=(max(-1.0, mean - half), min(1.0, mean + half)),
        slope=slope,
        correlation=max(-1.0, min(1.0, covariance / math.sqrt(variance_x * variance_y))) if variance_y else 0.0,
    )


def _squares_about(mean: float, sum_w2z2: float, sum_w2z: float, sum_w2: float) -> float:
    """Return the sum of w^2 (z - mean)^2."""
    return sum_w2z2 - 2 * mean * sum_w2z + mean * mean * sum_w2


def narrow_interval(sums: WeightedSums, scores: ScoreSums, proxies: ProxySums) -> CorrectedMean | None:
    """Return the corrected mean with the uncorrected interval, narrowed by the reduction in variance.

    The interval from :func:`correct_mean` is symmetric. If refusals are rare, its coverage is too low.

    Returns:
        The corrected mean, or None if no correction is possible or the variance does not shrink.
    """
    corrected = correct_mean(scores, proxies) if sums.n - sums.n_zero > 1 else None
    if corrected is None:
        return None
    mean = scores.sum_wy / scores.sum_w
    squares = _squares_about(mean, scores.sum_w2y2, scores.sum_w2y, scores.sum_w2)
    alone = squares * sums.n / (sums.n - 1) / scores.sum_w**2
    if corrected.variance >= alone:
        return None
    mean = max(-1.0, min(1.0, corrected.mean))
    return replace(corrected, mean=mean, interval=mean_interval(sums, mean, corrected.variance / alone))


_OF_SCORES: Final = tuple(field.name for field in fields(ScoreSums))


def estimate_group(
    sums: Mapping[str, float],
    proxies: Mapping[str, float] | None,
    outcomes: Mapping[tuple[str, str], int],
    scorer: str,
    fingerprint: str,
) -> Estimate:
    """Return the estimate for a group of scores with one fingerprint, corrected with proxy scores if possible.

    ``proxies`` are sums over the proxy scores of all exchanges in the same window and group; None if not comparable.
    ``outcomes`` counts these exchanges by (outcome, reason).
    """
    of_scores = WeightedSums.from_mapping(sums)
    plain = estimate_mean(of_scores, scorer, fingerprint)
    if proxies is None or plain.interval is None or sums["n_with_x"] < MIN_PAIRS:
        return plain
    # The proxy scores must represent the exchanges that are eligible for the scorer. A filter may exclude some.
    seen = selected = 0
    for (outcome, reason), count in outcomes.items():
        if outcome == "seen":
            seen += count
        elif outcome in _UNSCORED and reason not in VALUE_INDEPENDENT_REASONS:
            selected += count
    lost = outcomes.get(("skipped", UnscoredReason.QUEUE_FULL.value), 0)
    totals_match = abs(proxies["sum_v"] - (seen - lost)) <= MAX_TOTAL_DIFFERENCE * seen
    if not totals_match or selected > MAX_SELECTED_SHARE * seen:
        return plain
    corrected = narrow_interval(
        of_scores,
        ScoreSums(**{name: sums[name] for name in _OF_SCORES}),  # type: ignore[arg-type]  # see above
        ProxySums(**proxies),  # type: ignore[arg-type]  # see above
    )
    if corrected is None:
        return plain
    return replace(plain, mean=corrected.mean, interval=corrected.interval, correlation=corrected.correlation)
