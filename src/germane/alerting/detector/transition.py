"""Transitions of a detector: a drop begins, or it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Half = Literal["committed", "zero"]
HALVES: Final[tuple[Half, ...]] = ("committed", "zero")
"""A stream's two monitored statistics: the mean of committed answers and the rate of zeros."""


@dataclass(frozen=True, slots=True)
class Contributor:
    """One half of one stream that holds most of the evidence for a drop."""

    route: str | None
    """None for the service as a whole."""
    half: Half
    """``committed``: answers drift lower. ``zero``: refusals rise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A detector starts to fire or resolves."""

    index: int
    """Position in the processed batch of the score that caused the transition."""
    at: float
    """Arrival of that score, as a Unix timestamp in seconds."""
    state: Literal["firing", "resolved"]
    evidence: float
    """How rare this drop is, in false alerts per year, measured when the detector fired."""
    onset: float
    """Estimated start of the drop, as a Unix timestamp in seconds."""
    contributors: tuple[Contributor, ...]
    """Strongest first."""
