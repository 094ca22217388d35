"""An hour-long judge outage, and a clock that is set back by an hour."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from audit import DatabaseAudit
from tests.databases import POSTGRESQL_IS_THOROUGH

from germane.errors import ScoringError
from germane.exchange import Exchange, new_exchange_id, sampling_key_for
from germane.monitor import Monitor, MonitorConfig
from germane.score import UnscoredReason
from germane.settings import load_settings
from germane.storage import SamplingDecision, TrackingStore
from germane.testing import Clock

pytestmark = POSTGRESQL_IS_THOROUGH
Until = Callable[..., None]
LogLines = Callable[[], list[str]]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
CONCURRENCY = 4
LEASE = 4.0
"""Seconds. Heartbeats, which detect a clock that was set back, are sent four times per lease duration."""
POLL_INTERVAL = 0.01
"""Seconds. This is shorter than the settings allow, because each simulated minute takes one interval."""


class Scorer:
    """A scorer that can be made unreachable."""

    name = "instant"
    fingerprint = "i1"
    requires = frozenset({"question", "answer"})
    range = (0.0, 1.0)

    def __init__(self) -> None:
        self.unreachable = False
        self.asked: list[str] = []
        self.in_flight = self.most_in_flight = 0

    async def score(self, exchange: Exchange) -> float:
        self.asked.append(exchange.id)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        self.in_flight -= 1
        if self.unreachable:
            raise ScoringError(UnscoredReason.JUDGE_UNREACHABLE, "connection refused")
        return 0.5


class World:
    """A monitor with a simulated clock, and its database."""

    def __init__(self, url: str) -> None:
        self.url, self.clock, self.scorer = url, Clock(), Scorer()
        self.store = TrackingStore(url, clock=self.clock)

    def add(self, count: int = 1) -> None:
        """Capture exchanges at the current time."""
        self.store.exchanges.add([self._exchange() for _ in range(count)])

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
            sampling_key=sampling_key_for(trace_id),
        )

    @contextmanager
    def monitored(self, task_lease: float = LEASE) -> Iterator[Monitor]:
        """Run a monitor like a separate process."""
        settings = load_settings(concurrency=CONCURRENCY, task_lease=task_lease, service="shop").model_copy(
            update={"poll_interval": POLL_INTERVAL}
        )
        monitor = Monitor(MonitorConfig(self.store, [self.scorer], settings, attach=lambda *_: None, clock=self.clock))
        monitor.start()
        try:
            yield monitor
        finally:
            monitor.stop()

    def is_idle(self, monitor: Monitor) -> bool:
        """Return whether every job has run at the current time, and no request is in flight."""
        status = monitor.status()
        runs = [status.jobs[name].last_run for name in ("sample", "score")]
        return not status.in_flight + status.unsaved and all(run == self.clock.now for run in runs)

    @property
    def finished_tasks(self) -> int:
        """Return the number of finished tasks."""
        counts = self.store.answers.counts()
        return counts.done + counts.failed + counts.skipped


@pytest.fixture
def world(migrated_url: str) -> Iterator[World]:
    """A clock at noon and an empty database."""
    made = World(migrated_url)
    yield made
    made.store.close()


def test_no_score_is_lost_in_a_judge_outage_of_an_hour(world: World, until: Until, logged: LogLines) -> None:
    """Few requests are sent during the outage, then one per exchange, within the concurrency limit. The pause and its
    end are logged once each."""
    world.scorer.unreachable = True
    world.add(40)
    # A task in flight keeps its lease when the clock jumps by a minute, so it is not claimed twice.
    with world.monitored(task_lease=HOUR.total_seconds()) as monitor:
        for _ in range(60):
            until(lambda: world.is_idle(monitor))
            world.add()
            world.clock.now += MINUTE
        before, world.scorer.unreachable = Counter(world.scorer.asked), False
        # These are the requests in flight when the outage starts, and at most one probe per minute.
        assert sum(before.values()) <= 2 * CONCURRENCY + 60
        asked = len(world.scorer.asked)
        for _ in range(15):
            world.clock.now += MINUTE
            until(lambda: world.is_idle(monitor))
        until(lambda: world.finished_tasks == 100)

    audit = DatabaseAudit(world.url)
    assert audit.outcomes == {("scored", ""): 100}
    assert audit.violations(set()) == []
    assert len(world.scorer.asked) - asked <= 100 + 1
    assert world.scorer.most_in_flight <= CONCURRENCY
    assert [line.partition(" ")[2] for line in logged() if line.startswith("instant ")] == [
        "is paused and will be retried automatically: judge_unreachable: connection refused",
        "has resumed",
    ]


def test_sampling_continues_after_the_clock_is_set_back(world: World, until: Until) -> None:
    """The sampler keeps its lease, and exchanges with earlier times than previous ones are scored immediately."""
    with world.monitored() as monitor:
        world.add(20)
        until(lambda: world.finished_tasks == 20)
        world.clock.now -= HOUR
        world.add(20)

        until(lambda: world.finished_tasks == 40)
        assert monitor.status().judge_problem is None

    assert DatabaseAudit(world.url).violations(set()) == []


def test_leases_of_a_killed_process_expire_on_time_after_the_clock_is_set_back(world: World, until: Until) -> None:
    """The leases of tasks and of the sampler expire when they would have without the change, not an hour later."""
    world.add(10)
    ours, term = {world.scorer.name: world.scorer.fingerprint}, timedelta(seconds=LEASE)
    decisions = [
        SamplingDecision(exchange.id, probability=1.0, sampling_reason="sampled")
        for exchange in world.store.answers.list_exchanges()
    ]
    world.store.sampling.assign_tasks(decisions, ours)
    assert len(world.store.queue.claim_tasks("dead", ours, limit=10, lease=term)) == 10
    assert world.store.workers.acquire_lease("sampler", "dead", ttl=term)
    world.add(10)

    world.clock.now -= HOUR
    with world.monitored() as monitor:
        for _ in range(5):
            until(lambda: world.is_idle(monitor))
            world.clock.now += MINUTE
        until(lambda: world.finished_tasks == 20)

    assert DatabaseAudit(world.url).violations(set()) == []


def test_retries_start_on_time_after_the_clock_is_set_back(world: World, until: Until) -> None:
    """Neither a scorer's pause nor a task's delay grows by the repeated hour."""
    world.scorer.unreachable = True
    world.add(20)
    with world.monitored() as monitor:
        until(lambda: monitor.status().judge_problem and world.is_idle(monitor))
        world.scorer.unreachable = False
        world.clock.now -= HOUR
        for _ in range(10):
            until(lambda: world.is_idle(monitor))
            world.clock.now += MINUTE
        until(lambda: world.finished_tasks == 20)

    audit = DatabaseAudit(world.url)
    assert (audit.outcomes, audit.violations(set())) == ({("scored", ""): 20}, [])
