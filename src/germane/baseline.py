"""Baselines: how the scores of one service behave normally."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

POOLED_ROUTE = "(other)"
"""Key of the routes that had too few scores for a baseline of their own. A user's route of this name is pooled too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteBaseline:
    """How the scores of one route behave. Values are clipped to [0, 1]; noncommittal answers count as zero."""

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
    """(zeros + 1/2) / (n + 1)."""
    committed_wander: float
    """Standard deviation of the committed mean between blocks of 6 hours, beyond sampling error."""
    zero_wander: float
    """Standard deviation of the zero rate between blocks of 6 hours, beyond sampling error."""
    scores_per_day: float
    committed_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """How the scores of one service, scorer and fingerprint behave, by route. Its numbers never change."""

    service: str
    scorer: str
    fingerprint: str
    since: datetime
    """Start of the window that it was learned from, UTC."""
    until: datetime
    """End of that window."""
    n: int
    """Number of scores in that window."""
    mean: float
    deviation: float
    scores_per_day: float
    """Scores that reach the detector, of routes that it watches."""
    committed_per_day: float
    sampling_rate: float = 1.0
    """Probability that a score reaches the detector. It is below 1 for more than 1,000 scores a day."""
    routes: Mapping[str, RouteBaseline]
    """By route; :data:`POOLED_ROUTE` holds the routes that were pooled."""
    pooled: frozenset[str] = frozenset()
    """Routes that count as :data:`POOLED_ROUTE`."""
