"""People's labels of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.storage.db.mappers import bulk_insert, exchange_from_row, timestamp_encoder
from germane.storage.db.sanitize import clean_text
from germane.storage.db.tables import exchange, feedback

COLUMNS = ("id", "exchange_id", "score", "comment", "user", "created_at")


@dataclass(frozen=True, slots=True)
class LabeledExchange:
    """A person's label with its exchange."""

    feedback: Feedback
    exchange: Exchange


def insert_labels(connection: Connection, given: Sequence[Feedback]) -> None:
    """Write labels. Labels whose id exists already are ignored."""
    stamp = timestamp_encoder(connection.dialect.name)
    rows = [
        (
            one.id,
            clean_text(one.exchange_id),
            float(one.score),
            clean_text(one.comment),
            clean_text(one.user),
            stamp(one.created_at),
        )
        for one in given
    ]
    bulk_insert(connection, feedback, COLUMNS, rows)


def list_labels(
    connection: Connection, since: datetime | None, until: datetime | None, route: str | None, limit: int
) -> list[LabeledExchange]:
    """Return labels with a stored exchange, newest label first."""
    conditions = []
    if since is not None:
        conditions.append(feedback.c.created_at >= since)
    if until is not None:
        conditions.append(feedback.c.created_at < until)
    if route is not None:
        conditions.append(exchange.c.route == route)
    return select_labels(
        connection, *conditions, order=(feedback.c.created_at.desc(), feedback.c.id.desc()), limit=limit
    )


def select_labels(
    connection: Connection, *conditions: ColumnElement[bool], order: Sequence[ColumnElement[Any]], limit: int
) -> list[LabeledExchange]:
    """Return labels with a stored exchange that match all conditions."""
    columns = [feedback.c[name].label(f"feedback_{name}") for name in COLUMNS]
    query = select(*columns, exchange).join(exchange, exchange.c.id == feedback.c.exchange_id)
    query = query.where(*conditions).order_by(*order).limit(limit)
    return [_labeled_exchange(row) for row in connection.execute(query).mappings()]


def _labeled_exchange(row: RowMapping) -> LabeledExchange:
    given: dict[str, Any] = {name: row[f"feedback_{name}"] for name in COLUMNS}
    return LabeledExchange(Feedback(**given), exchange_from_row(row))
