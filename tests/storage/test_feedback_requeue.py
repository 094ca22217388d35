"""Feedback that asks for a score: what was left out is scored after all, and every count goes along."""

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

SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
Make = Callable[..., Exchange]


def label(exchange: Exchange, score: float, clock: Any, number: int = 0) -> Feedback:
    return Feedback(id=f"{exchange.id}-{number}", exchange_id=exchange.id, score=score, created_at=clock())


@pytest.fixture
def decided(store: TrackingStore, make: Make) -> Callable[..., Exchange]:
    """Writes an exchange and what the sampler decided on it."""

    def write(reason: str = "not_sampled", skip: Any = None, **given: Any) -> Exchange:
        exchange = make(**given)
        store.exchanges.add([exchange])
        skipped = dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED) if skip is None else skip
        store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.1, reason, skipped)], SCORERS)
        return exchange

    return write


def execute(store: TrackingStore, statement: Any) -> None:
    with store._database.write() as connection:
        connection.execute(statement)


def counted(store: TrackingStore) -> dict[str, Any]:
    """Return the sums of the tally, having seen that seen = scored + skipped + failed + pending."""
    totals: dict[str, Any] = {"seen": 0, "scored": 0, "pending": 0, "skipped": {}}
    for one in store.trends.coverage():
        assert one.seen == one.scored + one.pending + sum(one.skipped.values()) + sum(one.failed.values())
        for name in ("seen", "scored", "pending"):
            totals[name] += getattr(one, name)
        for reason, count in one.skipped.items():
            totals["skipped"][reason] = totals["skipped"].get(reason, 0) + count
    return totals


@pytest.mark.parametrize("reason", [UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])
def test_what_was_left_out_becomes_ready(
    store: TrackingStore, decided: Any, clock: Any, reason: UnscoredReason
) -> None:
    """A task that luck or money skipped can be claimed at once; its exchange was then sure to be scored if kept."""
    exchange = decided(str(reason), dict.fromkeys(SCORERS, reason), capture_probability=0.4)

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS) == 2
    assert counted(store) == {"seen": 2, "scored": 0, "pending": 2, "skipped": {}}
    (claim,) = store.queue.claim_tasks("me", SCORERS, limit=5, lease=timedelta(seconds=60))
    assert {task.scorer for task in claim.tasks} == set(SCORERS)
    store.queue.complete_tasks("me", [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.2))
                          for task in claim.tasks])  # fmt: skip
    assert counted(store)["scored"] == 2
    (mean,) = store.trends.means(scorer="relevancy", since=None)
    assert (mean.n, mean.mean) == (1, 0.2)


def test_what_waits_in_the_pool_leaves_it(store: TrackingStore, decided: Any) -> None:
    """A candidate is not picked or passed over any more: its tasks are ready, and were counted as pending before."""
    exchange = decided("candidate", {"faithfulness": UnscoredReason.MISSING_INPUT})
    tasks = tables.scoring_task
    execute(store, update(tasks).where(tasks.c.state == "pending").values(not_before=None))

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS) == 1
    assert counted(store) == {"seen": 2, "scored": 0, "pending": 1, "skipped": {"missing_input": 1}}
    (claim,) = store.queue.claim_tasks("me", SCORERS, limit=5, lease=timedelta(seconds=60))
    assert [task.scorer for task in claim.tasks] == ["relevancy"]


@pytest.mark.parametrize("roll", [False, True])
def test_a_score_that_is_there_gets_the_new_weight(store: TrackingStore, decided: Any, roll: bool) -> None:
    """One bad answer among ten stands for ten; once it is sure to be scored, it stands for itself: rolled up or not."""
    drawn, other = decided("sampled", {}), decided("sampled", {})
    claims = store.queue.claim_tasks("me", SCORERS, limit=5, lease=timedelta(seconds=60))
    value = {drawn.id: 0.0, other.id: 1.0}
    # What really made a score may bear another fingerprint than its task.
    results = [(task, Score(scorer=task.scorer, fingerprint="f9", value=value[task.exchange_id]))
               for claim in claims for task in claim.tasks]  # fmt: skip
    store.queue.complete_tasks("me", results)
    assert store.trends.means(scorer="relevancy", since=None)[0].mean == pytest.approx(0.5, abs=1e-9)
    store.rollups.update() if roll else None

    assert store.sampling.apply_feedback([], [drawn.id], SCORERS) == 0

    assert store.trends.means(scorer="relevancy", since=None)[0].mean == pytest.approx(10 / 11, abs=1e-9)
    assert counted(store) == {"seen": 4, "scored": 4, "pending": 0, "skipped": {}}


