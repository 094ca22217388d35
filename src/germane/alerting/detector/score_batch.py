"""Batches of scores as arrays, and the sampling of scores for a detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

MAX_SCORES_PER_DAY: Final = 1000
"""Approximate maximum number of scores per day that a detector processes. Busier services are downsampled."""
_SAMPLE_HASH: Final = blake2b(digest_size=8, key=b"germane.detector")


@dataclass(frozen=True, slots=True)
class ScoreBatch:
    """Sampled scores for one service, scorer and fingerprint, in order of arrival, in fields of equal length."""

    routes: Sequence[str]
    values: FloatArray
    """Raw values. They are clipped to [0, 1] for processing, and NaN is skipped."""
    zeros: BoolArray
    """Whether each answer is noncommittal. Values of 0 or less also count as zeros."""
    times: FloatArray
    """Arrival times as Unix timestamps in seconds."""

    def __post_init__(self) -> None:
        lengths = {len(self.routes), len(self.values), len(self.zeros), len(self.times)}
        if len(lengths) > 1:
            raise ValueError(f"routes, values, zeros and times must have the same length, not {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.values)

    def clipped_values(self) -> FloatArray:
        """Return the values clipped to [0, 1]."""
        return np.clip(np.asarray(self.values, dtype=np.float64), 0.0, 1.0)

    def zero_flags(self) -> BoolArray:
        """Return a mask of the scores that are noncommittal or not above 0."""
        return np.asarray(self.zeros, dtype=np.bool_) | (np.asarray(self.values, dtype=np.float64) <= 0)


@dataclass(frozen=True, slots=True)
class IndexedScores:
    """The scores in a batch whose routes are in the baseline, with routes as indexes."""

    positions: IntArray
    """Position of each score in its batch."""
    routes: IntArray
    """Index of each score's route in the baseline."""
    values: FloatArray
    """Values clipped to [0, 1]."""
    zeros: BoolArray
    times: FloatArray

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, start: int, stop: int) -> IndexedScores:
        """Return the scores from position ``start`` up to, but not including, ``stop``."""
        part = slice(start, stop)
        return IndexedScores(
            self.positions[part], self.routes[part], self.values[part], self.zeros[part], self.times[part]
        )


def sampling_rate(scores_per_day: float) -> float:
    """Return the probability, in (0, 1], that a detector processes a given score of a service."""
    return MAX_SCORES_PER_DAY / max(MAX_SCORES_PER_DAY, scores_per_day)


def sampling_draw(exchange_id: str) -> float:
    """Return a pseudorandom number in [0, 1) for an exchange.

    It is a keyed hash of the exchange's id and independent of all other sampling decisions.
    """
    keyed = _SAMPLE_HASH.copy()
    keyed.update(exchange_id.encode())
    return (int.from_bytes(keyed.digest()) >> 11) / 2**53


def is_sampled(exchange_id: str, rate: float) -> bool:
    """Return whether a detector with this sampling rate processes an exchange's scores.

    An exchange that is sampled at one rate is sampled at every higher rate.
    """
    return sampling_draw(exchange_id) < rate
