"""Where a scale begins: what an embedder makes of texts that have nothing to do with one another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The floor of one scorer's cosines, as one embedder makes them.

    Raises:
        ValueError: ``floor`` is not in [-1, 1).
    """

    embedder: str
    scorer: str
    fingerprint: str
    """Of how the floor was found."""
    floor: float
    """Mean cosine of unrelated pairs."""
    high: float
    """The cosine that 95 % of them stay under."""
    n: int
    """Exchanges that the pairs are from."""
    made_at: datetime
    """UTC, with its zone."""

    def __post_init__(self) -> None:
        if not -1 <= self.floor < 1:
            raise ValueError(f"the floor of a cosine is at least -1 and less than 1, not {self.floor}")

    def __str__(self) -> str:
        return f"calibrated (floor {self.floor:.2f}, n {self.n}, {self.made_at:%Y-%m-%d})"

    def of(self, value: float) -> float:
        """Return where a cosine lies between the floor (0) and 1, cut to [0, 1]."""
        return min(1.0, max(0.0, (value - self.floor) / (1 - self.floor)))
