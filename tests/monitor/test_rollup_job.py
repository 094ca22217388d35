"""The rollup job: one process rolls up dirty hours in small batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.daemon_pool import DaemonThreadPool
from germane.monitor.jobs.maintenance import RollupJob
from germane.monitor.loop.leases import LeaderLease
from germane.storage import TrackingStore

NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


class Time:
    """A clock that the test advances."""

    now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def time() -> Time:
    """A clock that shows half past noon."""
    return Time()


@pytest.fixture
def rollups(store: TrackingStore, time: Time) -> Any:
    """Create the rollup job of a process and run one round."""
    threads = DaemonThreadPool(1, name="test-rollups")
    made: dict[str, RollupJob] = {}

    def run(owner: str = "me", **given: Any) -> None:
        office = LeaderLease(store, "roller", owner, ttl=timedelta(minutes=5), clock=time)
        one = made.setdefault(owner, RollupJob(store, ["model"], leader=office, thread_pool=threads, clock=time))
        for name, value in given.items():
            setattr(one, name, value)
        asyncio.run(one.run())

    yield run
    threads.close()
    assert threads.join(60)


@pytest.fixture
def change(store: TrackingStore) -> Callable[[datetime], None]:
    """Change a score in an hour."""
    return lambda at: store.exchanges.count_dropped({("shop", "ask"): 1}, ["a"], at=at)


def test_past_hours_are_rolled_up_every_few_seconds(
    store: TrackingStore, rollups: Any, time: Time, change: Any
) -> None:
    """The current hour, which changes constantly, is rolled up once a minute. The configured breakdowns apply."""
    change(NOON)
    change(NOON - timedelta(hours=1))
    rollups()
    assert store.rollups.count_dirty_hours() == 0

    left = []
    for seconds in (2, 30, 70):
        change(NOON)
        change(NOON - timedelta(hours=1))
        time.now = NOON + timedelta(seconds=seconds)
        rollups()
        left.append(store.rollups.count_dirty_hours())

    assert left == [2, 1, 0]


def test_only_one_process_runs_the_rollup_job(store: TrackingStore, rollups: Any, change: Any) -> None:
    """A second process does nothing while the first holds the lease."""
    rollups("first")
    change(NOON)
    rollups("second")

    assert store.rollups.count_dirty_hours() == 1


def test_a_database_with_many_dirty_hours_is_rolled_up_in_small_batches(
    store: TrackingStore, rollups: Any, time: Time, change: Any
) -> None:
    """A round rolls up a few hours per batch for at most a second, and the next round starts a few seconds later."""
    for hour in range(30):
        change(NOON - timedelta(hours=hour))
    rounds = 0
    while store.rollups.count_dirty_hours() and rounds < 30:
        rollups()
        time.now += timedelta(minutes=1)
        rounds += 1

    assert store.rollups.count_dirty_hours() == 0


def test_a_stopping_rollup_job_does_not_start_another_run(store: TrackingStore, rollups: Any, change: Any) -> None:
    """Dirty hours stay dirty."""
    change(NOON)
    rollups(stopping=True)

    assert store.rollups.count_dirty_hours() == 1


def test_setting_the_clock_back_does_not_delay_rollups(
    store: TrackingStore, rollups: Any, time: Time, change: Any
) -> None:
    """The next round starts immediately, although it was scheduled days ahead."""
    rollups()
    time.now -= timedelta(days=3)
    change(time.now)
    rollups("me")

    assert store.rollups.count_dirty_hours() == 0
