"""How much of the disk our rows take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, PrimaryKeyConstraint, Table, UniqueConstraint, func, select, text
from sqlalchemy.sql.expression import ColumnElement, FromClause

from germane.storage.db.tables import metadata

PAGES = 2000
"""How many of a table's are read where its content must be estimated."""
_ROW, _ENTRY, _SPACE = 28, 20, 1.4
"""Bytes that PostgreSQL adds to a row and to an entry of an index, and how much wider than full an index is."""


def size_of(connection: Connection, limit: int | None = None) -> int:
    """Return the bytes that the rows take with their indexes.

    PostgreSQL's files do not shrink when rows go: the room is used again. Where they are larger than ``limit`` the
    content is estimated from a part of the pages, so that what went does not count any more.
    """
    if connection.dialect.name == "sqlite":
        return _of_sqlite(connection)
    files = {table: _number(connection, func.pg_total_relation_size(table.name)) for table in metadata.sorted_tables}
    if limit is None or sum(files.values()) <= limit:
        return sum(files.values())
    return sum(min(size, _content(connection, table)) for table, size in files.items())


def _of_sqlite(connection: Connection) -> int:
    pages, free, width = (
        int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * width


def _number(connection: Connection, expression: ColumnElement[Any]) -> int:
    return int(connection.execute(select(expression)).scalar_one() or 0)


def _content(connection: Connection, table: Table) -> int:
    pages = _number(connection, func.pg_relation_size(table.name)) / 8192
    share = min(100.0, 100.0 * PAGES / max(1.0, pages))
    sampled: FromClause = table.tablesample(func.system(share))
    widths = func.sum(_width(table, sampled))
    return round(float(connection.execute(select(widths)).scalar_one() or 0) * 100 / share)


def _width(table: Table, sampled: FromClause) -> ColumnElement[Any]:
    """Return the bytes of a row as PostgreSQL keeps it, compressed where it is long, and of its entries in indexes."""
    keys: list[Iterable[ColumnElement[Any]]] = [index.columns for index in table.indexes]
    keys += [each.columns for each in table.constraints if isinstance(each, (PrimaryKeyConstraint, UniqueConstraint))]
    entries = [_SPACE * (_ENTRY + _sum(sampled, columns)) for columns in keys]
    return sum(entries, start=_ROW + _sum(sampled, table.columns))


def _sum(sampled: FromClause, columns: Iterable[ColumnElement[Any]]) -> ColumnElement[Any]:
    widths = [func.coalesce(func.pg_column_size(sampled.c[str(column.key)]), 0) for column in columns]
    return sum(widths[1:], start=widths[0])


def vacuum(connection: Connection) -> None:
    """Pack what is left, outside of a transaction: SQLite's file shrinks, its log ends; PostgreSQL's room is free."""
    if connection.dialect.name == "sqlite":
        connection.execute(text("VACUUM"))
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))  # the log holds what was erased until it is emptied
        return
    for table in metadata.sorted_tables:
        connection.execute(text(f"VACUUM (ANALYZE) {table.name}"))
