"""Queue metrics, which one process reads if they are exported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.daemon_pool import DaemonThreadPool
from germane.monitor.jobs.queue_metrics import QueueMetricsJob
from germane.monitor.loop.leases import LeaderLease
from germane.settings import Budget, Settings
from germane.storage import RequestUsage, SamplingDecision, TrackingStore
from germane.tracer import BacklogState

TERM = timedelta(seconds=30)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def threads() -> Iterator[DaemonThreadPool]:
    made = DaemonThreadPool(1, name="test-measuring")
    yield made
    made.close()
    made.join(10)


@pytest.fixture
def read(threads: DaemonThreadPool, settings: Callable[..., Settings]) -> Callable[..., BacklogState | None]:
    """Run the job once, as the process ``owner``."""

    def read(store: TrackingStore, owner: str = "me", *, wanted: bool = True, **changes: Any) -> BacklogState | None:
        office = LeaderLease(store, "sampler", owner, ttl=TERM, clock=now)
        measuring = QueueMetricsJob(
            store, settings(**changes), leader=office, thread_pool=threads, is_needed=lambda: wanted
        )
        asyncio.run(measuring.run())
        return measuring.snapshot

    return read


def test_only_the_process_that_samples_reports_queue_metrics(
    store: TrackingStore, read: Any, new_exchange: Any
) -> None:
    """It reports undecided exchanges, tasks by scorer and state, and the age of the oldest. Other processes report
    nothing."""
    old = [new_exchange(started_at=now() - timedelta(seconds=90)) for _ in range(3)]
    store.exchanges.add(old)
    store.sampling.assign_tasks([SamplingDecision(old[0].id, 1.0, "sampled")], {"a": "f1", "b": "f2"})

    waiting = read(store)

    assert waiting.undecided == 2
    none = dict.fromkeys([(name, state) for name in "ab" for state in ("candidate", "postponed", "running")], 0)
    assert waiting.exchanges == {**none, ("a", "ready"): 1, ("b", "ready"): 1}
    assert waiting.lag >= 90
    assert (waiting.workers, waiting.budget) == (0, {})
    assert read(store, "another") is None


def test_the_used_share_of_the_budget_is_reported(store: TrackingStore, read: Any) -> None:
    """The share is relative to the daily limit or to 24 hourly limits, whichever is lower. An unlimited unit has no
    share."""
    budget = Budget(requests_per_day=100, requests_per_hour=2, usd_per_hour=1.0)
    store.quota.reserve_budget(Budget(requests_per_day=10**6), [RequestUsage(12, 500.0, 6.0)])

    assert read(store, budget=budget).budget == {"requests": pytest.approx(12 / 48), "usd": pytest.approx(6 / 24)}


def test_queue_metrics_are_not_queried_without_an_exporter(tmp_path: Path, read: Any) -> None:
    """The database is not called, and other jobs report a database outage."""
    nowhere = TrackingStore(f"sqlite:///{tmp_path / 'not' / 'there.db'}")

    assert read(nowhere, wanted=False) is None
    assert read(nowhere) is None
    nowhere.close()


def test_queries_for_queue_metrics_take_at_most_one_percent_of_the_time(
    store: TrackingStore, threads: DaemonThreadPool, settings: Callable[..., Settings], new_exchange: Any
) -> None:
    """A recent snapshot is reused."""
    office = LeaderLease(store, "sampler", "me", ttl=TERM, clock=now)
    measuring = QueueMetricsJob(store, settings(), leader=office, thread_pool=threads, is_needed=lambda: True)
    measuring._next_read = float("inf")

    asyncio.run(measuring.run())
    assert measuring.snapshot is None
    measuring._next_read = 0.0
    asyncio.run(measuring.run())
    first = measuring.snapshot
    assert first is not None
    assert measuring._next_read > 0.0

    measuring._next_read = float("inf")
    asyncio.run(measuring.run())
    assert measuring.snapshot is first


def test_a_process_that_lost_the_leader_lease_stops_reporting_the_queue(
    store: TrackingStore, threads: DaemonThreadPool, settings: Callable[..., Settings]
) -> None:
    """Otherwise two processes would report the same backlog."""
    office = LeaderLease(store, "sampler", "me", ttl=TERM, clock=now)
    measuring = QueueMetricsJob(store, settings(), leader=office, thread_pool=threads, is_needed=lambda: True)
    asyncio.run(measuring.run())
    assert measuring.snapshot is not None
    measuring._next_read = float("inf")

    office.release()
    assert store.workers.acquire_lease("sampler", "another", ttl=TERM)
    asyncio.run(measuring.run())
    assert measuring.snapshot is None
