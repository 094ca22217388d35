"""Score histograms with 100 bins, used to compute percentiles."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import Final

BINS: Final = 100
"""Number of bins over [0, 1]. Values below 0 count in the first bin."""
_DENSE_SIZE: Final = 8 * BINS
"""Size in bytes of a packed histogram that contains all bins."""


class Histogram:
    """An immutable histogram of weighted scores.

    The weights are of 100 bins of equal width over [0, 1]. Values below 0 count in the first bin.
    """

    __slots__ = ("_packed", "_weights")

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights: tuple[float, ...] | None = tuple(weights)
        self._packed: Sequence[bytes] = ()

    @classmethod
    def of(cls, blobs: Sequence[bytes]) -> Histogram:
        """Create a histogram that is the sum of packed histograms. The sum is computed on first use."""
        histogram = cls(())
        histogram._weights, histogram._packed = None, tuple(blobs)
        return histogram

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of 100 bins of equal width over [0, 1]. Values below 0 count in the first bin."""
        if self._weights is None:
            self._weights = unpack_weights(self._packed)
        return self._weights

    def __eq__(self, other: object) -> bool:
        return self.weights == other.weights if isinstance(other, Histogram) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.weights)

    def __repr__(self) -> str:
        return f"Histogram(weights={self.weights})"

    def percentile(self, percent: float) -> float | None:
        """Return a percentile, accurate to the width of a bin, or None for an empty histogram.

        Interpolates linearly within a bin.

        Args:
            percent: The percentile, from 0 to 100.

        Raises:
            ValueError: ``percent`` is out of range.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"percent must be from 0 to 100, not {percent}")
        left = sum(self.weights) * percent / 100
        last = None
        for number, weight in enumerate(self.weights):
            if weight > 0 and left <= weight:
                return (number + left / weight) / BINS
            left, last = left - weight, (number + 1) / BINS if weight > 0 else last
        return last

    def shares_around(self, value: float) -> tuple[float, float] | None:
        """Return the shares of the weight below and above the bin that contains a value, or None if there is no weight.

        That bin itself counts toward neither share, so both shares are lower bounds.
        """
        total = sum(self.weights)
        own = min(max(math.floor(value * BINS), 0), BINS - 1)
        return (sum(self.weights[:own]) / total, sum(self.weights[own + 1 :]) / total) if total else None


def pack_weights(weights: Mapping[int, float] | Sequence[float]) -> bytes:
    """Pack weights by bin into bytes: the nonempty bins with their numbers, or all bins, whichever is shorter."""
    pairs = weights.items() if isinstance(weights, Mapping) else enumerate(weights)
    nonempty = {number: float(weight) for number, weight in sorted(pairs) if weight}
    if 9 * len(nonempty) >= _DENSE_SIZE:
        return struct.pack(f"<{BINS}d", *(nonempty.get(number, 0.0) for number in range(BINS)))
    return bytes(nonempty) + struct.pack(f"<{len(nonempty)}d", *nonempty.values())


def unpack_weights(blobs: Sequence[bytes]) -> tuple[float, ...]:
    """Add up packed histograms, and return the weights of all bins."""
    # Without NumPy, which would take 9 MB of the dashboard's memory.
    totals = [0.0] * BINS
    for blob in blobs:
        if len(blob) == _DENSE_SIZE:
            totals = list(map(add, totals, struct.unpack(f"<{BINS}d", blob)))
        else:
            count = len(blob) // 9
            for number, weight in zip(blob, struct.unpack_from(f"<{count}d", blob, count), strict=False):
                totals[number] += weight
    return tuple(totals)


def sum_packed(blobs: Iterable[bytes]) -> bytes:
    """Add up packed histograms, and return the sum as a packed histogram."""
    return pack_weights(unpack_weights(list(blobs)))
