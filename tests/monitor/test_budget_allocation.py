"""The number of exchanges that an interval may select, so that the budget lasts."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.monitor.sampling.budget_allocation import (
    INTERVAL_LENGTHS,
    DailyTraffic,
    ExchangeCost,
    allocate_interval,
    estimate_cost,
    forecast_traffic,
    interval_length,
    last_interval_end,
    traffic_share,
)
from germane.settings import Budget
from germane.storage import BudgetDay, HourCount, RequestUsage

DAY = datetime(2026, 3, 2, tzinfo=UTC)
ONE = ExchangeCost(requests=1, tokens=0, usd=0)
FLAT = DailyTraffic()


def at(hour: float) -> datetime:
    return DAY + timedelta(hours=hour)


def allocated(budget: Budget, hour: float, spent: RequestUsage | None = None, **given: Any) -> float:
    """Return the allocation of the hour that ends at ``hour``."""
    options = {"in_progress": 0, "cost": ONE, "forecast": FLAT, "since": at(hour - 1), "end": at(hour)} | given
    return allocate_interval(budget, spent or RequestUsage(), **options).count


def test_an_interval_gets_its_traffic_share_of_the_remaining_budget() -> None:
    """round(remaining f_h / sum of f_j over the remaining intervals of the day): the last interval gets the rest."""
    busy = DailyTraffic(tuple(3.0 if 8 <= hour < 12 else 1.0 for hour in range(24)))

    # The intervals that end at 01:00 to 23:00; the interval that ends at midnight belongs to the next day.
    assert allocated(Budget(requests_per_day=300), 1) == round(300 / 23)
    assert allocated(Budget(requests_per_day=300), 9, RequestUsage(40), forecast=busy) == round(260 * 3 / (4 * 3 + 11))
    assert allocated(Budget(requests_per_day=300), 23, RequestUsage(280)) == 20
    assert traffic_share(5, 0.0, 1.0) == traffic_share(5, 0.0, 0.0) == 0


def test_budget_that_an_interval_does_not_use_is_available_to_later_ones() -> None:
    """Hours that use less than their share leave more for the following hours; no day exceeds its budget."""
    spent, given = RequestUsage(), []
    for hour in range(1, 24):
        given.append(allocated(Budget(requests_per_day=230), hour, spent))
        spent += RequestUsage(0 if hour < 12 else int(given[-1]))

    assert given[0] == 10
    assert given[:11] == sorted(given[:11])
    assert spent.requests == 230


def test_an_interval_without_allocation_is_merged_into_the_next() -> None:
    """With five exchanges per day, an hour gets none, and two merged hours get one."""
    assert allocated(Budget(requests_per_day=5), 1) == 0
    assert not allocate_interval(
        Budget(requests_per_day=5), RequestUsage(), 0, ONE, FLAT, since=at(0), end=at(1)
    ).exhausted
    assert allocated(Budget(requests_per_day=5), 3, since=at(0)) == 1


def test_an_exhausted_daily_budget_skips_candidates_and_an_exhausted_hour_does_not() -> None:
    """A day with budget for less than one exchange is exhausted, but an hour is not."""
    spent = RequestUsage(requests=10)
    day = allocate_interval(Budget(requests_per_day=10), spent, 0, ONE, FLAT, since=at(4), end=at(5))
    hour = allocate_interval(
        Budget(requests_per_day=100, requests_per_hour=1), spent, 0, ONE, FLAT, since=at(4), end=at(5)
    )

    assert (day.count, day.exhausted) == (0, True)
    assert (hour.count, hour.exhausted) == (0, False)


def test_unused_hourly_budget_carries_over() -> None:
    """At noon, the budget of thirteen hours minus the usage so far is available. The daily limit still applies."""
    assert allocated(Budget(requests_per_hour=10), 12, RequestUsage(100), since=at(0)) == 30
    assert allocated(Budget(requests_per_hour=10), 12, RequestUsage(125), since=at(0)) == 5
    assert allocated(Budget(requests_per_hour=10, requests_per_day=50), 23) == 50


def test_the_most_restrictive_limit_determines_the_number_of_exchanges() -> None:
    """Requests, tokens and dollars each limit the count by the cost of an exchange."""
    budget = Budget(requests_per_day=1000, tokens_per_day=100_000, usd_per_day=1.0)

    assert allocated(budget, 23, cost=ExchangeCost(2, 1000, 0.001)) == 100
    assert allocated(budget, 23, cost=ExchangeCost(2, 1000, 0.02)) == 50
    assert allocated(budget, 23, cost=ExchangeCost(20, 1000, 0.001)) == 50
    assert allocated(Budget(usd_per_day=1.0), 23, cost=ExchangeCost(2, 1000, 0.0)) == math.inf


def test_exchanges_in_progress_are_subtracted_before_the_allocation() -> None:
    """Their cost is subtracted from the budget before an interval gets an allocation, even if a rule requires them."""
    assert allocated(Budget(requests_per_day=100), 23, RequestUsage(40), in_progress=25) == 35
    assert allocate_interval(
        Budget(requests_per_day=100), RequestUsage(40), 60, ONE, FLAT, since=at(22), end=at(23)
    ).exhausted


def test_the_cost_of_an_exchange_is_estimated_from_recent_ones() -> None:
    """With many exchanges, the estimate is their mean cost; with none, it is the default. Exchanges in progress have
    not cost anything yet."""
    assumed = ExchangeCost(3, 4500, 0.01)
    day = BudgetDay(day=date(2026, 3, 1), requests=2000, tokens=1e6, usd=1.0, selected=1000)

    assert estimate_cost([], 0, assumed) == assumed
    assert estimate_cost([day], 20, assumed).requests == pytest.approx((2000 + 20 * 3) / 1000)
    assert estimate_cost([day, day], 0, assumed).tokens == pytest.approx((2e6 + 20 * 4500) / 2020)


def test_the_traffic_forecast_is_the_mean_of_the_known_days() -> None:
    """An empty hour counts a little; an hour before the first exchange counts as the mean of the other hours."""
    counts = [HourCount(at(22), 30), HourCount(at(23), 10), HourCount(at(24 + 22), 50)]
    forecast = forecast_traffic(counts)

    assert forecast.hours[22] == 40
    assert forecast.hours[23] == 5
    assert forecast.hours[3] == pytest.approx(0.01 * (40 + 5) / 24)
    assert forecast_traffic([]) == DailyTraffic()
    assert forecast_traffic([HourCount(at(23), 7)]).hours == (7.0,) * 24


def test_traffic_between_two_times_includes_partial_hours() -> None:
    """The range may cross midnight."""
    forecast = DailyTraffic(tuple(float(hour + 1) for hour in range(24)))

    assert forecast.volume_between(at(1.5), at(3.25)) == pytest.approx(0.5 * 2 + 3 + 0.25 * 4)
    assert forecast.volume_between(at(23.5), at(24.5)) == pytest.approx(0.5 * 24 + 0.5 * 1)
    assert forecast.volume_between(at(3), at(2)) == 0


def test_an_interval_is_long_enough_to_select_about_twenty_exchanges() -> None:
    """An interval lasts between a minute and an hour, and its length divides an hour."""
    assert interval_length(Budget(requests_per_day=300), ONE, FLAT, DAY) == 3600
    assert interval_length(Budget(requests_per_day=2400), ONE, FLAT, DAY) == 720
    assert interval_length(Budget(requests_per_hour=100), ONE, FLAT, DAY) == 720
    assert interval_length(Budget(requests_per_day=10_000_000), ONE, FLAT, DAY) == 60
    assert all(3600 % length == 0 for length in INTERVAL_LENGTHS)
    assert last_interval_end(at(7.99), 3600) == at(7)


limits = st.one_of(st.none(), st.integers(1, 3000))


@given(
    per_day=limits,
    per_hour=limits,
    traffic=st.lists(st.floats(0.01, 100), min_size=24, max_size=24),
    seed=st.integers(0, 2**32),
)
def test_allocations_of_a_day_never_exceed_its_budget(
    per_day: int | None, per_hour: int | None, traffic: list[float], seed: int
) -> None:
    """The limits hold at any time, for any traffic and any usage of the allocations."""
    if per_day is None and per_hour is None:
        return
    budget, forecast = Budget(requests_per_day=per_day, requests_per_hour=per_hour), DailyTraffic(tuple(traffic))
    spent, since = 0, at(0)
    random = Random(seed)
    while since < at(23.99):
        end = since + timedelta(seconds=interval_length(budget, ONE, forecast, since))
        if end >= at(24):
            break
        given = allocate_interval(budget, RequestUsage(spent), 0, ONE, forecast, since=since, end=end)
        assert given.count >= 0
        spent += round(given.count * random.random())
        assert spent <= min(per_day or math.inf, (end.hour + 1) * per_hour if per_hour else math.inf)
        since = end
