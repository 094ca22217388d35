"""The daily budget for judge requests, shared by all processes on one database.

Usage is reserved before a request and corrected after it. Each UTC day, according to the database's clock, has one row.
A transaction that reserves usage locks that row, so concurrent reservations see each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select, update

from germane.phrasing import format_amount
from germane.settings import Budget
from germane.storage.db.mappers import bulk_insert
from germane.storage.db.tables import budget as budget_table

_COLUMNS: Final = ("day", "requests", "tokens", "usd", "selected")
_UNITS: Final = ("requests", "tokens", "usd")
_HOURS_PER_DAY: Final = 24
_ROUNDING: Final = 1e-9
"""Tolerated relative rounding error in sums of tokens and US dollars, which are floating-point numbers."""


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """A number of requests, their tokens and their cost."""

    requests: int = 0
    tokens: float = 0.0
    usd: float = 0.0

    def __add__(self, other: RequestUsage) -> RequestUsage:
        return RequestUsage(self.requests + other.requests, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: RequestUsage) -> RequestUsage:
        return RequestUsage(self.requests - other.requests, self.tokens - other.tokens, self.usd - other.usd)

    @property
    def refund(self) -> RequestUsage:
        """The negative components of the usage; components that are not negative are 0."""
        return RequestUsage(min(self.requests, 0), min(self.tokens, 0.0), min(self.usd, 0.0))

    def __bool__(self) -> bool:
        return bool(self.requests or self.tokens or self.usd)


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The usage allowed from the start of a day up to a given time; infinity for unlimited units."""

    requests: float = math.inf
    tokens: float = math.inf
    usd: float = math.inf

    @classmethod
    def at(cls, budget: Budget, at: datetime) -> BudgetLimits:
        """Return the usage allowed from the start of the day up to a time: min(per day, (UTC hour + 1) * per hour).

        Amounts that are not used in one hour are available in later hours.
        """
        return cls.in_hour(budget, at.astimezone(UTC).hour)

    @classmethod
    def in_hour(cls, budget: Budget, hour: int) -> BudgetLimits:
        """Return the usage allowed up to the end of a UTC hour."""

        def limit(per_hour: float | None, per_day: float | None) -> float:
            until_hour = math.inf if per_hour is None else (hour + 1) * per_hour
            return min(until_hour, math.inf if per_day is None else per_day)

        return cls(
            requests=limit(budget.requests_per_hour, budget.requests_per_day),
            tokens=limit(budget.tokens_per_hour, budget.tokens_per_day),
            usd=limit(budget.usd_per_hour, budget.usd_per_day),
        )

    def admits(self, usage: RequestUsage) -> bool:
        """Return whether the usage is within the limits."""
        return (
            usage.requests <= self.requests
            and usage.tokens <= self.tokens * (1 + _ROUNDING)
            and usage.usd <= self.usd * (1 + _ROUNDING)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetDay:
    """Judge usage for one day, including reservations for in-flight requests."""

    day: date
    """UTC day."""
    requests: int = 0
    tokens: float = 0.0
    usd: float = 0.0
    selected: int = 0
    """Number of exchanges selected for scoring, excluding those that turned out to exceed the budget."""

    @property
    def usage(self) -> RequestUsage:
        """The day's requests, tokens and cost."""
        return RequestUsage(self.requests, self.tokens, self.usd)

    def shares(self, budget: Budget) -> dict[str, float]:
        """Return a dict of units (``requests``, ``tokens``, ``usd``) to the used share of the daily limit.

        Shares are in [0, 1] or slightly above. An hourly limit counts as a daily limit of 24 times its value. Units
        without a limit are omitted.
        """
        limits = BudgetLimits.in_hour(budget, _HOURS_PER_DAY - 1)
        return {
            unit: getattr(self, unit) / getattr(limits, unit) for unit in _UNITS if getattr(limits, unit) < math.inf
        }

    def describe(self, budget: Budget, at: datetime) -> list[str]:
        """Return a phrase for each limit, such as "120 of 300 requests used"."""
        phrases, hours = [], at.astimezone(UTC).hour + 1
        for unit in _UNITS:
            used = format_amount(getattr(self, unit))
            per_hour, per_day = getattr(budget, f"{unit}_per_hour"), getattr(budget, f"{unit}_per_day")
            if per_day is not None:
                phrases.append(f"{used} of {format_amount(per_day)} {unit} used")
            if per_hour is not None:
                phrases.append(f"{used} of {format_amount(hours * per_hour)} {unit} used (hourly limits so far)")
        return phrases

    def exhausted_until(self, budget: Budget, at: datetime) -> datetime | None:
        """Return when the budget will cover an average request again, or None if it covers one now."""
        requests = max(self.requests, 1)
        average = RequestUsage(1, self.tokens / requests, self.usd / requests)
        until = _next_affordable_at(budget, self.usage, average, at)
        return until if until > at else None


@dataclass(frozen=True, slots=True)
class BudgetReservation:
    """The result of reserving usage for a batch of requests."""

    at: datetime
    """Time of the reservation, in UTC. Later corrections apply to this day."""
    granted: Sequence[bool]
    """Whether each request is granted."""
    usage: RequestUsage
    """The day's usage, including the granted requests."""
    waits: Sequence[float | None] = ()
    """For each request, the time in seconds until it may start; None if it was not granted."""

    def next_affordable_at(self, budget: Budget, request: RequestUsage) -> datetime:
        """Return when the budget covers a request: now, or at the start of a later hour or of the next day."""
        return _next_affordable_at(budget, self.usage, request, self.at)

    def with_waits(self, waits: Iterable[float]) -> BudgetReservation:
        """Return a copy with the given waits, one per granted request, in the order of the requests."""
        each = iter(waits)
        return replace(self, waits=[next(each) if granted else None for granted in self.granted])


def _next_affordable_at(budget: Budget, used: RequestUsage, request: RequestUsage, at: datetime) -> datetime:
    at = at.astimezone(UTC)
    for hour in range(at.hour, _HOURS_PER_DAY):
        if BudgetLimits.in_hour(budget, hour).admits(used + request):
            return at if hour == at.hour else datetime.combine(at.date(), time(hour), UTC)
    return datetime.combine(at.date() + timedelta(days=1), time(), UTC)


def reserve_budget(
    connection: Connection,
    budget: Budget,
    requests: Sequence[RequestUsage],
    *,
    settled: Mapping[date, RequestUsage],
    at: datetime,
) -> BudgetReservation:
    """Correct the recorded usage of earlier requests, then reserve usage for the requests that the budget covers.

    Requests are in order of priority. ``settled`` maps each day to the actual minus the reserved usage of earlier
    requests.
    """
    at = at.astimezone(UTC)
    today = at.date()
    keys = sorted(day.isoformat() for day in {today, *settled})
    query = USAGE_QUERY.where(budget_table.c.day.in_(keys)).order_by(budget_table.c.day).with_for_update()
    days = connection.execute(query).all()
    if len(days) < len(keys):
        bulk_insert(connection, budget_table, _COLUMNS, [(key, 0, 0.0, 0.0, 0) for key in keys])
        days = connection.execute(query).all()
    used = next(budget_day(row).usage for row in days if row.day == today.isoformat())
    used += settled.get(today, RequestUsage())
    allowed, granted, reserved = BudgetLimits.at(budget, at), list[bool](), RequestUsage()
    for request in requests:  # after a request is rejected, a smaller one may still be granted
        granted.append(allowed.admits(used + reserved + request))
        reserved = reserved + request if granted[-1] else reserved
    changes = {**settled, today: settled.get(today, RequestUsage()) + reserved}
    rows = [
        {"of_day": day.isoformat(), "more_requests": more.requests, "more_tokens": more.tokens, "more_usd": more.usd}
        for day, more in changes.items()
        if more
    ]
    if rows:
        connection.execute(_ADD_USAGE, rows)
    return BudgetReservation(at, granted, used + reserved)


_ADD_USAGE: Final = (
    update(budget_table)
    .where(budget_table.c.day == bindparam("of_day"))
    .values(
        requests=budget_table.c.requests + bindparam("more_requests"),
        tokens=budget_table.c.tokens + bindparam("more_tokens"),
        usd=budget_table.c.usd + bindparam("more_usd"),
    )
)
USAGE_QUERY: Final = select(*(budget_table.c[name] for name in _COLUMNS))


def budget_day(row: Any) -> BudgetDay:
    """Return a row of the table as a record."""
    return BudgetDay(**{**row._asdict(), "day": date.fromisoformat(row.day)})


def count_selected(connection: Connection, count: int, at: datetime) -> None:
    """Add to the number of exchanges selected for scoring on the day of ``at``."""
    key = at.astimezone(UTC).date().isoformat()
    bulk_insert(connection, budget_table, _COLUMNS, [(key, 0, 0.0, 0.0, 0)])
    statement = update(budget_table).where(budget_table.c.day == key)
    connection.execute(statement.values(selected=budget_table.c.selected + count))


def load_usage(connection: Connection, day: date) -> BudgetDay:
    """Return the usage for a UTC day."""
    row = connection.execute(USAGE_QUERY.where(budget_table.c.day == day.isoformat())).one_or_none()
    return BudgetDay(day=day) if row is None else budget_day(row)
