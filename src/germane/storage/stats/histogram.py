"""How scores are spread: weights in 100 bins, from which percentiles are read."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS: Final = 100
"""Over [0, 1]. What lies under 0 counts into the first."""
_WHOLE: Final = 8 * BINS


class Histogram:
    """The weights of scores by value. It never changes; two are equal that have the same weights.

    Args:
        weights: Of 100 bins of equal width over [0, 1]; the first holds what lies under 0 as well.
    """

    __slots__ = ("_packed", "_weights")

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights: tuple[float, ...] | None = tuple(weights)
        self._packed: Sequence[bytes] = ()

    @classmethod
    def of(cls, blobs: Sequence[bytes]) -> Histogram:
        """Return the sum of packed weights; it is made when somebody asks for it, which of many hours nobody does."""
        found = cls(())
        found._weights, found._packed = None, tuple(blobs)
        return found

    @property
    def weights(self) -> tuple[float, ...]:
        """Of 100 bins of equal width over [0, 1]; the first holds what lies under 0 as well."""
        if self._weights is None:
            self._weights = unpacked(self._packed)
        return self._weights

    def __eq__(self, other: object) -> bool:
        return self.weights == other.weights if isinstance(other, Histogram) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.weights)

    def __repr__(self) -> str:
        return f"Histogram(weights={self.weights})"

    def percentile(self, percent: float) -> float | None:
        """Return the value under which that much of the weight lies, exact to a bin's width; None without any weight.

        Within a bin its weight is taken to be spread evenly.

        Args:
            percent: In [0, 100].

        Raises:
            ValueError: it lies outside.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
        left = sum(self.weights) * percent / 100
        last = None
        for number, weight in enumerate(self.weights):
            if weight > 0 and left <= weight:
                return (number + left / weight) / BINS
            left, last = left - weight, (number + 1) / BINS if weight > 0 else last
        return last

    def beside(self, value: float) -> tuple[float, float] | None:
        """Return which shares of the weight lie in bins under a value's and in bins over it; None without any weight.

        What lies in the value's own bin counts for neither: both are what is sure.
        """
        total = sum(self.weights)
        own = min(max(math.floor(value * BINS), 0), BINS - 1)
        return (sum(self.weights[:own]) / total, sum(self.weights[own + 1 :]) / total) if total else None


def packed(weights: Mapping[int, float] | Sequence[float]) -> bytes:
    """Return weights by bin in few bytes: the bins that have any and their weights, or all, whichever is shorter."""
    pairs = weights.items() if isinstance(weights, Mapping) else enumerate(weights)
    found = {number: float(weight) for number, weight in sorted(pairs) if weight}
    if 9 * len(found) >= _WHOLE:
        return struct.pack(f"<{BINS}d", *(found.get(number, 0.0) for number in range(BINS)))
    return bytes(found) + struct.pack(f"<{len(found)}d", *found.values())


def unpacked(blobs: Sequence[bytes]) -> tuple[float, ...]:
    """Return the sum of packed weights, by bin."""
    if len(blobs) == 1:
        return _alone(blobs[0])
    import numpy as np

    total = np.zeros(BINS)
    for blob in blobs:
        added(total, blob)
    return tuple(total.tolist())


def _alone(blob: bytes) -> tuple[float, ...]:
    if len(blob) == _WHOLE:
        return struct.unpack(f"<{BINS}d", blob)
    count = len(blob) // 9
    weights = [0.0] * BINS
    for number, weight in zip(blob, struct.unpack_from(f"<{count}d", blob, count), strict=False):
        weights[number] = weight
    return tuple(weights)


def added(total: NDArray[Any], blob: bytes) -> None:
    """Add packed weights to an array of 100."""
    import numpy as np

    if len(blob) == _WHOLE:
        total += np.frombuffer(blob, "<f8")
    else:
        count = len(blob) // 9
        total[np.frombuffer(blob, "u1", count)] += np.frombuffer(blob, "<f8", count, offset=count)


def summed(blobs: Iterable[bytes]) -> bytes:
    """Return the sum of packed weights, packed."""
    return packed(unpacked(list(blobs)))
