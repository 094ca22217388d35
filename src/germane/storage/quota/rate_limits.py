"""Rate limits shared by all processes on one database.

The limits use the generic cell rate algorithm (ITU-T I.371, annex A) as a virtual schedule: each limit stores the
theoretical arrival time of the next request. A request reserves a slot in the schedule and waits for that slot. No
request is rejected, and no slot is assigned twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, bindparam, select, update

from germane.storage.db.component import database_time
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.tables import rate_limit

_ROUNDING: Final = 1e-6
"""Tolerance for rounding errors in seconds."""
_COLUMNS: Final = ("name", "arrival", "waited", "used_at")


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

        Args:
            local: The current time from the database's or this process's clock.
            latest: The time of the latest reservation by any process.
        """
        self._ahead = max(self._ahead, latest - local) if latest > local else timedelta()
        return local + self._ahead


def schedule(
    limits: Sequence[RateLimit],
    arrivals: Sequence[float],
    amounts: Sequence[Sequence[float]],
    *,
    now: float,
    within: float,
) -> tuple[list[float], list[float]]:
    """Return the start times of requests, in order, and the new theoretical arrival times.

    A request starts as soon as every limit allows it, which is at the theoretical arrival time minus the tolerance. It
    moves each arrival time forward by its amount times the interval. A request that needs more than a burst is also
    scheduled, and delays the requests after it.

    Args:
        limits: The limits.
        arrivals: Theoretical arrival time for each limit, in seconds on the same scale as ``now``.
        amounts: For each request, the amount that it consumes from each limit.
        now: Current time in seconds.
        within: Maximum wait in seconds. The first request that would wait longer and all later requests get no slot.
    """
    starts: list[float] = []
    arrivals = list(arrivals)
    for amount in amounts:
        start = max([now, *(arrival - limit.tolerance for limit, arrival in zip(limits, arrivals, strict=True))])
        if start - now > within + _ROUNDING:
            break
        starts.append(start)
        arrivals = [
            max(arrival, start) + consumed * limit.interval
            for limit, arrival, consumed in zip(limits, arrivals, amount, strict=True)
        ]
    return starts, arrivals


def reserve_slots(
    connection: Connection,
    limits: Sequence[RateLimit],
    amounts: Sequence[Sequence[float]],
    *,
    settled: Sequence[float],
    waited: float,
    within: float,
    at: datetime | None,
    clock: ScheduleClock,
) -> list[float]:
    """Correct earlier reservations, then reserve slots for requests. Return the waits in seconds.

    Args:
        connection: A transaction that writes.
        limits: The limits.
        amounts: For each request, the amount that it consumes from each limit.
        settled: For each limit, the actual minus the reserved amount of earlier requests.
        waited: Time in seconds that the first request has already waited.
        within: Maximum wait in seconds, see :func:`schedule`.
        at: The current time. Defaults to the database's time.
        clock: Converts the current time to the schedule's time.
    """
    at = at or database_time(connection)
    query = select(rate_limit.c.name, rate_limit.c.arrival, rate_limit.c.used_at).with_for_update()
    query = query.where(rate_limit.c.name.in_([limit.name for limit in limits])).order_by(rate_limit.c.name)
    stored = connection.execute(query).all()
    if len(stored) < len(limits):
        encode = timestamp_encoder(connection.dialect.name)
        new = sorted((limit.name, at.timestamp(), 0.0, encode(at)) for limit in limits)
        bulk_insert(connection, rate_limit, _COLUMNS, new)
        stored = connection.execute(query).all()
    at = clock.read(at, max(row.used_at for row in stored))
    now = at.timestamp()
    latest = {row.name: row.arrival for row in stored}
    corrections = zip(limits, settled or [0.0] * len(limits), strict=True)
    arrivals = [latest[limit.name] + correction * limit.interval for limit, correction in corrections]
    starts, arrivals = schedule(limits, arrivals, amounts, now=now, within=within)
    statement = update(rate_limit).where(rate_limit.c.name == bindparam("limit_name"))
    statement = statement.values(arrival=bindparam("new_arrival"), used_at=at)
    if starts:
        statement = statement.values(waited=waited + starts[0] - now)
    rows = [{"limit_name": limit.name, "new_arrival": arrival} for limit, arrival in zip(limits, arrivals, strict=True)]
    connection.execute(statement, rows)
    return [start - now for start in starts]
