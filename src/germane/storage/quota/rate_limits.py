"""Rate limits shared by all processes on one database.

The limits use the generic cell rate algorithm (ITU-T I.371, annex A) as a virtual schedule: each limit stores the
theoretical arrival time of the next request. A request reserves a slot in the schedule and waits for that slot. No
request is rejected, and no slot is assigned twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit per minute on requests, tokens or another amount."""

    name: str
    per_minute: float
    burst: float = 1.0
    """The amount that may be used at once after idle time; at least 1."""

    @property
    def interval(self) -> float:
        """Seconds per unit at an even rate."""
        return 60.0 / self.per_minute

    @property
    def tolerance(self) -> float:
        """How many seconds before its theoretical arrival time a request may start."""
        return max(0.0, self.burst - 1.0) * self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitUsage:
    """The most recent use of a rate limit."""

    name: str
    waited: float
    """Seconds that the latest request waited for its slot."""
    used_at: datetime
    """Time of the latest reservation, in UTC."""


class ScheduleClock:
    """The schedule's clock, which all processes share and which never goes backward. Create one instance per process.

    On SQLite, each process has its own clock, and one may be hours ahead. If each process moved the schedule to its own
    time, each would see a schedule without reservations. Therefore, a process whose clock is behind the latest
    reservation adopts the clock of the process that made it. This also keeps the schedule intact after a clock is set
    back.
    """

    def __init__(self) -> None:
        self._ahead = timedelta()

    def read(self, local: datetime, latest: datetime) -> datetime:
        """Return the schedule's current time.

        ``local`` is that of the database's or this process's clock, and ``latest`` the time of the latest reservation
        by any process.
        """
        self._ahead = max(self._ahead, latest - local) if latest > local else timedelta()
        return local + self._ahead


def schedule(
    limits: Sequence[RateLimit],
    arrivals: Sequence[float],
    amounts: Sequence[Sequence[float]],
    *,
    now: float,
) -> tuple[list[float], list[float]]:
    """Return the start times of requests, in order, and the new theoretical arrival times.

    A request starts as soon as every limit allows it, which is at the theoretical arrival time minus the tolerance. It
    moves each arrival time forward by its amount times the interval. A request that needs more than a burst is also
    scheduled, and delays the requests after it. Arrival times are by limit, in seconds on the same scale as ``now``.
    Each request has an amount for each limit.
    """
    starts: list[float] = []
    arrivals = list(arrivals)
    for amount in amounts:
        start = max([now, *(arrival - limit.tolerance for limit, arrival in zip(limits, arrivals, strict=True))])
        starts.append(start)
        arrivals = [
            max(arrival, start) + consumed * limit.interval
            for limit, arrival, consumed in zip(limits, arrivals, amount, strict=True)
        ]
    return starts, arrivals
