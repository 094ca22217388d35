"""Scores on their way to the detector: each fairly drawn one arrives once, and goes with its exchange."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from germane.annotation import RecordedScore
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import (
    AlertTransaction,
    DetectorScore,
    DetectorScoreQuery,
    DetectorState,
    SamplingDecision,
    TrackingStore,
)

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
FAIR = {"sampled", "uniform", "route_floor"}


def score(store: TrackingStore, exchanges: list[Exchange], why: str, *values: float, label: str | None = None) -> None:
    """Have exchanges scored that were sampled for a reason."""
    store.exchanges.add(exchanges)
    store.sampling.assign_tasks([SamplingDecision(one.id, 0.5, why) for one in exchanges], {"relevancy": "f1"})
    claims = store.queue.claim_tasks("me", {"relevancy": "f1"}, limit=len(exchanges), lease=LEASE)
    found = {one.id: value for one, value in zip(exchanges, values, strict=True)}
    results = [
        (task, Score(scorer="relevancy", fingerprint="f1", value=found[task.exchange_id], label=label))
        for claim in claims
        for task in claim.tasks
    ]
    store.queue.complete_tasks("me", results)
    store.queue.complete_tasks("me", results)


@pytest.mark.parametrize("why", ["sampled", "uniform", "route_floor", "suspicion", "always", "feedback"])
def test_only_what_was_drawn_without_regard_to_its_looks_arrives(store: TrackingStore, make: Make, why: str) -> None:
    """What was picked because it looked bad, or because a rule asks for it, would bend what the detector sees."""
    score(store, [make(), make(1)], why, 0.5, 0.75)

    found = store.detectors.list_new_scores(9)
    assert [one.value for one in found] == ([0.5, 0.75] if why in FAIR else [])


def test_an_arrival_tells_what_the_detector_needs(store: TrackingStore, make: Make, clock: Any) -> None:
    """Whose it is, what it is worth, whether it is a refusal, and when it came."""
    exchange = make(route="pay", attributes={"tenant": "acme"})
    score(store, [exchange], "sampled", 0.5, label="noncommittal")

    (found,) = store.detectors.list_new_scores(9, attributes=True)
    assert found == DetectorScore(
        id=found.id,
        service="shop",
        route="pay",
        scorer="relevancy",
        fingerprint="f1",
        exchange_id=exchange.id,
        value=0.5,
        is_zero=True,
        arrived_at=clock.now,
        attributes={"tenant": "acme"},
    )
    assert store.detectors.list_new_scores(9)[0].attributes == {}


@pytest.mark.parametrize(("value", "zero"), [(-0.25, True), (0.0, True), (0.25, False)])
def test_what_is_not_above_0_counts_as_zero(store: TrackingStore, make: Make, value: float, zero: bool) -> None:
    """A negative cosine says as little as none."""
    score(store, [make()], "sampled", value)

    assert [(one.value, one.is_zero) for one in store.detectors.list_new_scores(9)] == [(value, zero)]


def test_what_failed_or_was_recorded_from_elsewhere_does_not_arrive(
    store: TrackingStore, make: Make, clock: Any
) -> None:
    """An absence of a score is no score, and nobody knows how other people's scores were chosen."""
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


def test_scores_that_come_back_from_a_file_do_not_arrive_again(store: TrackingStore, make: Make, clock: Any) -> None:
    """They are old: whoever exported them has seen them."""
    from germane.storage import ExportSelection

    score(store, [make()], "sampled", 0.5)
    records = store.transfer.load_records(ExportSelection())
    store.retention.prune(before=clock.now + timedelta(days=1))
    store.transfer.restore_records(records)

    assert store.answers.counts().scores == 1
    assert store.detectors.list_new_scores(9) == []


def test_what_is_forgotten_or_too_old_arrives_no_more(store: TrackingStore, make: Make, clock: Any) -> None:
    """An arrival goes with its exchange."""
    one, other, third = make(user="ann"), make(50), make(59)
    score(store, [one, other, third], "sampled", 0.1, 0.2, 0.3)

    store.retention.forget(user="ann")
    assert [arrival.value for arrival in store.detectors.list_new_scores(9)] == [0.2, 0.3]
    store.retention.prune(before=clock.now - timedelta(minutes=5))
    assert [arrival.value for arrival in store.detectors.list_new_scores(9)] == [0.3]


def test_arrivals_come_in_order_and_as_many_as_are_asked_for(store: TrackingStore, make: Make) -> None:
    """The first come first."""
    for number in range(5):
        score(store, [make(number)], "sampled", number / 8)

    assert [one.value for one in store.detectors.list_new_scores(3)] == [0.0, 0.125, 0.25]


