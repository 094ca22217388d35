"""Counts of watched traces by service, scope and outcome."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from germane.storage import ExchangeWriter, TrackingStore
from germane.storage.counts.watched import MAX_SCOPES, OTHER_SCOPE, WatchCounter, WatchedTraces

HOUR = 3_600_000_000_000
NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
STARTED = int(NOON.timestamp()) * 1_000_000_000


def test_trace_counts_of_all_processes_are_added_up(store: TrackingStore) -> None:
    """Every process adds to the same rows, and outcomes are kept apart."""
    hour = STARTED // HOUR
    for number in (3, 4):
        store.exchanges.count_watched(
            {(hour, "shop", "scope", "recognized"): number, (hour, "shop", "scope", "no_answer"): 1}
        )

    assert store.exchanges.list_watched(since=NOON) == [
        WatchedTraces(service="shop", scope="scope", outcome="recognized", count=7),
        WatchedTraces(service="shop", scope="scope", outcome="no_answer", count=2),
    ]
    assert store.exchanges.list_watched(since=NOON + timedelta(hours=1)) == []


def test_the_writer_adds_the_traces_counted_since_its_last_write(store: TrackingStore) -> None:
    """Nothing is counted twice, or lost between two writes."""
    writer = ExchangeWriter(store, interval=0.01)

    def count() -> None:
        for _ in range(200):
            writer.count_watched("shop", "scope", "recognized", STARTED, 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.flush(60)
    writer.count_watched("shop", "scope", "recognized", STARTED, 5)
    assert writer.stop(60)

    assert [each.count for each in store.exchanges.list_watched(since=NOON)] == [805]


def test_the_number_of_counted_scopes_is_limited() -> None:
    """Names of scopes come from the application, so there may be any number of them."""
    counter = WatchCounter()
    for number in range(MAX_SCOPES + 10):
        counter.count("shop", f"scope {number}", "recognized", STARTED)

    scopes = {scope: count for (_, _, scope, _), count in counter.take().items()}
    assert len(scopes) == MAX_SCOPES + 1
    assert scopes[OTHER_SCOPE] == 10


def test_old_trace_counts_are_deleted(store: TrackingStore) -> None:
    """Counts are deleted with the tally."""
    store.exchanges.count_watched({(STARTED // HOUR, "shop", "scope", "recognized"): 1})
    store.exchanges.count_watched({(STARTED // HOUR + 5, "shop", "scope", "recognized"): 2})

    store.retention.prune(before=NOON + timedelta(hours=3))

    assert [each.count for each in store.exchanges.list_watched(since=NOON)] == [2]


def test_trace_counts_with_hostile_scope_names_are_stored(store: TrackingStore) -> None:
    """NUL and lone surrogates, which databases reject, do not stop the counts."""
    store.exchanges.count_watched({(STARTED // HOUR, "shop\0", "\ud800", "recognized"): 1})

    assert [each.count for each in store.exchanges.list_watched(since=NOON)] == [1]
