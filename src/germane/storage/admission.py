"""Who passes the capture limit: decided on the caller's thread, before an exchange is made."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from germane.storage.dropped import Dropped
from germane.storage.thinning import Thinning

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
