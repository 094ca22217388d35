"""Exponential backoff with jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from ``initial`` up to ``maximum`` seconds. Each is randomly shortened by up to half.

    The jitter prevents processes that failed at the same time from retrying at the same time.
    """

    initial: float = 1.0
    maximum: float = 300.0
    max_retry_after: float | None = None
    """The longest ``Retry-After`` delay to honor, in seconds. Defaults to ``maximum``."""

    @property
    def longest_delay(self) -> float:
        """The longest delay that :meth:`delay` can return, in seconds."""
        return self.maximum if self.max_retry_after is None else max(self.maximum, self.max_retry_after)

    def delay(self, attempts: int, *, retry_after: float | None = None) -> timedelta:
        """Return the delay before the next attempt.

        Args:
            attempts: The number of failed attempts so far; at least 1.
            retry_after: The delay requested by the server, in seconds. It is capped at ``max_retry_after``, or at
                ``maximum`` if that is not set.
        """
        without_jitter = min(self.initial * 2.0 ** min(attempts - 1, 60), self.maximum)
        requested = min(retry_after or 0.0, self.maximum if self.max_retry_after is None else self.max_retry_after)
        return timedelta(seconds=max(without_jitter * random.uniform(0.5, 1.0), requested))
