"""The day's budget: what may be spent when, and that nobody spends more."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from germane.settings import Budget
from germane.storage import Expense, Limit, Spent, Store, allowed, frees_at

DAY = date(2026, 3, 1)
CALL = Expense(1)
CARRYING = Budget(calls_per_hour=10, calls_per_day=50)


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 1, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(("hour", "calls"), [(0, 10), (1, 20), (3, 40), (4, 50), (5, 50), (23, 50)])
def test_what_an_hour_leaves_over_the_later_ones_may_use(hour: int, calls: int) -> None:
    """Up to the end of an hour its share and those before it, and never more than the day's."""
    assert allowed(CARRYING, at(hour, 59)).calls == calls
    assert (allowed(CARRYING, at(hour)).tokens, allowed(CARRYING, at(hour)).usd) == (math.inf, math.inf)


def test_hours_and_days_are_those_in_utc() -> None:
    """Whatever zone the moment is written in."""
    berlin = datetime.fromisoformat("2026-03-02T00:30:00+01:00")
    assert allowed(CARRYING, berlin).calls == 50
    assert allowed(Budget(tokens_per_hour=7, usd_per_hour=0.5), berlin).usd == pytest.approx(12, abs=1e-9)


def test_it_frees_up_with_the_first_hour_in_which_a_request_fits() -> None:
    """In this hour, in a later one, or on the next day."""
    assert frees_at(CARRYING, Expense(39), CALL, at(3, 20)) == at(3, 20)
    assert frees_at(CARRYING, Expense(40), CALL, at(3, 20)) == at(4)
    assert frees_at(CARRYING, Expense(50), CALL, at(4)) == at(0) + timedelta(days=1)
    assert frees_at(Budget(tokens_per_hour=10), Expense(1, 15), Expense(1, 14), at(0)) == at(2)


def test_calls_are_granted_until_the_hour_has_none_left(store: Store, clock: Any) -> None:
    """Then none, until the next hour brings more; the day has its own end."""
    clock.now = at(3, 10)
    first = store.reserve_budget(CARRYING, [CALL] * 45)
    assert (sum(first.granted), first.granted[39:41], first.spent.calls) == (40, [True, False], 40)
    assert list(first.waits) == [0.0] * 40 + [None] * 5
    assert sum(store.reserve_budget(CARRYING, [CALL] * 5).granted) == 0

    clock.now = at(4)
    assert sum(store.reserve_budget(CARRYING, [CALL] * 45).granted) == 10
    clock.now = at(23)
    assert sum(store.reserve_budget(CARRYING, [CALL] * 45).granted) == 0
    assert store.spent() == Spent(day=DAY, calls=50)


def test_a_day_begins_with_all_of_its_budget(store: Store, clock: Any) -> None:
    """And what was reserved before midnight is settled on the day that paid for it."""
    clock.now = at(23, 59)
    budget = Budget(tokens_per_day=100)
    before = store.reserve_budget(budget, [Expense(1, 90)])
    clock.now = at(0) + timedelta(days=1)
    after = store.reserve_budget(budget, [Expense(1, 100)], settled={before.at.date(): Expense(0, -40)})

    assert after.granted == [True]
    tomorrow = DAY + timedelta(days=1)
    assert store.spending(2) == [Spent(day=DAY, calls=1, tokens=50), Spent(day=tomorrow, calls=1, tokens=100)]
    assert (store.spent(DAY).tokens, store.spent().day) == (50, tomorrow)
    assert [each.day for each in store.spending(1)] == [tomorrow]


def test_nothing_spent_is_nothing(store: Store) -> None:
    """A day without a row."""
    assert (store.spent(), store.spending(7)) == (Spent(day=DAY), [])


def test_one_that_does_not_fit_takes_nothing(store: Store) -> None:
    """A smaller one behind it may have what is left."""
    budget = Budget(tokens_per_day=100, usd_per_day=1.0)
    grant = store.reserve_budget(budget, [Expense(1, 60, 0.3), Expense(1, 60, 0.3), Expense(1, 10, 0.8), CALL])

    assert grant.granted == [True, False, False, True]
    assert store.spent() == Spent(day=DAY, calls=2, tokens=60, usd=0.3)


def test_sums_of_floating_point_may_use_all_there_is(store: Store) -> None:
    """Ten times .1 is a whole dollar, although the sum is not."""
    grants = [store.reserve_budget(Budget(usd_per_day=0.3), [Expense(1, 0, 0.1)]).granted for _ in range(4)]
    assert grants == [[True], [True], [True], [False]]


