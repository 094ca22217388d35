"""Who passes the capture limit: decided on the caller's thread, before an exchange is made."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Final

from germane.storage.ingest.drop_counts import Dropped

MINUTE: Final = 60.0
BURST: Final = 0.1
"""Of a minute's limit: what may come at once before anything is thinned."""
SOFTNESS: Final = 0.01
"""Of a minute's limit: how far the credit falls under 0 until one in e exchanges is kept."""


class Thinning:
    """Says of each exchange that comes how probable it is that it is kept: it is when its draw is not above that.

    A credit grows with time, at the limit's rate, and each exchange takes its own probability from it, kept or not.
    From 0 upwards the probability is 1, below it is exp(credit / (SOFTNESS * limit)): it settles where what is kept
    meets the limit, within a fraction of a second, and is never 0. Since it follows from the times of arrival alone,
    and never from a draw, weighting what was kept by its inverse is unbiased whatever the traffic does.

    In any minute at most limit * (1 + BURST + SOFTNESS * ln(traffic / limit)) are kept on average: of a million a
    minute under a limit of 6,000 that is 1.15 times the limit in the first minute, and the limit in each further one.
    A limit under a hundred is exceeded by a few exchanges more. After a burst the probability is 1 again within
    SOFTNESS * ln(traffic / limit) minutes, 3 seconds of that example.

    Safe to share between threads; a forked child needs one of its own.

    Args:
        limit: exchanges a minute.
        clock: seconds that never run backwards.
    """

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = limit / MINUTE
        self._most = max(1.0, BURST * limit)
        self._softness = max(1.0, SOFTNESS * limit)
        self._clock = clock
        # Reentrant: the collector may end a forgotten stream on a thread that is in here.
        self._lock = threading.RLock()
        self._credit = self._most
        self._then = clock()

    def probability(self) -> float:
        """Count one exchange, and return how probable it is that it is kept, in (0, 1]."""
        with self._lock:
            now = self._clock()
            credit = self._credit + (now - self._then) * self._rate
            if credit > self._most:
                credit = self._most
            probability = 1.0 if credit >= 0 else math.exp(credit / self._softness)
            self._credit, self._then = credit - probability, now
        return probability

    @property
    def rested(self) -> bool:
        """Whether the traffic has stayed under the limit for so long that the whole credit is there again."""
        return self._credit >= self._most - 1


_logger = logging.getLogger("germane.storage")


class Admission:
    """Keeps exchanges by their draw, and counts the others. Safe to share between threads.

    Args:
        limit: exchanges a minute beyond which they are thinned; None thins none.
        dropped: where those that are not kept are counted.
        clock: seconds that never run backwards.
    """

    def __init__(self, limit: int | None, dropped: Dropped, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._dropped = dropped
        self._thinning = None if limit is None else Thinning(limit, clock=clock)
        self._thins = False
        self._lock = threading.RLock()  # see Thinning

    def admit(self, service: str, route: str, started: int, draw: float) -> float | None:
        """Return how probable it was that the exchange is kept, in (0, 1]; None when it is not."""
        if self._thinning is None:
            return 1.0
        probability = self._thinning.probability()
        if draw <= probability:
            if self._thins and self._thinning.rested and self._changes(thins=False):
                told = "under %d exchanges a minute again, all are kept; %d were not so far"
                _logger.info(told, self._limit, self._dropped.total)
            return probability
        self._dropped.count(service, route, started)
        if not self._thins and self._changes(thins=True):
            told = "more than %d exchanges a minute: of further ones only a part is kept, the others are counted"
            _logger.warning(told, self._limit)
        return None

    def _changes(self, *, thins: bool) -> bool:
        """Note it; false when another thread has done so."""
        with self._lock:
            before, self._thins = self._thins, thins
        return before != thins
