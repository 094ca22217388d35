"""Feedback that requests a score: skipped tasks become ready, and the counts are updated."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import SamplerStep, SamplingDecision, SelectedCandidate, TrackingStore
from germane.storage.db import tables
from germane.testing import transaction

SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
Make = Callable[..., Exchange]


def make_feedback(exchange: Exchange, score: float, clock: Any, number: int = 0) -> Feedback:
    return Feedback(id=f"{exchange.id}-{number}", exchange_id=exchange.id, score=score, created_at=clock())


@pytest.fixture
def write_decided(store: TrackingStore, make: Make) -> Callable[..., Exchange]:
    """Write an exchange with its sampling decision."""

    def write(reason: str = "not_sampled", skip: Any = None, **given: Any) -> Exchange:
        exchange = make(**given)
        store.exchanges.add([exchange])
        skips = dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED) if skip is None else skip
        store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.1, reason, skips)], SCORERS)
        return exchange

    return write


def execute(store: TrackingStore, statement: Any) -> None:
    with transaction(store) as connection:
        connection.execute(statement)


def load_totals(store: TrackingStore) -> dict[str, Any]:
    """Return the summed tally after checking that seen = scored + skipped + failed + pending."""
    totals: dict[str, Any] = {"seen": 0, "scored": 0, "pending": 0, "skipped": {}}
    for one in store.trends.coverage():
        assert one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())
        for name in ("seen", "scored", "pending"):
            totals[name] += getattr(one, name)
        for reason, count in one.skipped.items():
            totals["skipped"][reason] = totals["skipped"].get(reason, 0) + count
    return totals


@pytest.mark.parametrize("reason", [UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])
def test_feedback_requeues_tasks_skipped_by_sampling_or_budget(
    store: TrackingStore, write_decided: Any, clock: Any, reason: UnscoredReason
) -> None:
    """The tasks can be claimed immediately, and the exchange gets a sampling probability of 1."""
    exchange = write_decided(str(reason), dict.fromkeys(SCORERS, reason), capture_probability=0.4)

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS) == 2
    assert load_totals(store) == {"seen": 2, "scored": 0, "pending": 2, "skipped": {}}
    (claim,) = store.queue.claim_tasks("me", SCORERS, limit=5, lease=timedelta(seconds=60))
    assert {task.scorer for task in claim.tasks} == set(SCORERS)
    store.queue.complete_tasks("me", [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.2))
                          for task in claim.tasks])  # fmt: skip
    assert load_totals(store)["scored"] == 2
    (mean,) = store.trends.means(scorer="relevancy", since=None)
    assert (mean.n, mean.mean) == (1, 0.2)


def test_feedback_removes_an_exchange_from_the_candidate_pool(store: TrackingStore, write_decided: Any) -> None:
    """The exchange's tasks become ready; they already counted as pending."""
    exchange = write_decided("candidate", {"faithfulness": UnscoredReason.MISSING_INPUT})
    tasks = tables.scoring_task
    execute(store, update(tasks).where(tasks.c.state == "pending").values(due_at=None))

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS) == 1
    assert load_totals(store) == {"seen": 2, "scored": 0, "pending": 1, "skipped": {"missing_input": 1}}
    (claim,) = store.queue.claim_tasks("me", SCORERS, limit=5, lease=timedelta(seconds=60))
    assert [task.scorer for task in claim.tasks] == ["relevancy"]


@pytest.mark.parametrize("rolled_up", [False, True])
def test_feedback_changes_the_weight_of_an_existing_score(
    store: TrackingStore, write_decided: Any, rolled_up: bool
) -> None:
    """A labeled answer has weight 1 in means, from rows and from rollups."""
    drawn, other = write_decided("sampled", {}), write_decided("sampled", {})
    claims = store.queue.claim_tasks("me", SCORERS, limit=5, lease=timedelta(seconds=60))
    value = {drawn.id: 0.0, other.id: 1.0}
    # A score can have a fingerprint other than its task's.
    results = [(task, Score(scorer=task.scorer, fingerprint="f9", value=value[task.exchange_id]))
               for claim in claims for task in claim.tasks]  # fmt: skip
    store.queue.complete_tasks("me", results)
    assert store.trends.means(scorer="relevancy", since=None)[0].mean == pytest.approx(0.5, abs=1e-9)
    store.rollups.update() if rolled_up else None

    assert store.sampling.apply_feedback([], [drawn.id], SCORERS) == 0

    assert store.trends.means(scorer="relevancy", since=None)[0].mean == pytest.approx(10 / 11, abs=1e-9)
    assert load_totals(store) == {"seen": 4, "scored": 4, "pending": 0, "skipped": {}}


