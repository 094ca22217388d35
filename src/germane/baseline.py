"""A frozen picture of how the scores of one service behave when all is well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

OTHER = "(other)"
"""Stands for the routes that had too few scores to be learned by themselves. A user's route of that name is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteBaseline:
    """How the scores of one route behave. Values are clipped to [0, 1]; zero is noncommittal, or a value up to 0."""

    n: int
    """Scores."""
    mean: float
    """Of all of them."""
    deviation: float
    """Standard deviation of all of them."""
    committed: int
    """Scores that are not zero."""
    committed_mean: float
    committed_deviation: float
    zero_rate: float
    """(zeros + 1/2) / (n + 1)."""
    committed_wander: float
    """Standard deviation of the committed mean between stretches of 6 hours, beyond what chance explains."""
    zero_wander: float
    """The same of the zero rate."""
    scores_per_day: float
    committed_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """How the scores of one service, scorer and fingerprint behave, by route. Its numbers never change."""

    service: str
    scorer: str
    fingerprint: str
    since: datetime
    """UTC: beginning of what it was learned from."""
    until: datetime
    n: int
    """Scores that it was learned from."""
    mean: float
    deviation: float
    scores_per_day: float
    """That reach the detector, of routes that it watches."""
    committed_per_day: float
    keep: float = 1.0
    """Probability that a score reaches the detector: above a thousand a day it thins."""
    routes: Mapping[str, RouteBaseline]
    """By route; :data:`OTHER` stands for those that were pooled."""
    pooled: frozenset[str] = frozenset()
    """Routes that count as :data:`OTHER`."""
