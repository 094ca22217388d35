"""Moments that people compare before and since."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from germane.annotation import Mark
from germane.storage.db.mappers import insert, stamp_for
from germane.storage.db.sanitize import clean, to_json
from germane.storage.db.tables import mark

_COLUMNS = ("id", "name", "service", "at", "attributes")


def add(connection: Connection, given: Sequence[Mark]) -> None:
    """Write marks; one whose id is there already is ignored."""
    stamp = stamp_for(connection.dialect.name)
    rows = [
        (
            one.id,
            clean(one.name),
            clean(one.service),
            stamp(one.at),
            to_json(one.attributes) if one.attributes else "{}",
        )
        for one in given
    ]
    insert(connection, mark, _COLUMNS, rows)


def marks(
    connection: Connection, since: datetime | None, until: datetime | None, limit: int | None, **equal: str | None
) -> list[Mark]:
    """Return marks of since <= at < until, newest first."""
    conditions: list[Any] = [mark.c[name] == value for name, value in equal.items() if value is not None]
    if since is not None:
        conditions.append(mark.c.at >= since)
    if until is not None:
        conditions.append(mark.c.at < until)
    query = select(mark).where(*conditions).order_by(mark.c.at.desc(), mark.c.id.desc()).limit(limit)
    return [_mark(row) for row in connection.execute(query).mappings()]


def _mark(row: RowMapping) -> Mark:
    return Mark(**{name: row[name] for name in _COLUMNS})
