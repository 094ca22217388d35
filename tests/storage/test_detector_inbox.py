"""Scores on their way to the detector: each fairly drawn one arrives once, and goes with its exchange."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from germane.annotation import Recorded
from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.storage import Advance, Arrival, Decision, Past, Progress, Store

Make = Callable[..., Exchange]
LEASE = timedelta(seconds=60)
FAIR = {"drawn", "uniform", "route_floor"}


def score(store: Store, exchanges: list[Exchange], why: str, *values: float, label: str | None = None) -> None:
    """Have exchanges scored that were sampled for a reason."""
    store.add(exchanges)
    store.assign([Decision(one.id, 0.5, why) for one in exchanges], {"relevancy": "f1"})
    claims = store.claim("me", {"relevancy": "f1"}, limit=len(exchanges), lease=LEASE)
    found = {one.id: value for one, value in zip(exchanges, values, strict=True)}
    results = [
        (task, Score(scorer="relevancy", fingerprint="f1", value=found[task.exchange_id], label=label))
        for claim in claims
        for task in claim.tasks
    ]
    store.complete("me", results)
    store.complete("me", results)


@pytest.mark.parametrize("why", ["drawn", "uniform", "route_floor", "suspicion", "always", "feedback"])
def test_only_what_was_drawn_without_regard_to_its_looks_arrives(store: Store, make: Make, why: str) -> None:
    """What was picked because it looked bad, or because a rule asks for it, would bend what the detector sees."""
    score(store, [make(), make(1)], why, 0.5, 0.75)

    found = store.arrivals(9)
    assert [one.value for one in found] == ([0.5, 0.75] if why in FAIR else [])


def test_an_arrival_tells_what_the_detector_needs(store: Store, make: Make, clock: Any) -> None:
    """Whose it is, what it is worth, whether it is a refusal, and when it came."""
    exchange = make(route="pay", attributes={"tenant": "acme"})
    score(store, [exchange], "drawn", 0.5, label="noncommittal")

    (found,) = store.arrivals(9, attributes=True)
    assert found == Arrival(
        id=found.id,
        service="shop",
        route="pay",
        scorer="relevancy",
        fingerprint="f1",
        exchange_id=exchange.id,
        value=0.5,
        zero=True,
        arrived_at=clock.now,
        attributes={"tenant": "acme"},
    )
    assert store.arrivals(9)[0].attributes == {}


@pytest.mark.parametrize(("value", "zero"), [(-0.25, True), (0.0, True), (0.25, False)])
def test_what_is_not_above_0_counts_as_zero(store: Store, make: Make, value: float, zero: bool) -> None:
    """A negative cosine says as little as none."""
    score(store, [make()], "drawn", value)

    assert [(one.value, one.zero) for one in store.arrivals(9)] == [(value, zero)]


def test_what_failed_or_was_recorded_from_elsewhere_does_not_arrive(store: Store, make: Make, clock: Any) -> None:
    """An absence of a score is no score, and nobody knows how other people's scores were chosen."""
    exchange = make()
    store.add([exchange])
    store.assign([Decision(exchange.id, 1.0, "drawn")], {"relevancy": "f1"})
    (claim,) = store.claim("me", {"relevancy": "f1"}, limit=1, lease=LEASE)
    failed = Score(scorer="relevancy", fingerprint="f1", reason=Reason.JUDGE_REFUSED)
    store.complete("me", [(claim.tasks[0], failed)])
    store.record([Recorded(exchange_id=exchange.id, name="mine", value=0.5, recorded_at=clock.now)])

    assert store.arrivals(9) == []


def test_scores_that_come_back_from_a_file_do_not_arrive_again(store: Store, make: Make, clock: Any) -> None:
    """They are old: whoever exported them has seen them."""
    from germane.storage import Selection

    score(store, [make()], "drawn", 0.5)
    records = store.records(Selection())
    store.prune(before=clock.now + timedelta(days=1))
    store.restore(records)

    assert store.counts().rows == 1
    assert store.arrivals(9) == []


def test_what_is_forgotten_or_too_old_arrives_no_more(store: Store, make: Make, clock: Any) -> None:
    """An arrival goes with its exchange."""
    one, other, third = make(user="ann"), make(50), make(59)
    score(store, [one, other, third], "drawn", 0.1, 0.2, 0.3)

    store.forget(user="ann")
    assert [arrival.value for arrival in store.arrivals(9)] == [0.2, 0.3]
    store.prune(before=clock.now - timedelta(minutes=5))
    assert [arrival.value for arrival in store.arrivals(9)] == [0.3]


def test_arrivals_come_in_order_and_as_many_as_are_asked_for(store: Store, make: Make) -> None:
    """The first come first."""
    for number in range(5):
        score(store, [make(number)], "drawn", number / 8)

    assert [one.value for one in store.arrivals(3)] == [0.0, 0.125, 0.25]


