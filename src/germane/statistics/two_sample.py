"""Comparison of two time windows: differences between means, with confidence intervals.

The interval of a difference combines the intervals of both means and preserves their asymmetry (MOVER method)::

    d = after - before
    lower = d - sqrt((after - after_lower)^2 + (before_upper - before)^2)
    upper = d + sqrt((after_upper - after)^2 + (before - before_lower)^2)

Source: G. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27, 2008. The
effect size is Hedges' g: the difference in units of the scores' standard deviation, corrected for small samples
(L. Hedges, Distribution theory for Glass's estimator of effect size, Journal of Educational Statistics 6, 1981). The
effect-size labels follow J. Cohen.

For services, both windows are weighted by the route mix of the earlier window (direct standardization), so traffic that
moves to a route with lower scores does not count as a drop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from germane.alert import Interval
from germane.statistics.estimate import Estimate, Z

ComparisonFinding = Literal["dropped", "lower", "unclear", "higher", "not_enough_data", "judge_changed"]
"""``dropped``: the drop is significant after correction for multiple comparisons. ``lower`` and ``higher``: 0 is
outside the interval, which also happens in 1 of 20 comparisons without any change. ``judge_changed``: the windows have
no fingerprint in common."""
TimeWindow = tuple[datetime, datetime]
SIGNIFICANCE_LEVEL = 0.0125
"""Nominal probability, over all comparisons, of reporting at least one drop if there is none.

