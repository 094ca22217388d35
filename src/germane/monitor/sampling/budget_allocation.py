"""Allocation of the budget to intervals, so that it lasts the whole day and covers every hour.

An interval's share of the remaining budget equals its share of the traffic expected for the rest of the day. Unused
budget remains available to later intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

from germane.settings import Budget
from germane.storage import BudgetDay, BudgetLimits, HourCount, RequestUsage

SECONDS_PER_HOUR: Final = 3600
HOURS_PER_DAY: Final = 24
EXCHANGES_PER_INTERVAL: Final = 20
"""The approximate number of exchanges to select per interval."""
INTERVAL_LENGTHS: Final = (60, 120, 180, 240, 300, 360, 600, 720, 900, 1200, 1800, 3600)
"""The possible lengths of an interval in seconds: divisors of an hour, so that intervals align with the clock."""
PRIOR_EXCHANGES: Final = 20
"""The weight of the default cost estimate, as a number of exchanges."""
MIN_TRAFFIC_SHARE: Final = 0.01
"""The assumed traffic for an hour of the day without past traffic, as a share of the mean hourly traffic."""
ROUNDING_TOLERANCE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class ExchangeCost:
    """The average cost of scoring one exchange."""

    requests: float
    tokens: float
    usd: float


@dataclass(frozen=True, slots=True)
class IntervalAllocation:
    """The number of exchanges that one interval may select."""

    count: float
    """The number of exchanges: a whole number, or infinity if there is no limit."""
    exhausted: bool = False
    """Whether no budget is left for the rest of the day."""


@dataclass(frozen=True, slots=True)
class DailyTraffic:
    """The distribution of traffic over a day in UTC: one positive number per hour, on any scale."""

    hours: tuple[float, ...] = (1.0,) * HOURS_PER_DAY

    def volume_between(self, start: datetime, end: datetime) -> float:
        """Return the traffic from ``start`` to ``end``; 0 if ``end`` is before ``start``."""
        total, at = 0.0, start.astimezone(UTC)
        while at < end:
            next_hour = min(end, at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1))
            total += self.hours[at.hour] * (next_hour - at) / timedelta(hours=1)
            at = next_hour
        return total


def default_cost(judge_scorers: int) -> ExchangeCost:
    """Return a deliberately high estimate of an exchange's cost, based on the number of scorers that use a judge."""
    requests = 3.0 * judge_scorers
    return ExchangeCost(requests, tokens=1500 * requests, usd=1500 * requests / 1e6)


def forecast_traffic(counts: Sequence[HourCount]) -> DailyTraffic:
    """Return the mean traffic for each hour of the day. For an hour without data, use the mean of all hours.

    After the first hour with traffic, hours without traffic count as zeros.
    """
    if not counts:
        return DailyTraffic()
    by_hour: list[list[int]] = [[] for _ in range(HOURS_PER_DAY)]
    seen = {count.start: count.seen for count in counts}
    at, last = min(seen), max(seen).replace(hour=HOURS_PER_DAY - 1)
    while at <= last:
        by_hour[at.hour].append(seen.get(at, 0))
        at += timedelta(hours=1)
    means = [sum(hour) / len(hour) if hour else None for hour in by_hour]
    known = [mean for mean in means if mean is not None]
    overall = sum(known) / len(known)
    if not overall:
        return DailyTraffic()
    return DailyTraffic(tuple(max(MIN_TRAFFIC_SHARE * overall, overall if mean is None else mean) for mean in means))


def estimate_cost(days: Sequence[BudgetDay], in_progress: int, default: ExchangeCost) -> ExchangeCost:
    """Estimate the cost of an exchange from the usage of recent days, smoothed with the default cost.

    ``in_progress`` is the number of selected exchanges whose cost ``days`` does not include yet.
    """
    finished = max(0, sum(day.selected for day in days) - in_progress)
    total = sum((day.usage for day in days), RequestUsage())
    return ExchangeCost(
        requests=(total.requests + PRIOR_EXCHANGES * default.requests) / (finished + PRIOR_EXCHANGES),
        tokens=(total.tokens + PRIOR_EXCHANGES * default.tokens) / (finished + PRIOR_EXCHANGES),
        usd=(total.usd + PRIOR_EXCHANGES * default.usd) / (finished + PRIOR_EXCHANGES),
    )


