"""The outbox: items for targets, such as notifications for channels, which are sent at least once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    union_all,
    update,
)

from germane.sanitize import clean_text
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.tables import delivery
from germane.storage.db.upsert import insert_into

MAX_DELAY: Final = timedelta(hours=2)
"""Maximum delay before an attempt. An item that is due later than this indicates that the clock was set back."""
MAX_ROWS_SCANNED: Final = 200
"""Maximum number of rows to read per target when searching for due items."""
UNDELIVERED_MAX_AGE: Final = timedelta(days=7)
"""Maximum age of undelivered items to list, and to resend unless they are named."""
DeliveryStatus = Literal["waiting", "sent", "undelivered"]


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
    kept: frozenset[DeliveryStatus] = frozenset({"sent", "undelivered"})
    """Statuses with which items are kept. Otherwise, they are deleted."""
    is_ordered: bool = True
    """Whether items are sent in order. Otherwise, an item that waits for a retry delays no other one."""

    @property
    def items(self) -> ColumnElement[bool]:
        """The SQL condition that selects the items."""
        return and_(is_kind(self.kind), delivery.c.target == self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A claimed item."""

    id: int
    payload: Mapping[str, Any]
    body: bytes | None
    created_at: datetime
    attempt: int
    """Number of attempts, including this one."""
    exchange_id: str | None = None
    """The exchange whose scores and labels are sent, if the target is a sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """The result of one delivery attempt."""

    http_status: int | None = None
    error: str | None = None
    """The error without secrets; None on success."""
    retry_after: timedelta | None = None
    """Delay before the next attempt; None if delivery must not be retried."""
    retry_timeout: timedelta | None = None
    """Time after which the item is not retried, from the first attempt that failed with this error."""

    def status(self, queue: TargetQueue, age: timedelta) -> DeliveryStatus:
        """Return the status of an item of this age after the attempt."""
        if self.error is None:
            return "sent"
        timeouts = (queue.retry_timeout, self.retry_timeout)
        is_over = any(timeout is not None and age >= timeout for timeout in timeouts)
        return "undelivered" if is_over or self.retry_after is None else "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """A summary of one target's waiting and undelivered items."""

    target: str
    waiting: int = 0
    waiting_since: datetime | None = None
    """Creation time of the oldest waiting item; UTC."""
    retry_error: str | None = None
    """Error of the oldest waiting item that has already failed at least once."""
    undelivered: int = 0
    """Number of items that failed and are no longer retried."""
    last_undelivered_at: datetime | None = None
    last_undelivered_error: str | None = None
    """Error of the most recent undelivered item."""


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
            due, outdated = (_choose if queue.is_ordered else _choose_any)(connection, now, queue)
            due_now = is_due(now)  # another process may have claimed the items since they were read
            error = func.coalesce(columns.error, "no process attempted delivery in time")
            values = {**leases.FINISHED, "status": "undelivered", "error": error, "settled_at": now}
            if outdated:
                connection.execute(update(delivery).where(columns.id.in_(outdated), due_now).values(values))
            if not due:
                return []
            claim = leases.claim(delivery, owner=owner, until=now + lease).where(columns.id.in_(due), due_now)
            claim = claim.values(attempt=columns.attempt + 1, changes=0)
            returned = connection.execute(claim.returning(*(columns[name] for name in Delivery.__slots__)))
            claimed = [Delivery(**row) for row in returned.mappings()]
        return sorted(claimed, key=lambda each: (each.created_at, each.id))

    def list_due(self, queues: Iterable[TargetQueue]) -> set[str]:
        """Return the targets of the given queues that may have a due item. Read-only."""
        with self._database.read() as connection:
            now = self._context.now(connection)
            due = [
                select(literal(queue.target, Text)).where(query.order_by(None).exists())
                for queue in queues
                for query in select_due(queue, now, delivery.c.id)
            ]
            return set(connection.execute(union_all(*due)).scalars()) if due else set()

    def list_queues(self, kind: str) -> list[QueueStatus]:
        """Return a summary of each target with waiting items, or with undelivered ones of the last 7 days, by name."""
        columns = delivery.c
        found: dict[str, dict[str, Any]] = {}
        with self._database.read() as connection:
            recent = columns.settled_at >= self._context.now(connection) - UNDELIVERED_MAX_AGE
            parts = (
                (WAITS, columns.created_at, ("waiting", "waiting_since", "retry_error")),
                (
                    and_(columns.status == "undelivered", recent),
                    columns.settled_at.desc(),
                    ("undelivered", "last_undelivered_at", "last_undelivered_error"),
                ),
            )
            for condition, order, (count, at, error) in parts:
                moment = func.max(columns.settled_at) if count == "undelivered" else func.min(columns.created_at)
                totals = select(columns.target, func.count(), moment).where(is_kind(kind), condition)
                for target, number, since in connection.execute(totals.group_by(columns.target)).all():
                    failed = select(columns.error).where(is_kind(kind), columns.target == target, condition)
                    failed = failed.where(columns.error.is_not(None)).order_by(order).limit(1)
                    last = connection.execute(failed).scalar()
                    found.setdefault(target, {}).update({count: number, at: since, error: last})
        return [QueueStatus(target=target, **values) for target, values in sorted(found.items())]

    def renew(self, owner: str, ids: Sequence[int], *, lease: timedelta) -> bool:
        """Renew a claim. Return False if another process has claimed the items since."""
        with self._database.write() as connection:
            until = self._context.now(connection) + lease
            return leases.renew(connection, delivery, delivery.c.id.in_(ids), owner, until) > 0

    def record_attempt(
        self, queue: TargetQueue, owner: str, outcomes: Mapping[int, DeliveryOutcome]
    ) -> dict[int, DeliveryStatus]:
        """Record the outcomes of an attempt by item id.

        Returns:
            The new statuses: ``sent``, ``waiting`` for a retry, or ``undelivered``. Items that another process has
            claimed since are omitted, and do not change.
        """
        columns = delivery.c
        names = (columns.id, columns.created_at, columns.changes, columns.error)
        query = select(*names).where(columns.id.in_(list(outcomes)))
        statuses: dict[int, DeliveryStatus] = {}
        new: list[int] = []
        groups: dict[tuple[DeliveryStatus, bool, DeliveryOutcome], list[int]] = {}
        with self._database.write() as connection:
            now = self._context.now(connection)
            for row in connection.execute(leases.lock_held(query, delivery, owner)):
                outcome = outcomes[row.id]
                is_new = outcome.retry_timeout is not None and outcome.error != row.error
                new += [row.id] * is_new
                statuses[row.id] = outcome.status(queue, timedelta() if is_new else now - row.created_at)
                groups.setdefault((statuses[row.id], bool(row.changes), outcome), []).append(row.id)
            if new:
                connection.execute(update(delivery).where(columns.id.in_(new)).values(created_at=now))
            for (status, changed, outcome), ids in groups.items():
                _record(connection, queue, ids, outcome, status, changed=changed, now=now)
        return statuses

    def release(self, owner: str, ids: Sequence[int]) -> int:
        """Let any process claim items at once, as if this owner had never claimed them. Return their number."""
        rows, attempt = delivery.c.id.in_(ids), delivery.c.attempt - 1
        with self._database.write() as connection:
            now = self._context.now(connection)
            return leases.postpone(connection, delivery, rows, owner, now, attempt=attempt)


