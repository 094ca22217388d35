"""Markers in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from germane.annotation import Marker
from germane.errors import StorageError
from germane.storage import ExchangeWriter, PruneResult, TrackingStore

WriteTo = Callable[..., ExchangeWriter]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_marker(name: str = "index v42", minutes: float = 0, **given: Any) -> Marker:
    defaults: dict[str, Any] = {"id": uuid4().hex, "service": "shop", "at": NOON + timedelta(minutes=minutes)}
    return Marker(name=name, **defaults | given)


def test_marker_times_are_stored_and_returned_in_utc(store: TrackingStore) -> None:
    """A marker is stored once, however often it is written, and its time is converted to UTC."""
    made = make_marker(at=datetime(2026, 3, 1, 13, 0, tzinfo=timezone(timedelta(hours=1))), attributes={"k": [1, "\0"]})
    store.trends.add_markers([made])
    store.trends.add_markers([made, make_marker("other", 5)])

    other, found = store.trends.list_markers()
    assert (found.id, found.name, found.service, found.at) == (made.id, "index v42", "shop", NOON)
    assert found.at.tzinfo is UTC
    assert found.attributes == {"k": [1, "\ufffd"]}
    assert other.name == "other"


def test_markers_are_filtered_and_sorted_newest_first(store: TrackingStore) -> None:
    """The window includes since and excludes until."""
    store.trends.add_markers(
        [make_marker("a", 0), make_marker("a", 10), make_marker("b", 20), make_marker("a", 30, service="bank")]
    )

    def minutes(**asked: Any) -> list[float]:
        return [(marker.at - NOON) / timedelta(minutes=1) for marker in store.trends.list_markers(**asked)]

    assert minutes() == [30, 20, 10, 0]
    assert minutes(since=NOON, until=NOON + timedelta(minutes=20)) == [10, 0]
    assert minutes(service="shop", name="a") == [10, 0]
    assert minutes(limit=1) == [30]


def test_any_text_is_accepted_as_a_marker_name(store: TrackingStore) -> None:
    """Characters that PostgreSQL rejects are replaced; escape sequences are stored as they are."""
    store.trends.add_markers([make_marker("a\0b\ud800 \x1b[31m")])

    assert store.trends.list_markers()[0].name == "a\ufffdb\ufffd \x1b[31m"


def test_marker_time_requires_a_time_zone(store: TrackingStore) -> None:
    """A naive datetime raises ``StorageError``."""
    with pytest.raises(StorageError):
        store.trends.add_markers([make_marker(at=datetime(2026, 3, 1))])  # noqa: DTZ001 - a naive datetime is under test


def test_retention_deletes_old_markers(store: TrackingStore, clock: Any) -> None:
    """Pruning deletes markers older than the retained exchanges."""
    store.trends.add_markers([make_marker("old", -90), make_marker("new", -1)])

    assert store.retention.prune(before=clock.now - timedelta(hours=1), dry_run=True) == PruneResult(markers=1)
    assert store.retention.prune(before=clock.now - timedelta(hours=1)) == PruneResult(markers=1)
    assert str(PruneResult(markers=1)) == "1 marker deleted"
    assert [marker.name for marker in store.trends.list_markers()] == ["new"]


def test_the_exchange_writer_also_writes_markers(store: TrackingStore, write_to: WriteTo) -> None:
    """An invalid marker is dropped and counted without losing the others."""
    writer = write_to(store)
    writer.put(make_marker("good"))
    writer.put(make_marker("bad", at=datetime(2026, 3, 1)))  # noqa: DTZ001 - a naive datetime is under test

    assert writer.stop(60)
    assert [marker.name for marker in store.trends.list_markers()] == ["good"]
    assert writer.lost == 1
