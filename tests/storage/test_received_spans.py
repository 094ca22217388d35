"""Staging of received spans, and their conversion to exchanges exactly once, on both databases."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from tests.deliveries import BUSY, SENT

from germane.exchange import FORWARDING, Exchange
from germane.score import UnscoredReason
from germane.storage import (
    Coverage,
    OutgoingRequest,
    PruneResult,
    ReceivedItem,
    ReceivedTrace,
    StagingCounts,
    TraceOutcome,
    TrackingStore,
    UncapturedTrace,
    WatchKey,
    forwarding_queue,
)
from germane.storage.db.tables import delivery
from germane.storage.ingest import received_spans
from germane.testing import Clock, transaction

TRACE = "a" * 32
OTHER = "b" * 32
LEASE = timedelta(seconds=60)
WAIT = 10.0
MAX_WAIT = 600.0
Make = Callable[..., Exchange]


def span(number: int, trace_id: str = TRACE, *, root: bool = False, payload: bytes = b"span") -> ReceivedItem:
    """Return a span; the root of a trace has a wait."""
    return ReceivedItem(trace_id, f"{number:016x}", False, "shop", "scope", payload, WAIT if root else None)


def stage(store: TrackingStore, *items: ReceivedItem) -> StagingCounts:
    """Stage items with the default maximum wait."""
    return store.received.stage(items, max_wait=MAX_WAIT)


def claim(store: TrackingStore, owner: str = "me", limit: int = 100) -> list[ReceivedTrace]:
    """Claim all finished traces."""
    return store.received.claim(owner, limit=limit, max_size=2**20, lease=LEASE)


def test_trace_is_complete_when_its_root_has_arrived_and_no_span_follows(store: TrackingStore, clock: Clock) -> None:
    """Spans that arrive before the deadline extend the wait."""
    stage(store, span(1), span(2))
    clock.advance(seconds=20)
    assert claim(store) == []

    stage(store, span(3, root=True))
    clock.advance(seconds=9)
    stage(store, span(4))
    clock.advance(seconds=9)
    assert claim(store) == []

    clock.advance(seconds=2)
    (trace,) = claim(store)
    assert sorted(item.key for item in trace.items) == [f"{number:016x}" for number in (1, 2, 3, 4)]
    assert (trace.spans, trace.dropped) == (4, 0)
    assert claim(store, "other") == []


def test_a_claimed_trace_states_when_its_last_spans_arrived(store: TrackingStore, clock: Clock) -> None:
    """No request in it started later, whatever the clocks of the senders say."""
    stage(store, span(1), span(2, root=True))
    clock.advance(seconds=3)
    last = clock()
    stage(store, span(3))
    clock.advance(hours=2)

    (trace,) = claim(store)

    assert trace.received_at == pytest.approx(last.timestamp(), abs=1e-3)


def test_late_spans_of_a_sender_whose_clock_is_ahead_do_not_open_its_trace(
    store: TrackingStore, clock: Clock, make: Make
) -> None:
    """The end of the exchange by the clock of the sender determines which spans belong to a later request."""
    stage(store, span(1, root=True))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    ahead = clock().timestamp() + 86_400
    store.received.complete("me", [TraceOutcome(trace, make(id="1" * 32), ended=ahead)])

    assert stage(store, span(2)._replace(started=ahead - 1)) == StagingCounts(late=1)
    assert stage(store, span(3)._replace(started=ahead + 1)) == StagingCounts(staged=1)


def test_trace_without_a_root_is_processed_at_its_deadline(store: TrackingStore, clock: Clock) -> None:
    """Spans that keep arriving do not extend the deadline."""
    stage(store, span(1))
    clock.advance(seconds=MAX_WAIT - 1)
    stage(store, span(2, root=True))
    assert claim(store) == []

    clock.advance(seconds=1)
    assert [trace.spans for trace in claim(store)] == [2]


def test_spans_that_a_client_sends_again_are_staged_once(store: TrackingStore) -> None:
    """A client that gets no answer sends its request again, alone or together with other spans."""
    assert stage(store, span(1), span(2, OTHER), span(1)) == StagingCounts(staged=2, repeated=1)
    assert stage(store, span(1), span(3)) == StagingCounts(staged=1, repeated=1)
    assert store.received.measure().traces == 2
    assert store.received.measure().size == 3 * len(b"span")


def test_a_complete_trace_becomes_one_exchange(store: TrackingStore, clock: Clock, make: Make) -> None:
    """The trace's spans are deleted, and spans that arrive later change nothing."""
    stage(store, span(1, root=True), span(2))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    outcome = TraceOutcome(trace, make(id="1" * 32))

    assert store.received.complete("me", [outcome]) == [outcome]
    assert store.received.complete("me", [outcome]) == []
    assert stage(store, span(1, root=True), span(7), span(7)) == StagingCounts(late=1, repeated=2)
    clock.advance(hours=1)
    assert claim(store) == []
    assert store.answers.counts().captured == 1
    assert store.received.measure().size == 0


