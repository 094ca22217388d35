"""People's labels of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.storage.db.mappers import exchange_from_row
from germane.storage.db.tables import exchange, feedback

COLUMNS = ("id", "exchange_id", "score", "comment", "user", "created_at")


@dataclass(frozen=True, slots=True)
class LabeledExchange:
    """A person's label with its exchange."""

    feedback: Feedback
    exchange: Exchange


def select_labels(
    connection: Connection, *conditions: ColumnElement[bool], order: Sequence[ColumnElement[Any]], limit: int
) -> list[LabeledExchange]:
    """Return labels with a stored exchange that match all conditions."""
    columns = [feedback.c[name].label(f"feedback_{name}") for name in COLUMNS]
    query = select(*columns, exchange).join(exchange, exchange.c.id == feedback.c.exchange_id)
    query = query.where(*conditions).order_by(*order).limit(limit)
    return [
        LabeledExchange(Feedback(**{name: row[f"feedback_{name}"] for name in COLUMNS}), exchange_from_row(row))
        for row in connection.execute(query).mappings()
    ]
