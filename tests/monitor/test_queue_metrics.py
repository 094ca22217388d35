"""What gauges show is read by one process, where somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.daemon_pool import Threads
from germane.monitor.jobs.queue_metrics import Measuring
from germane.monitor.loop.leader import Office
from germane.settings import Budget, Settings
from germane.storage import Decision, Expense, Store
from germane.tracer import Waiting

TERM = timedelta(seconds=30)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads(1, name="test-measuring")
    yield made
    made.close()
    made.join(10)


@pytest.fixture
def read(threads: Threads, settings: Callable[..., Settings]) -> Callable[..., Waiting | None]:
    """Reads once, as the process of that name."""

    def read(store: Store, owner: str = "me", *, wanted: bool = True, **changes: Any) -> Waiting | None:
        office = Office(store, "sampler", owner, term=TERM, clock=now)
        measuring = Measuring(store, settings(**changes), office=office, threads=threads, wanted=lambda: wanted)
        asyncio.run(measuring.run())
        return measuring.waiting

    return read


def test_the_process_that_samples_reads_what_waits(store: Store, read: Any, new_exchange: Any) -> None:
    """Undecided exchanges and each scorer's tasks by state, and the age of the oldest; other processes show nothing."""
    old = [new_exchange(started_at=now() - timedelta(seconds=90)) for _ in range(3)]
    store.add(old)
    store.assign([Decision(old[0].id, 1.0, "drawn")], {"a": "f1", "b": "f2"})

    waiting = read(store)

    assert waiting.undecided == 2
    none = dict.fromkeys([(name, state) for name in "ab" for state in ("candidate", "postponed", "running")], 0)
    assert waiting.exchanges == {**none, ("a", "ready"): 1, ("b", "ready"): 1}
    assert waiting.lag >= 90
    assert (waiting.workers, waiting.budget) == (0, {})
    assert read(store, "another") is None


def test_the_share_of_the_budget_that_is_spent(store: Store, read: Any) -> None:
    """Of each limit of the day, or of 24 hours, whichever is less; what is not limited has no share."""
    budget = Budget(calls_per_day=100, calls_per_hour=2, usd_per_hour=1.0)
    store.reserve_budget(Budget(calls_per_day=10**6), [Expense(12, 500.0, 6.0)])

    assert read(store, budget=budget).budget == {"calls": pytest.approx(12 / 48), "usd": pytest.approx(6 / 24)}


def test_where_nobody_looks_nothing_is_read(tmp_path: Path, read: Any) -> None:
    """Without a reader of metrics the database is not asked; that it is away is for other jobs to say."""
    nowhere = Store(f"sqlite:///{tmp_path / 'not' / 'there.db'}")

    assert read(nowhere, wanted=False) is None
    assert read(nowhere) is None
    nowhere.close()


def test_reading_takes_a_hundredth_of_the_time(
    store: Store, threads: Threads, settings: Callable[..., Settings], new_exchange: Any
) -> None:
    """What was read only just now is shown again, and not read anew."""
    office = Office(store, "sampler", "me", term=TERM, clock=now)
    measuring = Measuring(store, settings(), office=office, threads=threads, wanted=lambda: True)
    measuring._next = float("inf")

    asyncio.run(measuring.run())
    assert measuring.waiting is None
    measuring._next = 0.0
    asyncio.run(measuring.run())
    first = measuring.waiting
    assert first is not None
    assert measuring._next > 0.0

    measuring._next = float("inf")
    asyncio.run(measuring.run())
    assert measuring.waiting is first


def test_who_loses_the_office_shows_nothing_from_then_on(
    store: Store, threads: Threads, settings: Callable[..., Settings]
) -> None:
    """However long it would have been until the next reading: two processes would show the same backlog twice."""
    office = Office(store, "sampler", "me", term=TERM, clock=now)
    measuring = Measuring(store, settings(), office=office, threads=threads, wanted=lambda: True)
    asyncio.run(measuring.run())
    assert measuring.waiting is not None
    measuring._next = float("inf")

    office.resign()
    assert store.elect("sampler", "another", ttl=TERM)
    asyncio.run(measuring.run())
    assert measuring.waiting is None
