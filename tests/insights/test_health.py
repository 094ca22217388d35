"""How scoring does, as every page tells it."""

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
    """A store that goes by the clock."""
    opened = TrackingStore(migrated_url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def look(store: TrackingStore, clock: Clock, bare: Any) -> Callable[..., HealthSummary]:
    """Reads how scoring does."""

    def look(**settings: Any) -> HealthSummary:
        return load_health(InsightContext(store=store, settings=Settings(**settings), now=clock))

    return look


def an_exchange(name: str, age: timedelta = timedelta(minutes=5)) -> Exchange:
    """Return an exchange that began so long before noon."""
    texts: dict[str, Any] = {"question": "How do I pay?", "answer": "By card."}
    return Exchange(id=name, trace_id="t", span_id="s", service="shop", route="ask", started_at=NOON - age, **texts)


def beat(store: TrackingStore, **given: Any) -> None:
    """Have a process tell that it lives."""
    own: dict[str, Any] = {"id": "w1", "host": "h", "pid": 7, "service": "shop", "version": "1", "scorers": SCORERS}
    store.workers.heartbeat(WorkerHeartbeat(**own | given), [], lease=LEASE)


def test_an_empty_database_says_that_nothing_scores_and_nothing_came(look: Callable[..., HealthSummary]) -> None:
    """Nobody is told that all is well where nothing has happened yet."""
    found = look()

    assert (found.state, found.headline, found.backlog) == ("none", "no worker", "no backlog")
    assert "germane worker" in str(found.advice)
    assert found.is_stale
    assert not found.is_well
    assert (found.seen_at, found.lag) == (None, timedelta())


def test_a_process_that_was_seen_just_now_runs(
    store: TrackingStore, clock: Clock, look: Callable[..., HealthSummary]
) -> None:
    """With nothing waiting and nothing failing all is well, though its last sign of life is a minute old."""
    store.exchanges.add([an_exchange("a")])
    store.sampling.assign_tasks([SamplingDecision("a", 1.0, "uniform")], {})
    beat(store)
    clock.now += timedelta(seconds=60)
    found = look()

    assert (found.state, found.headline, found.advice) == ("running", "running", None)
    assert found.is_well
    assert found.seen_at == NOON
    assert not found.is_stale


def test_a_process_not_seen_for_two_leases_fell_silent(
    store: TrackingStore, clock: Clock, look: Callable[..., HealthSummary]
) -> None:
    """It is not taken for one that stopped, nor for one that runs."""
    beat(store)
    clock.now += timedelta(seconds=121)
    found = look()

    assert (found.state, found.headline) == ("unresponsive", "unresponsive")
    assert [one.id for one in found.unresponsive] == ["w1"]


def test_one_that_stopped_as_it_should_is_not_missed(store: TrackingStore, look: Callable[..., HealthSummary]) -> None:
    """Its row is gone, and nobody calls it silent."""
    beat(store)
    store.workers.deregister_worker("w1")

    assert look().state == "none"


def test_a_judge_that_no_process_asks_holds_scoring_up(
    store: TrackingStore, look: Callable[..., HealthSummary]
) -> None:
    """Why is said; once one of several processes works, scoring is not held up."""
    beat(store, problem="the key is rejected")
    assert (look().state, look().advice) == ("degraded", "the key is rejected")

    beat(store, id="w2")
    assert (look().state, look().headline) == ("running", "2 running")


def test_what_waits_is_counted_with_the_age_of_the_oldest(
    store: TrackingStore, look: Callable[..., HealthSummary]
) -> None:
    """Exchanges that nobody decided on and tasks that nobody took are one queue."""
    store.exchanges.add([an_exchange("a"), an_exchange("b"), an_exchange("c", timedelta(minutes=20))])
    store.sampling.assign_tasks([SamplingDecision("a", 1.0, "uniform"), SamplingDecision("b", 1.0, "uniform")], SCORERS)
    found = look()

    assert (found.waiting, found.backlog) == (3, "3 waiting")
    assert found.lag == timedelta(minutes=20)
    assert found.is_late


def test_candidates_of_a_budget_do_not_wait(store: TrackingStore, look: Callable[..., HealthSummary]) -> None:
    """They are picked when their interval ends: that is no delay."""
    store.exchanges.add([an_exchange("a")])
    assert store.workers.acquire_lease("sampler", "me", ttl=LEASE)
    store.sampling.assign_tasks([SamplingDecision("a", None, "candidate")], SCORERS, holder=("sampler", "me"))
    found = look()

    assert (found.waiting, found.scoring.candidates, found.lag) == (0, 1, timedelta())


def test_failures_of_the_last_hour_are_told_with_their_most_common_reason(
    store: TrackingStore, clock: Clock, look: Callable[..., HealthSummary]
) -> None:
    """They are apart from scores, and of the last hour only."""
    names = ["a", "b", "c", "d"]
    store.exchanges.add([an_exchange(name) for name in names])
    store.sampling.assign_tasks([SamplingDecision(name, 1.0, "uniform") for name in names], SCORERS)
    tasks = [task for claim in store.queue.claim_tasks("w1", SCORERS, limit=9, lease=LEASE) for task in claim.tasks]
    own: dict[str, Any] = {"scorer": "answer_relevancy", "fingerprint": "f1"}
    ended = [Score(**own, value=0.0), *(Score(**own, reason=reason) for reason in REASONS)]
    store.queue.complete_tasks("w1", list(zip(tasks, ended, strict=True)))
    found = look()

    assert (found.scoring.scored, found.failed, found.reason) == (1, 3, "judge_timeout")
    assert found.failures == "3 failures in the last hour: judge timeout"
    clock.now += timedelta(hours=2)
    assert look().failures == "no failures in the last hour"


REASONS = (UnscoredReason.JUDGE_TIMEOUT, UnscoredReason.UNPARSABLE, UnscoredReason.JUDGE_TIMEOUT)


def test_the_cost_of_today_stands_beside_what_may_be_spent(
    store: TrackingStore, look: Callable[..., HealthSummary]
) -> None:
    """An hourly limit counts up to the hour that has begun."""
    budget = Budget(requests_per_hour=10)
    store.quota.reserve_budget(budget, [RequestUsage(3, 900.0, 0.25)])
    found = look(budget=budget)

    assert found.scoring.spent_today.requests == 3
    assert found.scoring.spent_today.usd == pytest.approx(0.25, abs=1e-9)
    assert found.limits is not None
    assert found.limits.requests == 130
    assert look().limits is None


def test_data_older_than_an_hour_is_called_old(
    store: TrackingStore, clock: Clock, look: Callable[..., HealthSummary]
) -> None:
    """A page about answers of yesterday does not look like one about now."""
    store.exchanges.add([an_exchange("a", timedelta())])
    clock.now += timedelta(minutes=60)
    assert not look().is_stale

    clock.now += timedelta(seconds=1)
    assert look().is_stale
