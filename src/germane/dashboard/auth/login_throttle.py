"""The rate limit for wrong tokens."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

WINDOW: Final = timedelta(minutes=1)
MAX_FAILURES_PER_ADDRESS: Final = 10
MAX_FAILURES: Final = 100
"""For all addresses together."""
MAX_ADDRESSES: Final = 1_000
"""Addresses that are remembered."""


class LoginThrottle:
    """Counts wrong tokens of the last minute. Clients over the limit are rejected even with the correct token.

    Clients that are signed in are not affected.

    Args:
        now: The clock; returns a time with a time zone.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._by_address: OrderedDict[str, deque[datetime]] = OrderedDict()
        self._all: deque[datetime] = deque(maxlen=MAX_FAILURES)

    def seconds_to_wait(self, address: str) -> int:
        """Return how long an address is rejected; usually 0."""
        with self._lock:
            limits = [(self._by_address.get(address, ()), MAX_FAILURES_PER_ADDRESS), (self._all, MAX_FAILURES)]
            ends = [failures[-limit] + WINDOW for failures, limit in limits if len(failures) >= limit]
        left = max((end - self._now() for end in ends), default=timedelta())
        return max(0, math.ceil(left.total_seconds()))

    def record_failure(self, address: str) -> None:
        """Count a wrong token."""
        with self._lock:
            self._by_address.setdefault(address, deque(maxlen=MAX_FAILURES_PER_ADDRESS)).append(self._now())
            self._by_address.move_to_end(address)
            self._all.append(self._now())
            while len(self._by_address) > MAX_ADDRESSES:
                self._by_address.popitem(last=False)
