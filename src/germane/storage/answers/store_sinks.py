"""Exchanges with the scores and labels that are written to sinks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select

from germane.errors import ArchiveError
from germane.exchange import AttributeValue
from germane.records import select as select_fields
from germane.storage.answers.detail import load_all_labels
from germane.storage.archive.reader import open_exchanges
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import batched
from germane.storage.db.tables import delivery, exchange, feedback, score
from germane.storage.outbox import is_kind
from germane.storage.sink_items import SINK, mark_for_sinks, write_pending


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkScore:
    """The newest score of a scorer for an exchange. Scores without a value are not sent."""

    scorer: str
    fingerprint: str
    value: float
    label: str | None
    explanation: str | None
    """None if the text was not stored, or has been erased."""
    judge: str | None
    """Name of the judge model."""
    scored_at: datetime
    superseded: tuple[str, ...] = ()
    """Fingerprints of older scores by this scorer, which the backend should no longer show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLabel:
    """A person's label for an exchange."""

    id: str
    score: float
    """0 (bad) to 1 (good)."""
    comment: str | None
    """None if there is none, or if it has been erased."""
    user: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkItem:
    """The scores and labels of an exchange, as they are stored at the time of sending."""

    exchange_id: str
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    service: str
    route: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    """What the application has stored with the exchange, such as a tenant."""
    scores: tuple[SinkScore, ...]
    """One for each scorer, by name."""
    labels: tuple[SinkLabel, ...]
    """Each person's latest one."""


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

    def load(self, exchange_ids: Sequence[str]) -> dict[str, SinkItem | None]:
        """Return what is written about exchanges; None if there is nothing, or if no backend has received the span.

        Exchanges that are not in the database are omitted. Their questions, answers and contexts are not read.
        """
        with self._database.read(snapshot=True) as connection:
            items = _load(connection, connection, exchange_ids)
            missing = dict.fromkeys(id_ for id_ in exchange_ids if id_ not in items)
            if missing:  # an archive that cannot be read must not delay other exchanges
                with suppress(ArchiveError), open_exchanges(connection, missing) as sources:
                    for source, ids in sources:
                        items |= _load(connection, source, ids)
        return items

    def list_undelivered(self, *, limit: int = 20) -> list[UndeliveredExchange]:
        """Return the exchanges that are not retried, newest first."""
        columns = delivery.c
        names = (columns.target.label("sink"), columns.exchange_id, exchange.c.trace_id, exchange.c.span_id)
        query = select(*names, columns.error, columns.settled_at)
        query = query.select_from(delivery).outerjoin(exchange, exchange.c.id == columns.exchange_id)
        query = query.where(is_kind(SINK), columns.status == "undelivered")
        query = query.order_by(columns.settled_at.desc(), columns.id.desc()).limit(limit)
        with self._database.read() as connection:
            return [UndeliveredExchange(**row) for row in connection.execute(query).mappings()]

    def resend(self, sinks: Collection[str], since: datetime) -> int:
        """Queue again all scored exchanges that started since, or were labeled since, and return their number."""
        with self._database.read() as connection:
            scored = connection.execute(select(score.c.exchange_id).distinct().where(score.c.started_at >= since))
            labeled = select(feedback.c.exchange_id).distinct().where(feedback.c.created_at >= since)
            ids = {*scored.scalars(), *connection.execute(labeled).scalars()}
        for batch in batched(sorted(ids)):
            with self._database.write() as connection:
                mark_for_sinks(connection, batch)
                write_pending(connection, list(sinks), self._context.now)
        return len(ids)


def _load(connection: Connection, source: Connection, exchange_ids: Sequence[str]) -> dict[str, SinkItem | None]:
    """Return what is written about exchanges of the database or the archive."""
    scores: dict[str, dict[str, SinkScore]] = {}
    for scored in source.execute(_SCORES.where(score.c.exchange_id.in_(exchange_ids))).mappings():
        values = dict(scored)
        newest = scores.setdefault(values.pop("exchange_id"), {})
        older = newest.get(scored["scorer"])
        keys = set() if older is None else {*older.superseded, older.fingerprint} - {scored["fingerprint"]}
        newest[scored["scorer"]] = SinkScore(**values, superseded=tuple(sorted(keys)))
    labels = load_all_labels(connection, source, exchange_ids)
    items: dict[str, SinkItem | None] = {}
    for row in source.execute(_EXCHANGES.where(exchange.c.id.in_(exchange_ids))).mappings():
        values, id_ = dict(row), row["exchange_id"]
        has_span = values.pop("traced") and row["trace_id"].strip("0") and row["span_id"].strip("0")
        of_scorers = tuple(each for _, each in sorted(scores.get(id_, {}).items()))
        latest = {one.user or one.id: SinkLabel(**select_fields(one, *_LABEL)) for one in labels.get(id_, ())}
        item = SinkItem(**values, scores=of_scorers, labels=tuple(latest.values()))
        items[id_] = item if has_span and (item.scores or item.labels) else None
    return items


_EXCHANGES: Final = select(
    exchange.c.id.label("exchange_id"),
    *(exchange.c[name] for name in ("trace_id", "span_id", "service", "route", "attributes", "traced")),
)
_SCORES: Final = select(
    *(score.c[name] for name in ("exchange_id", "scorer", "fingerprint", "value", "label", "explanation", "judge")),
    score.c.scored_at,
).order_by(score.c.scored_at, score.c.id)
_LABEL: Final = ("id", "score", "comment", "user", "created_at")
