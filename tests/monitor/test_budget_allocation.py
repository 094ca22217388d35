"""How many picks an interval gets, so that the budget lasts."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.monitor.sampling.budget_allocation import (
    LENGTHS,
    Cost,
    Forecast,
    allot,
    cost_of,
    end_before,
    forecast_of,
    length_of,
    share_of,
)
from germane.settings import Budget
from germane.storage import Expense, HourCount, Spent

DAY = datetime(2026, 3, 2, tzinfo=UTC)
ONE = Cost(calls=1, tokens=0, usd=0)
FLAT = Forecast()


def at(hour: float) -> datetime:
    return DAY + timedelta(hours=hour)


def picks(budget: Budget, hour: float, spent: Expense | None = None, **given: Any) -> float:
    """Return what the hour that ends at ``hour`` gets."""
    options = {"under_way": 0, "cost": ONE, "forecast": FLAT, "since": at(hour - 1), "end": at(hour)} | given
    return allot(budget, spent or Expense(), **options).picks


def test_an_interval_gets_its_share_of_what_is_left() -> None:
    """round(left f_h / sum of f_j over the intervals still to come today): the last of them gets all."""
    busy = Forecast(tuple(3.0 if 8 <= hour < 12 else 1.0 for hour in range(24)))

    # Those that end at one o'clock to eleven at night: what ends at midnight is paid for by the next day.
    assert picks(Budget(calls_per_day=300), 1) == round(300 / 23)
    assert picks(Budget(calls_per_day=300), 9, Expense(40), forecast=busy) == round(260 * 3 / (4 * 3 + 11))
    assert picks(Budget(calls_per_day=300), 23, Expense(280)) == 20
    assert share_of(5, 0.0, 1.0) == share_of(5, 0.0, 0.0) == 0


def test_what_is_left_over_stays() -> None:
    """Hours that use less than their share leave more to those that follow; no day takes more than its budget."""
    spent, given = Expense(), []
    for hour in range(1, 24):
        given.append(picks(Budget(calls_per_day=230), hour, spent))
        spent += Expense(0 if hour < 12 else int(given[-1]))

    assert given[0] == 10
    assert given[:11] == sorted(given[:11])
    assert spent.calls == 230


def test_an_interval_without_a_share_leaves_its_candidates_to_the_next() -> None:
    """Where five picks have to last for a day, an hour gets none, and two hours that waited together get one."""
    assert picks(Budget(calls_per_day=5), 1) == 0
    assert not allot(Budget(calls_per_day=5), Expense(), 0, ONE, FLAT, since=at(0), end=at(1)).exhausted
    assert picks(Budget(calls_per_day=5), 3, since=at(0)) == 1


def test_nothing_left_is_told_from_nothing_now() -> None:
    """Less than one pick's worth for the day is exhausted; less for the hour is not."""
    spent = Expense(calls=10)
    day = allot(Budget(calls_per_day=10), spent, 0, ONE, FLAT, since=at(4), end=at(5))
    hour = allot(Budget(calls_per_day=100, calls_per_hour=1), spent, 0, ONE, FLAT, since=at(4), end=at(5))

    assert (day.picks, day.exhausted) == (0, True)
    assert (hour.picks, hour.exhausted) == (0, False)


def test_hours_carry_over_what_they_leave() -> None:
    """At noon thirteen hours' worth is allowed, less what is spent; at the day's end no hour allows more."""
    assert picks(Budget(calls_per_hour=10), 12, Expense(100), since=at(0)) == 30
    assert picks(Budget(calls_per_hour=10), 12, Expense(125), since=at(0)) == 5
    assert picks(Budget(calls_per_hour=10, calls_per_day=50), 23) == 50


def test_the_scarcest_of_calls_tokens_and_money_counts() -> None:
    """Each limits by what an exchange takes of it."""
    budget = Budget(calls_per_day=1000, tokens_per_day=100_000, usd_per_day=1.0)

    assert picks(budget, 23, cost=Cost(2, 1000, 0.001)) == 100
    assert picks(budget, 23, cost=Cost(2, 1000, 0.02)) == 50
    assert picks(budget, 23, cost=Cost(20, 1000, 0.001)) == 50
    assert picks(Budget(usd_per_day=1.0), 23, cost=Cost(2, 1000, 0.0)) == math.inf


