"""Scores queued for the detector: each randomly sampled score arrives once, and is deleted with its exchange."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.exports import load_records

from germane.annotation import RecordedScore
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import (
    MAX_SCORING_DELAY,
    AlertTransaction,
    DetectorScore,
    DetectorScoreQuery,
    DetectorState,
    SamplingDecision,
    TrackingStore,
)

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
RANDOM_SAMPLING_REASONS = {"sampled", "uniform", "route_floor"}


def score_exchanges(
    store: TrackingStore, exchanges: list[Exchange], sampling_reason: str, *values: float, label: str | None = None
) -> None:
    """Score exchanges that were sampled for the given reason, completing every task twice."""
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks(
        [SamplingDecision(exchange.id, 0.5, sampling_reason) for exchange in exchanges], {"relevancy": "f1"}
    )
    claims = store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=len(exchanges), lease=LEASE)
    found = {exchange.id: value for exchange, value in zip(exchanges, values, strict=True)}
    results = [
        (task, Score(scorer="relevancy", fingerprint="f1", value=found[task.exchange_id], label=label))
        for claim in claims
        for task in claim.tasks
    ]
    store.queue.complete_tasks("me", results)
    store.queue.complete_tasks("me", results)


@pytest.mark.parametrize("sampling_reason", ["sampled", "uniform", "route_floor", "suspicion", "always", "feedback"])
def test_only_randomly_sampled_scores_reach_the_detector(
    store: TrackingStore, make: Make, sampling_reason: str
) -> None:
    """Scores selected by suspicion, a rule or feedback would bias the detector and are excluded."""
    score_exchanges(store, [make(), make(1)], sampling_reason, 0.5, 0.75)

    listed = store.detectors.list_new_scores(9)
    assert [one.value for one in listed] == ([0.5, 0.75] if sampling_reason in RANDOM_SAMPLING_REASONS else [])


def test_scores_of_old_answers_do_not_reach_the_detector(store: TrackingStore, make: Make, clock: Any) -> None:
    """Pulled and imported answers say nothing about the present."""
    ages = (timedelta(hours=47), MAX_SCORING_DELAY, timedelta(days=30))
    old = [make(started_at=clock.now - age) for age in ages]
    score_exchanges(store, old, "sampled", 0.5, 0.5, 0.5)

    assert [score.exchange_id for score in store.detectors.list_new_scores(10)] == [old[0].id]


def test_queued_detector_score_has_every_field_that_the_detector_needs(
    store: TrackingStore, make: Make, clock: Any
) -> None:
    """A queued score names its exchange, value, refusal flag and times; attributes are loaded on request."""
    exchange = make(route="pay", attributes={"tenant": "acme"})
    score_exchanges(store, [exchange], "sampled", 0.5, label="noncommittal")

    (listed,) = store.detectors.list_new_scores(9, attributes=True)
    assert listed == DetectorScore(
        id=listed.id,
        service="shop",
        route="pay",
        scorer="relevancy",
        fingerprint="f1",
        exchange_id=exchange.id,
        value=0.5,
        is_zero=True,
        arrived_at=clock.now,
        answered_at=exchange.started_at,
        attributes={"tenant": "acme"},
    )
    assert store.detectors.list_new_scores(9)[0].attributes == {}


@pytest.mark.parametrize(("value", "is_zero"), [(-0.25, True), (0.0, True), (0.25, False)])
def test_scores_at_or_below_zero_count_as_zero(store: TrackingStore, make: Make, value: float, is_zero: bool) -> None:
    """A negative cosine similarity counts as a refusal."""
    score_exchanges(store, [make()], "sampled", value)

    assert [(score.value, score.is_zero) for score in store.detectors.list_new_scores(9)] == [(value, is_zero)]


def test_failed_and_externally_recorded_scores_do_not_reach_the_detector(
    store: TrackingStore, make: Make, clock: Any
) -> None:
    """Failed tasks have no score, and the sampling of recorded scores is unknown."""
    exchange = make()
    store.exchanges.add([exchange])
    store.sampling.assign_tasks([SamplingDecision(exchange.id, 1.0, "sampled")], {"relevancy": "f1"})
    (claim,) = store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    failed = Score(scorer="relevancy", fingerprint="f1", reason=UnscoredReason.JUDGE_REFUSED)
    store.queue.complete_tasks("me", [(claim.tasks[0], failed)])
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=exchange.id, name="mine", value=0.5, recorded_at=clock.now)]
    )

    assert store.detectors.list_new_scores(9) == []


def test_imported_scores_do_not_reach_the_detector(store: TrackingStore, make: Make, clock: Any) -> None:
    """Scores restored from an export are not queued a second time."""
    score_exchanges(store, [make()], "sampled", 0.5)
    records = load_records(store)
    store.retention.prune(before=clock.now + timedelta(days=1))
    store.transfer.restore_records(records)

    assert store.answers.counts().scores == 1
    assert store.detectors.list_new_scores(9) == []


def test_deleted_exchanges_are_removed_from_the_detector_queue(store: TrackingStore, make: Make, clock: Any) -> None:
    """Forgetting a user and pruning old exchanges delete their queued scores."""
    one, other, third = make(user="ann"), make(50), make(59)
    score_exchanges(store, [one, other, third], "sampled", 0.1, 0.2, 0.3)

    store.retention.forget(user="ann")
    assert [arrival.value for arrival in store.detectors.list_new_scores(9)] == [0.2, 0.3]
    store.retention.prune(before=clock.now - timedelta(minutes=5))
    assert [arrival.value for arrival in store.detectors.list_new_scores(9)] == [0.3]


def test_new_scores_are_listed_in_arrival_order(store: TrackingStore, make: Make) -> None:
    """With a limit, the earliest scores are returned."""
    for number in range(5):
        score_exchanges(store, [make(number)], "sampled", number / 8)

    assert [score.value for score in store.detectors.list_new_scores(3)] == [0.0, 0.125, 0.25]


def test_reloaded_past_scores_match_the_scores_that_the_detector_received(
    store: TrackingStore, make: Make, clock: Any
) -> None:
    """A replay returns the same scores in the same order as the queue."""
    start = clock.now
    for number, sampling_reason in enumerate(["sampled", "suspicion", "uniform", "route_floor", "always", "sampled"]):
        score_exchanges(
            store, [make(59 - number, route=f"r{number}", attributes={"n": number})], sampling_reason, number / 8
        )
        clock.advance(seconds=10)
    seen = [(score.route, score.value, score.is_zero, score.arrived_at) for score in store.detectors.list_new_scores(9)]
    sought = DetectorScoreQuery(service="shop", scorer="relevancy", fingerprint="f1", since=start, until=clock.now)

    past = store.detectors.list_past_scores(sought, attributes=True)
    assert [(score.route, score.value, score.is_zero, score.arrived_at) for score in past] == seen
    assert [score.attributes for score in past] == [{"n": 0}, {"n": 2}, {"n": 3}, {"n": 5}]
    assert store.detectors.count_past_scores(sought) == 4
    ids = {score.exchange_id for score in past[1:3]}
    assert [score.route for score in store.detectors.list_past_scores(sought, ids.__contains__)] == ["r2", "r3"]


def test_reloaded_past_scores_exclude_the_window_end_and_other_fingerprints(
    store: TrackingStore, make: Make, clock: Any
) -> None:
    """The window includes since and excludes until; scores with a different fingerprint are excluded."""
    for number in range(3):
        score_exchanges(store, [make(number)], "sampled", number / 8)
        clock.advance(hours=1)
    noon = clock.now - timedelta(hours=3)
    names = {"service": "shop", "scorer": "relevancy", "fingerprint": "f1"}

    window = DetectorScoreQuery(**names, since=noon, until=noon + timedelta(hours=2))
    assert [score.value for score in store.detectors.list_past_scores(window)] == [0.0, 0.125]
    other = DetectorScoreQuery(**names | {"fingerprint": "f2"}, since=noon, until=clock.now)
    assert store.detectors.list_past_scores(other) == []


def test_most_common_release_among_the_scores_is_reported(store: TrackingStore, make: Make, clock: Any) -> None:
    """The application's most common model and prompt version in a window; both are None if the window is empty."""
    releases = ["7", "7", "6"]
    exchanges = [make(number, model="m", prompt_version=release) for number, release in enumerate(releases)]
    score_exchanges(store, exchanges, "sampled", 0.1, 0.2, 0.3)
    names = {"service": "shop", "scorer": "relevancy", "fingerprint": "f1"}
    since, until = clock.now - timedelta(hours=1), clock.now + timedelta(hours=1)

    assert store.detectors.most_common_release(DetectorScoreQuery(**names, since=since, until=until)) == ("m", "7")
    assert store.detectors.most_common_release(DetectorScoreQuery(**names, since=since, until=since)) == (None, None)


