"""People's labels of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.storage.db.mappers import exchange_of, insert, stamp_for
from germane.storage.db.sanitize import clean
from germane.storage.db.tables import exchange, feedback

COLUMNS = ("id", "exchange_id", "score", "comment", "user", "created_at")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A person's label, with the exchange that it is of."""

    feedback: Feedback
    exchange: Exchange


def add(connection: Connection, given: Sequence[Feedback]) -> None:
    """Write labels; one whose id is there already is ignored."""
    stamp = stamp_for(connection.dialect.name)
    rows = [
        (one.id, clean(one.exchange_id), float(one.score), clean(one.comment), clean(one.user), stamp(one.created_at))
        for one in given
    ]
    insert(connection, feedback, COLUMNS, rows)


def labelled(
    connection: Connection, since: datetime | None, until: datetime | None, route: str | None, limit: int
) -> list[Labelled]:
    """Return labels whose exchange is there, newest label first."""
    conditions = []
    if since is not None:
        conditions.append(feedback.c.created_at >= since)
    if until is not None:
        conditions.append(feedback.c.created_at < until)
    if route is not None:
        conditions.append(exchange.c.route == route)
    return labelled_where(
        connection, *conditions, order=(feedback.c.created_at.desc(), feedback.c.id.desc()), limit=limit
    )


def labelled_where(
    connection: Connection, *conditions: ColumnElement[bool], order: Sequence[ColumnElement[Any]], limit: int
) -> list[Labelled]:
    """Return labels whose exchange is there, of those that fit all conditions the first in that order."""
    columns = [feedback.c[name].label(f"feedback_{name}") for name in COLUMNS]
    query = select(*columns, exchange).join(exchange, exchange.c.id == feedback.c.exchange_id)
    query = query.where(*conditions).order_by(*order).limit(limit)
    return [_labelled(row) for row in connection.execute(query).mappings()]


def _labelled(row: RowMapping) -> Labelled:
    given: dict[str, Any] = {name: row[f"feedback_{name}"] for name in COLUMNS}
    return Labelled(Feedback(**given), exchange_of(row))