def test_what_is_picked_already_comes_first() -> None:
    """Exchanges under way, those of a rule among them, have their part of the budget before an interval gets any."""
    assert picks(Budget(calls_per_day=100), 23, Expense(40), under_way=25) == 35
    assert allot(Budget(calls_per_day=100), Expense(40), 60, ONE, FLAT, since=at(22), end=at(23)).exhausted


def test_a_pick_costs_what_the_last_ones_took() -> None:
    """With many picks it is the mean of them; with none what is assumed; what is under way took nothing yet."""
    assumed = Cost(3, 4500, 0.01)
    day = Spent(day=date(2026, 3, 1), calls=2000, tokens=1e6, usd=1.0, picked=1000)

    assert cost_of([], 0, assumed) == assumed
    assert cost_of([day], 20, assumed).calls == pytest.approx((2000 + 20 * 3) / 1000)
    assert cost_of([day, day], 0, assumed).tokens == pytest.approx((2e6 + 20 * 4500) / 2020)


def test_the_forecast_is_the_mean_of_the_days_that_are_known() -> None:
    """An empty hour counts a little, an hour before the first exchange ever counts as the mean of the others."""
    counts = [HourCount(at(22), 30), HourCount(at(23), 10), HourCount(at(24 + 22), 50)]
    forecast = forecast_of(counts)

    assert forecast.hours[22] == 40
    assert forecast.hours[23] == 5
    assert forecast.hours[3] == pytest.approx(0.01 * (40 + 5) / 24)
    assert forecast_of([]) == Forecast()
    assert forecast_of([HourCount(at(23), 7)]).hours == (7.0,) * 24


def test_traffic_between_moments_counts_parts_of_hours() -> None:
    """Over midnight as well."""
    forecast = Forecast(tuple(float(hour + 1) for hour in range(24)))

    assert forecast.between(at(1.5), at(3.25)) == pytest.approx(0.5 * 2 + 3 + 0.25 * 4)
    assert forecast.between(at(23.5), at(24.5)) == pytest.approx(0.5 * 24 + 0.5 * 1)
    assert forecast.between(at(3), at(2)) == 0


def test_an_interval_lasts_for_about_twenty_picks() -> None:
    """Between a minute and an hour, and a part of an hour, so that it begins with the clock."""
    assert length_of(Budget(calls_per_day=300), ONE, FLAT, DAY) == 3600
    assert length_of(Budget(calls_per_day=2400), ONE, FLAT, DAY) == 720
    assert length_of(Budget(calls_per_hour=100), ONE, FLAT, DAY) == 720
    assert length_of(Budget(calls_per_day=10_000_000), ONE, FLAT, DAY) == 60
    assert all(3600 % length == 0 for length in LENGTHS)
    assert end_before(at(7.99), 3600) == at(7)


limits = st.one_of(st.none(), st.integers(1, 3000))


@given(
    per_day=limits,
    per_hour=limits,
    traffic=st.lists(st.floats(0.01, 100), min_size=24, max_size=24),
    seed=st.integers(0, 2**32),
)
def test_a_day_never_takes_more_than_its_budget(
    per_day: int | None, per_hour: int | None, traffic: list[float], seed: int
) -> None:
    """Whatever the traffic and however many of its picks an interval uses, at no moment is more taken than allowed."""
    if per_day is None and per_hour is None:
        return
    budget, forecast = Budget(calls_per_day=per_day, calls_per_hour=per_hour), Forecast(tuple(traffic))
    spent, since = 0, at(0)
    random = Random(seed)
    while since < at(23.99):
        end = since + timedelta(seconds=length_of(budget, ONE, forecast, since))
        if end >= at(24):
            break
        given = allot(budget, Expense(spent), 0, ONE, forecast, since=since, end=end)
        assert given.picks >= 0
        spent += round(given.picks * random.random())
        assert spent <= min(per_day or math.inf, (end.hour + 1) * per_hour if per_hour else math.inf)
        since = end
