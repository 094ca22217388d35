"""What judging takes of a day, for all processes on one database together: reserved before a request, settled after it.

A day is one in UTC, by the database's clock, and one row. Whoever reserves holds that row until it has added what it
takes, so that nobody adds to what another has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, select, update

from germane.settings import Budget
from germane.storage.db.mappers import insert
from germane.storage.db.tables import budget as table
from germane.storage.quota.rate_limits import moment

COLUMNS = ("day", "calls", "tokens", "usd", "picked")
HOURS = 24
ROUNDING = 1e-9
"""Share of a limit that sums of tokens and dollars may be off by, as they are floating point."""
KINDS: Final = ("calls", "tokens", "usd")


@dataclass(frozen=True, slots=True)
class Expense:
    """What requests take."""

    calls: int = 0
    tokens: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Expense) -> Expense:
        return Expense(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Expense) -> Expense:
        return Expense(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)

    @property
    def returned(self) -> Expense:
        """What of it is below 0."""
        return Expense(min(self.calls, 0), min(self.tokens, 0.0), min(self.usd, 0.0))

    def __bool__(self) -> bool:
        return bool(self.calls or self.tokens or self.usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What judging took on one day, requests under way included."""

    day: date
    """In UTC."""
    calls: int = 0
    tokens: float = 0.0
    usd: float = 0.0
    picked: int = 0
    """Exchanges that were picked to be scored, less those that were then not paid for."""

    @property
    def expense(self) -> Expense:
        """The same without day and picks."""
        return Expense(self.calls, self.tokens, self.usd)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be spent of a day up to some moment; infinity where nothing is said."""

    calls: float = math.inf
    tokens: float = math.inf
    usd: float = math.inf

    def admits(self, spent: Expense) -> bool:
        """Whether no more than this is spent."""
        return (
            spent.calls <= self.calls
            and spent.tokens <= self.tokens * (1 + ROUNDING)
            and spent.usd <= self.usd * (1 + ROUNDING)
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """Which requests may be made."""

    at: datetime
    """UTC, when it was decided. What is settled later belongs to this day."""
    granted: Sequence[bool]
    """By request."""
    spent: Expense
    """Of the day, with what was granted."""
    waits: Sequence[float | None] = ()
    """By request, the seconds until it may start; None for one that was not granted."""

    def starting(self, waits: Iterable[float]) -> Grant:
        """Return it with the waits of those that were granted, in their order."""
        each = iter(waits)
        return replace(self, waits=[next(each) if granted else None for granted in self.granted])


def allowed(budget: Budget, at: datetime) -> Allowed:
    """Return what may be spent of the day up to a moment: the hours begun, each with its share, and never over the day.

    min(per day, (hour + 1) * per hour), hours in UTC from 0: what an hour leaves over, the later ones may use.
    """
    return _allowed_in(budget, at.astimezone(UTC).hour)


def _allowed_in(budget: Budget, hour: int) -> Allowed:
    def least(per_hour: float | None, per_day: float | None) -> float:
        by_hours = math.inf if per_hour is None else (hour + 1) * per_hour
        return min(by_hours, math.inf if per_day is None else per_day)

    return Allowed(
        calls=least(budget.calls_per_hour, budget.calls_per_day),
        tokens=least(budget.tokens_per_hour, budget.tokens_per_day),
        usd=least(budget.usd_per_hour, budget.usd_per_day),
    )


def shares(spent: Expense, budget: Budget) -> dict[str, float]:
    """Return what share of a day's limits is spent, in [0, 1] or a little more, by limit: calls, tokens, usd.

    A limit by the hour is one of 24 times as much by the day; what has no limit is left out.
    """
    day = _allowed_in(budget, HOURS - 1)
    limits = {"calls": day.calls, "tokens": day.tokens, "usd": day.usd}
    return {name: getattr(spent, name) / limit for name, limit in limits.items() if limit < math.inf}


def fitting(spent: Expense, wanted: Sequence[Expense], limit: Allowed) -> tuple[list[bool], Expense]:
    """Return which requests fit, first come first served, and what is spent with them.

    One that does not fit takes nothing, and a smaller one behind it may.
    """
    granted = []
    for expense in wanted:
        granted.append(limit.admits(spent + expense))
        spent = spent + expense if granted[-1] else spent
    return granted, spent


def frees_at(budget: Budget, spent: Expense, wanted: Expense, at: datetime) -> datetime:
    """Return from when on a request fits: ``at``, the beginning of a later hour, or that of the next day."""
    at = at.astimezone(UTC)
    for hour in range(at.hour, HOURS):
        if _allowed_in(budget, hour).admits(spent + wanted):
            return at if hour == at.hour else datetime.combine(at.date(), time(hour), UTC)
    return datetime.combine(at.date() + timedelta(days=1), time(), UTC)


def reserve(
    connection: Connection,
    budget: Budget,
    wanted: Sequence[Expense],
    *,
    settled: Mapping[date, Expense],
    at: datetime | None,
) -> Grant:
    """Book what earlier requests took more or less on their days, then what fits of those that are wanted now.

    The moment is that of the database, unless ``at`` is given.
    """
    at = (at or moment(connection)).astimezone(UTC)
    today = at.date()
    found = _locked(connection, {today, *settled})
    before = found[today] + settled.get(today, Expense())
    granted, after = fitting(before, wanted, allowed(budget, at))
    took = sum((expense for expense, given in zip(wanted, granted, strict=True) if given), Expense())
    _add(connection, {**settled, today: settled.get(today, Expense()) + took})
    return Grant(at, granted, after)


def count_picked(connection: Connection, picked: int, at: datetime) -> None:
    """Count exchanges that were picked to be scored, on the day of ``at``."""
    day = at.astimezone(UTC).date()
    insert(connection, table, COLUMNS, [_empty(day)])
    statement = update(table).where(table.c.day == day.isoformat())
    connection.execute(statement.values(picked=table.c.picked + picked))


def spent(connection: Connection, day: date | None, at: datetime | None) -> Spent:
    """Return what was spent on a day, by default the one of ``at`` or of the database's clock."""
    day = day or (at or moment(connection)).astimezone(UTC).date()
    row = connection.execute(_read().where(table.c.day == day.isoformat())).one_or_none()
    return Spent(day=day) if row is None else _spent(row)


