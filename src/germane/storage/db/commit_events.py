"""Data that a transaction collects and that takes effect when it commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from sqlalchemy import Connection

_Collection = TypeVar("_Collection")
CommitEvent = tuple[str, str, str, str]
"""Route, scorer, outcome and reason. Without a scorer, the outcome is ``stored`` or ``dropped`` and counts captured
exchanges; with a scorer, it is ``scored``, ``skipped`` or ``failed``. The reason is empty where there is none."""
CommitListener = Callable[[Mapping[CommitEvent, int]], object]
CommitHook = Callable[[Connection], None]
"""Writes what a transaction has collected, as its last statements."""

_PENDING: Final = "germane_pending"
_EVENTS: Final = "events"


def discard_pending(connection: Connection) -> None:
    """Discard what a rolled-back transaction has left: a connection outlives its transactions."""
    connection.info[_PENDING] = {}


def get_pending(connection: Connection, key: str, new: Callable[[], _Collection]) -> _Collection:
    """Return the collection of a key in the current transaction. ``new`` creates it."""
    collections: dict[str, Any] = connection.info.setdefault(_PENDING, {})
    found: _Collection = collections.setdefault(key, new())
    return found


def pop_pending(connection: Connection, key: str, new: Callable[[], _Collection]) -> _Collection:
    """Return the collection of a key, and remove it."""
    found: _Collection = connection.info.get(_PENDING, {}).pop(key, None) or new()
    return found


def record_events(connection: Connection, events: Mapping[CommitEvent, int]) -> None:
    """Record event counts, which the database passes on once the transaction has committed."""
    get_pending(connection, _EVENTS, Counter[CommitEvent]).update(events)


def pop_events(connection: Connection) -> Mapping[CommitEvent, int]:
    """Return the event counts of the current transaction, and remove them."""
    return pop_pending(connection, _EVENTS, Counter[CommitEvent])
