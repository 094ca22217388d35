"""INSERT statements with an ON CONFLICT clause. Only the dialect of the database is imported."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.dialects.sqlite import Insert


def insert_into(table: Table, dialect: str) -> Insert:
    """Return an INSERT that accepts ``on_conflict_do_nothing()`` and ``on_conflict_do_update()``."""
    if dialect == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    # Both classes have these methods, but no common base class declares them.
    return postgresql.insert(table)  # type: ignore[return-value]


@lru_cache
def insert_or_replace(table: Table, dialect: str, columns: Sequence[str]) -> Insert:
    """Return an INSERT that replaces these columns of existing rows."""
    statement = insert_into(table, dialect)
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns), set_={name: statement.excluded[name] for name in columns}
    )
