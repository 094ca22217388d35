"""The notification outbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update

from germane.alert import Alert, Notification
from germane.sanitize import clean_text
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.sanitize import clean_json
from germane.storage.db.tables import notification

MAX_DELAY: Final = timedelta(hours=2)
"""Maximum delay before an attempt. A notification that is due later than this indicates that the clock was set back."""
MAX_ROWS_SCANNED: Final = 200
"""Maximum number of rows to read per channel when searching for a due notification."""
RETRY_TIMEOUT: Final = timedelta(days=1)
"""Time after which delivery is no longer retried."""
UNDELIVERED_MAX_AGE: Final = timedelta(days=7)
"""Default maximum age of undelivered notifications to list and resend."""
_WAITS = notification.c.due_at.is_not(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """The result of one delivery attempt."""

    http_status: int | None = None
    error: str | None = None
    """The error without secrets; None on success."""
    retry_after: timedelta | None = None
    """Delay before the next attempt; None if delivery must not be retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelQueue:
    """A summary of one channel's waiting and undelivered notifications."""

    channel: str
    waiting: int = 0
    waiting_since: datetime | None = None
    """Creation time of the oldest waiting notification; UTC."""
    retry_error: str | None = None
    """Error of the oldest waiting notification that has already failed at least once."""
    undelivered: int = 0
    """Number of notifications that failed and are no longer retried."""
    last_undelivered_at: datetime | None = None
    last_undelivered_error: str | None = None
    """Error of the most recent undelivered notification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRecord:
    """A notification with its delivery status."""

    notification: Notification
    status: Literal["waiting", "sent", "undelivered"]
    http_status: int | None
    error: str | None
    settled_at: datetime | None
    """Time at which the notification was sent or became undelivered, in UTC; None while it is waiting."""


def insert_notifications(connection: Connection, notifications: Iterable[Notification], now: datetime) -> None:
    """Queue notifications in the same transaction as the events that they report."""
    rows = [
        {
            "id": item.id,
            "channel": item.channel,
            "event_ids": list(item.event_ids),
            "payload": clean_json({"type": item.type, "alerts": [alert.as_dict() for alert in item.alerts]}),
            "idempotency_key": item.idempotency_key,
            "status": "waiting",
            "attempt": item.attempt,
            "due_at": now,
            "created_at": item.created_at,
        }
        for item in notifications
    ]
    if rows:
        connection.execute(insert(notification), rows)


class NotificationStore(StoreComponent):
    """The notification outbox.

    Any number of processes can deliver notifications. All times come from the clock that the processes share.
    """

    def due_channels(self, channels: Collection[str]) -> set[str]:
        """Return the given channels that may have a due notification. Read-only."""
        due_at = notification.c.due_at
        query = select(notification.c.channel).distinct().where(notification.c.channel.in_(sorted(channels)))
        with self._database.read() as connection:
            now = self._context.now(connection)
            is_due = (due_at <= now) | (due_at > now + MAX_DELAY)
            return set(connection.execute(query.where(_WAITS, is_due)).scalars())

    def claim(
        self, channel: str, owner: str, *, lease: timedelta, retry_timeout: timedelta = RETRY_TIMEOUT
    ) -> Notification | None:
        """Claim the oldest due notification of a channel.

        A notification is not due while an earlier notification about the same alert is waiting, so that an alert is
        reported as firing before it is reported as resolved. A notification that has been due for longer than
        ``retry_timeout`` without an attempt becomes ``undelivered``, because it may be outdated.

        Args:
            channel: Name of the channel.
            owner: Id of the claiming process.
            lease: Duration of the claim unless :meth:`renew_lease` renews it.
            retry_timeout: Maximum time between becoming due and the first attempt.

        Returns:
            The claimed notification, or None if none is due or another process claimed it first.
        """
        columns = notification.c
        query = select(notification).where(columns.channel == channel, _WAITS)
        query = query.order_by(columns.created_at, columns.id).limit(MAX_ROWS_SCANNED)
        blocked: set[str] = set()
        with self._database.write() as connection:
            now = self._context.now(connection)
            for row in connection.execute(query).mappings().all():
                keys, due_at = _alert_keys(row), row["due_at"]
                if now < due_at <= now + MAX_DELAY or not blocked.isdisjoint(keys):
                    blocked |= keys
                    continue
                # Another process may have claimed the notification since it was read.
                unchanged = (columns.id == row["id"], columns.attempt == row["attempt"], columns.due_at == due_at)
                if now - due_at < retry_timeout:
                    claim = leases.claim(notification, owner=owner, until=now + lease).where(*unchanged)
                    is_claimed = connection.execute(claim.values(attempt=row["attempt"] + 1)).rowcount == 1
                    return _notification_of(row, row["attempt"] + 1) if is_claimed else None
                error = row["error"] or "no process attempted delivery in time"
                outdated = {**leases.FINISHED, "status": "undelivered", "error": error, "settled_at": now}
                connection.execute(update(notification).where(*unchanged).values(outdated))
        return None

    def renew_lease(self, notification_id: str, owner: str, *, lease: timedelta) -> bool:
        """Renew a claim. Return False if another process has claimed the notification since."""
        with self._database.write() as connection:
            until = self._context.now(connection) + lease
            return leases.renew(connection, notification, notification.c.id == notification_id, owner, until) == 1

    def record_attempt(
        self, notification_id: str, owner: str, outcome: DeliveryOutcome, *, retry_timeout: timedelta = RETRY_TIMEOUT
    ) -> str | None:
        """Record a delivery attempt.

        Args:
            notification_id: Id of a notification that this owner has claimed.
            owner: Id of the claiming process.
            outcome: Result of the attempt.
            retry_timeout: Notifications older than this are not retried.

        Returns:
            The new status: ``sent``, ``waiting`` for a retry, or ``undelivered``. If another process has claimed the
            notification since, nothing is recorded and the result is None.
        """
        query = select(notification.c.created_at).where(notification.c.id == notification_id)
        query = leases.lock_held(query, notification, owner)
        with self._database.write() as connection:
            now = self._context.now(connection)
            created_at = connection.execute(query).scalar_one_or_none()
            if created_at is None:
                return None
            retry_after = outcome.retry_after if now - created_at < retry_timeout else None
            status = "sent" if outcome.error is None else "undelivered" if retry_after is None else "waiting"
            values = {
                **leases.FINISHED,
                "due_at": None if status != "waiting" else now + (retry_after or timedelta()),
                "status": status,
                "http_status": outcome.http_status,
                "error": clean_text(outcome.error),
                "settled_at": None if status == "waiting" else now,
            }
            connection.execute(update(notification).where(notification.c.id == notification_id).values(values))
            return status

    def release(self, owner: str) -> int:
        """Release all notifications that this owner has claimed, and return their number."""
        with self._database.write() as connection:
            of_owner = notification.c.lease_owner == owner
            return connection.execute(leases.release(notification, of_owner, self._context.now(connection))).rowcount

    def list_channel_queues(self, *, max_age: timedelta = UNDELIVERED_MAX_AGE) -> list[ChannelQueue]:
        """Return a summary of each channel that has waiting or recently undelivered notifications.

        Args:
            max_age: Count only undelivered notifications that are not older than this.
        """
        columns = notification.c
        queues: dict[str, ChannelQueue] = {}
        with self._database.read() as connection:
            is_undelivered = _is_undelivered(self._context.now(connection) - max_age)
            waiting = select(columns.channel, func.count(), func.min(columns.created_at))
            for channel, count, since in connection.execute(waiting.where(_WAITS).group_by(columns.channel)):
                queues[channel] = ChannelQueue(channel=channel, waiting=count, waiting_since=since)
            undelivered = select(columns.channel, func.count(), func.max(columns.settled_at))
            for channel, count, at in connection.execute(undelivered.where(is_undelivered).group_by(columns.channel)):
                queue = queues.get(channel, ChannelQueue(channel=channel))
                queues[channel] = replace(queue, undelivered=count, last_undelivered_at=at)
            for channel, queue in queues.items():
                error = select(columns.error).where(columns.channel == channel).limit(1)
                retry = error.where(_WAITS, columns.error.is_not(None)).order_by(columns.created_at)
                last = error.where(is_undelivered).order_by(columns.settled_at.desc())
                queues[channel] = replace(
                    queue,
                    retry_error=connection.execute(retry).scalar_one_or_none(),
                    last_undelivered_error=connection.execute(last).scalar_one_or_none(),
                )
        return [queue for _, queue in sorted(queues.items())]

    def search(
        self,
        *,
        status: str | None = None,
        channel: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
    ) -> list[NotificationRecord]:
        """Return notifications with ``since <= created_at < until``, newest first.

        Args:
            status: Only notifications with this status: ``waiting``, ``sent`` or ``undelivered``.
            channel: Only notifications to this channel.
            since: Start of the window.
            until: End of the window.
            limit: Maximum number of notifications to return.
        """
        columns = notification.c
        query = select(notification).order_by(columns.created_at.desc(), columns.id).limit(limit)
        if status is not None:
            query = query.where(columns.status == status)
        if channel is not None:
            query = query.where(columns.channel == channel)
        if since is not None:
            query = query.where(columns.created_at >= since)
        if until is not None:
            query = query.where(columns.created_at < until)
        with self._database.read() as connection:
            return [
                NotificationRecord(
                    notification=_notification_of(row, row["attempt"]),
                    status=row["status"],
                    http_status=row["http_status"],
                    error=row["error"],
                    settled_at=row["settled_at"],
                )
                for row in connection.execute(query).mappings()
            ]

    def resend(
        self, *, channel: str | None = None, ids: Collection[str] = (), max_age: timedelta = UNDELIVERED_MAX_AGE
    ) -> int:
        """Queue undelivered notifications again, in their original order.

        A notification stays undelivered if a later notification about the same alerts has been sent to its channel, or
        their resolution waits to be sent. Otherwise, a resolved alert would be reported as firing again.

        Args:
            channel: Only notifications to this channel.
            ids: Ids of notifications to resend, regardless of their age.
            max_age: Without ``ids``, resend the notifications that are not older than this.

        Returns:
            The number of queued notifications.
        """
        columns = notification.c
        wanted = select(columns.id, columns.channel, columns.created_at, columns.payload).order_by(columns.created_at)
        if channel is not None:
            wanted = wanted.where(columns.channel == channel)
        with self._database.write() as connection:
            now = self._context.now(connection)
            if ids:
                wanted = wanted.where(_is_undelivered(), columns.id.in_(sorted(ids)))
            else:
                wanted = wanted.where(_is_undelivered(now - max_age))
            rows = connection.execute(wanted).mappings().all()
            if not rows:
                return 0
            query = select(columns.channel, columns.status, columns.created_at, columns.payload)
            query = query.where(columns.created_at > rows[0]["created_at"], columns.status.in_(["sent", "waiting"]))
            last_sent = dict(
                sorted(
                    ((row["channel"], key), row["created_at"])
                    for row in connection.execute(query).mappings()
                    for key in _alert_keys(row, resolved_only=row["status"] == "waiting")
                )
            )
            resent = 0
            for row in rows:
                created_at = row["created_at"]
                if all(last_sent.get((row["channel"], key), created_at) > created_at for key in _alert_keys(row)):
                    continue
                # Distinct creation times preserve the original order.
                due_at = now + timedelta(microseconds=resent)
                values = {
                    "status": "waiting",
                    "attempt": 0,
                    "due_at": due_at,
                    "created_at": due_at,
                    "settled_at": None,
                }
                statement = update(notification).where(columns.id == row["id"], _is_undelivered())
                resent += connection.execute(statement.values(values)).rowcount
            return resent


def _alert_keys(row: RowMapping, *, resolved_only: bool = False) -> set[str]:
    """Return the keys of the alerts, or of the resolved alerts, in a notification's payload."""
    alerts = row["payload"]["alerts"]
    return {str(alert["key"]) for alert in alerts if alert["state"] == "resolved" or not resolved_only}


def _is_undelivered(since: datetime | None = None) -> ColumnElement[bool]:
    is_undelivered = notification.c.status == "undelivered"
    return is_undelivered if since is None else is_undelivered & (notification.c.created_at >= since)


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
