"""How fast requests may start, for all processes on one database together.

The generic cell rate algorithm (ITU-T I.371, annex A) in its form as a virtual schedule: each limit keeps one moment,
the theoretical arrival of the next request. A request takes its place in the schedule when it asks, and is told how
long it has to wait for that place: nothing is refused for good, and no permission is counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, bindparam, func, select, update

from germane.storage.db.mappers import insert, stamp_for
from germane.storage.db.tables import rate_limit

COLUMNS = ("name", "arrival", "waited", "used_at")
CLOCK_SET_BACK = 60.0
"""Seconds. A clock that goes back by more was set, and nobody waits for it to catch up."""
ROUNDING = 1e-6
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So much a minute."""

    name: str
    per_minute: float
    burst: float = 1.0
    """How much may go at once after a rest, 1 or more."""

    @property
    def interval(self) -> float:
        """Seconds between two when they come evenly."""
        return 60.0 / self.per_minute

    @property
    def tolerance(self) -> float:
        """Seconds for which one may come early."""
        return max(0.0, self.burst - 1.0) * self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """How a limit is used."""

    name: str
    waited: float
    """Seconds that the request waited which took its place last."""
    used_at: datetime
    """UTC, when somebody asked last."""


def schedule(
    limits: Sequence[Limit], arrivals: Sequence[float], amounts: Sequence[Sequence[float]], *, now: float, within: float
) -> tuple[list[float], list[float]]:
    """Return the starts of the requests, in their order, and the arrivals that follow.

    A request starts when every limit lets it, at its arrival less its tolerance, and moves the arrival by amount times
    interval. One that costs more than a burst goes as well, and those after it wait the longer.

    Args:
        limits: What holds.
        arrivals: Theoretical arrival by limit, in seconds, on the scale of ``now``.
        amounts: By request, what it takes of each limit.
        now: The moment.
        within: The first request that had to wait for longer than these seconds gets no place, nor do those after it.
    """
    starts: list[float] = []
    arrivals = list(arrivals)
    for amount in amounts:
        start = max([now, *(arrival - limit.tolerance for limit, arrival in zip(limits, arrivals, strict=True))])
        if start - now > within + ROUNDING:
            break
        starts.append(start)
        arrivals = [
            max(arrival, start) + taken * limit.interval
            for limit, arrival, taken in zip(limits, arrivals, amount, strict=True)
        ]
    return starts, arrivals


def reserve(
    connection: Connection,
    limits: Sequence[Limit],
    amounts: Sequence[Sequence[float]],
    *,
    settled: Sequence[float],
    waited: float,
    within: float,
    at: datetime | None,
) -> list[float]:
    """Take places for requests, after booking what earlier ones took more or less; return their waits in seconds.

    The moment is that of the database, unless ``at`` is given.
    """
    at = at or moment(connection)
    now = at.timestamp()
    found = _locked(connection, limits, at)
    arrivals = [
        _arrival(found[limit.name], now) + owed * limit.interval
        for limit, owed in zip(limits, settled or [0.0] * len(limits), strict=True)
    ]
    starts, arrivals = schedule(limits, arrivals, amounts, now=now, within=within)
    rows = [{"limit_name": limit.name, "then": arrival} for limit, arrival in zip(limits, arrivals, strict=True)]
    statement = _MOVE if not starts else _MOVE.values(waited=waited + starts[0] - now)
    connection.execute(statement.values(used_at=at), rows)
    return [start - now for start in starts]


_MOVE = update(rate_limit).where(rate_limit.c.name == bindparam("limit_name")).values(arrival=bindparam("then"))


def moment(connection: Connection) -> datetime:
    """Return the time by the one clock that all processes share: the server's, or that of the file's only host."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now.astimezone(UTC)


def _arrival(row: tuple[float, datetime], now: float) -> float:
    arrival, used_at = row[0], row[1].timestamp()
    return arrival - (used_at - now) if used_at - now > CLOCK_SET_BACK else arrival


def _locked(connection: Connection, limits: Sequence[Limit], at: datetime) -> Mapping[str, tuple[float, datetime]]:
    """Return arrival and last use of each limit, which nobody else may change before this transaction ends."""
    query = select(rate_limit.c.name, rate_limit.c.arrival, rate_limit.c.used_at)
    query = query.where(rate_limit.c.name.in_([limit.name for limit in limits])).order_by(rate_limit.c.name)
    found = connection.execute(query.with_for_update()).all()
    if len(found) < len(limits):
        stamp = stamp_for(connection.dialect.name)
        new = [(limit.name, at.timestamp(), 0.0, stamp(at)) for limit in limits]
        insert(connection, rate_limit, COLUMNS, sorted(new))
        found = connection.execute(query.with_for_update()).all()
    return {row.name: (row.arrival, row.used_at) for row in found}


def uses(connection: Connection) -> list[LimitUse]:
    """Return how the limits were used last."""
    rows = connection.execute(select(rate_limit).order_by(rate_limit.c.name)).all()
    return [LimitUse(name=row.name, waited=row.waited, used_at=row.used_at.astimezone(UTC)) for row in rows]
