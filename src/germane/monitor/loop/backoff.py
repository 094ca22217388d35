"""How long to wait before the next try."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from ``first`` up to ``limit`` seconds, each shortened at random by up to half of itself.

    The random part keeps processes that failed together from trying again together.
    """

    first: float = 1.0
    limit: float = 300.0
    longest_asked: float | None = None
    """Seconds up to which a server that names a time is left alone; by default ``limit``."""

    @property
    def longest(self) -> float:
        """Seconds of the longest wait there is."""
        return self.limit if self.longest_asked is None else max(self.limit, self.longest_asked)

    def wait(self, tries: int, *, at_least: float | None = None) -> timedelta:
        """Return how long to wait after the given number of failed tries, 1 for the first.

        Args:
            at_least: seconds that the server asked for; honoured up to ``longest_asked``.
        """
        full = min(self.first * 2.0 ** min(tries - 1, 60), self.limit)
        asked = min(at_least or 0.0, self.limit if self.longest_asked is None else self.longest_asked)
        return timedelta(seconds=max(full * random.uniform(0.5, 1.0), asked))
