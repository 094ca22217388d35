"""How many picks an interval gets, so that the budget lasts for the day and no hour goes without.

An interval gets the share of what is left that its traffic has in the traffic still to come today. What it leaves over
stays in what is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

from germane.settings import Budget
from germane.storage import Allowed, Expense, HourCount, Spent, allowed

HOUR: Final = 3600
HOURS: Final = 24
PICKS: Final = 20
"""About how many an interval is to have."""
LENGTHS: Final = (60, 120, 180, 240, 300, 360, 600, 720, 900, 1200, 1800, 3600)
"""Seconds that an interval may last: parts of an hour, so that it begins with the clock."""
TRUST: Final = 20
"""Picks after which what they took counts as much as what was assumed."""
LEAST_TRAFFIC: Final = 0.01
"""Of the mean hour: what an hour counts for in which nothing came so far."""
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Cost:
    """What an exchange that is picked takes on average."""

    calls: float
    tokens: float
    usd: float


def assumed(judged: int) -> Cost:
    """Return what a pick may take of which nothing is known but how many scorers ask a judge: rather too much."""
    calls = 3.0 * judged
    return Cost(calls, tokens=1500 * calls, usd=1500 * calls / 1e6)


@dataclass(frozen=True, slots=True)
class Allotment:
    """What one interval gets."""

    picks: float
    """A whole number, or infinity where nothing limits them."""
    exhausted: bool = False
    """Whether nothing is left for the rest of the day."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """How traffic spreads over a day in UTC: by hour, on any scale, each above 0."""

    hours: tuple[float, ...] = (1.0,) * HOURS

    def between(self, start: datetime, end: datetime) -> float:
        """Return the traffic from one moment to another; 0 where the end comes first."""
        total, at = 0.0, start.astimezone(UTC)
        while at < end:
            following = min(end, at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1))
            total += self.hours[at.hour] * (following - at) / timedelta(hours=1)
            at = following
        return total


def forecast_of(counts: Sequence[HourCount]) -> Forecast:
    """Return the mean of each hour over the days that are known; an hour that none of them has gets the mean of all.

    An hour is known from the first one in which anything was seen on.
    """
    if not counts:
        return Forecast()
    by_hour: list[list[int]] = [[] for _ in range(HOURS)]
    seen = {one.start: one.seen for one in counts}
    at, last = min(seen), max(seen).replace(hour=HOURS - 1)
    while at <= last:
        by_hour[at.hour].append(seen.get(at, 0))
        at += timedelta(hours=1)
    means = [sum(hour) / len(hour) if hour else None for hour in by_hour]
    known = [mean for mean in means if mean is not None]
    usual = sum(known) / len(known)
    if not usual:
        return Forecast()
    return Forecast(tuple(max(LEAST_TRAFFIC * usual, usual if mean is None else mean) for mean in means))


def cost_of(spending: Sequence[Spent], under_way: int, assumed: Cost) -> Cost:
    """Return what a pick takes, from what the last days' took: ``under_way`` of them have not yet taken anything.

    While they are few, what is assumed counts as well.
    """
    finished = max(0, sum(day.picked for day in spending) - under_way)
    total = sum((day.expense for day in spending), Expense())
    return Cost(
        calls=(total.calls + TRUST * assumed.calls) / (finished + TRUST),
        tokens=(total.tokens + TRUST * assumed.tokens) / (finished + TRUST),
        usd=(total.usd + TRUST * assumed.usd) / (finished + TRUST),
    )


def share_of(left: int, here: float, later: float) -> int:
    """Return this interval's part of what is left for the day, by its traffic and that of the intervals after it."""
    return math.floor(left * here / (here + later) + 0.5) if here else 0


def allot(
    budget: Budget, spent: Expense, under_way: int, cost: Cost, forecast: Forecast, *, since: datetime, end: datetime
) -> Allotment:
    """Say how many picks the interval that ends at ``end`` gets.

    Args:
        budget: What holds.
        spent: What judging took on the day of ``end`` (UTC).
        under_way: Exchanges that are picked already, by a rule or a draw, and not yet scored: they come first.
        cost: What a pick takes.
        forecast: Traffic by hour.
        since: When the interval began: earlier where intervals before it got nothing.
        end: When it ended. The day's last interval is the one that leaves another one's length to midnight.
    """
    end = end.astimezone(UTC)
    by_day = _payable(allowed(budget, end.replace(hour=HOURS - 1)), spent, under_way, cost)
    by_hour = _payable(allowed(budget, end), spent, under_way, cost)
    if math.isinf(by_day) or by_day < 1:
        return Allotment(min(by_day, by_hour), exhausted=by_day < 1)
    midnight = datetime.combine(end.date() + timedelta(days=1), time(), UTC)
    since = max(since, end - timedelta(days=1))
    last = midnight - timedelta(seconds=length_of(budget, cost, forecast, midnight - timedelta(hours=1)))
    share = share_of(int(by_day), forecast.between(since, end), forecast.between(end, last))
    return Allotment(min(share, by_hour))


def length_of(budget: Budget, cost: Cost, forecast: Forecast, at: datetime) -> int:
    """Return how many seconds an interval lasts in the hour of a moment: about ``PICKS`` picks of a day's budget."""
    hour = forecast.hours[at.astimezone(UTC).hour] / sum(forecast.hours)
    picks = _payable(allowed(budget, at.astimezone(UTC).replace(hour=HOURS - 1)), Expense(), 0, cost) * hour
    if not picks:
        return LENGTHS[-1]
    return next((length for length in LENGTHS if length >= HOUR * PICKS / picks), LENGTHS[-1])


def end_before(at: datetime, length: int) -> datetime:
    """Return when the last interval of this length ended: a whole multiple of it since 1970."""
    return datetime.fromtimestamp(at.timestamp() // length * length, UTC)


def _payable(limit: Allowed, spent: Expense, under_way: int, cost: Cost) -> float:
    """Return how many more picks a limit pays for, in whole; infinity where nothing limits them."""
    kinds = (
        (limit.calls, spent.calls, cost.calls),
        (limit.tokens, spent.tokens, cost.tokens),
        (limit.usd, spent.usd, cost.usd),
    )
    payable = [(most - taken) / price for most, taken, price in kinds if price and most < math.inf]
    least = min(payable, default=math.inf)
    return least if math.isinf(least) else max(0, math.floor(least * (1 + ROUNDING)) - under_way)