def test_span_that_arrives_during_a_claim_is_not_lost(store: TrackingStore, clock: Clock, make: Make) -> None:
    """The trace is claimed again, with the new span."""
    stage(store, span(1, root=True))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    stage(store, span(2))

    assert store.received.complete("me", [TraceOutcome(trace, make())]) == []
    clock.advance(seconds=11)
    assert [trace.spans for trace in claim(store)] == [2]
    assert store.answers.counts().captured == 0


def test_trace_without_an_exchange_is_counted(store: TrackingStore, clock: Clock) -> None:
    """The trace counts as seen and as skipped, with the reason."""
    stage(store, span(1, root=True))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    skipped = UncapturedTrace("shop", "ask", clock.now, UnscoredReason.UNREADABLE)

    store.received.complete("me", [TraceOutcome(trace, skipped)], ["a"])
    assert store.trends.coverage(since=clock.now - timedelta(hours=1)) == [
        Coverage(service="shop", route="ask", scorer="a", seen=1, skipped={"unreadable": 1})
    ]


def test_only_the_keys_of_an_irrelevant_trace_are_kept(store: TrackingStore, clock: Clock) -> None:
    """A repeated trace is recognized by its keys, so that it is not counted twice."""
    stage(store, span(1, root=True))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    store.received.complete("me", [TraceOutcome(trace, None)])

    assert stage(store, span(1, root=True)) == StagingCounts(repeated=1)
    assert store.received.measure().size == 0
    clock.advance(hours=2)
    assert store.received.expire(age=timedelta(hours=1)) == 1


def test_a_later_request_reopens_its_trace(store: TrackingStore, clock: Clock, make: Make) -> None:
    """Spans that started after the exchange's end belong to another one. Earlier ones are late."""
    answer = make(id="1" * 32, started_at=clock.now, duration=1.0)
    stage(store, span(1, root=True))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    store.received.complete("me", [TraceOutcome(trace, answer)])
    later = span(3)._replace(started=clock.now.timestamp())
    earlier = span(2)._replace(started=answer.started_at.timestamp())

    assert stage(store, span(1), earlier, later, later) == StagingCounts(staged=1, late=1, repeated=2)
    assert stage(store, span(1), later, later._replace(key=span(4).key)) == StagingCounts(staged=1, repeated=2)
    assert store.received.measure().size == 2 * len(b"span")
    clock.advance(seconds=11)
    (again,) = claim(store)
    assert sorted(item.key for item in again.items) == [span(3).key, span(4).key]
    assert again.spans == 2
    assert again.finished_spans == {span(1).key}

    outcome = TraceOutcome(again, make(id="2" * 32), others=(TraceOutcome(again, make(id="3" * 32)),))
    assert store.received.complete("me", [outcome]) == [outcome]
    assert store.answers.counts().captured == 3
    assert stage(store, span(1), later) == StagingCounts(repeated=2)


def test_a_trace_without_an_exchange_waits_for_missing_spans_once(store: TrackingStore, clock: Clock) -> None:
    """A trace without an exchange can wait until its deadline, once."""
    stage(store, span(1, root=True))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    assert not trace.is_final
    assert store.received.complete("me", [TraceOutcome(trace, None, is_postponed=True)]) == []
    clock.advance(seconds=11)
    assert claim(store) == []

    assert stage(store, span(2)) == StagingCounts(staged=1)
    clock.advance(seconds=11)
    (trace,) = claim(store)
    assert (trace.spans, trace.is_final) == (2, False)
    store.received.complete("me", [TraceOutcome(trace, None, is_postponed=True)])
    clock.advance(seconds=MAX_WAIT)
    (trace,) = claim(store)
    assert trace.is_final