def is_due(now: datetime) -> ColumnElement[bool]:
    """Return the SQL condition that an item can be claimed, unless an earlier one blocks it."""
    return or_(delivery.c.due_at <= now, delivery.c.due_at > now + MAX_DELAY)


def is_kind(kind: str) -> ColumnElement[bool]:
    """Return the SQL condition that selects the items of a kind, in the form that partial indexes need."""
    return delivery.c.kind == bindparam(None, kind, Text, literal_execute=True)


def _record(
    connection: Connection,
    queue: TargetQueue,
    ids: Sequence[int],
    outcome: DeliveryOutcome,
    status: DeliveryStatus,
    *,
    changed: bool,
    now: datetime,
) -> None:
    """Record the outcome of items that this process holds."""
    columns = delivery.c
    rows = columns.id.in_(ids)
    values: dict[str, Any] = {"status": status, "http_status": outcome.http_status, "error": clean_text(outcome.error)}
    if changed and status != "waiting":  # there is something newer to send
        renewed: dict[str, Any] = {"status": "waiting", "attempt": 0, "created_at": now, "due_at": now}
        connection.execute(update(delivery).where(rows).values({**values, **renewed, "lease_owner": None}))
        return
    if status == "waiting":
        values |= {"due_at": now + (outcome.retry_after or timedelta())}
    elif status in queue.kept:
        values |= {"settled_at": now}
    else:
        connection.execute(delete(delivery).where(rows, columns.trace_id.is_(None)))
        # A span that has waited for its scores must not be queued again if its client repeats it.
        emptied: dict[str, Any] = {"payload": {}, "body": None, "size": 0, "exchange_id": None}
        values = {"status": status, "settled_at": now, **emptied}
    connection.execute(update(delivery).where(rows).values({**leases.FINISHED, **values}))