def test_only_what_is_granted_takes_a_place_under_the_limits(store: Store) -> None:
    """Both in one transaction: the second that is paid for waits for its turn, the third is not paid for."""
    limits, budget = [Limit("requests", 60)], Budget(calls_per_day=2)
    grant = store.reserve_budget(budget, [CALL] * 3, limits_=limits, amounts=[[1.0]] * 3, owed=[0.0])

    assert grant.waits == [0.0, pytest.approx(1.0, abs=1e-6), None]
    assert store.reserve(limits, [[1.0]]) == [pytest.approx(2.0, abs=1e-6)]


def test_many_at_once_spend_exactly_what_there_is(store: Store) -> None:
    """Eight threads on one day that has no row yet."""
    granted: list[int] = []

    def spend() -> None:
        granted.extend(sum(store.reserve_budget(Budget(calls_per_day=50), [CALL] * 3).granted) for _ in range(5))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(granted), store.spent().calls) == (50, 50)


class Turning:
    """A clock that goes on from one example to the next, so that each begins with a day of its own."""

    def __init__(self) -> None:
        self.now = at(0)

    def __call__(self) -> datetime:
        return self.now

    def next_day(self) -> None:
        self.now = self.now.replace(hour=0, minute=0) + timedelta(days=1)


@pytest.fixture(scope="module")
def turning() -> Iterator[tuple[Store, Turning]]:
    clock = Turning()
    store = Store("sqlite://", clock=clock)
    store.migrate()
    yield store, clock
    store.close()


REQUESTS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=1, max_size=6)
"""Tokens that each expects, and really takes."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), REQUESTS),
        st.tuples(st.just("settle"), st.integers(0, 5)),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(st.just("kill"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(1, 300)),
    ),
    max_size=25,
)
LIMITS = st.builds(
    Budget,
    calls_per_hour=st.none() | st.integers(1, 6),
    calls_per_day=st.integers(1, 20),
    tokens_per_hour=st.none() | st.integers(20, 200),
    tokens_per_day=st.none() | st.integers(20, 400),
    usd_per_day=st.none() | st.floats(0.01, 1.0),
)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(budget=LIMITS, steps=STEPS)
def test_no_order_of_asking_settling_leaving_and_dying_spends_more(
    turning: tuple[Store, Turning], budget: Budget, steps: list[tuple[str, Any]]
) -> None:
    """Calls never; tokens and dollars by no more than what replies took above what was expected of them."""
    store, clock = turning
    clock.next_day()
    under_way: list[tuple[date, Expense, Expense]] = []
    booked: dict[date, Expense] = {}
    above: dict[date, Expense] = {}

    def settle(day: date, expense: Expense) -> None:
        store.reserve_budget(budget, [], settled={day: expense})
        booked[day] = booked[day] + expense

    for step, given_ in steps:
        if step == "ask":
            pairs = [(Expense(1, guess, guess / 1000), Expense(1, real, real / 1000)) for guess, real in given_]
            grant = store.reserve_budget(budget, [expected for expected, _ in pairs])
            day = grant.at.date()
            for (expected, real), granted in zip(pairs, grant.granted, strict=True):
                if granted:
                    under_way.append((day, expected, real))
                    booked[day] = booked.get(day, Expense()) + expected
        elif step == "wait":
            clock.now += timedelta(minutes=given_)
        elif under_way:
            day, expected, real = under_way.pop(given_ % len(under_way))
            if step == "settle":
                settle(day, real - expected)
                more = Expense(0, max(0, real.tokens - expected.tokens), max(0, real.usd - expected.usd))
                above[day] = above.get(day, Expense()) + more
            elif step == "leave":  # it was never sent
                settle(day, Expense() - expected)
        for day, expense in booked.items():
            spent, over = store.spent(day), above.get(day, Expense())
            assert spent.calls == expense.calls
            assert (spent.tokens, spent.usd) == pytest.approx((expense.tokens, expense.usd), abs=1e-9)
            limit = allowed(budget, clock.now if day == clock.now.date() else at(23))
            assert spent.calls <= limit.calls
            assert spent.tokens - over.tokens <= limit.tokens + 1e-6
            assert spent.usd - over.usd <= limit.usd + 1e-6
