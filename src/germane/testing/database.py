"""Access to the tables of a store, to arrange and to check rows in tests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from germane.storage import TrackingStore


def transaction(
    store: TrackingStore, *, read_only: bool = False, migrating: bool = False, snapshot: bool = False
) -> AbstractContextManager[Connection]:
    """Open a transaction on the database of a store. It is committed at the end of the ``with`` block.

    Args:
        store: The store.
        read_only: Whether the transaction only reads. If so, it takes no lock on SQLite.
        migrating: Whether the tables may be missing or of another version.
        snapshot: Whether all statements see the same state of the database. On SQLite, they always do.
    """
    database = store.context.database
    return database.read(snapshot=snapshot) if read_only else database.write(migrating=migrating, snapshot=snapshot)


def engine_of(store: TrackingStore) -> Engine:
    """Return the SQLAlchemy engine of a store, to listen to its events."""
    return store.context.database.engine
