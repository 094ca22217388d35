"""How large a part of the exchanges may have a proxy, within a share of one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

TICKS: Final = 10.0
"""For how many ticks time that was not used is kept."""
LEAST: Final = 0.1
"""Of the time that has come since the last look, which may be used whatever was overspent before."""
FIRST_GUESS: Final = 0.015
"""Seconds of CPU for one exchange."""
WEIGHT: Final = 0.2
"""Of the newest measurement in what one is thought to take."""


class Allowance:
    """CPU time that comes in steadily, and is spent by halves: so that the next look, however soon, finds some too.

    The probability of being in the part follows from what was measured before and from how many wait, never from who
    they are: weighting by its inverse is unbiased. It is never 0.

    Args:
        share: of one core, above 0.
        tick: seconds between two looks. At most half of so long may be spent in one look.
        clock: seconds that never run backwards.
    """

    def __init__(self, share: float, *, tick: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._most = min(TICKS * share, 1.0) * tick
        self._credit = share * tick
        self._each = FIRST_GUESS
        self._clock = clock
        self._then = clock() - tick

    def probability(self, count: int) -> float:
        """Return how probable it is to be in the part, in (0, 1], for each of so many exchanges."""
        now = self._clock()
        came, self._then = self._share * (now - self._then), now
        self._credit = min(self._most, self._credit + came)
        affordable = max(self._credit / 2, LEAST * min(came, self._most), LEAST * self._each)
        return min(1.0, affordable / (self._each * max(count, 1)))

    def spend(self, seconds: float, count: int) -> None:
        """Note what so many exchanges took."""
        self._credit -= seconds
        if count:
            self._each = max((1 - WEIGHT) * self._each + WEIGHT * seconds / count, 1e-6)
