"""The limit on exchanges per minute, and in-memory counts of dropped exchanges until the tally includes them.

The limit is applied on the caller's thread, before an exchange is created.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

from germane import sanitize
from germane.annotation import Annotation, Feedback, Marker, RecordedScore
from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.answers.store_labels import LabelStore
from germane.storage.ingest.store_exchanges import ExchangeStore
from germane.storage.ingest.unreadable_traces import UnreadableTraceStore
from germane.storage.trends.store_trends import TrendStore

WriterItem = Exchange | Annotation
Scorers = Callable[[], Iterable[str]] | Iterable[str]
_CountKey = tuple[int, str, str]
"""Minutes since 1970, service and route."""

SECONDS_PER_MINUTE: Final = 60.0
BURST: Final = 0.1
"""Fraction of the limit per minute that is admitted immediately after idle time."""
SOFTNESS: Final = 0.01
"""Fraction of the limit per minute. If the credit is this far below 0, 1 in e exchanges is kept."""
_NANOSECONDS_PER_MINUTE: Final = 60_000_000_000
_NOUNS: Final = {"exchange": Exchange, "label": Feedback, "recorded score": RecordedScore, "marker": Marker}

logger = logging.getLogger("germane.storage")


class WriterStore(Protocol):
    """The parts of the tracking store that the writer uses."""

    @property
    def name(self) -> str:
        """The database URL without the password."""

    @property
    def exchanges(self) -> ExchangeStore:
        """The component that stores exchanges, recorded scores and drop counts."""

    @property
    def unreadable(self) -> UnreadableTraceStore:
        """The component that stores the sample of unreadable traces."""

    @property
    def labels(self) -> LabelStore:
        """The component that stores labels."""

    @property
    def trends(self) -> TrendStore:
        """The component that stores markers."""

    def close(self) -> None:
        """Close the connections."""


class DropCounter:
    """Counts the exchanges that are dropped for one reason, by minute, service and route.

    Thread-safe. Falsy if the tally includes all dropped exchanges.
    """

    def __init__(self, reason: UnscoredReason) -> None:
        self._reason = reason
        # Reentrant, because on a thread that holds the lock, the garbage collector may close an abandoned stream and
        # drop its exchange.
        self._lock = threading.RLock()
        self._counts: dict[_CountKey, int] = {}
        self.total = 0
        """Total number of dropped exchanges, whether or not the tally includes them."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __len__(self) -> int:
        """Return the number of dropped exchanges that the tally does not include yet."""
        with self._lock:
            return sum(self._counts.values())

    def count(self, service: str, route: str, started: int) -> None:
        """Count a dropped exchange; ``started`` is its start time in nanoseconds since 1970."""
        key = (started // _NANOSECONDS_PER_MINUTE, service, route)
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1
            self.total += 1

    def report(self, store: WriterStore, scorers: Scorers) -> None:
        """Move the counts to the tally, under the scorers' names. Counts that were not written are kept."""
        with self._lock:  # only while copying: after a long outage, writing many counts would make callers wait
            counts = self._counts.copy()
        by_minute: dict[int, dict[_CountKey, int]] = {}
        for key, count in counts.items():
            by_minute.setdefault(key[0], {})[key] = count
        for minute, minute_counts in sorted(by_minute.items()):
            by_route = {(service, route): count for (_, service, route), count in minute_counts.items()}
            names = scorers() if callable(scorers) else scorers
            at = datetime.fromtimestamp(minute * 60, UTC)
            store.exchanges.count_dropped(by_route, names, self._reason, at=at)
            with self._lock:  # keep the counts of exchanges that were dropped since the copy
                for key, count in minute_counts.items():
                    self._counts[key] -= count
                    if not self._counts[key]:
                        del self._counts[key]


class TrafficThinner:
    """Computes the probability with which each exchange is kept.

    An exchange is kept if its sampling key is at most this probability.

    A credit grows over time at the rate of the limit, and each exchange, kept or not, subtracts its own probability
    from the credit. If the credit is at least 0, the probability is 1; otherwise, it is
    exp(credit / (SOFTNESS * limit)). Within a fraction of a second, the probability settles at the value at which the
    kept exchanges meet the limit. It is never 0. It depends only on arrival times and never on sampling keys, so
    weighting kept exchanges by the inverse probability is unbiased for any traffic.

    On average, at most limit * (1 + BURST + SOFTNESS * ln(traffic / limit)) exchanges are kept in any minute. For
    example, at a million exchanges per minute and a limit of 6,000, this is 1.15 times the limit in the first minute;
    in each later minute, it is the limit. If the limit is below 100, it can be exceeded by a few more exchanges. After
    a burst, the probability is 1 again within SOFTNESS * ln(traffic / limit) minutes, or 3 seconds in the example.

    Thread-safe. A forked child needs its own instance. ``limit`` is the maximum number of exchanges per minute.
    """

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = limit / SECONDS_PER_MINUTE
        self._max_credit = max(1.0, BURST * limit)
        self._softness = max(1.0, SOFTNESS * limit)
        self._clock = clock
        # Reentrant, because the garbage collector may close an abandoned stream on a thread that holds the lock.
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
        """Whether traffic has stayed below the limit long enough for the credit to be full again."""
        return self._credit >= self._max_credit - 1


class ExchangeLimiter:
    """Decides whether to keep each exchange based on its sampling key, and counts dropped exchanges. Thread-safe.

    A limit of None keeps all exchanges.
    """

    def __init__(self, limit: int | None, dropped: DropCounter, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._dropped = dropped
        self._thinner = None if limit is None else TrafficThinner(limit, clock=clock)
        self._is_thinning = False
        self._lock = threading.RLock()  # reentrant for the same reason as in TrafficThinner

    def admit(self, service: str, route: str, started: int, sampling_key: float) -> float | None:
        """Return the probability with which the exchange is kept, in (0, 1], or None if it is dropped."""
        if self._thinner is None:
            return 1.0
        probability = self._thinner.next_probability()
        if sampling_key <= probability:
            if self._is_thinning and self._thinner.is_recovered and self._set_thinning(active=False):
                message = "traffic is below %d exchanges per minute again; all are being kept (%d dropped so far)"
                logger.info(message, self._limit, self._dropped.total)
            return probability
        self._dropped.count(service, route, started)
        if not self._is_thinning and self._set_thinning(active=True):
            message = "more than %d exchanges per minute: only a sample is being kept; the others are only counted"
            logger.warning(message, self._limit)
        return None

    def _set_thinning(self, *, active: bool) -> bool:
        """Start or stop thinning. Return False if another thread has already changed the state."""
        with self._lock:
            before, self._is_thinning = self._is_thinning, active
        return before != active


def describe_items(items: Sequence[WriterItem]) -> str:
    """Return the number of items of each kind as text, such as "2 exchanges and 1 label"."""
    counts = {noun: sum(isinstance(item, item_type) for item in items) for noun, item_type in _NOUNS.items()}
    return " and ".join(sanitize.count_noun(count, noun) for noun, count in counts.items() if count)


def display_id(item: WriterItem) -> str:
    """Return an item's id for the log. A recorded score's exchange id is escaped, because clients may set it."""
    return repr(item.exchange_id[:40]) if isinstance(item, RecordedScore) else str(item.id)
