"""Exchanges with the scores and labels that are written to sinks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score
from germane.storage.answers.detail import load_exchanges, load_labels, load_scores
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import batched
from germane.storage.db.tables import delivery, feedback, score
from germane.storage.outbox import is_kind
from germane.storage.sink_items import SINK, mark_for_sinks, write_pending


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkExchange:
    """An exchange with its scores and labels."""

    exchange: Exchange
    scores: Sequence[Score]
    labels: Sequence[Feedback]
    """Oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeliveredExchange:
    """An exchange that was not written to a sink, and is not retried."""

    sink: str
    exchange_id: str
    trace_id: str | None
    """None if the exchange has been deleted since."""
    span_id: str | None
    error: str | None
    settled_at: datetime


class SinkStore(StoreComponent):
    """The exchanges in the outbox for sinks."""

    def load(self, exchange_ids: Sequence[str]) -> dict[str, SinkExchange]:
        """Return exchanges with their scores and labels. Exchanges that are not in the database are omitted."""
        with self._database.read(snapshot=True) as connection:
            exchanges = load_exchanges(connection, exchange_ids)
            scores, labels = load_scores(connection, list(exchanges)), load_labels(connection, list(exchanges))
        return {
            id_: SinkExchange(exchange=each, scores=scores.get(id_, ()), labels=labels.get(id_, ()))
            for id_, each in exchanges.items()
        }

    def list_undelivered(self, *, limit: int = 20) -> list[UndeliveredExchange]:
        """Return the exchanges that are not retried, newest first."""
        columns = delivery.c
        query = select(columns.target, columns.exchange_id, columns.error, columns.settled_at)
        query = query.where(is_kind(SINK), columns.status == "undelivered")
        query = query.order_by(columns.settled_at.desc(), columns.id.desc()).limit(limit)
        with self._database.read(snapshot=True) as connection:
            rows = connection.execute(query).all()
            exchanges = load_exchanges(connection, [row.exchange_id for row in rows])
        return [
            UndeliveredExchange(
                sink=row.target,
                exchange_id=row.exchange_id,
                trace_id=each.trace_id if (each := exchanges.get(row.exchange_id)) else None,
                span_id=each.span_id if each else None,
                error=row.error,
                settled_at=row.settled_at,
            )
            for row in rows
        ]

    def resend(self, sinks: Collection[str], since: datetime) -> int:
        """Queue again all exchanges that were scored or labeled since, and return their number."""
        with self._database.read() as connection:
            scored = connection.execute(select(score.c.exchange_id).distinct().where(score.c.scored_at >= since))
            labeled = select(feedback.c.exchange_id).distinct().where(feedback.c.created_at >= since)
            ids = {*scored.scalars(), *connection.execute(labeled).scalars()}
        for batch in batched(sorted(ids)):
            with self._database.write() as connection:
                mark_for_sinks(connection, batch)
                write_pending(connection, list(sinks), self._context.now)
        return len(ids)
