"""One process rolls up what is due, a little at a time, and never in the way of anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.daemon_pool import Threads
from germane.monitor.jobs.rollups import Rollups
from germane.monitor.loop.leader import Office
from germane.storage import Store

NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


class Time:
    """Passes when it is told to."""

    now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def time() -> Time:
    """Half past noon."""
    return Time()


@pytest.fixture
def rollups(store: Store, time: Time) -> Any:
    """Makes what rolls up for a process of that name, and does one round."""
    threads = Threads(1, name="test-rollups")
    made: dict[str, Rollups] = {}

    def run(owner: str = "me", **given: Any) -> None:
        office = Office(store, "roller", owner, term=timedelta(minutes=5), clock=time)
        one = made.setdefault(owner, Rollups(store, ["model"], office=office, threads=threads, clock=time))
        for name, value in given.items():
            setattr(one, name, value)
        asyncio.run(one.run())

    yield run
    threads.close()
    assert threads.join(60)


@pytest.fixture
def change(store: Store) -> Callable[[datetime], None]:
    """Changes an hour."""
    return lambda at: store.count_dropped({("shop", "ask"): 1}, ["a"], at=at)


def test_hours_that_are_over_are_rolled_up_every_few_seconds(
    store: Store, rollups: Any, time: Time, change: Any
) -> None:
    """The current one, which changes all the time, once a minute; with the dimensions that the settings name."""
    change(NOON)
    change(NOON - timedelta(hours=1))
    rollups()
    assert store.due() == 0

    left = []
    for seconds in (2, 30, 70):
        change(NOON)
        change(NOON - timedelta(hours=1))
        time.now = NOON + timedelta(seconds=seconds)
        rollups()
        left.append(store.due())

    assert left == [2, 1, 0]


def test_one_process_of_all_does_it(store: Store, rollups: Any, change: Any) -> None:
    """Another one leaves it to the first."""
    rollups("first")
    change(NOON)
    rollups("second")

    assert store.due() == 1


def test_all_of_an_old_database_is_rolled_up_in_time(store: Store, rollups: Any, time: Time, change: Any) -> None:
    """A few hours at once, for no longer than a second, and again a few seconds later."""
    for hour in range(30):
        change(NOON - timedelta(hours=hour))
    rounds = 0
    while store.due() and rounds < 30:
        rollups()
        time.now += timedelta(minutes=1)
        rounds += 1

    assert store.due() == 0


def test_one_that_stops_begins_no_more(store: Store, rollups: Any, change: Any) -> None:
    """What is due stays due."""
    change(NOON)
    rollups(stopping=True)

    assert store.due() == 1


def test_a_clock_that_was_set_back_stops_nothing(store: Store, rollups: Any, time: Time, change: Any) -> None:
    """A round is not waited for that lies days ahead."""
    rollups()
    time.now -= timedelta(days=3)
    change(time.now)
    rollups("me")

    assert store.due() == 0
