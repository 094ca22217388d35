"""Rescoring: the old score is kept until the new one is stored, and the counts stay correct."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text, update
from tests.exports import load_records
from tests.storage.test_tally import LEASE, REASONS, SCORERS, Run, _adds_up, _counts, _truth

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import (
    DetectorScoreQuery,
    RescoreResult,
    SamplingDecision,
    ScoringTask,
    TrackingStore,
)
from germane.storage.db.tables import scoring_task
from germane.testing import transaction

Make = Callable[..., Exchange]
CHANGED_SCORERS = {"relevancy": "f9", "faithfulness": "f2"}
few = st.integers(1, 4)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), few, st.sampled_from(["ask", "search"])),
        st.tuples(st.just("assign"), few, st.sampled_from([None, UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])),
        st.tuples(st.just("claim"), st.sampled_from(["a", "b"]), few),
        st.tuples(st.just("complete"), st.sampled_from(["a", "b"]), st.sampled_from(REASONS)),
        st.tuples(st.just("postpone"), st.sampled_from(["a", "b"]), few),
        st.tuples(st.just("rescore"), few, st.sampled_from([SCORERS, CHANGED_SCORERS])),
        st.tuples(st.just("advance"), few, st.just(30)),
        st.tuples(st.just("expire"), few, st.none()),
        st.tuples(st.just("erase"), few, st.none()),
    ),
    max_size=25,
)


class RescoreModel(Run):
    """Operations of the tally model, with rescoring, expiry and text erasure."""

    def claim(self, owner: str, limit: int) -> None:
        for scorers in (SCORERS, CHANGED_SCORERS):
            claims = self.store.queue.claim_tasks(owner, scorers, limit=limit, lease=LEASE)
            self.claimed[owner] += [task for claim in claims for task in claim.tasks]

    def rescore(self, count: int, scorers: dict[str, str]) -> None:
        exchanges = [
            exchange for exchange in self.store.answers.list_exchanges(limit=1000) if exchange.service == self.service
        ]
        self.store.queue.rescore([(one.id, name) for one in exchanges[-count:] for name in scorers], scorers)

    def expire(self, count: int, _: None) -> None:
        self.store.orphans.expire_orphaned_tasks(after=timedelta(), limit=count)

    def erase(self, count: int, _: None) -> None:
        self.store.retention.prune(texts_before=self.clock.now - timedelta(minutes=60 - count))


@pytest.mark.slow
@given(steps=operations)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tally_counts_add_up_while_exchanges_are_rescored(
    sqlite_store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]]
) -> None:
    """Counts match the tasks; a finished task has exactly one score, and other tasks have none."""
    run = RescoreModel(sqlite_store, make, clock)
    for name, first, second in steps:
        getattr(run, name)(first, second)

        covered = [coverage for coverage in sqlite_store.trends.coverage() if coverage.service == run.service]
        assert all(_adds_up(coverage) for coverage in covered)
        assert {(coverage.route, coverage.scorer): _counts(coverage) for coverage in covered} == _truth(run)
        assert _mismatched_tasks(sqlite_store) == []
    run.finish()


def _mismatched_tasks(store: TrackingStore) -> list[Any]:
    """Return finished tasks without a score and scores without a finished task."""
    query = text(
        "SELECT t.id, s.id FROM scoring_task t LEFT JOIN score s ON s.exchange_id = t.exchange_id "
        "AND s.scorer = t.scorer AND s.fingerprint = coalesce(nullif(t.scored_as, ''), t.fingerprint) "
        "WHERE (t.state = 'done' OR (t.state IN ('pending', 'running') AND coalesce(t.scored_as, '') <> '')) "
        "IS NOT (s.id IS NOT NULL)"
    )
    with transaction(store, read_only=True) as connection:
        return list(connection.execute(query))


@pytest.fixture
def scored_exchange(store: TrackingStore, make: Make, sampled: Callable[..., list[Exchange]]) -> Exchange:
    """An exchange with a score of 0.2."""
    (exchange,) = sampled(make(1), probability=0.5)
    complete_ready_tasks(store, value=0.2)
    return exchange


def complete_ready_tasks(
    store: TrackingStore, value: float | None = None, reason: UnscoredReason | None = None, fingerprint: str = "f1"
) -> None:
    """Claim and complete all ready tasks with the given result."""
    result = {"scorer": "relevancy", "fingerprint": fingerprint, "value": value, "reason": reason}
    tasks: list[ScoringTask] = []
    for scorers in ({"relevancy": fingerprint}, {"relevancy": "f1"}):
        tasks += [
            task for claim in store.queue.claim_tasks("me", scorers, limit=9, lease=LEASE) for task in claim.tasks
        ]
    assert tasks, "nothing was ready"
    store.queue.complete_tasks("me", [(task, Score(**result, explanation="said")) for task in tasks])  # type: ignore[arg-type]


def load_scores(store: TrackingStore, exchange: Exchange) -> list[tuple[str, float | None]]:
    """Return the fingerprint and value of each score of an exchange."""
    found = store.answers.get_scores([exchange.id]).get(exchange.id, [])
    return sorted((one.fingerprint, one.value) for one in found)


def load_task_states(store: TrackingStore, exchange: Exchange) -> list[tuple[str, str, bool]]:
    """Return fingerprint, state and rescore flag of each task of an exchange."""
    detail = store.answers.load_detail(exchange.id)
    assert detail is not None
    return [(task.fingerprint, task.state, task.is_rescore) for task in detail.tasks]


def test_a_new_score_replaces_the_old_score(store: TrackingStore, scored_exchange: Exchange) -> None:
    """The old score is kept until the new one is stored. There is one score per fingerprint, and its weight is kept."""
    requested = store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"})

    assert requested == RescoreResult(ready=1)
    assert load_scores(store, scored_exchange) == [("f1", 0.2)]
    assert load_task_states(store, scored_exchange) == [("f1", "pending", True)]

    complete_ready_tasks(store, value=0.8)

    assert load_scores(store, scored_exchange) == [("f1", 0.8)]
    assert load_task_states(store, scored_exchange) == [("f1", "done", False)]
    (mean,) = store.trends.summary()
    assert (mean.n, mean.mean, mean.coverage.scored, mean.coverage.seen) == (1, 0.8, 1, 1)


@pytest.mark.parametrize(("before", "after"), [(None, "f1"), ("", "f1"), ("f0", "f0")])
def test_a_queued_task_names_the_fingerprint_of_the_score_that_stands(
    store: TrackingStore, scored_exchange: Exchange, before: str | None, after: str
) -> None:
    """The score of an imported task may have another fingerprint than the task."""
    with transaction(store) as connection:
        connection.execute(update(scoring_task).values(scored_as=before))
    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"})
    with transaction(store, read_only=True) as connection:
        assert connection.execute(select(scoring_task.c.scored_as)).scalars().all() == [after]


def test_failed_rescore_keeps_the_old_score(store: TrackingStore, scored_exchange: Exchange) -> None:
    """The task records the error."""
    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"})

    complete_ready_tasks(store, reason=UnscoredReason.JUDGE_TIMEOUT)

    detail = store.answers.load_detail(scored_exchange.id)
    assert detail is not None
    assert load_scores(store, scored_exchange) == [("f1", 0.2)]
    assert [(task.state, task.error) for task in detail.tasks] == [("done", "rescoring failed: judge_timeout: said")]
    (covered,) = store.trends.coverage()
    assert (covered.scored, covered.failed, covered.pending) == (1, {}, 0)


def test_rescoring_with_a_different_fingerprint_adds_a_score(store: TrackingStore, scored_exchange: Exchange) -> None:
    """The two scores are kept under their own fingerprints, and no mean mixes them."""
    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f2"})
    complete_ready_tasks(store, value=0.6, fingerprint="f2")

    assert load_scores(store, scored_exchange) == [("f1", 0.2), ("f2", 0.6)]
    assert sorted((mean.fingerprint, mean.n, mean.mean) for mean in store.trends.summary()) == [
        ("f1", 1, 0.2),
        ("f2", 1, 0.6),
    ]
    (covered,) = store.trends.coverage()
    assert (covered.seen, covered.scored) == (2, 2)


def test_failed_task_can_be_rescored(store: TrackingStore, make: Make, sampled: Callable[..., list[Exchange]]) -> None:
    """The task starts over, and another failure leaves no score."""
    (exchange,) = sampled(make(1))
    complete_ready_tasks(store, reason=UnscoredReason.JUDGE_REJECTED)

    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(ready=1)
    complete_ready_tasks(store, reason=UnscoredReason.UNPARSABLE)
    assert load_task_states(store, exchange) == [("f1", "failed", False)]

    store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"})
    complete_ready_tasks(store, value=0.7)
    assert load_scores(store, exchange) == [("f1", 0.7)]


def test_scores_of_rescored_answers_do_not_reach_the_detector(store: TrackingStore, scored_exchange: Exchange) -> None:
    """The detector has seen the answer once, and rescored answers are not a random sample."""
    before = [score.value for score in store.detectors.list_new_scores(9)]
    for fingerprint in ("f1", "f2"):
        store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": fingerprint})
        complete_ready_tasks(store, value=0.9, fingerprint=fingerprint)

    assert before == [0.2]
    assert [score.value for score in store.detectors.list_new_scores(9)] == [0.2]


@pytest.mark.parametrize("reason", [UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])
def test_unsampled_exchanges_are_not_rescored(store: TrackingStore, make: Make, reason: UnscoredReason) -> None:
    """Their scores would be weighted as if they had been sampled."""
    exchange = make(1)
    store.exchanges.add([exchange])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.5, "sampled", {"relevancy": reason})], {"relevancy": "f1"}
    )

    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(not_sampled=1)
    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f2"}) == RescoreResult(not_sampled=1)


def test_rescoring_makes_postponed_tasks_ready_immediately(
    store: TrackingStore, make: Make, sampled: Callable[..., list[Exchange]], clock: Any
) -> None:
    """Running tasks do not change."""
    (exchange,) = sampled(make(1))
    (claim,) = store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(waiting=1)
    later = clock.now + timedelta(hours=1)
    store.queue.postpone_tasks("me", claim.tasks, until=later, reason=UnscoredReason.JUDGE_RATE_LIMITED, error="busy")

    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(waiting=1)

    complete_ready_tasks(store, value=0.5)
    assert load_scores(store, exchange) == [("f1", 0.5)]


def test_rescoring_reports_the_number_of_exchanges_that_cannot_be_scored(
    store: TrackingStore, make: Make, scored_exchange: Exchange, clock: Any
) -> None:
    """Erased texts, unknown exchanges, unknown scorers and undecided exchanges are reported by category."""
    fresh = make(2)
    store.exchanges.add([fresh])
    requested = [("nobody", "relevancy"), (scored_exchange.id, "other"), (fresh.id, "relevancy")]

    assert store.queue.rescore(requested, {"relevancy": "f1"}) == RescoreResult(unknown=2, waiting=1)

    store.retention.prune(texts_before=clock.now)
    assert store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(erased=1)
    assert load_scores(store, scored_exchange) == [("f1", 0.2)]


def test_erasing_text_cancels_a_rescore_and_keeps_the_score(
    store: TrackingStore, scored_exchange: Exchange, clock: Any
) -> None:
    """The task returns to done instead of expiring."""
    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"})

    store.retention.prune(texts_before=clock.now)

    assert load_task_states(store, scored_exchange) == [("f1", "done", False)]
    (covered,) = store.trends.coverage()
    assert (covered.scored, covered.skipped, covered.pending) == (1, {}, 0)


def test_export_omits_a_pending_rescore(store: TrackingStore, scored_exchange: Exchange) -> None:
    """The exported task is done and has its stored score."""
    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"})

    (record,) = load_records(store)

    assert [(task["state"], task["due_at"]) for task in record.tasks] == [("done", None)]
    assert [row["value"] for row in record.scores] == [0.2]


def test_baseline_history_has_one_score_per_rescored_answer(
    store: TrackingStore, scored_exchange: Exchange, clock: Any
) -> None:
    """A rescored answer does not count twice in a baseline."""
    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"})
    complete_ready_tasks(store, value=0.9)
    past = DetectorScoreQuery(
        service="shop",
        scorer="relevancy",
        fingerprint="f1",
        since=clock.now - timedelta(hours=2),
        until=clock.now + timedelta(hours=1),
    )

    assert store.detectors.count_past_scores(past) <= 1


def test_rescoring_counts_against_the_budget(store: TrackingStore, scored_exchange: Exchange) -> None:
    """With a budget, a rescored exchange counts as selected once, even if rescoring is requested twice."""
    before = store.quota.load_usage().selected

    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"}, budgeted=True)
    store.queue.rescore([(scored_exchange.id, "relevancy")], {"relevancy": "f1"}, budgeted=True)

    assert store.quota.load_usage().selected == before + 1