def test_the_past_is_what_arrived_in_its_order(store: Store, make: Make, clock: Any) -> None:
    """A replay sees what the detector saw, whatever else was scored meanwhile."""
    start = clock.now
    for number, why in enumerate(["drawn", "suspicion", "uniform", "route_floor", "always", "drawn"]):
        score(store, [make(59 - number, route=f"r{number}", attributes={"n": number})], why, number / 8)
        clock.advance(seconds=10)
    seen = [(one.route, one.value, one.zero, one.arrived_at) for one in store.arrivals(9)]
    sought = Past(service="shop", scorer="relevancy", fingerprint="f1", since=start, until=clock.now)

    past = store.past(sought, attributes=True)
    assert [(one.route, one.value, one.zero, one.arrived_at) for one in past] == seen
    assert [one.attributes for one in past] == [{"n": 0}, {"n": 2}, {"n": 3}, {"n": 5}]
    assert store.count_past(sought) == 4
    ids = {one.exchange_id for one in past[1:3]}
    assert [one.route for one in store.past(sought, ids.__contains__)] == ["r2", "r3"]


def test_the_past_ends_before_its_end_and_is_of_one_fingerprint(store: Store, make: Make, clock: Any) -> None:
    """Since counts, until does not; another judge's scores are another past."""
    for number in range(3):
        score(store, [make(number)], "drawn", number / 8)
        clock.advance(hours=1)
    noon = clock.now - timedelta(hours=3)
    names = {"service": "shop", "scorer": "relevancy", "fingerprint": "f1"}

    window = Past(**names, since=noon, until=noon + timedelta(hours=2))
    assert [one.value for one in store.past(window)] == [0.0, 0.125]
    other = Past(**names | {"fingerprint": "f2"}, since=noon, until=clock.now)
    assert store.past(other) == []


def test_the_release_is_what_most_answers_had(store: Store, make: Make, clock: Any) -> None:
    """The application's model and prompt version, so that a change of them can be named later."""
    releases = ["7", "7", "6"]
    exchanges = [make(number, model="m", prompt_version=release) for number, release in enumerate(releases)]
    score(store, exchanges, "drawn", 0.1, 0.2, 0.3)
    names = {"service": "shop", "scorer": "relevancy", "fingerprint": "f1"}
    since, until = clock.now - timedelta(hours=1), clock.now + timedelta(hours=1)

    assert store.release_of(Past(**names, since=since, until=until)) == ("m", "7")
    assert store.release_of(Past(**names, since=since, until=since)) == (None, None)


def progress(**changes: Any) -> Progress:
    """Return how far a detector has come."""
    names: dict[str, Any] = {"rule": "drop", "service": "shop", "scorer": "relevancy"}
    return Progress(**names | {"parameters": "p", "baseline_id": 1, "state": {"a": [0.1, None]}} | changes)


def test_what_was_seen_goes_with_what_was_made_of_it(store: Store, make: Make, clock: Any) -> None:
    """State and queue move together, or neither."""
    score(store, [make(), make(1)], "drawn", 0.1, 0.2)
    first, second = store.arrivals(9)
    assert store.elect("watcher", "me", ttl=LEASE)
    step = Advance(holder=("watcher", "me"), progress=[progress(seen_at=clock.now)], consumed=[first.id])

    assert store.advance(step)
    assert store.arrivals(9) == [second]
    (kept,) = store.detectors()
    assert kept == progress(seen_at=clock.now, row_version=1)

    assert not store.advance(step), "somebody has moved it on since"
    later = progress(row_version=1, state={}, log_evidence=0.5)
    elsewhere = Advance(holder=("watcher", "other"), progress=[later], consumed=[second.id])
    assert not store.advance(elsewhere), "another process holds the office"
    assert (store.detectors(), store.arrivals(9)) == ([kept], [second])
    assert store.advance(Advance(holder=("watcher", "me"), progress=[later], consumed=[second.id]))
    assert (store.detectors()[0].row_version, store.arrivals(9)) == (2, [])


def test_ids_that_commit_out_of_order_are_all_seen(postgresql: Any, make: Make, clock: Any) -> None:
    """A transaction that began earlier and ends later puts its score on the way behind what was seen by then."""
    url = postgresql.url(postgresql.create())
    store = Store(url, clock=clock)
    store.migrate()
    columns = "service, route, scorer, fingerprint, exchange_id, value, zero, arrived_at"
    insert = f"INSERT INTO arrival ({columns}) VALUES ('shop', 'ask', 'relevancy', 'f1', %s, 0.5, false, now())"
    with psycopg.connect(url) as early, psycopg.connect(url) as late:
        early.execute(insert, ["first"])
        late.execute(insert, ["second"])
        late.commit()
        seen = store.arrivals(9)
        assert [one.exchange_id for one in seen] == ["second"]
        assert store.advance(Advance(consumed=[seen[0].id]))
        early.commit()

    (rest,) = store.arrivals(9)
    assert rest.exchange_id == "first"
    assert rest.id < seen[0].id
    store.close()
