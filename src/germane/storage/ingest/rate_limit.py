"""The limit on captured exchanges per minute, applied on the caller's thread before an exchange is created."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Final

from germane.storage.ingest.drop_counts import DropCounter

SECONDS_PER_MINUTE: Final = 60.0
BURST: Final = 0.1
"""Share of the limit per minute that is admitted at once after idle time."""
SOFTNESS: Final = 0.01
"""Share of the limit per minute by which the credit falls below 0 until 1 in e exchanges is kept."""

_logger = logging.getLogger("germane.storage")


class TrafficThinner:
    """Computes the probability with which each exchange is kept. It is kept if its sampling key is at most that.

    A credit grows with time at the rate of the limit, and each exchange, kept or not, subtracts its own probability.
    With a credit of at least 0 the probability is 1; below, it is exp(credit / (SOFTNESS * limit)). It settles within
    a fraction of a second where the kept exchanges meet the limit, and is never 0. It depends on arrival times only
    and never on a sampling key, so weighting kept exchanges by its inverse is unbiased for any traffic.

    On average at most limit * (1 + BURST + SOFTNESS * ln(traffic / limit)) exchanges are kept in any minute: for a
    million per minute and a limit of 6,000, 1.15 times the limit in the first minute, and the limit in the following
    ones. A limit below 100 is exceeded by a few exchanges more. After a burst, the probability is 1 again within
    SOFTNESS * ln(traffic / limit) minutes, 3 seconds in the example.

    Thread-safe. A forked child needs an instance of its own.

    Args:
        limit: Exchanges per minute.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = limit / SECONDS_PER_MINUTE
        self._max_credit = max(1.0, BURST * limit)
        self._softness = max(1.0, SOFTNESS * limit)
        self._clock = clock
        # Reentrant: the garbage collector may close an abandoned stream on a thread inside.
        self._lock = threading.RLock()
        self._credit = self._max_credit
        self._updated_at = clock()

    def next_probability(self) -> float:
        """Count one exchange, and return the probability that it is kept, in (0, 1]."""
        with self._lock:
            now = self._clock()
            credit = self._credit + (now - self._updated_at) * self._rate
            if credit > self._max_credit:
                credit = self._max_credit
            probability = 1.0 if credit >= 0 else math.exp(credit / self._softness)
            self._credit, self._updated_at = credit - probability, now
        return probability

    @property
    def is_recovered(self) -> bool:
        """Whether the traffic has stayed below the limit until the credit was full again."""
        return self._credit >= self._max_credit - 1


class ExchangeLimiter:
    """Keeps exchanges by their sampling key, and counts the others. Thread-safe.

    Args:
        limit: Exchanges per minute; None keeps all.
        dropped: Counts the exchanges that are not kept.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, limit: int | None, dropped: DropCounter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._dropped = dropped
        self._thinner = None if limit is None else TrafficThinner(limit, clock=clock)
        self._is_thinning = False
        self._lock = threading.RLock()  # reentrant for the same reason as TrafficThinner's

    def admit(self, service: str, route: str, started: int, sampling_key: float) -> float | None:
        """Return the probability with which an exchange was kept, in (0, 1]; None if it was not."""
        if self._thinner is None:
            return 1.0
        probability = self._thinner.next_probability()
        if sampling_key <= probability:
            if self._is_thinning and self._thinner.is_recovered and self._set_thinning(active=False):
                message = "traffic is below %d exchanges per minute again; all are kept (%d were dropped so far)"
                _logger.info(message, self._limit, self._dropped.total)
            return probability
        self._dropped.count(service, route, started)
        if not self._is_thinning and self._set_thinning(active=True):
            message = "more than %d exchanges per minute: only a sample is kept, the others are counted"
            _logger.warning(message, self._limit)
        return None

    def _set_thinning(self, *, active: bool) -> bool:
        """Change the state; False if another thread has already done so."""
        with self._lock:
            before, self._is_thinning = self._is_thinning, active
        return before != active