def detector_state(**changes: Any) -> DetectorState:
    """Return the state of a detector."""
    names: dict[str, Any] = {"rule": "drop", "service": "shop", "scorer": "relevancy"}
    return DetectorState(**names | {"parameters": "p", "baseline_id": 1, "state": {"a": [0.1, None]}} | changes)


def test_detector_state_and_queue_change_in_one_transaction(store: TrackingStore, make: Make, clock: Any) -> None:
    """Outdated states and processes without the lease change neither the state nor the queue."""
    score_exchanges(store, [make(), make(1)], "sampled", 0.1, 0.2)
    first, second = store.detectors.list_new_scores(9)
    assert store.workers.acquire_lease("watcher", "me", ttl=LEASE)
    step = AlertTransaction(
        holder=("watcher", "me"), detector_states=[detector_state(seen_at=clock.now)], processed_score_ids=[first.id]
    )

    assert store.alerts.commit(step)
    assert store.detectors.list_new_scores(9) == [second]
    (kept,) = store.detectors.list_states()
    assert kept == detector_state(seen_at=clock.now, row_version=1)

    assert not store.alerts.commit(step), "the detector state is outdated"
    later = detector_state(row_version=1, state={}, log_evidence=0.5)
    elsewhere = AlertTransaction(holder=("watcher", "other"), detector_states=[later], processed_score_ids=[second.id])
    assert not store.alerts.commit(elsewhere), "another process holds the lease"
    assert (store.detectors.list_states(), store.detectors.list_new_scores(9)) == ([kept], [second])
    assert store.alerts.commit(
        AlertTransaction(holder=("watcher", "me"), detector_states=[later], processed_score_ids=[second.id])
    )
    assert (store.detectors.list_states()[0].row_version, store.detectors.list_new_scores(9)) == (2, [])


def test_scores_that_commit_out_of_order_all_reach_the_detector(postgresql: Any, make: Make, clock: Any) -> None:
    """A score with a lower ID that commits after a processed one is still delivered."""
    url = postgresql.url(postgresql.create())
    store = TrackingStore(url, clock=clock)
    store.migrate()
    columns = "service, route, scorer, fingerprint, exchange_id, value, is_zero, arrived_at"
    insert = f"INSERT INTO detector_input ({columns}) VALUES ('shop', 'ask', 'relevancy', 'f1', %s, 0.5, false, now())"
    with psycopg.connect(url) as early, psycopg.connect(url) as late:
        early.execute(insert, ["first"])
        late.execute(insert, ["second"])
        late.commit()
        seen = store.detectors.list_new_scores(9)
        assert [score.exchange_id for score in seen] == ["second"]
        assert store.alerts.commit(AlertTransaction(processed_score_ids=[seen[0].id]))
        early.commit()

    (rest,) = store.detectors.list_new_scores(9)
    assert rest.exchange_id == "first"
    assert rest.id < seen[0].id
    store.close()
