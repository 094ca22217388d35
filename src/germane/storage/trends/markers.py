"""Markers: named times to compare before and after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from germane.annotation import Marker
from germane.storage.db.mappers import bulk_insert, timestamp_encoder
from germane.storage.db.sanitize import clean_text, to_json
from germane.storage.db.tables import marker

_COLUMNS = ("id", "name", "service", "at", "attributes")


def insert_markers(connection: Connection, given: Sequence[Marker]) -> None:
    """Write markers. Markers whose id exists already are ignored."""
    stamp = timestamp_encoder(connection.dialect.name)
    rows = [
        (
            one.id,
            clean_text(one.name),
            clean_text(one.service),
            stamp(one.at),
            to_json(one.attributes) if one.attributes else "{}",
        )
        for one in given
    ]
    bulk_insert(connection, marker, _COLUMNS, rows)


def list_markers(
    connection: Connection, since: datetime | None, until: datetime | None, limit: int | None, **equal: str | None
) -> list[Marker]:
    """Return markers of since <= at < until, newest first."""
    conditions: list[Any] = [marker.c[name] == value for name, value in equal.items() if value is not None]
    if since is not None:
        conditions.append(marker.c.at >= since)
    if until is not None:
        conditions.append(marker.c.at < until)
    query = select(marker).where(*conditions).order_by(marker.c.at.desc(), marker.c.id.desc()).limit(limit)
    return [_mark(row) for row in connection.execute(query).mappings()]


def _mark(row: RowMapping) -> Marker:
    return Marker(**{name: row[name] for name in _COLUMNS})
