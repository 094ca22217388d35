"""Runs over history: partitions cover a window exactly, and each is written once, by the process that holds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from tests.storage.test_tally import _adds_up

from germane.errors import StorageError
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import (
    HistoryItem,
    HistorySelection,
    PartitionClaim,
    PartitionKey,
    SamplingDecision,
    ScoreCounts,
    TrackingStore,
)
from germane.storage.history.results import score_checksum
from germane.testing import engine_of

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=30)
DAY = timedelta(days=1)


def select(at: datetime, **given: Any) -> HistorySelection:
    """Return a selection of the day around a time, for one scorer with a new fingerprint."""
    defaults: dict[str, Any] = {"since": at - DAY, "until": at + DAY, "scorers": {"relevancy": "f2"}}
    return HistorySelection(**defaults | given)


def claim(store: TrackingStore, run_id: str, number: int = 0, owner: str = "me") -> PartitionClaim:
    """Claim a partition, which must be free."""
    claimed = store.history.claim_partition(PartitionKey(run_id, number), owner, lease=LEASE)
    assert isinstance(claimed, PartitionClaim)
    return claimed


def score_items(items: Sequence[HistoryItem], value: float = 0.5, fingerprint: str = "f2") -> list[tuple[str, Score]]:
    """Return a score for each exchange and scorer."""
    return [
        (item.exchange.id, Score(scorer=name, fingerprint=fingerprint, value=value))
        for item in items
        for name in item.scorers
    ]


def run_all(store: TrackingStore, selection: HistorySelection, value: float = 0.5, size: int = 100) -> ScoreCounts:
    """Run all partitions, and return the counts."""
    run = store.history.create_run(selection, partition_size=size)
    total = ScoreCounts()
    for number in store.history.list_open_partitions(run.id):
        claimed = claim(store, run.id, number)
        written = store.history.finish_partition(claimed, score_items(store.history.load_items(claimed), value))
        assert written is not None
        total += written
    assert store.history.finish_run(run.id)
    return total


def finish_tasks(store: TrackingStore, outcomes: Sequence[float | UnscoredReason], scorer: str = "relevancy") -> None:
    """Complete all ready tasks with the outcomes, in the order of the exchanges."""
    claims = store.queue.claim_tasks("worker", {scorer: "f1"}, limit=1000, lease=LEASE)
    claims.sort(key=lambda claim: claim.exchange.started_at)
    results = []
    for one, outcome in zip(claims, outcomes, strict=True):
        if isinstance(outcome, UnscoredReason):
            score = Score(scorer=scorer, fingerprint="f1", reason=outcome, explanation="no")
        else:
            score = Score(scorer=scorer, fingerprint="f1", value=outcome)
        results.append((one.tasks[0], score))
    store.queue.complete_tasks("worker", results)


@pytest.mark.slow
@given(minutes=st.lists(st.integers(0, 5), max_size=25), size=st.integers(2, 7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_partitions_cover_every_exchange_of_the_window_once(
    store: TrackingStore, make: Make, minutes: list[int], size: int
) -> None:
    """Whatever the number of exchanges with the same start time, each is in exactly one partition, in order."""
    service_day = make(0).started_at + timedelta(days=3 * len(store.answers.list_exchanges(limit=10_000)))
    made = [make(0, started_at=service_day + timedelta(minutes=minute)) for minute in minutes]
    store.exchanges.add(made)
    store.sampling.assign_tasks([SamplingDecision(one.id, 1.0, "uniform") for one in made], {"relevancy": "f1"})

    run = store.history.create_run(select(service_day, everything=True), partition_size=size)
    partitions = store.history.list_open_partitions(run.id)
    seen = []
    for number, exchanges in partitions.items():
        items = store.history.load_items(claim(store, run.id, number))
        assert len(items) == exchanges <= size
        seen += [(item.exchange.started_at, item.exchange.id) for item in items]

    assert (run.exchanges, run.partitions) == (len(made), len(partitions))
    assert seen == sorted((one.started_at, one.id) for one in made)


def test_other_processes_write_while_a_run_is_planned(
    store: TrackingStore, make: Make, sampled: Any, clock: Any
) -> None:
    """Reading millions of exchanges takes long, and would otherwise block all writers of an SQLite file."""
    sampled(make(0))
    finish_tasks(store, [0.9])
    url = engine_of(store).url.render_as_string(hide_password=False)
    other, written = TrackingStore(url, clock=clock), list[Exchange]()

    def write(*details: Any) -> None:
        if "row_number" in details[2] and not written:
            written.append(make(1))
            other.exchanges.add(written)

    engine = engine_of(store)
    event.listen(engine, "before_cursor_execute", write)
    try:
        run = store.history.create_run(select(clock.now), partition_size=10)
    finally:
        event.remove(engine, "before_cursor_execute", write)
        other.close()

    assert written
    assert run.exchanges >= 1
    assert {one.id for one in written} <= {one.id for one in store.answers.list_exchanges()}


def test_answers_with_scores_or_failures_are_selected_by_default(
    store: TrackingStore, make: Make, sampled: Any
) -> None:
    """Conditions narrow the selection: a route, a reason, or a limit for scores. Skipped answers are left out."""
    made = sampled(*(make(minute) for minute in range(4)), make(4, route="search"))
    finish_tasks(store, [0.9, 0.2, UnscoredReason.UNPARSABLE, UnscoredReason.JUDGE_REFUSED, 0.8])
    store.exchanges.add([skipped := make(5)])
    decision = SamplingDecision(skipped.id, 0.1, "not_sampled", skip={"relevancy": UnscoredReason.NOT_SAMPLED})
    store.sampling.assign_tasks([decision], {"relevancy": "f1"})
    ids = [one.id for one in made]

    def selected(**given: Any) -> list[str]:
        selection = select(make(0).started_at, **given)
        run = store.history.create_run(selection, partition_size=100)
        found = [item.exchange.id for item in store.history.load_items(claim(store, run.id))]
        assert store.history.count_pairs(selection).get("relevancy", 0) == len(found)
        return found

    assert selected() == ids
    assert selected(route="search") == ids[4:]
    assert selected(failed="any") == ids[2:4]
    assert selected(failed="judge_refused") == ids[3:4]
    assert selected(below=0.5) == ids[1:2]
    assert selected(everything=True) == [*ids, skipped.id]


def test_a_released_partition_is_free_at_once(store: TrackingStore, make: Make, sampled: Any, clock: Any) -> None:
    """Its former owner writes nothing, even if it was only believed to be dead."""
    sampled(make(0))
    finish_tasks(store, [0.9])
    run = store.history.create_run(select(clock.now), partition_size=10)
    first = claim(store, run.id, owner="first")
    scores = score_items(store.history.load_items(first))

    assert not store.history.release_partition(first.key, owner_prefix="other")
    assert store.history.claim_partition(first.key, "second", lease=LEASE) == LEASE
    assert store.history.release_partition(first.key, owner_prefix="fir")
    second = claim(store, run.id, owner="second")
    store.history.release_claim(first, error="too late")

    assert store.history.finish_partition(first, scores) is None
    assert store.history.finish_partition(second, scores) is not None


def test_scores_that_remain_are_computed_by_the_next_claim(
    store: TrackingStore, make: Make, sampled: Any, clock: Any
) -> None:
    """An interrupted attempt keeps its scores. The counts of the run are those of all attempts."""
    made = sampled(*(make(minute) for minute in range(4)))
    finish_tasks(store, [0.9, 0.9, 0.9, 0.9])
    run = store.history.create_run(select(clock.now), partition_size=10)
    first = claim(store, run.id)
    scores = score_items(store.history.load_items(first))
    paid = [(key, replace(score, cost=0.25)) for key, score in (scores[0], scores[2])]

    left = [(made[1].id, "relevancy"), (made[3].id, "relevancy")]
    assert store.history.finish_partition(first, paid, remaining=left) is not None
    assert store.history.finish_partition(first, scores) is None  # it no longer holds the partition
    halfway = store.history.get_run(run.id)
    assert (halfway.done_partitions, halfway.done_exchanges, halfway.scored, halfway.cost) == (0, 0, 2, 0.5)
    assert not store.history.finish_run(run.id)

    second = claim(store, run.id)
    items = store.history.load_items(second)
    assert [item.exchange.id for item in items] == [made[1].id, made[3].id]
    assert store.history.release_partition(second.key, owner_prefix="me")  # a dead process loses nothing
    third = claim(store, run.id, owner="third")
    assert store.history.load_items(third) == items
    store.history.finish_partition(third, score_items(items))

    done = store.history.get_run(run.id)
    assert (done.done_partitions, done.done_exchanges, done.scored, done.cost) == (1, 4, 4, 0.5)
    assert done.checksum == sum(score_checksum(one.id, "relevancy", "f2", 0.5) for one in made) % 2**64


def test_scores_of_the_current_fingerprint_are_replaced_and_others_kept(
    store: TrackingStore, make: Make, sampled: Any, clock: Any
) -> None:
    """The counts add up, the run adds up its partitions, and repeating a run changes the values only."""
    made = sampled(*(make(minute) for minute in range(5)))
    finish_tasks(store, [0.9, 0.2, UnscoredReason.UNPARSABLE, 0.4, 0.3])
    selection = select(clock.now)

    for value in (0.6, 0.7):
        counts = run_all(store, selection, value, size=2)
        checksum = sum(score_checksum(one.id, "relevancy", "f2", value) for one in made) % 2**64
        assert counts == ScoreCounts(scored=5, checksum=checksum)
        scores = store.answers.get_scores([one.id for one in made])
        assert all(
            [one.value for one in scores[exchange.id] if one.fingerprint == "f2"] == [value] for exchange in made
        )
        assert sorted(one.value for each in scores.values() for one in each if one.fingerprint == "f1") == [
            0.2, 0.3, 0.4, 0.9,
        ]  # fmt: skip
        [coverage] = store.trends.coverage()
        assert _adds_up(coverage)
        assert (coverage.scored, coverage.failed) == (9, {"unparsable": 1})
    assert store.integrity.check_integrity().tally_mismatches == []


def test_a_failure_keeps_the_existing_score(store: TrackingStore, make: Make, sampled: Any, clock: Any) -> None:
    """The failure and its cost are counted by the run, the task names it, and the coverage does not change."""
    [one] = sampled(make(0))
    finish_tasks(store, [0.9])
    before = store.trends.coverage()
    run = store.history.create_run(select(clock.now, scorers={"relevancy": "f1"}), partition_size=10)
    claimed = claim(store, run.id)
    reason = UnscoredReason.JUDGE_REFUSED
    failure = Score(scorer="relevancy", fingerprint="f1", reason=reason, explanation="no", cost=0.25)

    assert store.history.finish_partition(claimed, [(one.id, failure)]) == ScoreCounts(failed=1, cost=0.25)
    assert [score.value for score in store.answers.get_scores([one.id])[one.id]] == [0.9]
    assert store.trends.coverage() == before
    [task] = store.answers.load_detail(one.id).tasks  # type: ignore[union-attr]  # it exists
    assert task.error == "rescoring failed: judge_refused: no"


def test_open_tasks_and_missing_exchanges_are_left_alone(
    store: TrackingStore, make: Make, sampled: Any, clock: Any
) -> None:
    """They are not sent to the judge, because workers will score them. Erased or deleted answers get no score."""
    scored, erased = sampled(make(0), make(-5))
    finish_tasks(store, [0.9, 0.9])
    [running] = sampled(make(1))
    run = store.history.create_run(select(clock.now, scorers={"relevancy": "f1"}, everything=True), partition_size=10)
    claimed = claim(store, run.id)
    items = store.history.load_items(claimed)
    assert {item.exchange.id: (item.scorers, item.waiting) for item in items} == {
        scored.id: (("relevancy",), ()),
        erased.id: (("relevancy",), ()),
        running.id: ((), ("relevancy",)),
    }
    scores = score_items(items, fingerprint="f1")
    scores.append((running.id, scores[0][1]))
    store.retention.prune(texts_before=make(-4).started_at)

    counts = store.history.finish_partition(claimed, [*scores, ("no such id", scores[0][1])])

    assert counts is not None
    assert (counts.scored, counts.waiting) == (1, 3)
    assert [one.value for one in store.answers.get_scores([scored.id])[scored.id]] == [0.5]
    assert [one.value for one in store.answers.get_scores([erased.id])[erased.id]] == [0.9]
    assert store.answers.get_scores([running.id]).get(running.id, []) == []


def test_scores_of_all_answers_have_the_weight_of_the_captured_exchange(
    store: TrackingStore, make: Make, clock: Any
) -> None:
    """If all answers of a window are scored, sampling did not choose them, so their mean is the plain mean."""
    made = [make(minute) for minute in range(4)]
    store.exchanges.add(made)
    rare, rest = made[:1], made[1:]
    decisions = [SamplingDecision(one.id, 0.25, "uniform") for one in rare]
    decisions += [
        SamplingDecision(one.id, 0.25, "not_sampled", skip={"relevancy": UnscoredReason.NOT_SAMPLED}) for one in rest
    ]
    store.sampling.assign_tasks(decisions, {"relevancy": "f2"})
    run = store.history.create_run(select(clock.now, everything=True), partition_size=10)
    claimed = claim(store, run.id)
    claims = store.queue.claim_tasks("worker", {"relevancy": "f2"}, limit=10, lease=LEASE)
    store.queue.complete_tasks("worker", [(claims[0].tasks[0], Score(scorer="relevancy", fingerprint="f2", value=1.0))])

    scores = [
        (one.id, Score(scorer="relevancy", fingerprint="f2", value=number / 4)) for number, one in enumerate(made)
    ]
    store.history.finish_partition(claimed, scores)

    [summary] = store.trends.summary(since=clock.now - DAY, until=clock.now + DAY)
    assert (summary.n, summary.mean) == (4, pytest.approx((0 + 0.25 + 0.5 + 0.75) / 4))
    assert _adds_up(store.trends.coverage()[0])


def test_each_answer_counts_once_if_all_answers_are_scored_by_a_new_judge(
    store: TrackingStore, make: Make, sampled: Any, clock: Any
) -> None:
    """Its earlier failures and skips are replaced, so that the coverage is the share of the answers with a score."""
    made = sampled(*(make(minute) for minute in range(3)))
    finish_tasks(store, [0.9, UnscoredReason.UNPARSABLE, UnscoredReason.JUDGE_REFUSED])
    store.exchanges.add([skipped := make(5)])
    decision = SamplingDecision(skipped.id, 0.1, "not_sampled", skip={"relevancy": UnscoredReason.NOT_SAMPLED})
    store.sampling.assign_tasks([decision], {"relevancy": "f1"})
    made.append(skipped)
    [before] = store.trends.coverage()
    assert (before.seen, before.scored) == (4, 1)

    for fingerprint in ("f2", "f3"):
        selection = select(clock.now, scorers={"relevancy": fingerprint}, everything=True)
        for refuses in (True, False):  # the third answer
            run = store.history.create_run(selection, partition_size=10)
            claimed = claim(store, run.id)
            scores = dict(score_items(store.history.load_items(claimed), fingerprint=fingerprint))
            if refuses:
                reason = UnscoredReason.JUDGE_REFUSED
                scores[made[2].id] = Score(scorer="relevancy", fingerprint=fingerprint, reason=reason)
            store.history.finish_partition(claimed, list(scores.items()))

            [coverage] = store.trends.coverage()
            failed = {"judge_refused": 1} if refuses else {}
            assert (coverage.scored, coverage.skipped) == (3 if refuses and fingerprint == "f2" else 4, {})
            assert coverage.failed == failed
            assert _adds_up(coverage)
        assert coverage.seen == 4
    assert {one.fingerprint for one in store.answers.get_scores([made[0].id])[made[0].id]} == {"f1", "f2", "f3"}


def test_scores_kept_after_a_failed_rescoring_get_the_weight_of_the_others(
    store: TrackingStore, make: Make, sampled: Any, clock: Any
) -> None:
    """Otherwise, an old score that sampling chose with a low probability would dominate the mean of all answers."""
    [old] = sampled(make(0), probability=0.1)
    finish_tasks(store, [1.0])
    store.rollups.update()
    store.exchanges.add([new := make(1)])
    store.sampling.assign_tasks([SamplingDecision(new.id, 1.0, "uniform")], {})
    run = store.history.create_run(select(clock.now, scorers={"relevancy": "f1"}, everything=True), partition_size=10)
    failure = Score(scorer="relevancy", fingerprint="f1", reason=UnscoredReason.JUDGE_REFUSED, explanation="no")
    success = Score(scorer="relevancy", fingerprint="f1", value=0.0)

    store.history.finish_partition(claim(store, run.id), [(old.id, failure), (new.id, success)])

    for _ in range(2):
        [summary] = store.trends.summary(since=clock.now - DAY, until=clock.now + DAY)
        assert (summary.n, summary.mean) == (2, pytest.approx(0.5))
        store.rollups.update()


def test_a_repeated_command_is_recognized(clock: Any) -> None:
    """A window counts as the same if its ends are equal, or as old as in the earlier command."""
    earlier = select(clock.now)
    hour = timedelta(hours=1)
    moved = select(clock.now + hour)

    assert select(clock.now).is_same_request(earlier, hour)
    assert moved.is_same_request(earlier, hour)
    assert select(clock.now, until=moved.until).is_same_request(earlier, hour)
    assert not moved.is_same_request(earlier, 2 * hour)
    assert not select(clock.now, route="ask").is_same_request(earlier, hour)
    assert not select(clock.now, scorers={"relevancy": "f3"}).is_same_request(earlier, hour)


def test_an_unknown_run_is_an_error(store: TrackingStore) -> None:
    """The message names the run and the database."""
    with pytest.raises(StorageError, match="there is no run 'nope' in"):
        store.history.get_run("nope")


def test_old_finished_runs_are_deleted_when_a_run_is_created(
    store: TrackingStore, make: Make, sampled: Any, clock: Any
) -> None:
    """Unfinished runs are kept."""
    sampled(make(0))
    finish_tasks(store, [0.9])
    run_all(store, select(clock.now))
    [unfinished, old] = [store.history.create_run(select(clock.now), partition_size=2) for _ in range(2)]
    claimed = claim(store, old.id)
    store.history.finish_partition(claimed, [])
    store.history.finish_run(old.id)
    clock.advance(days=91)

    newest = store.history.create_run(select(datetime(2020, 1, 1, tzinfo=UTC)), partition_size=2)

    assert [run.id for run in store.history.list_unfinished()] == [newest.id, unfinished.id]
    assert newest.partitions == 0
    with pytest.raises(StorageError):
        store.history.get_run(old.id)
