"""Calibrations of cosine scores: the cosine similarity of unrelated texts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The floor for one scorer's cosines with one embedder.

    Raises:
        ValueError: ``floor`` is not in [-1, 1).
    """

    embedder: str
    scorer: str
    fingerprint: str
    """Fingerprint of the measurement."""
    floor: float
    """Mean cosine of unrelated pairs."""
    high: float
    """95th percentile of the cosines of unrelated pairs."""
    n: int
    """Number of exchanges that were compared."""
    made_at: datetime
    """UTC."""

    def __post_init__(self) -> None:
        if not -1 <= self.floor < 1:
            raise ValueError(f"the floor of a cosine must be at least -1 and less than 1, not {self.floor}")

    def __str__(self) -> str:
        return f"calibrated (floor {self.floor:.2f}, n {self.n}, {self.made_at:%Y-%m-%d})"

    def rescale(self, value: float) -> float:
        """Map a cosine linearly so that the floor becomes 0 and 1 stays 1, clipped to [0, 1]."""
        return min(1.0, max(0.0, (value - self.floor) / (1 - self.floor)))
