"""What a detector says: that a drop began, and that it is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Half = Literal["committed", "zero"]
HALVES: Final[tuple[Half, ...]] = ("committed", "zero")
"""The mean of the committed answers, and the rate of zeros."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """Where the evidence sits."""

    route: str | None
    """None: in the service as a whole."""
    half: Half
    """committed: answers drift lower; zero: refusals rise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One moment at which a detector fired, or found that it is over."""

    index: int
    """Place in what was fed of the score that settled it."""
    at: float
    """When that score arrived: seconds since 1970, UTC."""
    state: Literal["firing", "resolved"]
    evidence: float
    """False alarms a year as rare as this, when it fired."""
    onset: float
    """When the drop is likely to have begun: seconds since 1970, UTC."""
    carriers: tuple[Carrier, ...]
    """The strongest first."""
