"""Rate limits shared by all processes on one database, the daily budget, and traffic statistics.

Rate limits use the generic cell rate algorithm (ITU-T I.371, annex A) as a virtual schedule: each stores the
theoretical arrival time of the next request. A request reserves a slot and waits for it; no slot is assigned twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from sqlalchemy import Connection, bindparam, func, literal_column, select, update

from germane.settings import Budget
from germane.storage.db.component import StoreComponent, StoreContext
from germane.storage.db.functions import EpochSeconds
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.tables import budget as budget_table
from germane.storage.db.tables import exchange, rate_limit, score, tally
from germane.storage.quota.budget_ledger import (
    USAGE_QUERY,
    BudgetDay,
    BudgetReservation,
    RequestUsage,
    budget_day,
    load_usage,
    reserve_budget,
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The number of exchanges in a window."""

    exchanges: int
    first: datetime | None
    """Start time of the oldest exchange, in UTC; None if there are no exchanges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerUsage:
    """One scorer's average token counts per score, over the scores for which the judge reported them."""

    scorer: str
    scores: int
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class HourCount:
    """The number of exchanges in one hour."""

    start: datetime
    """UTC."""
    seen: int
    """Number of exchanges, each counted once per scorer; at least 1."""


class QuotaStore(StoreComponent):
    """Reserves and reads the quotas that all processes share."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        self._schedule_clock = ScheduleClock()

    def reserve_slots(
        self,
        limits: Sequence[RateLimit],
        amounts: Sequence[Sequence[float]],
        *,
        settled: Sequence[float] = (),
        waited: float = 0.0,
    ) -> list[float]:
        """Reserve slots for requests under rate limits. Return their waits in seconds.

        Args:
            limits: The rate limits.
            amounts: For each request, in order of priority, the amount that it consumes from each limit.
            settled: For each limit, the actual minus the reserved amount of earlier requests.
            waited: Time in seconds that the first request has already waited.
        """
        with self._database.write() as connection:
            return self._reserve_slots(connection, limits, amounts, settled, waited)

    def reserve_budget(
        self,
        budget: Budget,
        requests: Sequence[RequestUsage],
        *,
        settled: Mapping[date, RequestUsage] | None = None,
        limits: Sequence[RateLimit] = (),
        amounts: Sequence[Sequence[float]] = (),
        settled_amounts: Sequence[float] = (),
        waited: float = 0.0,
    ) -> BudgetReservation:
        """Reserve usage from the daily budget, and slots under rate limits for the granted requests.

        Requests are in order of priority. ``settled`` maps each day to the actual minus the reserved usage of earlier
        requests. The other arguments are those of :meth:`reserve_slots`.
        """
        with self._database.write() as connection:
            at = self._context.now(connection)
            reservation = reserve_budget(connection, budget, requests, settled=settled or {}, at=at)
            if not limits:
                return reservation.with_waits([0.0] * sum(reservation.granted))
            granted = [amount for amount, admitted in zip(amounts, reservation.granted, strict=True) if admitted]
            return reservation.with_waits(self._reserve_slots(connection, limits, granted, settled_amounts, waited))

    def _reserve_slots(
        self,
        connection: Connection,
        limits: Sequence[RateLimit],
        amounts: Sequence[Sequence[float]],
        settled: Sequence[float],
        waited: float,
    ) -> list[float]:
        """Correct earlier reservations, then reserve slots for requests. Return the waits in seconds."""
        at = self._context.now(connection)
        query = select(rate_limit.c.name, rate_limit.c.arrival, rate_limit.c.used_at).with_for_update()
        query = query.where(rate_limit.c.name.in_([limit.name for limit in limits])).order_by(rate_limit.c.name)
        stored = connection.execute(query).all()
        if len(stored) < len(limits):
            encode = timestamp_encoder(connection.dialect.name)
            new = sorted((limit.name, at.timestamp(), 0.0, encode(at)) for limit in limits)
            bulk_insert(connection, rate_limit, ("name", "arrival", "waited", "used_at"), new)
            stored = connection.execute(query).all()
        at = self._schedule_clock.read(at, max(row.used_at for row in stored))
        now = at.timestamp()
        # An arrival is the theoretical arrival time of a limit's next request; see schedule().
        theoretical = {row.name: row.arrival for row in stored}
        corrections = zip(limits, settled or [0.0] * len(limits), strict=True)
        corrected = [theoretical[limit.name] + correction * limit.interval for limit, correction in corrections]
        starts, arrivals = schedule(limits, corrected, amounts, now=now)
        statement = update(rate_limit).where(rate_limit.c.name == bindparam("limit_name"))
        statement = statement.values(arrival=bindparam("new_arrival"), used_at=at)
        if waits := [start - now for start in starts]:
            statement = statement.values(waited=waited + waits[0])
        pairs = zip(limits, arrivals, strict=True)
        connection.execute(statement, [{"limit_name": limit.name, "new_arrival": arrival} for limit, arrival in pairs])
        return waits

    def load_usage(self, day: date | None = None) -> BudgetDay:
        """Return the judge usage for a UTC day, including in-flight requests. Defaults to today."""
        with self._database.read() as connection:
            return load_usage(connection, day or self._context.now(connection).astimezone(UTC).date())

    def load_usage_by_day(self, days: int) -> list[BudgetDay]:
        """Return the judge usage by day for the last ``days`` days, including today, oldest first.

        Days without usage are omitted.
        """
        with self._database.read() as connection:
            first = self._context.now(connection).astimezone(UTC).date() - timedelta(days=days - 1)
            query = USAGE_QUERY.where(budget_table.c.day >= first.isoformat()).order_by(budget_table.c.day)
            return [budget_day(row) for row in connection.execute(query)]

    def load_rate_limit_usage(self) -> list[RateLimitUsage]:
        """Return the most recent use of each rate limit, sorted by name."""
        with self._database.read() as connection:
            rows = connection.execute(select(rate_limit).order_by(rate_limit.c.name)).all()
        return [RateLimitUsage(name=row.name, waited=row.waited, used_at=row.used_at.astimezone(UTC)) for row in rows]

    def load_traffic(self, *, since: datetime) -> Traffic:
        """Count the exchanges that have started since a given time."""
        query = select(func.count(), func.min(exchange.c.started_at)).where(exchange.c.started_at >= since)
        with self._database.read() as connection:
            count, first = connection.execute(query).one()
        return Traffic(exchanges=count, first=first)

    def traffic_by_hour(self, *, since: datetime, until: datetime) -> list[HourCount]:
        """Count the exchanges per hour between two times, oldest first. Empty hours are omitted."""
        minute = EpochSeconds(tally.c.minute)
        hour = (minute - minute % literal_column("3600")).label("hour")
        seen = func.sum(tally.c.count).label("seen")
        query = select(hour, seen).where(tally.c.minute >= since, tally.c.minute < until, tally.c.outcome == "seen")
        query = query.group_by(hour).having(seen > 0).order_by(hour)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [HourCount(datetime.fromtimestamp(row.hour, UTC), int(row.seen)) for row in rows]

    def judge_usage(self, *, since: datetime) -> list[ScorerUsage]:
        """Return each scorer's average token counts per score, for exchanges since a given time."""
        means = func.avg(score.c.input_tokens), func.avg(score.c.output_tokens)
        query = select(score.c.scorer, func.count(), *means).where(
            score.c.started_at >= since, score.c.input_tokens > 0, score.c.output_tokens.is_not(None)
        )
        with self._database.read() as connection:
            rows = connection.execute(query.group_by(score.c.scorer).order_by(score.c.scorer)).all()
        return [
            ScorerUsage(scorer=name, scores=count, input_tokens=float(input_tokens), output_tokens=float(output_tokens))
            for name, count, input_tokens, output_tokens in rows
        ]