def test_what_is_skipped_for_another_reason_stays_so(store: TrackingStore, decided: Any) -> None:
    """An input that is missing is still missing, and a task of a fingerprint that does not run is nobody's."""
    exchange = decided(skip={"relevancy": UnscoredReason.MISSING_INPUT, "faithfulness": UnscoredReason.NOT_SAMPLED})

    assert store.sampling.apply_feedback([], [exchange.id], {"relevancy": "f1", "faithfulness": "f3"}) == 0
    assert counted(store)["skipped"] == {"missing_input": 1, "not_sampled": 1}


def test_what_is_erased_stays_as_it_is(store: TrackingStore, decided: Any, clock: Any) -> None:
    """Without its text nothing can be scored: neither tasks nor probability change."""
    exchange = decided()
    execute(store, update(tables.exchange).values(erased_at=clock()))

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS) == 0
    assert counted(store)["skipped"] == {"not_sampled": 2}
    with store._database.read() as connection:
        assert connection.execute(tables.exchange.select()).mappings().one()["sampling_probability"] == 0.1


def test_a_label_is_considered_once(store: TrackingStore, decided: Any, clock: Any) -> None:
    """What was considered is not met again; a second time changes nothing."""
    exchange = decided()
    store.labels.add_feedback([label(exchange, 0.0, clock), label(exchange, 1.0, clock, 1)])

    (first, second) = store.sampling.list_pending_feedback(5)
    assert store.sampling.list_pending_feedback(1) == [first]
    assert store.sampling.apply_feedback([first.feedback.id], [exchange.id], SCORERS) == 2
    assert store.sampling.list_pending_feedback(5) == [second]
    assert store.sampling.apply_feedback([second.feedback.id], [exchange.id], SCORERS) == 0  # what is ready stays so
    assert store.sampling.list_pending_feedback(5) == []
    assert counted(store) == {"seen": 2, "scored": 0, "pending": 2, "skipped": {}}


def test_a_label_waits_for_its_exchange(store: TrackingStore, make: Make, clock: Any) -> None:
    """Feedback may come first: it is considered once its exchange is written and decided on."""
    exchange = make()
    store.labels.add_feedback([label(exchange, 0.0, clock)])
    assert store.sampling.list_pending_feedback(5) == []
    store.exchanges.add([exchange])
    assert store.sampling.list_pending_feedback(5) == []
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.1, "not_sampled", dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED))], SCORERS
    )

    assert [one.exchange.id for one in store.sampling.list_pending_feedback(5)] == [exchange.id]


def test_a_label_does_not_wait_for_ever(store: TrackingStore, make: Make, clock: Any) -> None:
    """Housekeeping takes care that what has not found its exchange within a day is looked at no more."""
    lost, late, undecided = [make() for _ in range(450)], make(), make()
    store.exchanges.add([undecided])
    store.labels.add_feedback([label(one, 0.0, clock) for one in (*lost, undecided)])
    clock.advance(days=2)
    store.labels.add_feedback([label(late, 0.0, clock)])
    store.retention.prune()

    store.exchanges.add([*lost, late])
    skip = dict.fromkeys(SCORERS, UnscoredReason.NOT_SAMPLED)
    store.sampling.assign_tasks(
        [SamplingDecision(one.id, 0.1, "not_sampled", skip) for one in (*lost, late, undecided)], SCORERS
    )
    assert [one.exchange.id for one in store.sampling.list_pending_feedback(5)] == [undecided.id, late.id]


def test_under_a_budget_what_is_asked_for_counts_as_picked(store: TrackingStore, decided: Any) -> None:
    """Each exchange once, whatever its tasks; and nothing is done for who does not hold the office any more."""
    exchange = decided()
    assert store.workers.acquire_lease("sampler", "me", ttl=timedelta(seconds=60))

    assert store.sampling.apply_feedback([], [exchange.id], SCORERS, holder=("sampler", "another")) is None
    assert counted(store)["pending"] == 0
    assert store.sampling.apply_feedback([], [exchange.id], SCORERS, holder=("sampler", "me")) == 2
    assert store.quota.load_usage().selected == 1
    assert store.sampling.apply_feedback([], [exchange.id], SCORERS, holder=("sampler", "me")) == 0
    assert store.quota.load_usage().selected == 1


def test_a_pick_has_not_waited_before_it_was_picked(store: TrackingStore, decided: Any, clock: Any) -> None:
    """Time in the pool is no delay: a pick is as late as the time since its interval ended."""
    exchange = decided("candidate", {})
    store.workers.acquire_lease("sampler", "me", ttl=timedelta(hours=3))
    clock.advance(hours=1)
    assert store.sampling.select_candidates(
        SamplerStep("sampler", "me", ""), [SelectedCandidate(exchange.id, 0.5, "uniform")]
    )
    clock.advance(seconds=7)

    assert store.queue.load_backlog(alive_within=timedelta(seconds=60)).lag == timedelta(seconds=7)