def test_an_oversized_trace_is_truncated(store: TrackingStore, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans beyond the limit are counted, and the trace says how many are missing."""
    monkeypatch.setattr(received_spans, "MAX_TRACE_SIZE", 100)
    stage(store, span(1, root=True))

    assert stage(store, span(2, payload=bytes(101)), span(3, OTHER)) == StagingCounts(staged=1, over_limit=1)
    assert stage(store, span(4)) == StagingCounts(staged=1)
    clock.advance(seconds=11)
    (trace,) = claim(store)
    assert (trace.spans, trace.dropped) == (2, 1)
    assert store.received.measure().size == 3 * len(b"span")


def test_a_claim_covers_a_limited_number_and_size_of_traces(store: TrackingStore, clock: Clock) -> None:
    """Both the number and the size are limited; a single trace may be larger."""
    for number in range(5):
        stage(store, span(1, f"{number:032x}", root=True, payload=bytes(600)))
    clock.advance(seconds=11)

    assert len(store.received.claim("me", limit=2, max_size=10_000, lease=LEASE)) == 2
    assert len(store.received.claim("me", limit=9, max_size=1_000, lease=LEASE)) == 1
    assert len(store.received.claim("me", limit=9, max_size=1, lease=LEASE)) == 1


def test_records_of_finished_traces_are_deleted_after_a_while(store: TrackingStore, clock: Clock, make: Make) -> None:
    """An unfinished trace is never forgotten."""
    stage(store, span(1, root=True))
    clock.advance(seconds=11)
    (trace,) = claim(store)
    store.received.complete("me", [TraceOutcome(trace, make())])
    stage(store, span(1, OTHER))
    clock.advance(hours=2)

    assert store.received.expire(age=timedelta(hours=1)) == 1
    assert store.received.expire(age=timedelta(hours=1)) == 0
    assert store.received.measure().traces == 1


def test_forwarded_requests_are_committed_with_their_spans(store: TrackingStore, clock: Clock) -> None:
    """They are claimed oldest first, by a process with the same target."""
    requests = [OutgoingRequest("traces", b"one"), OutgoingRequest("logs", b"two")]
    store.received.stage([span(1)], max_wait=MAX_WAIT, requests=requests, target="there")
    assert store.forwarding.measure() == 6

    assert store.outbox.claim(forwarding_queue("elsewhere"), "me", lease=LEASE) == []
    claimed = store.outbox.claim(forwarding_queue("there"), "me", lease=LEASE)
    assert [(item.payload["signal"], item.body) for item in claimed] == [("traces", b"one"), ("logs", b"two")]


def finish(store: TrackingStore, make: Make, *, is_answer: bool = True) -> str:
    """Complete the claimed trace with an exchange whose span waits for 15 s, and return its id."""
    (trace,) = claim(store)
    result = make(1, trace_id=TRACE, span_id=f"{1:016x}")
    store.received.complete("me", [TraceOutcome(trace, result if is_answer else None)], max_span_delay=15.0)
    return result.id


def hold(store: TrackingStore, target: str = "") -> None:
    """Receive the root span of a trace, which is forwarded with its scores."""
    waiting = OutgoingRequest("traces", b"span", TRACE, f"{1:016x}", WAIT + 15.0)
    store.received.stage([span(1, root=True)], max_wait=MAX_WAIT, requests=[waiting], target=target)


def forwarded(store: TrackingStore, target: str = "") -> list[object]:
    """Claim what is due, and return the attributes of each request."""
    claimed = store.outbox.claim(forwarding_queue(target), "forwarder", lease=LEASE)
    return [request.payload.get("attributes") for request in claimed]


def test_a_span_waits_for_its_scores(store: TrackingStore, clock: Clock, make: Make) -> None:
    """It is due once they are attached, and they are attached once."""
    hold(store)
    clock.advance(seconds=WAIT + 1)
    assert forwarded(store) == []
    exchange_id = finish(store, make)
    assert [one.span_holder for one in store.answers.list_exchanges()] == [FORWARDING]
    clock.advance(seconds=10)
    assert forwarded(store) == []

    assert store.forwarding.attach(exchange_id, {"germane.evaluation.relevancy": 0.5})
    assert not store.forwarding.attach(exchange_id, {"germane.evaluation.relevancy": 0.9})
    assert forwarded(store) == [{"germane.evaluation.relevancy": 0.5}]


def test_a_span_does_not_wait_after_its_deadline(store: TrackingStore, clock: Clock, make: Make) -> None:
    """Scores that come later are exported in another way."""
    hold(store)
    clock.advance(seconds=WAIT + 1)
    exchange_id = finish(store, make)
    clock.advance(seconds=16)

    assert forwarded(store) == [None]
    assert not store.forwarding.attach(exchange_id, {"germane.evaluation.relevancy": 0.5})


def test_a_span_without_an_exchange_to_score_does_not_wait(store: TrackingStore, clock: Clock, make: Make) -> None:
    """As soon as its trace is complete, it is forwarded."""
    hold(store)
    clock.advance(seconds=WAIT + 1)
    finish(store, make, is_answer=False)

    assert forwarded(store) == [None]


def test_the_span_of_an_exchange_that_nothing_is_to_be_forwarded_for_has_no_holder(
    store: TrackingStore, clock: Clock, make: Make
) -> None:
    """Its scores are exported without waiting for a forwarder."""
    stage(store, span(1, root=True))
    clock.advance(seconds=WAIT + 1)
    finish(store, make)

    assert [one.span_holder for one in store.answers.list_exchanges()] == [None]


def test_an_application_that_holds_the_span_itself_goes_on_holding_it(
    store: TrackingStore, clock: Clock, make: Make
) -> None:
    """Although its spans are also received and forwarded."""
    own = make(1, trace_id=TRACE, span_id=f"{1:016x}", span_holder="worker-1")
    hold(store)
    clock.advance(seconds=WAIT + 1)
    (trace,) = claim(store)
    store.received.complete("me", [TraceOutcome(trace, own)], max_span_delay=15.0)

    assert [one.span_holder for one in store.answers.list_exchanges()] == ["worker-1"]


def test_each_target_of_a_span_gets_its_scores(store: TrackingStore, clock: Clock, make: Make) -> None:
    """Neither receiver takes the span for a repetition of what the other one has queued."""
    hold(store, "here")
    hold(store, "there")
    clock.advance(seconds=WAIT + 1)
    exchange_id = finish(store, make)

    assert store.forwarding.attach(exchange_id, {"score": 0.5})
    assert forwarded(store, "here") == forwarded(store, "there") == [{"score": 0.5}]


def test_a_repeated_span_does_not_wait_again(store: TrackingStore, clock: Clock, make: Make) -> None:
    """A client may repeat a request whose acknowledgment was lost, even if the span was forwarded meanwhile."""
    hold(store)
    hold(store)
    clock.advance(seconds=WAIT + 1)
    finish(store, make, is_answer=False)
    (request,) = store.outbox.claim(forwarding_queue(""), "forwarder", lease=LEASE)
    store.outbox.record_attempt(forwarding_queue(""), "forwarder", {request.id: SENT})
    hold(store)

    assert store.forwarding.list_targets() == []
    with transaction(store, read_only=True) as connection:
        assert connection.execute(select(delivery.c.body, delivery.c.payload, delivery.c.size)).all() == [(None, {}, 0)]
    clock.advance(hours=2)
    assert store.retention.prune(texts_before=clock.now, dry_run=True).requests == 0
    assert store.received.expire(age=timedelta(hours=1)) == 2  # the records of the trace and of the span
    assert store.received.expire(age=timedelta(hours=1)) == 0


def test_a_span_does_not_wait_for_a_trace_that_is_never_completed(store: TrackingStore, clock: Clock) -> None:
    """Its deadline is set when it arrives."""
    hold(store)
    clock.advance(seconds=WAIT + 16)

    assert forwarded(store) == [None]


@pytest.mark.parametrize(("minute", "is_captured"), [(0, False), (5, True)], ids=["inside", "after"])
def test_a_request_inside_an_exchange_belongs_to_it(
    store: TrackingStore, clock: Clock, make: Make, minute: int, *, is_captured: bool
) -> None:
    """A gateway that an application calls does not double the application's exchange."""
    outer = make(0, trace_id=TRACE, span_id=f"{9:016x}", duration=60.0)
    store.exchanges.add([outer])
    stage(store, span(1, root=True))
    clock.advance(seconds=WAIT + 1)
    (trace,) = claim(store)
    inner = make(minute, trace_id=TRACE, span_id=f"{1:016x}", duration=1.0)
    counted = WatchKey.at(0, "gateway", "scope", "recognized")

    (outcome,) = store.received.complete("me", [TraceOutcome(trace, inner, counted, is_called=True)])

    found = {each.id for each in store.answers.list_exchanges(limit=9)}
    assert found == ({outer.id, inner.id} if is_captured else {outer.id})
    assert outcome.counted is not None
    assert outcome.counted[3] == ("recognized" if is_captured else "answered_elsewhere")


def test_a_request_within_another_one_is_found_by_the_clock_of_its_sender(
    store: TrackingStore, clock: Clock, make: Make
) -> None:
    """The start of a received exchange is at most its receipt, but that of an application's is by its own clock."""
    ahead = make(0, trace_id=TRACE, span_id=f"{9:016x}", duration=60.0)
    outer = replace(ahead, started_at=ahead.started_at + timedelta(days=1))
    store.exchanges.add([outer])
    stage(store, span(1, root=True))
    clock.advance(seconds=WAIT + 1)
    (trace,) = claim(store)
    inner = make(0, trace_id=TRACE, span_id=f"{1:016x}", duration=1.0)
    outcome = TraceOutcome(trace, inner, WatchKey.at(0, "gateway", "scope", "recognized"), is_called=True)
    store.received.complete("me", [replace(outcome, ended=outer.started_at.timestamp() + 2)])

    assert [each.id for each in store.answers.list_exchanges(limit=9)] == [outer.id]


def test_abandoned_spans_are_deleted_like_other_texts(store: TrackingStore, clock: Clock) -> None:
    """If no receiver runs any more, their texts do not stay longer than those of exchanges."""
    store.received.stage([span(1), span(1, OTHER)], max_wait=MAX_WAIT, requests=[OutgoingRequest("traces", b"text")])
    clock.advance(days=1)
    store.retention.prune(texts_before=clock.now - timedelta(days=30))
    assert store.received.measure().traces == 2

    clock.advance(days=30)
    store.received.stage([span(1, "c" * 32)], max_wait=MAX_WAIT)
    removed = store.retention.prune(texts_before=clock.now - timedelta(days=30))
    assert (removed.traces, removed.requests) == (2, 1)
    assert str(removed) == "2 unfinished traces deleted, 1 unsent request deleted"
    assert store.received.measure().traces == 1
    assert store.forwarding.measure() == 0


def test_requests_that_are_retried_are_deleted_like_other_texts(store: TrackingStore, clock: Clock) -> None:
    """During an outage of the target, texts do not stay longer either. Only their number remains, in the result."""
    requests = [OutgoingRequest("traces", b"text")] * 2
    queue = replace(forwarding_queue("there"), batch_size=1)
    store.received.stage([], max_wait=MAX_WAIT, requests=requests, target="there")
    clock.advance(hours=1)
    (item,) = store.outbox.claim(queue, "me", lease=LEASE)
    store.outbox.record_attempt(queue, "me", {item.id: BUSY})
    store.received.stage([], max_wait=MAX_WAIT, requests=requests[:1], target="there")

    limit = clock.now - timedelta(minutes=30)
    assert store.retention.prune(texts_before=limit, dry_run=True) == PruneResult(requests=2)
    assert store.retention.prune(texts_before=limit) == PruneResult(requests=2)
    assert store.forwarding.measure() == 4


def test_the_length_and_age_of_each_queue_are_known(store: TrackingStore, clock: Clock) -> None:
    """The error is the one of the oldest request that could not be sent. A span that waits for scores has no age."""
    requests = [OutgoingRequest("traces", b"text")] * 2
    store.received.stage([], max_wait=MAX_WAIT, requests=requests, target="there")
    clock.advance(minutes=5)
    (item, _) = store.outbox.claim(forwarding_queue("there"), "me", lease=LEASE)
    store.outbox.record_attempt(forwarding_queue("there"), "me", {item.id: BUSY})
    store.received.stage([], max_wait=MAX_WAIT, requests=requests[:1], target="there")
    hold(store, "here")

    here, there = store.forwarding.list_targets()
    assert (here.target, here.requests, here.size, here.age, here.error) == ("here", 1, 4, timedelta(), None)
    assert (there.requests, there.size, there.age, there.error) == (3, 12, timedelta(minutes=5), BUSY.error)


def test_a_trace_is_finished_only_with_the_options_with_which_it_was_received(
    store: TrackingStore, clock: Clock, make: Make
) -> None:
    """Spans of one trace that receivers with different options got are kept apart, whatever their number and order."""
    plain, redacted = "plain", "redacted"
    for options, numbers in ((plain, (1, 2)), (redacted, (2, 3, 4))):
        spans = [span(number, root=number == 2, payload=options.encode()) for number in numbers]
        counts = store.received.stage([*spans, spans[0]], max_wait=MAX_WAIT, options=options)
        assert (counts.staged, counts.repeated) == (len(numbers), 1)
    clock.advance(minutes=10)

    assert claim(store) == []
    arguments = {"limit": 100, "max_size": 2**20, "lease": LEASE}
    (one,) = store.received.claim("me", options=redacted, **arguments)
    assert {item.payload for item in one.items} == {b"redacted"}
    assert one.spans == 3
    outcome = TraceOutcome(one, make(trace_id=TRACE))
    assert store.received.complete("me", [outcome], options=redacted) == [outcome]
    assert store.received.measure(redacted).traces == 0
    assert store.received.measure(plain).traces == 1

    assert store.received.count_overdue() == {plain: 1}
    (other,) = store.received.claim("you", options=plain, **arguments)
    assert {item.payload for item in other.items} == {b"plain"}


@pytest.mark.slow
def test_concurrent_receivers_store_each_trace_exactly_once(migrated_url: str, make: Make) -> None:
    """Four of them stage overlapping batches of 200 traces, while two others finish traces, without a deadlock."""
    store = TrackingStore(migrated_url)
    traces = [f"{number:032x}" for number in range(200)]
    is_staged = threading.Event()

    def send(seed: int) -> None:
        dice = random.Random(seed)
        spans = [span(number, trace_id) for trace_id in traces for number in range(1, 4)]
        dice.shuffle(spans)
        for start in range(0, len(spans), 40):
            store.received.stage(spans[start : start + 40], max_wait=MAX_WAIT)

    def finish(owner: str) -> None:
        while not is_staged.is_set() or store.received.measure().traces:
            claimed = store.received.claim(owner, limit=20, max_size=2**20, lease=LEASE)
            outcomes = [TraceOutcome(trace, make(id=trace.trace_id, answer=f"{trace.spans}")) for trace in claimed]
            store.received.complete(owner, outcomes)

    with ThreadPoolExecutor(6) as pool:
        finishers = [pool.submit(finish, owner) for owner in ("one", "two")]
        for sender in [pool.submit(send, seed) for seed in range(4)]:
            sender.result()
        stage(store, *(span(9, trace_id)._replace(wait=0.0) for trace_id in traces))
        is_staged.set()
        for finisher in finishers:
            finisher.result()

    exchanges = store.answers.list_exchanges(limit=1000)
    assert sorted(one.id for one in exchanges) == traces
    assert {one.answer for one in exchanges} == {"4"}
    store.close()


BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1), max_size=8)


@given(BATCHES)
def test_every_received_span_is_counted_as_staged_or_repeated(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[int, int]]]
) -> None:
    """For any batches, each distinct span is staged once, and the others are repeated."""
    store = TrackingStore("sqlite://")
    store.migrate()
    counts = StagingCounts()
    for batch in batches:
        counts += stage(store, *(span(number, f"{trace:032x}") for trace, number in batch))
    distinct = {one for batch in batches for one in batch}

    assert counts == StagingCounts(staged=len(distinct), repeated=sum(map(len, batches)) - len(distinct))
    assert store.received.measure().size == len(distinct) * len(b"span")
    store.close()
