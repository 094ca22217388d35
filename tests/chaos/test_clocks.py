"""An hour goes by, or comes again: a judge that is away for one, and a clock that is set back by one."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from accounts import Accounts

from germane.errors import ScoringError
from germane.exchange import Exchange, draw_of, new_exchange_id
from germane.monitor import Monitor
from germane.score import Reason
from germane.settings import load
from germane.storage import Decision, Store

Until = Callable[..., None]
Told = Callable[[], list[str]]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
PLACES = 4
LEASE = 4.0
"""Seconds; a fourth of it lies between two signs of life, by which a clock that was set back is noticed."""
TICK = 0.01
"""Seconds; shorter than a setting may be, as each minute of a test takes one."""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Scorer:
    """A judge of this process, which may be away."""

    name = "instant"
    fingerprint = "i1"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self) -> None:
        self.away = False
        self.asked: list[str] = []
        self.in_flight = self.most_in_flight = 0

    async def score(self, exchange: Exchange) -> float:
        self.asked.append(exchange.id)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        self.in_flight -= 1
        if self.away:
            raise ScoringError(Reason.JUDGE_UNREACHABLE, "nobody answers")
        return 0.5


class World:
    """A monitor whose time is told, and its database."""

    def __init__(self, url: str) -> None:
        self.url, self.clock, self.scorer = url, Clock(), Scorer()
        self.store = Store(url, clock=self.clock)

    def add(self, count: int = 1) -> None:
        """Capture exchanges, now."""
        self.store.add([self._exchange() for _ in range(count)])

    def _exchange(self) -> Exchange:
        trace_id = os.urandom(16).hex()
        return Exchange(
            id=new_exchange_id(),
            trace_id=trace_id,
            span_id=trace_id[:16],
            service="shop",
            route="ask",
            question="How long is the warranty?",
            answer=f"Two years, says {trace_id}.",
            started_at=self.clock.now,
            sampling_key=draw_of(trace_id),
        )

    @contextmanager
    def monitored(self, lease: float = LEASE) -> Iterator[Monitor]:
        """Run a monitor, as a process of its own would."""
        settings = load(concurrency=PLACES, lease=lease, service="shop").model_copy(update={"tick": TICK})
        monitor = Monitor(self.store, [self.scorer], settings, attach=lambda *_: None, clock=self.clock)
        monitor.start()
        try:
            yield monitor
        finally:
            monitor.stop()

    def rested(self, monitor: Monitor) -> bool:
        """Whether every job ran at the time that it is now, and nothing is in flight."""
        status = monitor.status()
        runs = [status.jobs[name].last_run for name in ("sample", "score")]
        return not status.in_flight + status.unsaved and all(run == self.clock.now for run in runs)

    @property
    def closed(self) -> int:
        """How many tasks have an end."""
        counts = self.store.counts()
        return counts.done + counts.failed + counts.skipped


@pytest.fixture
def world(migrated_url: str) -> Iterator[World]:
    """A clock at noon and an empty database."""
    made = World(migrated_url)
    yield made
    made.store.close()


def test_a_judge_that_is_away_for_an_hour_costs_no_score(world: World, until: Until, told: Told) -> None:
    """It is asked a few times meanwhile, and at its return once for each exchange, no more at a time than ever.

    The log says that it is left alone, and that it is back: one line each.
    """
    world.scorer.away = True
    world.add(40)
    # What is in flight when a minute passes at once keeps its lease: nobody takes it up a second time.
    with world.monitored(lease=HOUR.total_seconds()) as monitor:
        for _ in range(60):
            until(lambda: world.rested(monitor))
            world.add()
            world.clock.now += MINUTE
        before, world.scorer.away = Counter(world.scorer.asked), False
        assert sum(before.values()) <= 2 * PLACES + 60  # those in flight when it went, and a probe a minute at most
        asked = len(world.scorer.asked)
        for _ in range(15):
            world.clock.now += MINUTE
            until(lambda: world.rested(monitor))
        until(lambda: world.closed == 100)

    accounts = Accounts(world.url)
    assert accounts.outcomes == {("scored", ""): 100}
    assert accounts.faults(set()) == []
    assert len(world.scorer.asked) - asked <= 100 + 1
    assert world.scorer.most_in_flight <= PLACES
    assert [line.partition(" ")[2] for line in told() if line.startswith("instant ")] == [
        "pauses, and tries again by itself: judge_unreachable: nobody answers",
        "goes on",
    ]


def test_after_the_clock_is_set_back_by_an_hour_what_comes_is_scored_as_before(world: World, until: Until) -> None:
    """The sampler stays in office, sees what is now older than what it saw last, and scores it at once."""
    with world.monitored() as monitor:
        world.add(20)
        until(lambda: world.closed == 20)
        world.clock.now -= HOUR
        world.add(20)

        until(lambda: world.closed == 40)
        assert monitor.status().judge_problem is None

    assert Accounts(world.url).faults(set()) == []


def test_after_the_clock_is_set_back_the_work_of_a_dead_process_is_taken_up_as_soon_as_ever(
    world: World, until: Until
) -> None:
    """Not an hour later: the leases that it left, of tasks and of its office, end when they would have."""
    world.add(10)
    ours, term = {world.scorer.name: world.scorer.fingerprint}, timedelta(seconds=LEASE)
    drawn = [Decision(one.id, probability=1.0, sampling_reason="drawn") for one in world.store.exchanges()]
    world.store.assign(drawn, ours)
    assert len(world.store.claim("dead", ours, limit=10, lease=term)) == 10
    assert world.store.elect("sampler", "dead", ttl=term)
    world.add(10)

    world.clock.now -= HOUR
    with world.monitored() as monitor:
        for _ in range(5):
            until(lambda: world.rested(monitor))
            world.clock.now += MINUTE
        until(lambda: world.closed == 20)

    assert Accounts(world.url).faults(set()) == []


def test_after_the_clock_is_set_back_what_was_to_be_tried_again_is_tried_as_soon_as_ever(
    world: World, until: Until
) -> None:
    """Not an hour later: neither the scorer's pause nor the wait of a single task grows by what the clock lost."""
    world.scorer.away = True
    world.add(20)
    with world.monitored() as monitor:
        until(lambda: monitor.status().judge_problem and world.rested(monitor))
        world.scorer.away = False
        world.clock.now -= HOUR
        for _ in range(10):
            until(lambda: world.rested(monitor))
            world.clock.now += MINUTE
        until(lambda: world.closed == 20)

    accounts = Accounts(world.url)
    assert (accounts.outcomes, accounts.faults(set())) == ({("scored", ""): 20}, [])