def test_feedback_does_not_requeue_tasks_skipped_for_other_reasons(store: TrackingStore, write_decided: Any) -> None:
    """Missing inputs stay missing, and tasks with a different fingerprint are not requeued."""
    exchange = write_decided(
        skip={"relevancy": UnscoredReason.MISSING_INPUT, "faithfulness": UnscoredReason.NOT_SAMPLED}
    )

    assert store.sampling.apply_feedback([], [exchange.id], {"relevancy": "f1", "faithfulness": "f3"}) == 0
    assert load_totals(store)["skipped"] == {"missing_input": 1, "not_sampled": 1}


def test_feedback_does_not_requeue_erased_exchanges(store: TrackingStore, write_decided: Any, clock: Any) -> None:
    """Neither tasks nor the sampling probability change."""
    exchange = write_decided()
    execute(store, update(tables.exchange).values(erased_at=clock()))

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS) == 0
    assert load_totals(store)["skipped"] == {"not_sampled": 2}
    with transaction(store, read_only=True) as connection:
        assert connection.execute(tables.exchange.select()).mappings().one()["sampling_probability"] == 0.1


def test_feedback_is_applied_exactly_once(store: TrackingStore, write_decided: Any, clock: Any) -> None:
    """Applied feedback is not listed again, and applying more feedback does not requeue ready tasks."""
    exchange = write_decided()
    store.labels.add_feedback([make_feedback(exchange, 0.0, clock), make_feedback(exchange, 1.0, clock, 1)])

    (first, second) = store.sampling.list_pending_feedback(5)
    assert store.sampling.list_pending_feedback(1) == [first]
    assert store.sampling.apply_feedback([first.feedback.id], [exchange.id], SCORERS) == 2
    assert store.sampling.list_pending_feedback(5) == [second]
    assert (
        store.sampling.apply_feedback([second.feedback.id], [exchange.id], SCORERS) == 0
    )  # its tasks are ready already
    assert store.sampling.list_pending_feedback(5) == []
    assert load_totals(store) == {"seen": 2, "scored": 0, "pending": 2, "skipped": {}}


def test_feedback_waits_for_its_exchange(store: TrackingStore, make: Make, clock: Any) -> None:
    """Feedback that arrives first is listed after its exchange is written and decided."""
    exchange = make()
    store.labels.add_feedback([make_feedback(exchange, 0.0, clock)])
    assert store.sampling.list_pending_feedback(5) == []
    store.exchanges.add([exchange])
    assert store.sampling.list_pending_feedback(5) == []
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.1, "not_sampled", dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED))], SCORERS
    )

    assert [feedback.exchange.id for feedback in store.sampling.list_pending_feedback(5)] == [exchange.id]


def test_retention_drops_feedback_without_an_exchange(store: TrackingStore, make: Make, clock: Any) -> None:
    """Feedback whose exchange is still missing after a day is no longer considered."""
    lost, late, undecided = [make() for _ in range(450)], make(), make()
    store.exchanges.add([undecided])
    store.labels.add_feedback([make_feedback(exchange, 0.0, clock) for exchange in (*lost, undecided)])
    clock.advance(days=2)
    store.labels.add_feedback([make_feedback(late, 0.0, clock)])
    store.retention.prune()

    store.exchanges.add([*lost, late])
    skip = dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED)
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.1, "not_sampled", skip) for exchange in (*lost, late, undecided)], SCORERS
    )
    assert [feedback.exchange.id for feedback in store.sampling.list_pending_feedback(5)] == [undecided.id, late.id]


def test_requeued_exchange_counts_once_against_the_budget(store: TrackingStore, write_decided: Any) -> None:
    """A process that does not hold the sampler's lease changes nothing."""
    exchange = write_decided()
    assert store.workers.acquire_lease("sampler", "me", ttl=timedelta(seconds=60))

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS, holder=("sampler", "another")) is None
    assert load_totals(store)["pending"] == 0
    assert store.sampling.apply_feedback([], [exchange.id], SCORERS, holder=("sampler", "me")) == 2
    assert store.quota.load_usage().selected == 1
    assert store.sampling.apply_feedback([], [exchange.id], SCORERS, holder=("sampler", "me")) == 0
    assert store.quota.load_usage().selected == 1


def test_lag_of_a_selected_candidate_starts_at_its_selection(
    store: TrackingStore, write_decided: Any, clock: Any
) -> None:
    """Time as a candidate does not count as lag."""
    exchange = write_decided("candidate", {})
    store.workers.acquire_lease("sampler", "me", ttl=timedelta(hours=3))
    clock.advance(hours=1)
    assert store.pool.select_candidates(
        SamplerStep("sampler", "me", ""), [SelectedCandidate(exchange.id, 0.5, "uniform")]
    )
    clock.advance(seconds=7)

    assert store.backlog.load_backlog(alive_within=timedelta(seconds=60)).lag == timedelta(seconds=7)
