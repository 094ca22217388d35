"""The state of this process and its database that gauges report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogState:
    """The backlog in the database, which one of all processes reads periodically."""

    undecided: int
    """Exchanges that are not sampled yet."""
    exchanges: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Exchanges that wait for a score, by scorer and state: ``candidate``, ``ready``, ``postponed`` or ``running``."""
    lag: float
    """Age of the oldest waiting exchange in seconds."""
    workers: int
    """Number of worker processes."""
    budget: Mapping[str, float] = field(default_factory=dict)
    """Used share of the day's budget, in [0, 1] or slightly above, by limit: ``calls``, ``tokens``, ``usd``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryState:
    """Values of the gauges."""

    queued: int
    """Exchanges in the memory of this process that are not stored yet."""
    waiting: BacklogState | None = None
    """None in processes that do not read it, and while the database is unreachable."""
