"""The daily budget shared by processes."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.settings import Budget
from germane.storage import BudgetDay, BudgetLimits, BudgetReservation, RateLimit, RequestUsage, TrackingStore

DAY = date(2026, 3, 1)
CALL = RequestUsage(1)
CARRYING = Budget(requests_per_hour=10, requests_per_day=50)


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 1, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(("hour", "calls"), [(0, 10), (1, 20), (3, 40), (4, 50), (5, 50), (23, 50)])
def test_unused_hourly_budget_is_available_in_later_hours(hour: int, calls: int) -> None:
    """Usage is limited to the sum of the hourly budgets so far, and never exceeds the daily limit."""
    assert BudgetLimits.at(CARRYING, at(hour, 59)).requests == calls
    assert (BudgetLimits.at(CARRYING, at(hour)).tokens, BudgetLimits.at(CARRYING, at(hour)).usd) == (
        math.inf,
        math.inf,
    )


def test_budget_hours_and_days_start_in_utc() -> None:
    """The time may be in any time zone."""
    berlin = datetime.fromisoformat("2026-03-02T00:30:00+01:00")
    assert BudgetLimits.at(CARRYING, berlin).requests == 50
    assert BudgetLimits.at(Budget(tokens_per_hour=7, usd_per_hour=0.5), berlin).usd == pytest.approx(12, abs=1e-9)


def test_next_affordable_time_is_the_first_hour_with_budget_left() -> None:
    """The time may be in this hour, in a later hour, or on the next day."""

    def affordable_at(budget: Budget, used: RequestUsage, request: RequestUsage, now: datetime) -> datetime:
        return BudgetReservation(now, (), used).next_affordable_at(budget, request)

    assert affordable_at(CARRYING, RequestUsage(39), CALL, at(3, 20)) == at(3, 20)
    assert affordable_at(CARRYING, RequestUsage(40), CALL, at(3, 20)) == at(4)
    assert affordable_at(CARRYING, RequestUsage(50), CALL, at(4)) == at(0) + timedelta(days=1)
    assert affordable_at(Budget(tokens_per_hour=10), RequestUsage(1, 15), RequestUsage(1, 14), at(0)) == at(2)


def test_requests_are_granted_until_the_hourly_budget_is_exhausted(store: TrackingStore, clock: Any) -> None:
    """The next hour allows more, up to the daily limit."""
    clock.now = at(3, 10)
    first = store.quota.reserve_budget(CARRYING, [CALL] * 45)
    assert (sum(first.granted), first.granted[39:41], first.usage.requests) == (40, [True, False], 40)
    assert list(first.waits) == [0.0] * 40 + [None] * 5
    assert sum(store.quota.reserve_budget(CARRYING, [CALL] * 5).granted) == 0

    clock.now = at(4)
    assert sum(store.quota.reserve_budget(CARRYING, [CALL] * 45).granted) == 10
    clock.now = at(23)
    assert sum(store.quota.reserve_budget(CARRYING, [CALL] * 45).granted) == 0
    assert store.quota.load_usage() == BudgetDay(day=DAY, requests=50)


def test_a_new_day_starts_with_its_full_budget(store: TrackingStore, clock: Any) -> None:
    """A reservation made before midnight is corrected on the day on which it was made."""
    clock.now = at(23, 59)
    budget = Budget(tokens_per_day=100)
    before = store.quota.reserve_budget(budget, [RequestUsage(1, 90)])
    clock.now = at(0) + timedelta(days=1)
    after = store.quota.reserve_budget(budget, [RequestUsage(1, 100)], settled={before.at.date(): RequestUsage(0, -40)})

    assert after.granted == [True]
    tomorrow = DAY + timedelta(days=1)
    assert store.quota.load_usage_by_day(2) == [
        BudgetDay(day=DAY, requests=1, tokens=50),
        BudgetDay(day=tomorrow, requests=1, tokens=100),
    ]
    assert (store.quota.load_usage(DAY).tokens, store.quota.load_usage().day) == (50, tomorrow)
    assert [each.day for each in store.quota.load_usage_by_day(1)] == [tomorrow]


def test_a_day_without_usage_has_zero_usage(store: TrackingStore) -> None:
    """A day without usage has no row in the database."""
    assert (store.quota.load_usage(), store.quota.load_usage_by_day(7)) == (BudgetDay(day=DAY), [])


def test_a_rejected_request_reserves_nothing(store: TrackingStore) -> None:
    """A smaller request after it may be granted."""
    budget = Budget(tokens_per_day=100, usd_per_day=1.0)
    grant = store.quota.reserve_budget(
        budget, [RequestUsage(1, 60, 0.3), RequestUsage(1, 60, 0.3), RequestUsage(1, 10, 0.8), CALL]
    )

    assert grant.granted == [True, False, False, True]
    assert store.quota.load_usage() == BudgetDay(day=DAY, requests=2, tokens=60, usd=0.3)


def test_rounding_errors_do_not_cause_usage_above_the_budget(store: TrackingStore) -> None:
    """Ten times 0.1 is a whole dollar, although the floating-point sum is not."""
    grants = [store.quota.reserve_budget(Budget(usd_per_day=0.3), [RequestUsage(1, 0, 0.1)]).granted for _ in range(4)]
    assert grants == [[True], [True], [True], [False]]


def test_only_granted_requests_get_a_rate_limit_slot(store: TrackingStore) -> None:
    """In the same transaction, the second granted request waits for its slot, and the third request is rejected."""
    limits, budget = [RateLimit("requests", 60)], Budget(requests_per_day=2)
    grant = store.quota.reserve_budget(budget, [CALL] * 3, limits=limits, amounts=[[1.0]] * 3, settled_amounts=[0.0])

    assert grant.waits == [0.0, pytest.approx(1.0, abs=1e-6), None]
    assert store.quota.reserve_slots(limits, [[1.0]]) == [pytest.approx(2.0, abs=1e-6)]


def test_concurrent_reservations_never_exceed_or_waste_the_budget(store: TrackingStore) -> None:
    """Eight threads reserve usage on a day without a row."""
    granted: list[int] = []

    def spend() -> None:
        granted.extend(
            sum(store.quota.reserve_budget(Budget(requests_per_day=50), [CALL] * 3).granted) for _ in range(5)
        )

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(granted), store.quota.load_usage().requests) == (50, 50)


class Turning:
    """A clock that continues from one example to the next, so that each begins on a separate day."""

    def __init__(self) -> None:
        self.now = at(0)

    def __call__(self) -> datetime:
        return self.now

    def next_day(self) -> None:
        self.now = self.now.replace(hour=0, minute=0) + timedelta(days=1)


@pytest.fixture(scope="module")
def turning() -> Iterator[tuple[TrackingStore, Turning]]:
    clock = Turning()
    store = TrackingStore("sqlite://", clock=clock)
    store.migrate()
    yield store, clock
    store.close()


REQUESTS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=1, max_size=6)
"""The tokens that each request is expected to use, and those it actually uses."""
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
    requests_per_hour=st.none() | st.integers(1, 6),
    requests_per_day=st.integers(1, 20),
    tokens_per_hour=st.none() | st.integers(20, 200),
    tokens_per_day=st.none() | st.integers(20, 400),
    usd_per_day=st.none() | st.floats(0.01, 1.0),
)


@given(budget=LIMITS, steps=STEPS)
def test_no_order_of_operations_exceeds_the_budget(
    turning: tuple[TrackingStore, Turning], budget: Budget, steps: list[tuple[str, Any]]
) -> None:
    """Requests never exceed the budget. Tokens and dollars exceed it at most by the usage above the estimates."""
    store, clock = turning
    clock.next_day()
    under_way: list[tuple[date, RequestUsage, RequestUsage]] = []
    booked: dict[date, RequestUsage] = {}
    above: dict[date, RequestUsage] = {}

    def settle(day: date, expense: RequestUsage) -> None:
        store.quota.reserve_budget(budget, [], settled={day: expense})
        booked[day] = booked[day] + expense

    for step, given_ in steps:
        if step == "ask":
            pairs = [
                (RequestUsage(1, guess, guess / 1000), RequestUsage(1, real, real / 1000)) for guess, real in given_
            ]
            grant = store.quota.reserve_budget(budget, [expected for expected, _ in pairs])
            day = grant.at.date()
            for (expected, real), granted in zip(pairs, grant.granted, strict=True):
                if granted:
                    under_way.append((day, expected, real))
                    booked[day] = booked.get(day, RequestUsage()) + expected
        elif step == "wait":
            clock.now += timedelta(minutes=given_)
        elif under_way:
            day, expected, real = under_way.pop(given_ % len(under_way))
            if step == "settle":
                settle(day, real - expected)
                more = RequestUsage(0, max(0, real.tokens - expected.tokens), max(0, real.usd - expected.usd))
                above[day] = above.get(day, RequestUsage()) + more
            elif step == "leave":  # it was never sent
                settle(day, RequestUsage() - expected)
        for day, expense in booked.items():
            spent, over = store.quota.load_usage(day), above.get(day, RequestUsage())
            assert spent.requests == expense.requests
            assert (spent.tokens, spent.usd) == pytest.approx((expense.tokens, expense.usd), abs=1e-9)
            limit = BudgetLimits.at(budget, clock.now if day == clock.now.date() else at(23))
            assert spent.requests <= limit.requests
            assert spent.tokens - over.tokens <= limit.tokens + 1e-6
            assert spent.usd - over.usd <= limit.usd + 1e-6
