"""The outbox: items for targets, such as notifications for channels, which are sent at least once and in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, or_, select, update

from germane.sanitize import clean_text
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.tables import delivery
from germane.storage.db.upsert import insert_into

MAX_DELAY: Final = timedelta(hours=2)
"""Maximum delay before an attempt. An item that is due later than this indicates that the clock was set back."""
MAX_ROWS_SCANNED: Final = 200
"""Maximum number of rows to read per target when searching for due items."""
Status = Literal["waiting", "sent", "undelivered"]


@dataclass(frozen=True, slots=True)
class TargetQueue:
    """The items for one target."""

    kind: str
    target: str
    """Name of the target."""
    batch_size: int = 1
    """Maximum number of items that are claimed at once."""
    retry_timeout: timedelta | None = timedelta(days=1)
    """Time after which delivery is no longer attempted; None for any time."""
    is_kept: bool = True
    """Whether items are kept after they were sent or refused. Otherwise, they are deleted."""

    @property
    def items(self) -> ColumnElement[bool]:
        """The SQL condition that selects the items."""
        return and_(delivery.c.kind == self.kind, delivery.c.target == self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A claimed item."""

    id: int
    payload: Mapping[str, Any]
    body: bytes | None
    created_at: datetime
    attempt: int
    """Number of attempts, including this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """The result of one delivery attempt."""

    http_status: int | None = None
    error: str | None = None
    """The error without secrets; None on success."""
    retry_after: timedelta | None = None
    """Delay before the next attempt; None if delivery must not be retried."""


def queue_items(connection: Connection, queue: TargetQueue, items: Sequence[Mapping[str, Any]]) -> None:
    """Add items, in the same transaction as their cause. A span that is waiting already is not added again.

    Each item has values of ``payload``, ``created_at``, ``due_at`` and other columns, which are the same for all items.
    """
    if items:
        insert = insert_into(delivery, connection.dialect.name).on_conflict_do_nothing()
        connection.execute(insert, [{"kind": queue.kind, "target": queue.target, **item} for item in items])


class Outbox(StoreComponent):
    """The items of all targets. Any number of processes can deliver them."""

    def claim(self, queue: TargetQueue, owner: str, *, lease: timedelta) -> list[Delivery]:
        """Claim the oldest due items of a target for the duration of a lease, and return them in their order.

        The result is empty if none is due, or if another process claimed them first. An item is not claimed while an
        earlier one with a common order key waits or is being sent. Without order keys, several processes may send at
        the same time, but none does while an earlier item waits for a retry. Items that have been due for longer than
        the ``retry_timeout`` of the queue without an attempt become ``undelivered``, because they may be outdated.
        """
        columns = delivery.c
        with self._database.write() as connection:
            now = self._context.now(connection)
            due, outdated = _choose(connection.execute(_WAITING.where(queue.items)), now, queue)
            due_now = is_due(now)  # another process may have claimed the items since they were read
            error = func.coalesce(columns.error, "no process attempted delivery in time")
            values = {**leases.FINISHED, "status": "undelivered", "error": error, "settled_at": now}
            if outdated:
                connection.execute(update(delivery).where(columns.id.in_(outdated), due_now).values(values))
            if not due:
                return []
            claim = leases.claim(delivery, owner=owner, until=now + lease).where(columns.id.in_(due), due_now)
            claim = claim.values(attempt=columns.attempt + 1).returning(*(columns[name] for name in Delivery.__slots__))
            claimed = [Delivery(**row) for row in connection.execute(claim).mappings()]
        return sorted(claimed, key=lambda each: (each.created_at, each.id))

    def renew(self, owner: str, ids: Sequence[int], *, lease: timedelta) -> bool:
        """Renew a claim. Return False if another process has claimed the items since."""
        with self._database.write() as connection:
            until = self._context.now(connection) + lease
            return leases.renew(connection, delivery, delivery.c.id.in_(ids), owner, until) > 0

    def record_attempt(
        self, queue: TargetQueue, owner: str, ids: Sequence[int], outcome: DeliveryOutcome
    ) -> Status | None:
        """Record an attempt to deliver items together.

        Returns:
            The new status: ``sent``, ``waiting`` for a retry, or ``undelivered``. If another process has claimed the
            items since, nothing is recorded and the result is None.
        """
        columns = delivery.c
        query = select(columns.id, columns.created_at).where(columns.id.in_(ids))
        with self._database.write() as connection:
            now = self._context.now(connection)
            held = connection.execute(leases.lock_held(query, delivery, owner)).all()
            if not held:
                return None
            is_over = queue.retry_timeout is not None and now - held[0].created_at >= queue.retry_timeout
            retry_after = None if is_over else outcome.retry_after
            status: Status = "undelivered" if retry_after is None else "waiting"
            if outcome.error is None:
                status = "sent"
            rows = columns.id.in_([row.id for row in held])
            if status != "waiting" and not queue.is_kept:
                connection.execute(delete(delivery).where(rows, columns.trace_id.is_(None)))
                # A span that has waited for its scores must not be queued again if its client repeats it.
                emptied: dict[str, Any] = {"payload": {}, "body": None, "size": 0, "exchange_id": None}
                settled: dict[str, Any] = {**leases.FINISHED, "status": status, "settled_at": now}
                connection.execute(update(delivery).where(rows).values({**settled, **emptied}))
                return status
            values: dict[str, Any] = {"settled_at": now} if retry_after is None else {"due_at": now + retry_after}
            values |= {"status": status, "http_status": outcome.http_status, "error": clean_text(outcome.error)}
            connection.execute(update(delivery).where(rows).values({**leases.FINISHED, **values}))
            return status

    def release(self, owner: str, ids: Sequence[int]) -> int:
        """Let any process claim items at once, as if this owner had never claimed them. Return their number."""
        rows, attempt = delivery.c.id.in_(ids), delivery.c.attempt - 1
        with self._database.write() as connection:
            now = self._context.now(connection)
            return leases.postpone(connection, delivery, rows, owner, now, attempt=attempt)


def is_due(now: datetime) -> ColumnElement[bool]:
    """Return the SQL condition that an item can be claimed, unless an earlier one blocks it."""
    return or_(delivery.c.due_at <= now, delivery.c.due_at > now + MAX_DELAY)


def _choose(rows: Iterable[Row[Any]], now: datetime, queue: TargetQueue) -> tuple[list[int], list[int]]:
    """Return the ids of the items to claim and of the outdated ones."""
    due: list[int] = []
    outdated: list[int] = []
    blocked: set[str] = set()
    for row in rows:
        keys = set(row.order_keys)
        if now < row.due_at <= now + MAX_DELAY or not blocked.isdisjoint(keys):
            if not keys and row.attempt and row.lease_owner is None:
                break  # this item waits for a retry, and all later ones wait for it
            blocked |= keys
        elif queue.retry_timeout is not None and now - row.due_at >= queue.retry_timeout:
            outdated.append(row.id)
        else:
            due.append(row.id)
            blocked |= keys
            if len(due) == queue.batch_size:
                break
    return due, outdated


WAITS: Final = delivery.c.due_at.is_not(None)
"""SQL condition that an item is neither sent nor undelivered."""
_WAITING: Final = (
    select(*(delivery.c[name] for name in ("id", "order_keys", "due_at", "attempt", "lease_owner")))
    .where(WAITS)
    .order_by(delivery.c.created_at, delivery.c.id)
    .limit(MAX_ROWS_SCANNED)
)
