"""What is true of this process and its database at a moment: the readings of gauges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits in the database, as one process of all reads it now and then."""

    undecided: int
    """Exchanges that no sampler has looked at."""
    exchanges: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Exchanges that wait for a scorer, by scorer and state: ``candidate``, ``ready``, ``postponed`` or ``running``."""
    lag: float
    """Seconds for which the oldest has waited."""
    workers: int
    """Processes that score."""
    budget: Mapping[str, float] = field(default_factory=dict)
    """Share of the day's budget that is spent, in [0, 1] or a little more, by limit: ``calls``, ``tokens``, ``usd``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What gauges show."""

    queued: int
    """Exchanges in this process's memory that the database has not taken yet."""
    waiting: Waiting | None = None
    """None in a process that does not read it, and while the database is away."""
