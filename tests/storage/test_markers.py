"""Marks in time, in the database."""

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


def a_mark(name: str = "index v42", minutes: float = 0, **given: Any) -> Marker:
    defaults: dict[str, Any] = {"id": uuid4().hex, "service": "shop", "at": NOON + timedelta(minutes=minutes)}
    return Marker(name=name, **defaults | given)


def test_a_mark_comes_back_as_it_was(store: TrackingStore) -> None:
    """In UTC, whatever zone it was given in, and once however often it is written."""
    made = a_mark(at=datetime(2026, 3, 1, 13, 0, tzinfo=timezone(timedelta(hours=1))), attributes={"k": [1, "\0"]})
    store.trends.add_markers([made])
    store.trends.add_markers([made, a_mark("other", 5)])

    other, found = store.trends.list_markers()
    assert (found.id, found.name, found.service, found.at) == (made.id, "index v42", "shop", NOON)
    assert found.at.tzinfo is UTC
    assert found.attributes == {"k": [1, "\ufffd"]}
    assert other.name == "other"


def test_marks_are_found_newest_first_by_window_service_and_name(store: TrackingStore) -> None:
    """The window holds its beginning and not its end."""
    store.trends.add_markers([a_mark("a", 0), a_mark("a", 10), a_mark("b", 20), a_mark("a", 30, service="bank")])

    def minutes(**asked: Any) -> list[float]:
        return [(one.at - NOON) / timedelta(minutes=1) for one in store.trends.list_markers(**asked)]

    assert minutes() == [30, 20, 10, 0]
    assert minutes(since=NOON, until=NOON + timedelta(minutes=20)) == [10, 0]
    assert minutes(service="shop", name="a") == [10, 0]
    assert minutes(limit=1) == [30]


def test_names_are_any_text(store: TrackingStore) -> None:
    """What PostgreSQL refuses is replaced; what a terminal obeys is not the database's concern."""
    store.trends.add_markers([a_mark("a\0b\ud800 \x1b[31m")])

    assert store.trends.list_markers()[0].name == "a\ufffdb\ufffd \x1b[31m"


def test_a_mark_without_a_zone_is_refused(store: TrackingStore) -> None:
    """Nobody can say when it was."""
    with pytest.raises(StorageError):
        store.trends.add_markers([a_mark(at=datetime(2026, 3, 1))])  # noqa: DTZ001 - that is the point


def test_marks_go_with_the_exchanges_of_their_time(store: TrackingStore, clock: Any) -> None:
    """There is nothing left to compare across them."""
    store.trends.add_markers([a_mark("old", -90), a_mark("new", -1)])

    assert store.retention.prune(before=clock.now - timedelta(hours=1), dry_run=True) == PruneResult(markers=1)
    assert store.retention.prune(before=clock.now - timedelta(hours=1)) == PruneResult(markers=1)
    assert str(PruneResult(markers=1)) == "1 marker deleted"
    assert [one.name for one in store.trends.list_markers()] == ["new"]


def test_a_writer_writes_marks(store: TrackingStore, write_to: WriteTo) -> None:
    """Through the queue that exchanges go through; one that no column takes is lost alone, and counted."""
    writer = write_to(store)
    writer.put(a_mark("good"))
    writer.put(a_mark("bad", at=datetime(2026, 3, 1)))  # noqa: DTZ001 - that is the point

    assert writer.stop(60)
    assert [one.name for one in store.trends.list_markers()] == ["good"]
    assert writer.lost == 1
