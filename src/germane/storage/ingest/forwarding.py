"""Requests in the outbox that are forwarded to another OTLP endpoint, and spans that wait there for their scores.

The span of an exchange that will be scored is queued apart from its request. It waits until its trace is complete and
its scores are attached, at most until its deadline, and is then forwarded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, case, delete, func, select, update

from germane.exchange import FORWARDING, Exchange
from germane.storage.db import mappers
from germane.storage.db.batches import PruneResult
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching
from germane.storage.db.tables import delivery, exchange
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequests:
    """The requests that wait to be forwarded to one target."""

    target: str
    """The address; with headers, followed by their fingerprint."""
    requests: int
    size: int
    """In bytes."""
    age: timedelta
    """Time that the oldest request has waited. A span that waits for its scores has no age."""
    error: str | None
    """The error of the oldest request that could not be sent."""


class ForwardingQueue(StoreComponent):
    """The requests in the outbox, and the spans that wait there for their scores."""

    def list_targets(self) -> list[WaitingRequests]:
        """Return the waiting requests of each target, including targets that no running receiver sends to."""
        columns = delivery.c
        sums = (func.count(), func.coalesce(func.sum(columns.size), 0), func.min(columns.created_at))
        query = select(columns.target, *sums).where(WAITS, columns.kind == FORWARDING).group_by(columns.target)
        failed = select(columns.error).where(WAITS, columns.kind == FORWARDING, columns.error.is_not(None))
        failed = failed.order_by(columns.created_at).limit(1)
        with self._database.read() as connection:
            now = self._context.now(connection)
            return [
                WaitingRequests(
                    target=target,
                    requests=requests,
                    size=int(size),
                    age=max(timedelta(), now - since),
                    error=connection.execute(failed.where(columns.target == target)).scalar(),
                )
                for target, requests, size, since in connection.execute(query.order_by(columns.target)).all()
            ]

    def measure(self, target: str | None = None) -> int:
        """Return the size of all waiting requests, or of those for one target, in bytes."""
        query = select(func.coalesce(func.sum(delivery.c.size), 0)).where(WAITS)
        query = query.where(*matching(delivery, kind=FORWARDING, target=target))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def attach(self, exchange_id: str, attributes: Mapping[str, Any]) -> bool:
        """Attach scores to an exchange's span, which is then forwarded. Return False if it does not wait any longer."""
        columns = delivery.c
        of_exchange = (columns.exchange_id == exchange_id, columns.trace_id.is_not(None))
        query = select(columns.id, columns.payload, columns.attempt).where(*of_exchange)
        with self._database.write() as connection:
            waiting = query.where(columns.lease_owner.is_(None)).order_by(columns.id).with_for_update()
            rows = [row for row in connection.execute(waiting) if "attributes" not in row.payload]
            now = self._context.now(connection)
            for row in rows:  # one for each target
                values: dict[str, Any] = {"payload": {**row.payload, "attributes": dict(attributes)}}
                if not row.attempt:
                    values |= {"due_at": now, "created_at": now}
                connection.execute(update(delivery).where(columns.id == row.id).values(values))
            return bool(rows)


def forwarding_queue(target: str) -> TargetQueue:
    """Return the queue of the requests that are forwarded to a target. They are retried until it responds."""
    return TargetQueue(FORWARDING, target, batch_size=BATCH_SIZE, retry_timeout=None, kept=frozenset())


def queue_requests(connection: Connection, target: str, requests: Sequence[OutgoingRequest], now: datetime) -> None:
    """Add requests for a target in a transaction that writes. A span that waits, or has waited, is not added again."""
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

    The spans of the exchanges wait for at most ``max_delay`` seconds from now on.
    """
    until, columns = now + timedelta(seconds=max_delay), delivery.c
    unsent: set[tuple[str, str]] = set()
    for ids in mappers.batched(sorted(trace_ids)):
        due_at = case((columns.due_at > now, now), else_=columns.due_at)
        leave = update(delivery).where(columns.trace_id.in_(ids), *_UNSENT).values(due_at=due_at, created_at=due_at)
        unsent |= {(row.trace_id, row.span_id) for row in connection.execute(leave.returning(*_SPAN))}
    waiting = [item for item in exchanges if (item.trace_id, item.span_id) in unsent]
    if waiting:
        values = [{"of": item.trace_id, "at": item.span_id, "exchange": item.id} for item in waiting]
        connection.execute(_AWAIT, [{**each, "until": until} for each in values])
        connection.execute(_HOLD, [{"of": item.id} for item in waiting])


def old_requests(before: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return the SQL conditions that a request has waited since ``before``, whether or not sending it was attempted."""
    return WAITS, delivery.c.kind == FORWARDING, delivery.c.created_at < before


def delete_old_requests(connection: Connection, before: datetime) -> PruneResult:
    """Delete requests that have waited since ``before``, although their clients rely on their delivery."""
    return PruneResult(requests=connection.execute(delete(delivery).where(*old_requests(before))).rowcount)


def expire_sent_spans(connection: Connection, before: datetime) -> int:
    """Delete the records of spans that were sent to their target. Return their number."""
    columns = delivery.c
    sent = (columns.kind == FORWARDING, columns.created_at < before, columns.due_at.is_(None))
    return connection.execute(delete(delivery).where(*sent)).rowcount


_SPAN: Final = (delivery.c.trace_id, delivery.c.span_id)
_UNSENT: Final = (WAITS, delivery.c.lease_owner.is_(None), delivery.c.attempt == 0)
_HOLD: Final = (
    update(exchange)
    .where(exchange.c.id == bindparam("of"), exchange.c.span_holder.is_(None))
    .values(span_holder=FORWARDING)
)
_AWAIT: Final = (
    update(delivery)
    .where(delivery.c.trace_id == bindparam("of"), delivery.c.span_id == bindparam("at"), *_UNSENT)
    .values(exchange_id=bindparam("exchange"), due_at=bindparam("until"), created_at=bindparam("until"))
)
