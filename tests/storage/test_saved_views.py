"""Saved views: their names are unique, and their number is limited."""

from __future__ import annotations

from typing import Any

import pytest

from germane.annotation import SavedView
from germane.errors import UsageError
from germane.storage import TrackingStore, views


def a_view(clock: Any, name: str = "Low", **given: Any) -> SavedView:
    """Return a view."""
    return SavedView(**{"name": name, "path": "/answers?low=1", "created_at": clock.now, **given})


def test_saved_views_are_sorted_by_name(store: TrackingStore, clock: Any) -> None:
    """Case does not matter, and every field is stored."""
    saved = [a_view(clock, name, created_by="ann" if name == "b" else None) for name in ("b", "C", "a")]
    for view in saved:
        store.views.add_view(view)

    assert store.views.list_views() == [saved[2], saved[0], saved[1]]


def test_two_saved_views_cannot_have_the_same_name(
    store: TrackingStore, other_store: TrackingStore, clock: Any
) -> None:
    """A second view with the name is rejected, and the first is kept."""
    store.views.add_view(a_view(clock))
    with pytest.raises(UsageError, match="a view with the name 'Low' already exists"):
        other_store.views.add_view(a_view(clock, path="/"))

    (view,) = store.views.list_views()
    assert view.path == "/answers?low=1"


def test_deleted_view_is_no_longer_listed(store: TrackingStore, clock: Any) -> None:
    """Deleting it again changes nothing."""
    store.views.add_view(a_view(clock))

    assert [store.views.delete_view("Low"), store.views.delete_view("Low")] == [True, False]
    assert store.views.list_views() == []


def test_number_of_saved_views_is_limited(store: TrackingStore, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every overview loads all of them."""
    monkeypatch.setattr(views, "MAX_SAVED_VIEWS", 2)
    for name in ("a", "b"):
        store.views.add_view(a_view(clock, name))

    with pytest.raises(UsageError, match="there are already 2 saved views"):
        store.views.add_view(a_view(clock, "c"))


def test_characters_that_databases_reject_are_replaced_in_saved_views(store: TrackingStore, clock: Any) -> None:
    """The replaced name can be used to delete the view."""
    store.views.add_view(a_view(clock, "NUL \0 and half a pair \ud800", created_by="\0"))

    (view,) = store.views.list_views()
    assert (view.name, view.created_by) == ("NUL \ufffd and half a pair \ufffd", "\ufffd")
    assert store.views.delete_view("NUL \0 and half a pair \ud800")


def test_pruning_keeps_saved_views(store: TrackingStore, clock: Any) -> None:
    """They contain no captured data."""
    store.views.add_view(a_view(clock))
    clock.advance(hours=24 * 400)
    store.retention.prune(texts_before=clock.now, before=clock.now)

    assert len(store.views.list_views()) == 1
