"""Scores as a detector sees them."""

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


@dataclass(frozen=True, slots=True)
class Seen:
    """Scores in the order of arrival, all of one service, scorer and fingerprint, thinned already.

    Raises:
        ValueError: the four are not equally long.
    """

    routes: Sequence[str]
    values: FloatArray
    """As they were given; counted as within [0, 1]. One that is not a number is passed over."""
    zeros: BoolArray
    """Noncommittal. A value up to 0 counts as such too."""
    times: FloatArray
    """Of arrival: seconds since 1970, UTC."""

    def __post_init__(self) -> None:
        lengths = {len(self.routes), len(self.values), len(self.zeros), len(self.times)}
        if len(lengths) > 1:
            raise ValueError(f"routes, values, zeros and times of scores differ in length: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.values)

    def clipped(self) -> FloatArray:
        """Return the values within [0, 1]."""
        return np.clip(np.asarray(self.values, dtype=np.float64), 0.0, 1.0)

    def zero(self) -> BoolArray:
        """Return which scores are noncommittal or not above 0."""
        return np.asarray(self.zeros, dtype=np.bool_) | (np.asarray(self.values, dtype=np.float64) <= 0)


@dataclass(frozen=True, slots=True)
class Scores:
    """Those scores that a detector has a baseline for, with routes as numbers."""

    places: IntArray
    """In what was seen."""
    routes: IntArray
    """Number of the route among those of the baseline."""
    values: FloatArray
    """In [0, 1]."""
    zeros: BoolArray
    times: FloatArray

    def __len__(self) -> int:
        return len(self.places)

    def part(self, since: int, until: int) -> Scores:
        """Return those from one place to another."""
        cut = slice(since, until)
        return Scores(self.places[cut], self.routes[cut], self.values[cut], self.zeros[cut], self.times[cut])


MOST_PER_DAY: Final = 1000
_KEYED: Final = blake2b(digest_size=8, key=b"germane.detector")


def thinning(scores_per_day: float) -> float:
    """Return the probability, in (0, 1], with which a score of a service reaches its detector."""
    return MOST_PER_DAY / max(MOST_PER_DAY, scores_per_day)


def kept(exchange_id: str, keep: float) -> bool:
    """Say whether the scores of an exchange reach the detector: by a keyed hash that no other draw depends on.

    What is kept at one probability is kept at every higher one.
    """
    keyed = _KEYED.copy()
    keyed.update(exchange_id.encode())
    return (int.from_bytes(keyed.digest()) >> 11) < keep * 2**53