The actual probability is up to twice as high, 1 in 40, because intervals are asymmetric if few scores with rare
refusals are compared with many scores.
"""
_MIN_DEVIATION = 1e-9
"""Standard deviation below which scores count as equal, because any difference is a rounding error."""
_EFFECT_NAMES = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"), (math.inf, "large"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of the two windows for one scorer and fingerprint, on one route or in a whole service."""

    service: str
    route: str | None
    """Name of the route; None for the whole service, which is standardized to the route mix of the earlier window."""
    scorer: str
    fingerprint: str
    before: Estimate | None
    """Estimate for the earlier window; None without scores."""
    after: Estimate | None
    """Estimate for the later window; None without scores."""
    finding: ComparisonFinding
    difference: float | None = None
    """After minus before, in [-2, 2]. This field and the following ones are None without enough data."""
    interval: Interval | None = None
    """95% confidence interval of the difference."""
    effect: float | None = None
    """Hedges' g; also None if all scores are equal."""
    share: float | None = None
    """Share of the service's earlier traffic that was on the compared routes, in (0, 1]; None for a route."""

    @property
    def is_comparable(self) -> bool:
        """Whether both windows have enough scores to compare."""
        return self.interval is not None

    @property
    def effect_name(self) -> str | None:
        """The effect size in words: negligible, small (from 0.2), medium (0.5) or large (0.8)."""
        size = self.effect
        return None if size is None else next(name for end, name in _EFFECT_NAMES if abs(size) < end)

    def measured(self) -> Comparison:
        """Return a copy with difference, interval and effect size if both windows have enough scores."""
        if self.before is None or self.after is None:
            return self
        if not (self.before.has_min_samples and self.after.has_min_samples):
            return self
        difference, interval = mean_difference(self.before, self.after)
        finding = classify_interval(interval)
        effect = effect_size(self.before, self.after)
        return replace(self, finding=finding, difference=difference, interval=interval, effect=effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """The comparison of two windows by route and service."""

    before: TimeWindow
    """The earlier window: start (inclusive) and end (exclusive)."""
    after: TimeWindow
    """The later window: start (inclusive) and end (exclusive)."""
    min_drop: float
    routes: Sequence[Comparison]
    services: Sequence[Comparison]
    """Comparisons of services with at least two comparable routes."""

    @property
    def dropped(self) -> list[Comparison]:
        """Routes and services with a significant drop."""
        return [comparison for comparison in (*self.services, *self.routes) if comparison.finding == "dropped"]

    @property
    def is_comparable(self) -> bool:
        """Whether any route or service has enough scores to compare."""
        return any(comparison.is_comparable for comparison in (*self.services, *self.routes))


def mean_difference(before: Estimate, after: Estimate) -> tuple[float, Interval]:
    """Return the difference, after minus before, and its interval. Both estimates must have an interval."""
    (before_low, before_high), (after_low, after_high) = before.interval, after.interval  # type: ignore[misc]  # see above
    change = after.mean - before.mean
    down = math.hypot(after.mean - after_low, before_high - before.mean)
    up = math.hypot(after_high - after.mean, before.mean - before_low)
    return change, (max(-2.0, change - down), min(2.0, change + up))


def effect_size(before: Estimate, after: Estimate) -> float | None:
    """Return Hedges' g, or None if all scores are equal or there are too few scores."""
    freedom = before.n + after.n - 2
    if before.deviation is None or after.deviation is None or freedom < 1:
        return None
    squares = (before.n - 1) * before.deviation**2 + (after.n - 1) * after.deviation**2
    deviation = math.sqrt(squares / freedom)
    return (1 - 3 / (4 * freedom - 1)) * (after.mean - before.mean) / deviation if deviation > _MIN_DEVIATION else None


def standardize(sides: Sequence[Estimate], shares: Sequence[float]) -> Estimate:
    """Return a service's estimate: the weighted mean of its routes' estimates.

    Each estimate has an interval, and the shares sum to 1.

    Returns:
        The service's estimate. Its ``deviation`` is the pooled within-route standard deviation.
    """
    parts = list(zip(shares, sides, strict=True))
    mean = sum(share * side.mean for share, side in parts)
    ends = [(side.interval or (side.mean, side.mean), share, side.mean) for share, side in parts]
    down = math.hypot(*(share * (middle - low) for (low, _), share, middle in ends))
    up = math.hypot(*(share * (high - middle) for (_, high), share, middle in ends))
    return Estimate(
        n=sum(estimate.n for estimate in sides),
        mean=mean,
        deviation=math.sqrt(sum(share * (side.deviation or 0.0) ** 2 for share, side in parts)),
        low_share=sum(share * side.low_share for share, side in parts),
        noncommittal_share=None
        if any(side.noncommittal_share is None for side in sides)
        else sum(share * (side.noncommittal_share or 0.0) for share, side in parts),
        interval=(max(-1.0, mean - down), min(1.0, mean + up)),
    )


def mark_significant_drops(
    lines: Iterable[Comparison], min_drop: float, level: float = SIGNIFICANCE_LEVEL
) -> list[Comparison]:
    """Set the finding of significant drops to ``dropped``, using Holm's correction for multiple comparisons.

    ``level`` is the nominal probability, over all lines, of reporting at least one drop if there is none.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6,
    1979.
    """
    marked = list(lines)
    p_values: list[tuple[float, int]] = []
    for index, line in enumerate(marked):
        if line.difference is not None and line.interval is not None:
            # The one-sided p-value of the difference under the hypothesis that the drop is min_drop.
            half, beyond = line.interval[1] - line.difference, -min_drop - line.difference
            if half <= 0:
                p_values.append((0.0 if beyond > 0 else 1.0, index))
            else:
                p_values.append((0.5 * math.erfc(Z * beyond / half / math.sqrt(2)), index))
    p_values.sort()
    for rank, (p_value, index) in enumerate(p_values):
        if p_value > level / (len(p_values) - rank) * (1 + 1e-9):
            break
        marked[index] = replace(marked[index], finding="dropped")
    return marked


def classify_interval(interval: Interval) -> ComparisonFinding:
    """Return the finding for the interval of one difference, without correction for multiple comparisons."""
    if interval[1] < 0:
        return "lower"
    return "higher" if interval[0] > 0 else "unclear"