def test_the_past_is_what_arrived_in_its_order(store: TrackingStore, make: Make, clock: Any) -> None:
    """A replay sees what the detector saw, whatever else was scored meanwhile."""
    start = clock.now
    for number, why in enumerate(["sampled", "suspicion", "uniform", "route_floor", "always", "sampled"]):
        score(store, [make(59 - number, route=f"r{number}", attributes={"n": number})], why, number / 8)
        clock.advance(seconds=10)
    seen = [(one.route, one.value, one.is_zero, one.arrived_at) for one in store.detectors.list_new_scores(9)]
    sought = DetectorScoreQuery(service="shop", scorer="relevancy", fingerprint="f1", since=start, until=clock.now)

    past = store.detectors.list_past_scores(sought, attributes=True)
    assert [(one.route, one.value, one.is_zero, one.arrived_at) for one in past] == seen
    assert [one.attributes for one in past] == [{"n": 0}, {"n": 2}, {"n": 3}, {"n": 5}]
    assert store.detectors.count_past_scores(sought) == 4
    ids = {one.exchange_id for one in past[1:3]}
    assert [one.route for one in store.detectors.list_past_scores(sought, ids.__contains__)] == ["r2", "r3"]


def test_the_past_ends_before_its_end_and_is_of_one_fingerprint(store: TrackingStore, make: Make, clock: Any) -> None:
    """Since counts, until does not; another judge's scores are another past."""
    for number in range(3):
        score(store, [make(number)], "sampled", number / 8)
        clock.advance(hours=1)
    noon = clock.now - timedelta(hours=3)
    names = {"service": "shop", "scorer": "relevancy", "fingerprint": "f1"}

    window = DetectorScoreQuery(**names, since=noon, until=noon + timedelta(hours=2))
    assert [one.value for one in store.detectors.list_past_scores(window)] == [0.0, 0.125]
    other = DetectorScoreQuery(**names | {"fingerprint": "f2"}, since=noon, until=clock.now)
    assert store.detectors.list_past_scores(other) == []


def test_the_release_is_what_most_answers_had(store: TrackingStore, make: Make, clock: Any) -> None:
    """The application's model and prompt version, so that a change of them can be named later."""
    releases = ["7", "7", "6"]
    exchanges = [make(number, model="m", prompt_version=release) for number, release in enumerate(releases)]
    score(store, exchanges, "sampled", 0.1, 0.2, 0.3)
    names = {"service": "shop", "scorer": "relevancy", "fingerprint": "f1"}
    since, until = clock.now - timedelta(hours=1), clock.now + timedelta(hours=1)

    assert store.detectors.most_common_release(DetectorScoreQuery(**names, since=since, until=until)) == ("m", "7")
    assert store.detectors.most_common_release(DetectorScoreQuery(**names, since=since, until=since)) == (None, None)


def progress(**changes: Any) -> DetectorState:
    """Return how far a detector has come."""
    names: dict[str, Any] = {"rule": "drop", "service": "shop", "scorer": "relevancy"}
    return DetectorState(**names | {"parameters": "p", "baseline_id": 1, "state": {"a": [0.1, None]}} | changes)


def test_what_was_seen_goes_with_what_was_made_of_it(store: TrackingStore, make: Make, clock: Any) -> None:
    """State and queue move together, or neither."""
    score(store, [make(), make(1)], "sampled", 0.1, 0.2)
    first, second = store.detectors.list_new_scores(9)
    assert store.workers.acquire_lease("watcher", "me", ttl=LEASE)
    step = AlertTransaction(
        holder=("watcher", "me"), detector_states=[progress(seen_at=clock.now)], processed_score_ids=[first.id]
    )

    assert store.alerts.commit(step)
    assert store.detectors.list_new_scores(9) == [second]
    (kept,) = store.detectors.list_states()
    assert kept == progress(seen_at=clock.now, row_version=1)

    assert not store.alerts.commit(step), "somebody has moved it on since"
    later = progress(row_version=1, state={}, log_evidence=0.5)
    elsewhere = AlertTransaction(holder=("watcher", "other"), detector_states=[later], processed_score_ids=[second.id])
    assert not store.alerts.commit(elsewhere), "another process holds the office"
    assert (store.detectors.list_states(), store.detectors.list_new_scores(9)) == ([kept], [second])
    assert store.alerts.commit(
        AlertTransaction(holder=("watcher", "me"), detector_states=[later], processed_score_ids=[second.id])
    )
    assert (store.detectors.list_states()[0].row_version, store.detectors.list_new_scores(9)) == (2, [])


def test_ids_that_commit_out_of_order_are_all_seen(postgresql: Any, make: Make, clock: Any) -> None:
    """A transaction that began earlier and ends later puts its score on the way behind what was seen by then."""
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
        assert [one.exchange_id for one in seen] == ["second"]
        assert store.alerts.commit(AlertTransaction(processed_score_ids=[seen[0].id]))
        early.commit()

    (rest,) = store.detectors.list_new_scores(9)
    assert rest.exchange_id == "first"
    assert rest.id < seen[0].id
    store.close()
