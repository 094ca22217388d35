"""How often a wrong token may be shown."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

WITHIN: Final = timedelta(minutes=1)
EACH: Final = 10
"""Wrong tokens that one address may show within a minute."""
ALL: Final = 100
"""Wrong tokens that all may show together."""
ADDRESSES: Final = 1_000
"""Whose are remembered, at most."""


class Attempts:
    """Wrong tokens of the last minute. Who showed too many is not listened to: not even the right one counts then.

    Those who are signed in notice nothing of it.

    Args:
        now: Tells the time, with its zone.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._failed: OrderedDict[str, deque[datetime]] = OrderedDict()
        self._all: deque[datetime] = deque(maxlen=ALL)

    def wait(self, address: str) -> int:
        """Return for how many seconds nothing from an address is listened to; usually 0."""
        with self._lock:
            limits = [(self._failed.get(address, ()), EACH), (self._all, ALL)]
            ends = [moments[-most] + WITHIN for moments, most in limits if len(moments) >= most]
        left = max((end - self._now() for end in ends), default=timedelta())
        return max(0, math.ceil(left.total_seconds()))

    def note(self, address: str) -> None:
        """Take note of a wrong token."""
        with self._lock:
            self._failed.setdefault(address, deque(maxlen=EACH)).append(self._now())
            self._failed.move_to_end(address)
            self._all.append(self._now())
            while len(self._failed) > ADDRESSES:
                self._failed.popitem(last=False)
