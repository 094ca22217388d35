"""Scoring health, as every page shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.insights.context import InsightContext
from germane.insights.health import HealthSummary, load_health
from germane.score import Score, UnscoredReason
from germane.settings import Budget, Settings
from germane.storage import RequestUsage, SamplingDecision, TrackingStore, WorkerHeartbeat
from germane.testing import Clock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCORERS = {"answer_relevancy": "f1"}
LEASE = timedelta(seconds=60)


@pytest.fixture
def clock() -> Clock:
    """A clock that shows noon."""
    return Clock(NOON)


@pytest.fixture
def store(migrated_url: str, clock: Clock) -> Iterator[TrackingStore]:
    """A store that uses the clock."""
    opened = TrackingStore(migrated_url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def load(store: TrackingStore, clock: Clock, bare: Any) -> Callable[..., HealthSummary]:
    """Load the scoring health."""

    def load(**settings: Any) -> HealthSummary:
        return load_health(InsightContext(store=store, settings=Settings(**settings), now=clock))

    return load


def make_exchange(name: str, age: timedelta = timedelta(minutes=5)) -> Exchange:
    """Return an exchange of the given age."""
    texts: dict[str, Any] = {"question": "How do I pay?", "answer": "By card."}
    return Exchange(id=name, trace_id="t", span_id="s", service="shop", route="ask", started_at=NOON - age, **texts)


def send_heartbeat(store: TrackingStore, **given: Any) -> None:
    """Write the heartbeat of a process."""
    own: dict[str, Any] = {"id": "w1", "host": "h", "pid": 7, "service": "shop", "version": "1", "scorers": SCORERS}
    store.workers.heartbeat(WorkerHeartbeat(**own | given), [], lease=LEASE)


def test_an_empty_database_has_no_worker_and_no_answers(load: Callable[..., HealthSummary]) -> None:
    """An empty database is not reported as healthy."""
    found = load()

    assert (found.state, found.backlog) == ("none", "no backlog")
    assert "germane worker" in str(found.advice)
    assert found.is_stale
    assert not found.is_well
    assert (found.seen_at, found.lag) == (None, timedelta())


def test_a_worker_with_a_recent_heartbeat_is_running(
    store: TrackingStore, clock: Clock, load: Callable[..., HealthSummary]
) -> None:
    """Scoring without a backlog or failures is healthy, even if the heartbeat is a minute old."""
    store.exchanges.add([make_exchange("a")])
    store.sampling.assign_tasks([SamplingDecision("a", 1.0, "uniform")], {})
    send_heartbeat(store)
    clock.now += timedelta(seconds=60)
    found = load()

    assert (found.state, found.advice) == ("running", None)
    assert found.is_well
    assert found.seen_at == NOON
    assert not found.is_stale


def test_a_worker_without_a_recent_heartbeat_is_unresponsive(
    store: TrackingStore, clock: Clock, load: Callable[..., HealthSummary]
) -> None:
    """After two leases, the worker counts as neither stopped nor running."""
    send_heartbeat(store)
    clock.now += timedelta(seconds=121)
    found = load()

    assert found.state == "unresponsive"
    assert [one.id for one in found.unresponsive] == ["w1"]


def test_a_stopped_worker_is_not_unresponsive(store: TrackingStore, load: Callable[..., HealthSummary]) -> None:
    """A worker deletes its row when it stops."""
    send_heartbeat(store)
    store.workers.deregister_worker("w1")

    assert load().state == "none"


def test_scoring_is_degraded_if_the_judge_is_unreachable(
    store: TrackingStore, load: Callable[..., HealthSummary]
) -> None:
    """The problem is shown; scoring is healthy again when one of several workers succeeds."""
    send_heartbeat(store, problem="the key is rejected")
    assert (load().state, load().advice) == ("degraded", "the key is rejected")

    send_heartbeat(store, id="w2")
    assert (load().state, len(load().running)) == ("running", 2)


def test_the_backlog_has_its_size_and_the_age_of_its_oldest_exchange(
    store: TrackingStore, load: Callable[..., HealthSummary]
) -> None:
    """Undecided exchanges and unclaimed tasks form one backlog."""
    store.exchanges.add([make_exchange("a"), make_exchange("b"), make_exchange("c", timedelta(minutes=20))])
    store.sampling.assign_tasks([SamplingDecision("a", 1.0, "uniform"), SamplingDecision("b", 1.0, "uniform")], SCORERS)
    found = load()

    assert (found.waiting, found.backlog) == (3, "2 tasks and 1 undecided answer waiting")
    assert found.lag == timedelta(minutes=20)
    assert found.is_late


def test_candidates_under_a_budget_are_not_part_of_the_backlog(
    store: TrackingStore, load: Callable[..., HealthSummary]
) -> None:
    """Candidates are selected at the end of their interval, so they are not late."""
    store.exchanges.add([make_exchange("a")])
    assert store.workers.acquire_lease("sampler", "me", ttl=LEASE)
    store.sampling.assign_tasks([SamplingDecision("a", None, "candidate")], SCORERS, holder=("sampler", "me"))
    found = load()

    assert (found.waiting, found.scoring.candidates, found.lag) == (0, 1, timedelta())


def test_the_most_common_reason_for_failures_in_the_last_hour_is_shown(
    store: TrackingStore, clock: Clock, load: Callable[..., HealthSummary]
) -> None:
    """Failures do not count as scores."""
    names = ["a", "b", "c", "d"]
    store.exchanges.add([make_exchange(name) for name in names])
    store.sampling.assign_tasks([SamplingDecision(name, 1.0, "uniform") for name in names], SCORERS)
    tasks = [task for claim in store.queue.claim_tasks("w1", SCORERS, limit=9, lease=LEASE) for task in claim.tasks]
    own: dict[str, Any] = {"scorer": "answer_relevancy", "fingerprint": "f1"}
    ended = [Score(**own, value=0.0), *(Score(**own, reason=reason) for reason in REASONS)]
    store.queue.complete_tasks("w1", list(zip(tasks, ended, strict=True)))
    found = load()

    assert (found.scoring.scored, found.failed, found.reason) == (1, 3, "judge_timeout")
    clock.now += timedelta(hours=2)
    assert (load().failed, load().reason) == (0, None)


REASONS = (UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.UNPARSABLE, UnscoredReason.JUDGE_TIMEOUT)


def test_the_cost_of_today_is_compared_with_the_budget(
    store: TrackingStore, load: Callable[..., HealthSummary]
) -> None:
    """An hourly limit allows for the hours of the day so far, including the current one."""
    budget = Budget(requests_per_hour=10)
    store.quota.reserve_budget(budget, [RequestUsage(3, 900.0, 0.25)])
    found = load(budget=budget)

    assert found.scoring.spent_today.requests == 3
    assert found.scoring.spent_today.usd == pytest.approx(0.25, abs=1e-9)
    assert found.limits is not None
    assert found.limits.requests == 130
    assert load().limits is None


def test_data_is_stale_if_it_is_older_than_an_hour(
    store: TrackingStore, clock: Clock, load: Callable[..., HealthSummary]
) -> None:
    """Old answers do not look current."""
    store.exchanges.add([make_exchange("a", timedelta())])
    clock.now += timedelta(minutes=60)
    assert not load().is_stale

    clock.now += timedelta(seconds=1)
    assert load().is_stale