def traffic_share(remaining: int, interval: float, later: float) -> int:
    """Return an interval's share of the remaining exchanges, based on its traffic and the traffic after it."""
    return math.floor(remaining * interval / (interval + later) + 0.5) if interval else 0


def allocate_interval(
    budget: Budget,
    spent: RequestUsage,
    in_progress: int,
    cost: ExchangeCost,
    forecast: DailyTraffic,
    *,
    since: datetime,
    end: datetime,
) -> IntervalAllocation:
    """Return the number of exchanges that the interval ending at ``end`` may select.

    Args:
        budget: The ``budget`` setting.
        spent: The budget usage on the UTC day of ``end``.
        in_progress: The number of exchanges that were selected earlier but not yet scored. They take precedence.
        cost: The estimated cost of an exchange.
        forecast: The expected traffic.
        since: The start of the interval, or an earlier time if the previous intervals selected nothing.
        end: The end of the interval. The last interval of a day ends one interval length before midnight.
    """
    end = end.astimezone(UTC)
    by_day = _affordable(BudgetLimits.at(budget, end.replace(hour=HOURS_PER_DAY - 1)), spent, in_progress, cost)
    by_hour = _affordable(BudgetLimits.at(budget, end), spent, in_progress, cost)
    if math.isinf(by_day) or by_day < 1:
        return IntervalAllocation(min(by_day, by_hour), exhausted=by_day < 1)
    midnight = datetime.combine(end.date() + timedelta(days=1), time(), UTC)
    since = max(since, end - timedelta(days=1))
    last = midnight - timedelta(seconds=interval_length(budget, cost, forecast, midnight - timedelta(hours=1)))
    share = traffic_share(int(by_day), forecast.volume_between(since, end), forecast.volume_between(end, last))
    return IntervalAllocation(min(share, by_hour))


def interval_length(budget: Budget, cost: ExchangeCost, forecast: DailyTraffic, at: datetime) -> int:
    """Return the length in seconds of an interval in the hour of ``at``, for about 20 exchanges per interval."""
    at = at.astimezone(UTC)
    per_day = _affordable(BudgetLimits.at(budget, at.replace(hour=HOURS_PER_DAY - 1)), RequestUsage(), 0, cost)
    per_hour = per_day * (forecast.hours[at.hour] / sum(forecast.hours))
    if not per_hour:
        return INTERVAL_LENGTHS[-1]
    shortest = SECONDS_PER_HOUR * EXCHANGES_PER_INTERVAL / per_hour
    return next((length for length in INTERVAL_LENGTHS if length >= shortest), INTERVAL_LENGTHS[-1])


def last_interval_end(at: datetime, length: int) -> datetime:
    """Return the end of the last complete interval: a whole multiple of ``length`` seconds since the Unix epoch."""
    return datetime.fromtimestamp(at.timestamp() // length * length, UTC)


def _affordable(limits: BudgetLimits, spent: RequestUsage, in_progress: int, cost: ExchangeCost) -> float:
    """Return how many more exchanges the limits allow: a whole number, or infinity if there is no limit."""
    units = (
        (limits.requests, spent.requests, cost.requests),
        (limits.tokens, spent.tokens, cost.tokens),
        (limits.usd, spent.usd, cost.usd),
    )
    counts = [(limit - used) / each for limit, used, each in units if each and limit < math.inf]
    fewest = min(counts, default=math.inf)
    return fewest if math.isinf(fewest) else max(0, math.floor(fewest * (1 + ROUNDING_TOLERANCE)) - in_progress)
