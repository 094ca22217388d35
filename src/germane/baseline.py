"""Baselines: statistics for a service's scores in normal operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from math import hypot, sqrt
from typing import Any, Self

POOLED_ROUTE = "(other)"
"""Key for the routes that have too few scores for their own baseline. If the application has a route with this name, it
is pooled too."""
CORRELATED_DAYS = 3
"""Number of consecutive days whose levels vary together almost like one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteBaseline:
    """Statistics for one route's scores. Values are clipped to [0, 1]; noncommittal answers count as zero."""

    n: int
    """Number of scores."""
    mean: float
    """Mean of all scores."""
    deviation: float
    """Standard deviation of all scores."""
    committed: int
    """Number of scores that are not zero."""
    committed_mean: float
    committed_deviation: float
    zero_rate: float
    """Smoothed share of zeros: (zeros + 1/2) / (n + 1)."""
    committed_wander: float
    """Standard deviation of the mean nonzero score between 6-hour blocks, in excess of sampling error."""
    zero_wander: float
    """Standard deviation of the zero rate between 6-hour blocks, in excess of sampling error."""
    scores_per_day: float
    committed_per_day: float
    longest_gap: int = 0
    """Largest number of scores of other routes between two scores of this route; 0 if unknown."""

    @property
    def wander(self) -> float:
        """Standard deviation of the mean of all scores between blocks, derived from the wander of its two parts."""
        return hypot((1 - self.zero_rate) * self.committed_wander, self.committed_mean * self.zero_wander)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Score statistics for one service, scorer and fingerprint, by route. Immutable."""

    service: str
    scorer: str
    fingerprint: str
    since: datetime
    """Start of the window from which the baseline was learned, UTC."""
    until: datetime
    """End of the window, UTC."""
    n: int
    """Number of scores in the window."""
    mean: float
    deviation: float
    scores_per_day: float
    """Number of scores per day that the detector receives from the routes that it watches."""
    committed_per_day: float
    sampling_rate: float = 1.0
    """Probability that a score reaches the detector. It is below 1 if there are more than 1,000 scores per day."""
    routes: Mapping[str, RouteBaseline]
    """Statistics by route; :data:`POOLED_ROUTE` contains the pooled routes."""
    pooled: frozenset[str] = frozenset()
    """Names of the pooled routes."""

    @property
    def wander_in_mean(self) -> float:
        """The part of the wander that remains in the mean of the whole window.

        Consecutive days resemble each other, so three of them vary together almost like one.
        """
        return sqrt(min(1.0, CORRELATED_DAYS * timedelta(days=1) / (self.until - self.since)))

    def with_traffic(self, factor: float) -> Baseline:
        """Return the baseline with ``factor`` times as many scores per day, on each route and in total."""
        routes = {
            name: replace(
                route,
                scores_per_day=factor * route.scores_per_day,
                committed_per_day=factor * route.committed_per_day,
            )
            for name, route in self.routes.items()
        }
        return replace(
            self,
            scores_per_day=factor * self.scores_per_day,
            committed_per_day=factor * self.committed_per_day,
            routes=routes,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the baseline as JSON-compatible data."""
        times = {"since": self.since.isoformat(), "until": self.until.isoformat()}
        return {**asdict(self), **times, "pooled": sorted(self.pooled)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a baseline from a result of :meth:`as_dict`."""
        times = {name: datetime.fromisoformat(data[name]) for name in ("since", "until")}
        routes = {name: RouteBaseline(**route) for name, route in sorted(data["routes"].items())}
        return cls(**{**data, **times, "routes": routes, "pooled": frozenset(data["pooled"])})
