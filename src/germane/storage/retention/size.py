"""The disk space that the tables take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, PrimaryKeyConstraint, Table, UniqueConstraint, func, select, text
from sqlalchemy.sql.expression import ColumnElement, FromClause

from germane.storage.db.tables import metadata

SAMPLED_PAGES: Final = 2000
"""Pages of a table that are read to estimate its content."""
_ROW_OVERHEAD: Final = 28
"""Bytes that PostgreSQL adds to a row."""
_INDEX_ENTRY_OVERHEAD: Final = 20
"""Bytes that PostgreSQL adds to an index entry."""
_INDEX_BLOAT: Final = 1.4
"""Size of an index relative to its entries."""


def database_size(connection: Connection, limit: int | None = None) -> int:
    """Return the bytes that the rows take, including their indexes.

    PostgreSQL reuses the space of deleted rows instead of shrinking its files. If the files are larger than ``limit``,
    the content is estimated from a sample of their pages, so that deleted rows do not count.
    """
    if connection.dialect.name == "sqlite":
        pages, free, page_size = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page_size
    files = {table: _evaluate(connection, func.pg_total_relation_size(table.name)) for table in metadata.sorted_tables}
    if limit is None or sum(files.values()) <= limit:
        return sum(files.values())
    return sum(min(size, _estimate_content(connection, table)) for table, size in files.items())


def _evaluate(connection: Connection, expression: ColumnElement[Any]) -> int:
    return int(connection.execute(select(expression)).scalar_one() or 0)


def _estimate_content(connection: Connection, table: Table) -> int:
    """Return the estimated bytes of the rows, compressed where they are long, and of their index entries."""
    pages = _evaluate(connection, func.pg_relation_size(table.name)) / 8192
    percentage = min(100.0, 100.0 * SAMPLED_PAGES / max(1.0, pages))
    sampled: FromClause = table.tablesample(func.system(percentage))
    keys: list[Iterable[ColumnElement[Any]]] = [index.columns for index in table.indexes]
    keys += [each.columns for each in table.constraints if isinstance(each, (PrimaryKeyConstraint, UniqueConstraint))]
    entries = [_INDEX_BLOAT * (_INDEX_ENTRY_OVERHEAD + _column_bytes(sampled, columns)) for columns in keys]
    row_bytes = sum(entries, start=_ROW_OVERHEAD + _column_bytes(sampled, table.columns))
    return round(float(connection.execute(select(func.sum(row_bytes))).scalar_one() or 0) * 100 / percentage)


def _column_bytes(sampled: FromClause, columns: Iterable[ColumnElement[Any]]) -> ColumnElement[Any]:
    widths = [func.coalesce(func.pg_column_size(sampled.c[str(column.key)]), 0) for column in columns]
    return sum(widths[1:], start=widths[0])


def vacuum(connection: Connection) -> None:
    """Compact the tables, outside of a transaction. SQLite's file shrinks; PostgreSQL frees space for reuse."""
    if connection.dialect.name == "sqlite":
        connection.execute(text("VACUUM"))
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))  # the log contains erased text until it is emptied
        return
    for table in metadata.sorted_tables:
        connection.execute(text(f"VACUUM (ANALYZE) {table.name}"))
