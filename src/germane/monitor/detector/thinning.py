"""Which scores of a busy service reach the detector: wander, not chance, limits what more of them would tell."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

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
