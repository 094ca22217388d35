"""The notification outbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, func, insert, select, update

from germane.alert import Alert, Notification
from germane.storage.db.component import StoreComponent
from germane.storage.db.sanitize import clean_json, clean_text
from germane.storage.db.tables import notification

MAX_DELAY: Final = timedelta(hours=2)
"""Maximum delay. A notification due later than this was dated by a clock that has been set back since."""
MAX_ROWS_SCANNED: Final = 200
"""Rows of one channel that are read to find a due one."""
_WAITS = notification.c.next_attempt_at.is_not(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """The result of one delivery attempt."""

    http_status: int | None = None
    error: str | None = None
    """The error without secrets; None on success."""
    retry_after: timedelta | None = None
    """Delay of the next attempt; None for no retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelQueue:
    """Waiting and undelivered notifications of one channel."""

    channel: str
    waiting: int = 0
    waiting_since: datetime | None = None
    """Creation time of the oldest waiting notification; UTC."""
    retry_error: str | None = None
    """Error of the oldest waiting notification that failed before."""
    undelivered: int = 0
    """Number of notifications that are not retried."""
    last_undelivered_at: datetime | None = None
    last_undelivered_error: str | None = None
    """Error of the last undelivered notification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRecord:
    """A notification with its delivery status."""

    notification: Notification
    status: Literal["waiting", "sent", "undelivered"]
    http_status: int | None
    error: str | None
    settled_at: datetime | None
    """UTC."""


def insert_notifications(connection: Connection, notifications: Iterable[Notification], now: datetime) -> None:
    """Queue notifications, in the transaction of the events that they report."""
    rows = [
        {
            "id": one.id,
            "channel": one.channel,
            "event_ids": list(one.event_ids),
            "payload": clean_json({"type": one.type, "alerts": [alert.as_dict() for alert in one.alerts]}),
            "idempotency_key": one.idempotency_key,
            "status": "waiting",
            "attempt": one.attempt,
            "next_attempt_at": now,
            "created_at": one.created_at,
        }
        for one in notifications
    ]
    if rows:
        connection.execute(insert(notification), rows)


def find_due_channels(connection: Connection, channels: Collection[str], now: datetime) -> set[str]:
    """Return the channels that may have a due notification."""
    wanted = select(notification.c.channel).distinct()
    rows = connection.execute(wanted.where(_WAITS, _is_due(now), notification.c.channel.in_(sorted(channels))))
    return set(rows.scalars())


def claim_notification(
    connection: Connection, channel: str, owner: str, lease: timedelta, patience: timedelta, now: datetime
) -> Notification | None:
    """Claim the oldest due notification.

    A notification about an alert with an earlier waiting one has to wait too, so that an alert is reported as firing
    before it is reported as resolved. A notification that was due for ``patience`` without an attempt is outdated and
    becomes undelivered.
    """
    query = select(notification).where(notification.c.channel == channel, _WAITS)
    rows = connection.execute(
        query.order_by(notification.c.created_at, notification.c.id).limit(MAX_ROWS_SCANNED)
    ).mappings()
    held: set[str] = set()
    for row in rows.all():
        keys = _keys(row)
        is_due = row["next_attempt_at"] <= now or row["next_attempt_at"] > now + MAX_DELAY
        if not is_due or not held.isdisjoint(keys):
            held |= keys
        elif now - row["next_attempt_at"] < patience:
            return _claim(connection, row, owner, now + lease)
        else:
            _mark_outdated(connection, row, now)
    return None


def renew_lease(connection: Connection, notification_id: str, owner: str, lease: timedelta, now: datetime) -> bool:
    """Renew the lease of a notification that this owner still holds."""
    statement = update(notification).where(*_is_held_by(notification_id, owner)).values(next_attempt_at=now + lease)
    return connection.execute(statement).rowcount == 1


def record_attempt(
    connection: Connection,
    notification_id: str,
    owner: str,
    outcome: DeliveryOutcome,
    patience: timedelta,
    now: datetime,
) -> str | None:
    """Record a delivery attempt; return the new status, or None if another owner holds the notification."""
    written = select(notification.c.created_at).where(*_is_held_by(notification_id, owner)).with_for_update()
    created_at = connection.execute(written).scalar_one_or_none()
    if created_at is None:
        return None
    status = _status(outcome, now - created_at < patience)
    values = {
        "status": status,
        "next_attempt_at": None if status != "waiting" else now + (outcome.retry_after or timedelta()),
        "lease_owner": None,
        "http_status": outcome.http_status,
        "error": clean_text(outcome.error),
        "settled_at": None if status == "waiting" else now,
    }
    connection.execute(update(notification).where(notification.c.id == notification_id).values(values))
    return status


def release_notifications(connection: Connection, owner: str, now: datetime) -> int:
    """Return all notifications of this owner to the queue; return their number."""
    statement = update(notification).where(_WAITS, notification.c.lease_owner == owner)
    return connection.execute(statement.values(next_attempt_at=now, lease_owner=None)).rowcount


def list_channel_queues(connection: Connection, dead_since: datetime) -> list[ChannelQueue]:
    """Return the waiting and the recently undelivered notifications of each channel that has any."""
    waiting = connection.execute(
        select(notification.c.channel, func.count().label("n"), func.min(notification.c.created_at).label("since"))
        .where(_WAITS)
        .group_by(notification.c.channel)
    ).all()
    died = connection.execute(
        select(notification.c.channel, func.count().label("n"), func.max(notification.c.settled_at).label("at"))
        .where(_undelivered_since(dead_since))
        .group_by(notification.c.channel)
    ).all()
    found = {row.channel: ChannelQueue(channel=row.channel, waiting=row.n, waiting_since=row.since) for row in waiting}
    for row in died:
        lane = found.get(row.channel, ChannelQueue(channel=row.channel))
        found[row.channel] = replace(lane, undelivered=row.n, last_undelivered_at=row.at)
    return [_with_errors(connection, lane, dead_since) for _, lane in sorted(found.items())]


def search_notifications(
    connection: Connection, window: tuple[datetime | None, datetime | None], limit: int, **equal: str | None
) -> list[NotificationRecord]:
    """Return notifications created in a window, newest first."""
    columns = notification.c
    query = select(notification).order_by(columns.created_at.desc(), columns.id).limit(limit)
    query = query.where(*(columns[name] == value for name, value in equal.items() if value is not None))
    since, until = window
    if since is not None:
        query = query.where(columns.created_at >= since)
    if until is not None:
        query = query.where(columns.created_at < until)
    return [_posted_of(row) for row in connection.execute(query).mappings()]


def resend_undelivered(
    connection: Connection, channel: str | None, ids: Collection[str], dead_since: datetime, now: datetime
) -> int:
    """Queue undelivered notifications again, by id or by age; return their number.

    Superseded notifications are not resent: a resolved incident would be reported as firing again.
    """
    columns = notification.c
    query = select(columns.id, columns.channel, columns.created_at, columns.payload).order_by(columns.created_at)
    query = query.where(_is_undelivered() & columns.id.in_(sorted(ids)) if ids else _undelivered_since(dead_since))
    if channel is not None:
        query = query.where(columns.channel == channel)
    rows = connection.execute(query).mappings().all()
    told = _last_sent(connection, rows[0]["created_at"]) if rows else {}
    again = [row["id"] for row in rows if not _is_superseded(row, told)]
    return sum(_requeue(connection, id_, now + timedelta(microseconds=place)) for place, id_ in enumerate(again))


def _last_sent(connection: Connection, since: datetime) -> dict[tuple[str, str], datetime]:
    """Return the creation time of the last sent notification by channel and alert key."""
    columns = notification.c
    query = select(columns.channel, columns.created_at, columns.payload)
    rows = connection.execute(query.where(columns.status == "sent", columns.created_at > since)).mappings()
    news = sorted(((row["channel"], key), row["created_at"]) for row in rows for key in _keys(row))
    return dict(news)


def _is_superseded(row: RowMapping, told: Mapping[tuple[str, str], datetime]) -> bool:
    written = row["created_at"]
    return all(told.get((row["channel"], key), written) > written for key in _keys(row))


def _requeue(connection: Connection, id_: str, moment: datetime) -> int:
    """Queue a notification with a new creation time; return the number of changed rows."""
    again = {"status": "waiting", "attempt": 0, "next_attempt_at": moment, "created_at": moment, "settled_at": None}
    statement = update(notification).where(notification.c.id == id_, _is_undelivered())
    return connection.execute(statement.values(again)).rowcount


def _claim(connection: Connection, row: RowMapping, owner: str, until: datetime) -> Notification | None:
    """Claim a notification unless another process has done so since it was read."""
    columns = notification.c
    values = {"lease_owner": owner, "next_attempt_at": until, "attempt": row["attempt"] + 1}
    statement = update(notification).where(columns.id == row["id"], _unchanged(row)).values(values)
    if connection.execute(statement).rowcount != 1:
        return None
    return _notification_of(row, row["attempt"] + 1)


def _mark_outdated(connection: Connection, row: RowMapping, now: datetime) -> None:
    """Mark an outdated notification as undelivered unless another process has claimed it since it was read."""
    columns = notification.c
    error = row["error"] or "no process attempted delivery in time"
    values = {"status": "undelivered", "next_attempt_at": None, "lease_owner": None, "error": error, "settled_at": now}
    connection.execute(update(notification).where(columns.id == row["id"], _unchanged(row)).values(values))


def _unchanged(row: RowMapping) -> ColumnElement[bool]:
    columns = notification.c
    return and_(columns.attempt == row["attempt"], columns.next_attempt_at == row["next_attempt_at"])


def _keys(row: RowMapping) -> set[str]:
    """Return the keys of the alerts in a notification."""
    return {str(alert["key"]) for alert in row["payload"]["alerts"]}


def _status(outcome: DeliveryOutcome, patient: bool) -> Literal["waiting", "sent", "undelivered"]:  # noqa: FBT001 - one of two facts
    if outcome.error is None:
        return "sent"
    return "waiting" if outcome.retry_after is not None and patient else "undelivered"


def _is_due(now: datetime) -> ColumnElement[bool]:
    when = notification.c.next_attempt_at
    return (when <= now) | (when > now + MAX_DELAY)


def _is_undelivered() -> ColumnElement[bool]:
    return notification.c.status == "undelivered"


def _undelivered_since(since: datetime) -> ColumnElement[bool]:
    return _is_undelivered() & (notification.c.created_at >= since)


def _is_held_by(notification_id: str, owner: str) -> tuple[Any, ...]:
    columns = notification.c
    return columns.id == notification_id, columns.lease_owner == owner, columns.status == "waiting"


def _with_errors(connection: Connection, lane: ChannelQueue, dead_since: datetime) -> ChannelQueue:
    columns = notification.c
    mine = select(columns.error).where(columns.channel == lane.channel).limit(1)
    failing = mine.where(_WAITS, columns.error.is_not(None)).order_by(columns.created_at)
    died = mine.where(_undelivered_since(dead_since)).order_by(columns.settled_at.desc())
    return replace(
        lane,
        retry_error=connection.execute(failing).scalar_one_or_none(),
        last_undelivered_error=connection.execute(died).scalar_one_or_none(),
    )


def _notification_of(row: RowMapping, attempt: int) -> Notification:
    payload = row["payload"]
    return Notification(
        id=row["id"],
        channel=row["channel"],
        idempotency_key=row["idempotency_key"],
        type=payload["type"],
        alerts=tuple(map(Alert.from_dict, payload["alerts"])),
        event_ids=tuple(row["event_ids"]),
        created_at=row["created_at"],
        attempt=attempt,
    )


def _posted_of(row: RowMapping) -> NotificationRecord:
    return NotificationRecord(
        notification=_notification_of(row, row["attempt"]),
        status=row["status"],
        http_status=row["http_status"],
        error=row["error"],
        settled_at=row["settled_at"],
    )


RETRY_TIMEOUT: Final = timedelta(days=1)
"""How long delivery is retried."""
UNDELIVERED_MAX_AGE: Final = timedelta(days=7)
"""Default age up to which undelivered notifications are listed and resent."""


class NotificationStore(StoreComponent):
    """The notification outbox. Any number of processes deliver; times are by the shared clock."""

    def due_channels(self, channels: Collection[str]) -> set[str]:
        """Return the channels that may have a due notification. Only reads."""
        with self._database.read() as connection:
            return find_due_channels(connection, channels, self._context.now(connection))

    def claim(
        self, channel: str, owner: str, *, lease: timedelta, retry_timeout: timedelta = RETRY_TIMEOUT
    ) -> Notification | None:
        """Claim the oldest due notification of a channel; None if there is none or another process claimed it first.

        A notification about an alert with an earlier waiting notification is not due. A notification that has been due
        for longer than ``patience`` without an attempt becomes ``undelivered``: it may be outdated.

        Args:
            channel: Name of the channel.
            owner: The claiming process.
            lease: How long the claim lasts unless :meth:`renew_lease` renews it.
            patience: Maximum time between becoming due and the first attempt.
        """
        with self._database.write() as connection:
            return claim_notification(connection, channel, owner, lease, retry_timeout, self._context.now(connection))

    def renew_lease(self, notification_id: str, owner: str, *, lease: timedelta) -> bool:
        """Renew a claim; return False if another process has claimed the notification."""
        with self._database.write() as connection:
            return renew_lease(connection, notification_id, owner, lease, self._context.now(connection))

    def record_attempt(
        self, notification_id: str, owner: str, outcome: DeliveryOutcome, *, retry_timeout: timedelta = RETRY_TIMEOUT
    ) -> str | None:
        """Record a delivery attempt.

        Args:
            notification_id: A notification that this owner has claimed.
            owner: The claiming process.
            outcome: Result of the attempt.
            patience: Notifications older than this are not retried.

        Returns:
            The new status: ``sent``, ``waiting`` for a retry, or ``undelivered``. None, and nothing is recorded, if
            another process has claimed the notification.
        """
        with self._database.write() as connection:
            return record_attempt(
                connection, notification_id, owner, outcome, retry_timeout, self._context.now(connection)
            )

    def release(self, owner: str) -> int:
        """Return all notifications that this owner has claimed to the queue; return their number."""
        with self._database.write() as connection:
            return release_notifications(connection, owner, self._context.now(connection))

    def list_channel_queues(self, *, max_age: timedelta = UNDELIVERED_MAX_AGE) -> list[ChannelQueue]:
        """Return the waiting and the recently undelivered notifications of each channel that has any.

        Args:
            dead_for: Only count undelivered notifications that were created within this time.
        """
        with self._database.read() as connection:
            return list_channel_queues(connection, self._context.now(connection) - max_age)

    def search(
        self,
        *,
        status: str | None = None,
        channel: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
    ) -> list[NotificationRecord]:
        """Return notifications created since <= created_at < until, newest first.

        Args:
            status: Only notifications with this status: ``waiting``, ``sent`` or ``undelivered``.
            channel: Only notifications of this channel.
            since: Start of the window.
            until: End of the window.
            limit: Maximum number of notifications.
        """
        with self._database.read() as connection:
            return search_notifications(connection, (since, until), limit, status=status, channel=channel)

    def resend(
        self, *, channel: str | None = None, ids: Collection[str] = (), max_age: timedelta = UNDELIVERED_MAX_AGE
    ) -> int:
        """Queue undelivered notifications again, in their original order.

        A notification stays undelivered if a later one about the same alerts was sent to its channel.

        Args:
            channel: Only notifications of this channel.
            ids: Notifications to resend, whatever their age.
            dead_for: Without ids, resend notifications created within this time.

        Returns:
            The number of queued notifications.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            return resend_undelivered(connection, channel, ids, now - max_age, now)
