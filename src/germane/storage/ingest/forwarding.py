"""The durable queue of requests that are forwarded to another OTLP endpoint, and of spans that wait for their scores.

The span of an exchange that will be scored is queued apart from its request. It waits until its trace is complete and
its scores are attached, at most until its deadline, and is then forwarded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, select, update

from germane.exchange import FORWARDING, Exchange
from germane.storage.db import leases, mappers
from germane.storage.db.component import StoreComponent
from germane.storage.db.tables import forwarded_request
from germane.storage.db.upsert import insert_into

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


class QueuedRequest(NamedTuple):
    """A claimed request."""

    id: int
    signal: Signal
    body: bytes
    """The request as an OTLP protobuf message, compressed with gzip."""
    is_span: bool = False
    """Whether the request is a single span that has waited for its scores."""
    attributes: Mapping[str, Any] | None = None
    """The scores to attach to the span; None if it has none."""


class ForwardingQueue(StoreComponent):
    """The requests to forward, in order of arrival. Each is kept until the other endpoint has accepted it."""

    def claim(self, owner: str, *, limit: int, lease: timedelta) -> list[QueuedRequest]:
        """Claim requests that are due. If they are not completed before the lease ends, they can be claimed again."""
        with self._database.write() as connection:
            now = self._context.now(connection).timestamp()
            rows = connection.execute(_READY, {"now": now, "limit": limit}).all()
            for ids in mappers.batched([row.id for row in rows]):
                claim = leases.claim(forwarded_request, owner=owner, until=now + lease.total_seconds())
                connection.execute(claim.where(forwarded_request.c.id.in_(ids)))
        return [QueuedRequest(row.id, row.signal, row.payload, row.span_id is not None, row.attributes) for row in rows]

    def attach(self, exchange_id: str, attributes: Mapping[str, Any]) -> bool:
        """Attach scores to an exchange's span, which is then forwarded.

        Returns:
            False if the span does not wait any longer. Its scores must be exported in another way.
        """
        columns = forwarded_request.c
        waits = (columns.exchange_id == exchange_id, columns.lease_owner.is_(None), columns.attributes.is_(None))
        with self._database.write() as connection:
            now = self._context.now(connection).timestamp()
            attach = update(forwarded_request).where(*waits).values(attributes=dict(attributes), due_at=now)
            return connection.execute(attach).rowcount > 0

    def delete(self, owner: str, ids: Sequence[int]) -> int:
        """Delete claimed requests that the other endpoint has accepted or permanently rejected. Return their number."""
        deleted, columns = 0, forwarded_request.c
        with self._database.write() as connection:
            for batch in mappers.batched(ids):
                held = leases.lock_held(select(columns.id).where(columns.id.in_(batch)), forwarded_request, owner)
                deleted += connection.execute(delete(forwarded_request).where(columns.id.in_(held))).rowcount
        return deleted

    def postpone(self, owner: str, ids: Sequence[int], seconds: float) -> None:
        """Make claimed requests available again after ``seconds``."""
        with self._database.write() as connection:
            due_at = self._context.now(connection).timestamp() + seconds
            for batch in mappers.batched(ids):
                leases.postpone(connection, forwarded_request, forwarded_request.c.id.in_(batch), owner, due_at)

    def measure(self) -> int:
        """Return the size of all waiting requests in bytes."""
        # The condition holds for all rows. With it, the databases sum over the index, which contains no payloads.
        query = select(func.coalesce(func.sum(forwarded_request.c.size), 0)).where(forwarded_request.c.due_at > 0)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())


def queue_requests(connection: Connection, requests: Sequence[OutgoingRequest], now: float) -> None:
    """Add requests in a transaction that writes. A span that is waiting already is not added again.

    Args:
        connection: The transaction.
        requests: The requests.
        now: The current time in seconds since 1970.
    """
    if requests:
        rows = [
            {
                "signal": request.signal,
                "payload": request.body,
                "size": len(request.body),
                "due_at": now + request.max_delay,
                "trace_id": request.trace_id,
                "span_id": request.span_id,
            }
            for request in requests
        ]
        connection.execute(insert_into(forwarded_request, connection.dialect.name).on_conflict_do_nothing(), rows)


def await_scores(
    connection: Connection, trace_ids: Sequence[str], exchanges: Sequence[Exchange], max_delay: float, now: float
) -> None:
    """Keep the spans of new exchanges waiting for their scores, and release all other waiting spans of their traces.

    Args:
        connection: A transaction that writes.
        trace_ids: The traces that are complete.
        exchanges: Their exchanges.
        max_delay: Maximum number of seconds for which the spans of these exchanges wait from now on.
        now: The current time in seconds since 1970.
    """
    columns = forwarded_request.c
    waiting = [
        {"of": item.trace_id, "at": item.span_id, "exchange": item.id, "until": now + max_delay}
        for item in exchanges
        if item.span_holder == FORWARDING
    ]
    for ids in mappers.batched(sorted(trace_ids)):
        leave = update(forwarded_request).where(
            columns.trace_id.in_(ids), columns.lease_owner.is_(None), columns.due_at > now
        )
        connection.execute(leave.values(due_at=now))
    if waiting:
        connection.execute(_AWAIT, waiting)


def delete_abandoned_requests(connection: Connection, due_before: float) -> int:
    """Delete requests that were due before a time, in seconds since 1970. Return their number."""
    return connection.execute(delete(forwarded_request).where(forwarded_request.c.due_at < due_before)).rowcount


_AWAIT: Final = (
    update(forwarded_request)
    .where(
        forwarded_request.c.trace_id == bindparam("of"),
        forwarded_request.c.span_id == bindparam("at"),
        forwarded_request.c.lease_owner.is_(None),
    )
    .values(exchange_id=bindparam("exchange"), due_at=bindparam("until"))
)
_READY: Final = leases.select_due(
    forwarded_request,
    *(forwarded_request.c[name] for name in ("id", "signal", "payload", "span_id", "attributes")),
)
