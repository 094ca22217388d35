"""Answers that are scored again: the old score stands until the new one comes, and the counts stay true."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests.storage.test_tally import LEASE, REASONS, SCORERS, Run, _adds_up, _counts, _truth

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import (
    DetectorScoreQuery,
    ExchangeRecord,
    ExportSelection,
    RescoreResult,
    SamplingDecision,
    ScoringTask,
    TrackingStore,
)

Make = Callable[..., Exchange]
NEWER = {"relevancy": "f9", "faithfulness": "f2"}
few = st.integers(1, 4)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), few, st.sampled_from(["ask", "search"])),
        st.tuples(st.just("assign"), few, st.sampled_from([None, UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])),
        st.tuples(st.just("claim"), st.sampled_from(["a", "b"]), few),
        st.tuples(st.just("complete"), st.sampled_from(["a", "b"]), st.sampled_from(REASONS)),
        st.tuples(st.just("postpone"), st.sampled_from(["a", "b"]), few),
        st.tuples(st.just("rescore"), few, st.sampled_from([SCORERS, NEWER])),
        st.tuples(st.just("advance"), few, st.just(30)),
        st.tuples(st.just("expire"), few, st.none()),
        st.tuples(st.just("erase"), few, st.none()),
    ),
    max_size=25,
)


class Again(Run):
    """Also scores again, and takes away."""

    def claim(self, owner: str, limit: int) -> None:
        for scorers in (SCORERS, NEWER):
            claims = self.store.queue.claim_tasks(owner, scorers, limit=limit, lease=LEASE)
            self.claimed[owner] += [task for claim in claims for task in claim.tasks]

    def rescore(self, count: int, scorers: dict[str, str]) -> None:
        exchanges = [one for one in self.store.answers.list_exchanges(limit=1000) if one.service == self.service]
        self.store.queue.rescore([(one.id, name) for one in exchanges[-count:] for name in scorers], scorers)

    def expire(self, count: int, _: None) -> None:
        self.store.queue.expire_orphaned_tasks(after=timedelta(), limit=count)

    def erase(self, count: int, _: None) -> None:
        self.store.retention.prune(texts_before=self.clock.now - timedelta(minutes=60 - count))


@given(steps=operations)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_identity_holds_whatever_is_scored_again(
    sqlite_store: TrackingStore, make: Make, clock: Any, steps: list[tuple[str, Any, Any]]
) -> None:
    """The counts add up and are those of the tasks; a task that is done has one score, and no other has one."""
    run = Again(sqlite_store, make, clock)
    for name, first, second in steps:
        getattr(run, name)(first, second)

        covered = [one for one in sqlite_store.trends.coverage() if one.service == run.service]
        assert all(_adds_up(one) for one in covered)
        assert {(one.route, one.scorer): _counts(one) for one in covered} == _truth(run)
        assert _scores_without_task(sqlite_store) == []
    run.finish()


def _scores_without_task(store: TrackingStore) -> list[Any]:
    """Return scores that no task stands for, and tasks that lack their score."""
    query = text(
        "SELECT t.id, s.id FROM scoring_task t LEFT JOIN score s ON s.exchange_id = t.exchange_id "
        "AND s.scorer = t.scorer AND s.fingerprint = coalesce(nullif(t.scored_as, ''), t.fingerprint) "
        "WHERE (t.state = 'done' OR (t.state IN ('pending', 'running') AND coalesce(t.scored_as, '') <> '')) "
        "IS NOT (s.id IS NOT NULL)"
    )
    with store._database.read() as connection:
        return list(connection.execute(query))


@pytest.fixture
def scored(store: TrackingStore, make: Make, sampled: Callable[..., list[Exchange]]) -> Exchange:
    """An answer with a score of .2."""
    (exchange,) = sampled(make(1), probability=0.5)
    finish(store, value=0.2)
    return exchange


def finish(
    store: TrackingStore, value: float | None = None, reason: UnscoredReason | None = None, fingerprint: str = "f1"
) -> None:
    """Have whoever scores score what is ready."""
    result = {"scorer": "relevancy", "fingerprint": fingerprint, "value": value, "reason": reason}
    tasks: list[ScoringTask] = []
    for scorers in ({"relevancy": fingerprint}, {"relevancy": "f1"}):
        tasks += [one for claim in store.queue.claim_tasks("me", scorers, limit=9, lease=LEASE) for one in claim.tasks]
    assert tasks, "nothing was ready"
    store.queue.complete_tasks("me", [(task, Score(**result, explanation="said")) for task in tasks])  # type: ignore[arg-type]


def values(store: TrackingStore, exchange: Exchange) -> list[tuple[str, float | None]]:
    """Return fingerprint and value of its scores."""
    found = store.answers.get_scores([exchange.id]).get(exchange.id, [])
    return sorted((one.fingerprint, one.value) for one in found)


def states(store: TrackingStore, exchange: Exchange) -> list[tuple[str, str, bool]]:
    """Return fingerprint and state of its tasks, and whether it is scored again."""
    sheet = store.answers.load_detail(exchange.id)
    assert sheet is not None
    return [(one.fingerprint, one.state, one.is_rescore) for one in sheet.tasks]


def test_a_new_score_takes_the_place_of_the_old_one(store: TrackingStore, scored: Exchange) -> None:
    """Which stands until then; there are never two of one fingerprint, and the weight stays."""
    asked = store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"})

    assert asked == RescoreResult(ready=1)
    assert values(store, scored) == [("f1", 0.2)]
    assert states(store, scored) == [("f1", "pending", True)]

    finish(store, value=0.8)

    assert values(store, scored) == [("f1", 0.8)]
    assert states(store, scored) == [("f1", "done", False)]
    (mean,) = store.trends.summary()
    assert (mean.n, mean.mean, mean.coverage.scored, mean.coverage.seen) == (1, 0.8, 1, 1)


def test_a_failure_leaves_the_old_score_where_it_was(store: TrackingStore, scored: Exchange) -> None:
    """And the task says what went wrong."""
    store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"})

    finish(store, reason=UnscoredReason.JUDGE_TIMEOUT)

    sheet = store.answers.load_detail(scored.id)
    assert sheet is not None
    assert values(store, scored) == [("f1", 0.2)]
    assert [(one.state, one.error) for one in sheet.tasks] == [("done", "rescoring failed: judge_timeout: said")]
    (covered,) = store.trends.coverage()
    assert (covered.scored, covered.failed, covered.pending) == (1, {}, 0)


def test_another_judge_has_a_task_of_its_own(store: TrackingStore, scored: Exchange) -> None:
    """Both scores stay, each under its fingerprint, and no mean takes both."""
    store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f2"})
    finish(store, value=0.6, fingerprint="f2")

    assert values(store, scored) == [("f1", 0.2), ("f2", 0.6)]
    assert sorted((mean.fingerprint, mean.n, mean.mean) for mean in store.trends.summary()) == [
        ("f1", 1, 0.2),
        ("f2", 1, 0.6),
    ]
    (covered,) = store.trends.coverage()
    assert (covered.seen, covered.scored) == (2, 2)


def test_what_failed_is_tried_again(store: TrackingStore, make: Make, sampled: Callable[..., list[Exchange]]) -> None:
    """From the beginning; and fails again without a trace of a score."""
    (exchange,) = sampled(make(1))
    finish(store, reason=UnscoredReason.JUDGE_REJECTED)

    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(ready=1)
    finish(store, reason=UnscoredReason.UNPARSABLE)
    assert states(store, exchange) == [("f1", "failed", False)]

    store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"})
    finish(store, value=0.7)
    assert values(store, exchange) == [("f1", 0.7)]


def test_what_is_scored_again_is_no_news_to_the_detector(store: TrackingStore, scored: Exchange) -> None:
    """It was seen once, and somebody chose it."""
    before = [one.value for one in store.detectors.list_new_scores(9)]
    for fingerprint in ("f1", "f2"):
        store.queue.rescore([(scored.id, "relevancy")], {"relevancy": fingerprint})
        finish(store, value=0.9, fingerprint=fingerprint)

    assert before == [0.2]
    assert [one.value for one in store.detectors.list_new_scores(9)] == [0.2]


@pytest.mark.parametrize("reason", [UnscoredReason.NOT_SAMPLED, UnscoredReason.BUDGET])
def test_what_the_draw_left_out_stays_out(store: TrackingStore, make: Make, reason: UnscoredReason) -> None:
    """Scored for its looks, it would stand for answers that it does not."""
    exchange = make(1)
    store.exchanges.add([exchange])
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.5, "sampled", {"relevancy": reason})], {"relevancy": "f1"}
    )

    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(not_sampled=1)
    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f2"}) == RescoreResult(not_sampled=1)


def test_what_waits_is_tried_at_once(
    store: TrackingStore, make: Make, sampled: Callable[..., list[Exchange]], clock: Any
) -> None:
    """Also where it had been put off; what is being scored is left alone."""
    (exchange,) = sampled(make(1))
    (claim,) = store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(waiting=1)
    later = clock.now + timedelta(hours=1)
    store.queue.postpone_tasks("me", claim.tasks, until=later, reason=UnscoredReason.JUDGE_RATE_LIMITED, error="busy")

    assert store.queue.rescore([(exchange.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(waiting=1)

    finish(store, value=0.5)
    assert values(store, exchange) == [("f1", 0.5)]


def test_what_cannot_be_scored_is_counted(store: TrackingStore, make: Make, scored: Exchange, clock: Any) -> None:
    """Erased texts, exchanges that are not here, scorers that nobody has, and what nobody has decided on."""
    fresh = make(2)
    store.exchanges.add([fresh])
    asked = [("nobody", "relevancy"), (scored.id, "other"), (fresh.id, "relevancy")]

    assert store.queue.rescore(asked, {"relevancy": "f1"}) == RescoreResult(unknown=2, waiting=1)

    store.retention.prune(texts_before=clock.now)
    assert store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"}) == RescoreResult(erased=1)
    assert values(store, scored) == [("f1", 0.2)]


def test_text_that_goes_leaves_the_score_that_was_to_be_made_anew(
    store: TrackingStore, scored: Exchange, clock: Any
) -> None:
    """Nothing expires that has a score."""
    store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"})

    store.retention.prune(texts_before=clock.now)

    assert states(store, scored) == [("f1", "done", False)]
    (covered,) = store.trends.coverage()
    assert (covered.scored, covered.skipped, covered.pending) == (1, {}, 0)


def test_an_export_tells_of_the_score_and_not_of_the_wish(store: TrackingStore, scored: Exchange) -> None:
    """Another database gets the answer as it stands."""
    store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"})

    (record,) = store.transfer.load_records(ExportSelection())

    assert isinstance(record, ExchangeRecord)
    assert [(task["state"], task["not_before"]) for task in record.tasks] == [("done", None)]
    assert [row["value"] for row in record.scores] == [0.2]


def test_the_past_holds_an_answer_once(store: TrackingStore, scored: Exchange, clock: Any) -> None:
    """Baselines are learned of one score for each answer and fingerprint."""
    store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"})
    finish(store, value=0.9)
    past = DetectorScoreQuery(
        service="shop",
        scorer="relevancy",
        fingerprint="f1",
        since=clock.now - timedelta(hours=2),
        until=clock.now + timedelta(hours=1),
    )

    assert store.detectors.count_past_scores(past) <= 1


def test_a_budget_counts_what_is_scored_again(store: TrackingStore, scored: Exchange) -> None:
    """As one more that was picked."""
    before = store.quota.load_usage().selected

    store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"}, budgeted=True)
    store.queue.rescore([(scored.id, "relevancy")], {"relevancy": "f1"}, budgeted=True)

    assert store.quota.load_usage().selected == before + 1
