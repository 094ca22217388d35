"""The sample of unreadable traces: small, recent, and without values."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from germane.storage import ExchangeWriter, SampleLimiter, TrackingStore
from germane.storage.ingest.unreadable_traces import MAX_AGE, MAX_PER_MINUTE, MAX_PER_REASON, MAX_TRACES
from germane.testing import transaction
from germane.trace_outline import AttributeOutline, SpanOutline, UnreadableTrace

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)


def make_trace(number: int, **given: Any) -> UnreadableTrace:
    """Return a trace with one span."""
    attribute = AttributeOutline(name="input.value", type="string", length=12)
    span = SpanOutline(
        name="Chain", scope="s", kind="INTERNAL", status="UNSET", depth=0, duration=0.5, attributes=(attribute,)
    )
    own: dict[str, Any] = {"service": "shop", "scope": "s", "reason": "no_answer", "started_at": NOON, "spans": (span,)}
    return UnreadableTrace(trace_id=f"{number:032x}", **own | given)


def test_unreadable_traces_are_stored_and_listed(store: TrackingStore) -> None:
    """The list has no spans; a single trace does. Adding a trace again changes nothing."""
    trace = make_trace(1, spans_omitted=2)
    store.unreadable.add([trace])
    store.unreadable.add([trace])

    assert store.unreadable.get_trace(trace.trace_id) == trace
    assert [(found.trace_id, found.spans) for found in store.unreadable.list_traces()] == [(trace.trace_id, ())]
    assert store.unreadable.get_trace("unknown\0") is None


def test_the_newest_unreadable_traces_with_each_reason_are_kept(store: TrackingStore, clock: Any) -> None:
    """Older traces with the same service, scope and reason are deleted; those with another reason are not."""
    for number in range(5):
        store.unreadable.add([make_trace(number)])
        clock.advance(seconds=1)
    store.unreadable.add([make_trace(9, reason="incomplete")])

    assert [int(found.trace_id, 16) for found in store.unreadable.list_traces()] == [9, 4, 3, 2]


def test_the_number_of_stored_unreadable_traces_is_limited(store: TrackingStore, clock: Any) -> None:
    """There may be any number of services and scopes."""
    for number in range(3):
        store.unreadable.add([make_trace(100 * number + scope, scope=f"s{scope}") for scope in range(45)])
        clock.advance(seconds=1)

    assert len(store.unreadable.list_traces()) == MAX_TRACES


def test_concurrent_processes_can_store_unreadable_traces(store: TrackingStore) -> None:
    """They never wait for each other's deletions, and the sample is bounded after the next write."""

    def add(first: int) -> None:
        for number in range(first, first + 40):
            store.unreadable.add([make_trace(number + step, scope=f"s{step}") for step in (3, 0, 7)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, (0, 10, 20, 30)))
    for step in (0, 3, 7):
        store.unreadable.add([make_trace(1000 + step, scope=f"s{step}")])

    found = [trace.scope for trace in store.unreadable.list_traces()]
    assert {scope: found.count(scope) for scope in ("s0", "s3", "s7")} == {"s0": 3, "s3": 3, "s7": 3}


def test_unreadable_traces_are_deleted_when_they_expire(store: TrackingStore, clock: Any) -> None:
    """After a week they are not shown, and the next retention round deletes them; ``prune`` deletes older ones."""
    store.unreadable.add([make_trace(1)])
    clock.advance(seconds=MAX_AGE.total_seconds() + 1)
    assert store.unreadable.list_traces() == []
    assert store.unreadable.get_trace(make_trace(1).trace_id) is None
    store.retention.prune()
    assert count_rows(store) == 0

    store.unreadable.add([make_trace(2)])
    clock.advance(hours=2)
    store.retention.prune(before=store.now() - timedelta(hours=3))
    assert count_rows(store) == 1
    store.retention.prune(before=store.now() - timedelta(hours=1))
    assert count_rows(store) == 0


def count_rows(store: TrackingStore) -> int:
    """Return the number of rows, whether or not they have expired."""
    with transaction(store, read_only=True) as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM unreadable_trace").scalar_one())


def test_unreadable_traces_with_hostile_names_are_stored(store: TrackingStore) -> None:
    """Databases reject NUL and lone surrogates."""
    attribute = AttributeOutline(name="a\0\ud800", type="string", length=1)
    span = SpanOutline(
        name="\0<script>", scope="\ud800", kind="", status="", depth=0, duration=0.0, attributes=(attribute,)
    )
    store.unreadable.add([make_trace(1, spans=(span,), scope="\0", service="\ud800")])

    found = store.unreadable.get_trace(make_trace(1).trace_id)
    assert found is not None
    assert found.spans[0].name.endswith("<script>")


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 12)), max_size=200))
def test_stored_unreadable_traces_are_rate_limited_per_process(steps: list[tuple[float, int]]) -> None:
    """At most three per reason and thirty in all within any minute, however many there are."""
    now, admitted = 0.0, []
    limiter = SampleLimiter(lambda: now)
    for seconds, scope in steps:
        now += seconds
        if limiter.admit("shop", f"s{scope}", "no_answer"):
            admitted.append((now, scope))

    for start, _ in admitted:
        window = [scope for at, scope in admitted if start <= at < start + 60]
        assert len(window) <= MAX_PER_MINUTE
        assert all(window.count(scope) <= MAX_PER_REASON for scope in window)


def test_the_writer_stores_sampled_unreadable_traces(store: TrackingStore) -> None:
    """Traces that are not added are not even described."""
    writer, described = ExchangeWriter(store, interval=0.01), list[int]()

    def describe(number: int) -> Callable[[], UnreadableTrace]:
        return lambda: described.append(number) or make_trace(number)  # type: ignore[func-returns-value]

    for number in range(10):
        writer.sample_unreadable("shop", "s", "no_answer", describe(number))
    assert writer.flush(60)
    assert writer.stop(60)

    assert described == [0, 1, 2]
    assert len(store.unreadable.list_traces()) == 3
