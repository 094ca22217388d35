"""Marks in time, in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from germane.annotation import Mark
from germane.errors import StorageError
from germane.storage import Removed, Store, Writer

WriteTo = Callable[..., Writer]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_mark(name: str = "index v42", minutes: float = 0, **given: Any) -> Mark:
    defaults: dict[str, Any] = {"id": uuid4().hex, "service": "shop", "at": NOON + timedelta(minutes=minutes)}
    return Mark(name=name, **defaults | given)


def test_a_mark_comes_back_as_it_was(store: Store) -> None:
    """In UTC, whatever zone it was given in, and once however often it is written."""
    made = a_mark(at=datetime(2026, 3, 1, 13, 0, tzinfo=timezone(timedelta(hours=1))), attributes={"k": [1, "\0"]})
    store.add_marks([made])
    store.add_marks([made, a_mark("other", 5)])

    other, found = store.marks()
    assert (found.id, found.name, found.service, found.at) == (made.id, "index v42", "shop", NOON)
    assert found.at.tzinfo is UTC
    assert found.attributes == {"k": [1, "\ufffd"]}
    assert other.name == "other"


def test_marks_are_found_newest_first_by_window_service_and_name(store: Store) -> None:
    """The window holds its beginning and not its end."""
    store.add_marks([a_mark("a", 0), a_mark("a", 10), a_mark("b", 20), a_mark("a", 30, service="bank")])

    def minutes(**asked: Any) -> list[float]:
        return [(one.at - NOON) / timedelta(minutes=1) for one in store.marks(**asked)]

    assert minutes() == [30, 20, 10, 0]
    assert minutes(since=NOON, until=NOON + timedelta(minutes=20)) == [10, 0]
    assert minutes(service="shop", name="a") == [10, 0]
    assert minutes(limit=1) == [30]


def test_names_are_any_text(store: Store) -> None:
    """What PostgreSQL refuses is replaced; what a terminal obeys is not the database's concern."""
    store.add_marks([a_mark("a\0b\ud800 \x1b[31m")])

    assert store.marks()[0].name == "a\ufffdb\ufffd \x1b[31m"


def test_a_mark_without_a_zone_is_refused(store: Store) -> None:
    """Nobody can say when it was."""
    with pytest.raises(StorageError):
        store.add_marks([a_mark(at=datetime(2026, 3, 1))])  # noqa: DTZ001 - that is the point


def test_marks_go_with_the_exchanges_of_their_time(store: Store, clock: Any) -> None:
    """There is nothing left to compare across them."""
    store.add_marks([a_mark("old", -90), a_mark("new", -1)])

    assert store.prune(before=clock.now - timedelta(hours=1), dry_run=True) == Removed(marks=1)
    assert store.prune(before=clock.now - timedelta(hours=1)) == Removed(marks=1)
    assert str(Removed(marks=1)) == "1 mark deleted"
    assert [one.name for one in store.marks()] == ["new"]


def test_a_writer_writes_marks(store: Store, write_to: WriteTo) -> None:
    """Through the queue that exchanges go through; one that no column takes is lost alone, and counted."""
    writer = write_to(store)
    writer.put(a_mark("good"))
    writer.put(a_mark("bad", at=datetime(2026, 3, 1)))  # noqa: DTZ001 - that is the point

    assert writer.stop(60)
    assert [one.name for one in store.marks()] == ["good"]
    assert writer.lost == 1