def spending(connection: Connection, days: int, at: datetime | None) -> list[Spent]:
    """Return the last so many days, today included, oldest first; one on which nothing happened is left out."""
    first = (at or moment(connection)).astimezone(UTC).date() - timedelta(days=days - 1)
    query = _read().where(table.c.day >= first.isoformat()).order_by(table.c.day)
    return [_spent(row) for row in connection.execute(query)]


_ADD = (
    update(table)
    .where(table.c.day == bindparam("its_day"))
    .values(
        calls=table.c.calls + bindparam("more_calls"),
        tokens=table.c.tokens + bindparam("more_tokens"),
        usd=table.c.usd + bindparam("more_usd"),
    )
)


def _add(connection: Connection, expenses: Mapping[date, Expense]) -> None:
    rows = [
        {"its_day": day.isoformat(), "more_calls": took.calls, "more_tokens": took.tokens, "more_usd": took.usd}
        for day, took in expenses.items()
        if took
    ]
    if rows:
        connection.execute(_ADD, rows)


def _locked(connection: Connection, days: set[date]) -> dict[date, Expense]:
    """Return what is booked on the days, which nobody else may change before this transaction ends."""
    keys = [day.isoformat() for day in sorted(days)]
    query = _read().where(table.c.day.in_(keys)).order_by(table.c.day).with_for_update()
    found = connection.execute(query).all()
    if len(found) < len(keys):
        insert(connection, table, COLUMNS, [_empty(day) for day in sorted(days)])
        found = connection.execute(query).all()
    return {each.day: each.expense for each in map(_spent, found)}


def _empty(day: date) -> tuple[str, int, float, float, int]:
    return day.isoformat(), 0, 0.0, 0.0, 0


def _read() -> Select[Any]:
    return select(table.c.day, table.c.calls, table.c.tokens, table.c.usd, table.c.picked)


def _spent(row: Any) -> Spent:
    return Spent(day=date.fromisoformat(row.day), calls=row.calls, tokens=row.tokens, usd=row.usd, picked=row.picked)


def spent_of(budget: Budget, spent: Spent, at: datetime) -> list[str]:
    """Say of each limit how much of it is spent."""
    told, hours = [], at.astimezone(UTC).hour + 1
    for kind in KINDS:
        took = getattr(spent, kind)
        per_hour, per_day = getattr(budget, f"{kind}_per_hour"), getattr(budget, f"{kind}_per_day")
        if per_day is not None:
            told.append(f"{amount(took)} of {amount(per_day)} {kind} are spent")
        if per_hour is not None:
            told.append(f"{amount(took)} of the {amount(hours * per_hour)} {kind} that the hours up to now allow")
    return told


def amount(value: float) -> str:
    """Return a count of calls or tokens, or US dollars, for people: "2,000,000", "0.0034"."""
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def spent_until(budget: Budget, spent: Spent, at: datetime) -> datetime | None:
    """Return until when a request like today's others is not paid for; None while it is."""
    calls = max(spent.calls, 1)
    usual = Expense(1, spent.tokens / calls, spent.usd / calls)
    until = frees_at(budget, spent.expense, usual, at)
    return until if until > at else None
