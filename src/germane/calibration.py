"""Calibrations for cosine scores: the similarity of unrelated texts, and of different questions on the same topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

TOPIC_LEVEL: Final = 0.45
"""Calibrated value of the same-topic floor. It lies in the lowest band."""
QUESTION_EXPONENT: Final = 1.0
"""Exponent of the scale above the same-topic floor, for pairs of questions. Identical questions have a cosine of 1."""
TEXT_EXPONENT: Final = 1 / 3
"""Exponent for pairs of a question and a text. The best answers reach a cosine of about 0.8, so the upper part of the
scale is stretched."""
ON_TOPIC_SHARE: Final = 0.85
"""Minimum cosine of an on-topic text, as a fraction of the distance from the floor to the same-topic floor."""
_QUESTION_PAIRS: Final = "answer_relevancy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The two floors for the cosines of one scorer with one embedder.

    Raises:
        ValueError: ``floor`` or ``topic_floor`` is not in [-1, 1), or ``topic_floor`` is lower than ``floor``.
    """

    embedder: str
    scorer: str
    fingerprint: str
    """Fingerprint of the measurement."""
    floor: float
    """Mean cosine of unrelated pairs."""
    topic_floor: float
    """75th percentile, over all questions, of the cosine with the nearest different question or with that question's
    texts."""
    n: int
    """Number of exchanges that were compared."""
    made_at: datetime
    """UTC."""
    is_default: bool = False
    """Whether germane ships this calibration. Otherwise, it was measured on the user's exchanges."""

    def __post_init__(self) -> None:
        if not -1 <= self.floor < 1:
            raise ValueError(f"the cosine floor must be at least -1 and less than 1, not {self.floor}")
        if not self.floor <= self.topic_floor < 1:
            raise ValueError(
                f"the same-topic floor must be at least the floor, {self.floor}, and less than 1, "
                f"not {self.topic_floor}"
            )

    def __str__(self) -> str:
        source = "by default" if self.is_default else f"n {self.n}, {self.made_at:%Y-%m-%d}"
        return f"calibrated (floor {self.floor:z.2f}, same topic {self.topic_floor:z.2f}, {source})"

    def topic_share(self, value: float) -> float:
        """Map a cosine linearly to 0..1: 0 for unrelated texts, 1 for texts near or above the same-topic floor."""
        on_topic = self.floor + ON_TOPIC_SHARE * (self.topic_floor - self.floor)
        if value >= on_topic:
            return 1.0
        return 0.0 if value <= self.floor else (value - self.floor) / (on_topic - self.floor)

    def cosine_of(self, calibrated: float) -> float:
        """Return the cosine for a calibrated value from :data:`TOPIC_LEVEL` to 1. The inverse of :meth:`rescale`."""
        share = (calibrated - TOPIC_LEVEL) / (1 - TOPIC_LEVEL)
        return float(self.topic_floor + (1 - self.topic_floor) * share ** (1 / self._exponent))

    @property
    def _exponent(self) -> float:
        return QUESTION_EXPONENT if self.scorer == _QUESTION_PAIRS else TEXT_EXPONENT

    def rescale(self, value: float) -> float:
        """Map a cosine to 0..1. The floor maps to 0, the same-topic floor to :data:`TOPIC_LEVEL`, and 1 to 1."""
        if value <= self.floor:
            return 0.0
        if value <= self.topic_floor:
            return TOPIC_LEVEL * (value - self.floor) / (self.topic_floor - self.floor)
        share = min(1.0, (value - self.topic_floor) / (1 - self.topic_floor))
        return float(TOPIC_LEVEL + (1 - TOPIC_LEVEL) * share**self._exponent)