def _choose(connection: Connection, now: datetime, queue: TargetQueue) -> tuple[list[int], list[int]]:
    """Return the ids of the items to claim and of the outdated ones."""
    due: list[int] = []
    outdated: list[int] = []
    blocked: set[str] = set()
    for row in connection.execute(_WAITING.where(queue.items)):
        keys = set(row.order_keys)
        if now < row.due_at <= now + MAX_DELAY or not blocked.isdisjoint(keys):
            if not keys and row.attempt and row.lease_owner is None:
                break  # this item waits for a retry, and all later ones wait for it
            blocked |= keys
        elif _is_outdated(row, now, queue):
            outdated.append(row.id)
        else:
            due.append(row.id)
            blocked |= keys
            if len(due) == queue.batch_size:
                break
    return due, outdated


def _choose_any(connection: Connection, now: datetime, queue: TargetQueue) -> tuple[list[int], list[int]]:
    """Return the ids of the items to claim, those that have been due longest, and of the outdated ones."""
    for query in select_due(queue, now, delivery.c.id, delivery.c.due_at):
        # Processes that queue newer scores lock the items in another order, so do not wait for them.
        rows = connection.execute(query.limit(queue.batch_size).with_for_update(skip_locked=True)).all()
        if rows:
            outdated = [row.id for row in rows if _is_outdated(row, now, queue)]
            return [row.id for row in rows if row.id not in outdated], outdated
    return [], []


def _is_outdated(row: Row[Any], now: datetime, queue: TargetQueue) -> bool:
    return queue.retry_timeout is not None and now - row.due_at >= queue.retry_timeout


def select_due(queue: TargetQueue, now: datetime, *columns: ColumnElement[Any]) -> tuple[Select[Any], Select[Any]]:
    """Return queries for the items that are due, and for those whose due time is implausible; see ``is_due``.

    Each reads a range of an index.
    """
    due_at = delivery.c.due_at
    query = select(*columns).where(queue.items, WAITS).order_by(due_at)
    return query.where(due_at <= now), query.where(due_at > now + MAX_DELAY)


WAITS: Final = delivery.c.due_at.is_not(None)
"""SQL condition that an item is neither sent nor undelivered."""
_WAITING: Final = (
    select(*(delivery.c[name] for name in ("id", "order_keys", "due_at", "attempt", "lease_owner")))
    .where(WAITS)
    .order_by(delivery.c.created_at, delivery.c.id)
    .limit(MAX_ROWS_SCANNED)
)
