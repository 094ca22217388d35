"""Requests in the outbox that are forwarded to another OTLP endpoint, and spans that wait there for their scores.

The span of an exchange that will be scored is queued apart from its request. It waits until its trace is complete and
its scores are attached, at most until its deadline, and is then forwarded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, select, update

from germane.exchange import FORWARDING, Exchange
from germane.storage.db import mappers
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching
from germane.storage.db.tables import delivery
from germane.storage.outbox import WAITS, TargetQueue, queue_items

BATCH_SIZE: Final = 32
"""Maximum number of requests that are claimed at once."""
Signal = Literal["traces", "logs"]


class OutgoingRequest(NamedTuple):
    """A request, or a part of one, that is to be forwarded."""

    signal: Signal
    body: bytes
    """The request as an OTLP protobuf message, compressed with gzip."""
    trace_id: str | None = None
    """If this is the span of a trace that may be scored: the id of the trace."""
    span_id: str | None = None
    max_delay: float = 0.0
    """Maximum number of seconds for which the span waits for its scores."""


class ForwardingQueue(StoreComponent):
    """The requests in the outbox, and the spans that wait there for their scores."""

    def measure(self, target: str | None = None) -> int:
        """Return the size of all waiting requests, or of those for one target, in bytes."""
        query = select(func.coalesce(func.sum(delivery.c.size), 0)).where(WAITS)
        query = query.where(*matching(delivery, kind=FORWARDING, target=target))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def attach(self, exchange_id: str, attributes: Mapping[str, Any]) -> bool:
        """Attach scores to an exchange's span, which is then forwarded.

        Returns:
            False if the span does not wait any longer. Its scores must be exported in another way.
        """
        columns = delivery.c
        query = select(columns.id, columns.payload, columns.attempt).where(columns.exchange_id == exchange_id)
        with self._database.write() as connection:
            row = connection.execute(query.where(columns.lease_owner.is_(None)).with_for_update()).one_or_none()
            if row is None or "attributes" in row.payload:
                return False
            now = self._context.now(connection)
            values: dict[str, Any] = {"payload": {**row.payload, "attributes": dict(attributes)}}
            if not row.attempt:
                values |= {"due_at": now, "created_at": now}
            connection.execute(update(delivery).where(columns.id == row.id).values(values))
            return True


def forwarding_queue(target: str) -> TargetQueue:
    """Return the queue of the requests that are forwarded to a target. They are retried until it responds."""
    return TargetQueue(FORWARDING, target, batch_size=BATCH_SIZE, retry_timeout=None, is_kept=False)


def queue_requests(connection: Connection, target: str, requests: Sequence[OutgoingRequest], now: datetime) -> None:
    """Add requests for a target in a transaction that writes. A span that is waiting already is not added again."""
    rows: list[dict[str, Any]] = []
    for request in requests:
        due_at = now + timedelta(seconds=request.max_delay)
        payload = {"signal": request.signal} | ({} if request.span_id is None else {"is_span": True})
        span = {"trace_id": request.trace_id, "span_id": request.span_id}
        content = {"payload": payload, "body": request.body, "size": len(request.body)}
        rows.append({**content, **span, "created_at": due_at, "due_at": due_at})
    queue_items(connection, forwarding_queue(target), rows)


def await_scores(
    connection: Connection, trace_ids: Sequence[str], exchanges: Sequence[Exchange], max_delay: float, now: datetime
) -> None:
    """Keep the spans of new exchanges waiting for their scores, and release all other spans of complete traces.

    The spans wait for at most ``max_delay`` seconds from now on.
    """
    until = now + timedelta(seconds=max_delay)
    waiting = [
        {"of": item.trace_id, "at": item.span_id, "exchange": item.id, "until": until}
        for item in exchanges
        if item.span_holder == FORWARDING
    ]
    for ids in mappers.batched(sorted(trace_ids)):
        leave = update(delivery).where(delivery.c.trace_id.in_(ids), *_UNSENT, delivery.c.due_at > now)
        connection.execute(leave.values(due_at=now, created_at=now))
    if waiting:
        connection.execute(_AWAIT, waiting)


def delete_abandoned_requests(connection: Connection, due_before: datetime) -> int:
    """Delete requests that were due before a time, if none for their target has been due since. Return their number.

    As long as a receiver sends to a target, all requests for it wait, although only the oldest one is retried.
    """
    columns = delivery.c
    active = select(columns.target).where(columns.kind == FORWARDING, columns.due_at >= due_before)
    abandoned = (columns.kind == FORWARDING, columns.created_at < due_before, columns.target.not_in(active))
    return connection.execute(delete(delivery).where(*abandoned)).rowcount


_UNSENT: Final = (delivery.c.lease_owner.is_(None), delivery.c.attempt == 0)
_AWAIT: Final = (
    update(delivery)
    .where(delivery.c.trace_id == bindparam("of"), delivery.c.span_id == bindparam("at"), *_UNSENT)
    .values(exchange_id=bindparam("exchange"), due_at=bindparam("until"), created_at=bindparam("until"))
)
