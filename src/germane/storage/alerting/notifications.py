"""Notifications in the outbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, and_, select, update

from germane.alert import Alert, Notification
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.sanitize import clean_json
from germane.storage.db.tables import delivery
from germane.storage.outbox import UNDELIVERED_MAX_AGE, Delivery, DeliveryStatus, TargetQueue, queue_items

NOTIFICATION: Final = "notification"
_IS_NOTIFICATION: Final = delivery.c.kind == NOTIFICATION


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRecord:
    """A notification with its delivery status."""

    notification: Notification
    status: DeliveryStatus
    http_status: int | None
    error: str | None
    settled_at: datetime | None
    """Time at which the notification was sent or became undelivered, in UTC; None while it is waiting."""


def insert_notifications(connection: Connection, notifications: Iterable[Notification], now: datetime) -> None:
    """Queue notifications in the same transaction as the events that they report."""
    for item in notifications:
        payload = {name: getattr(item, name) for name in ("id", "idempotency_key", "type", "event_ids")}
        payload["alerts"] = [alert.as_dict() for alert in item.alerts]
        # An alert is reported as firing before it is reported as resolved.
        keys = sorted({alert.key for alert in item.alerts})
        row = {"payload": clean_json(payload), "order_keys": clean_json(keys), "created_at": item.created_at}
        queue_items(connection, channel_queue(item.channel), [{**row, "due_at": now}])


def channel_queue(channel: str) -> TargetQueue:
    """Return the queue of the notifications to a channel."""
    return TargetQueue(NOTIFICATION, channel)


def parse_notification(channel: str, item: Delivery | Row[Any]) -> Notification:
    """Return the notification that an item for a channel contains."""
    content = dict(item.payload)
    lists = {"alerts": tuple(map(Alert.from_dict, content["alerts"])), "event_ids": tuple(content["event_ids"])}
    return Notification(**content | lists, channel=channel, created_at=item.created_at, attempt=item.attempt)


class NotificationStore(StoreComponent):
    """The notifications in the outbox, waiting, sent and undelivered ones."""

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

        ``status`` is ``waiting``, ``sent`` or ``undelivered``.
        """
        columns = delivery.c
        query = select(delivery).where(_IS_NOTIFICATION).order_by(columns.created_at.desc(), columns.id).limit(limit)
        query = query.where(
            *within(columns.created_at, since, until), *matching(delivery, status=status, target=channel)
        )
        with self._database.read() as connection:
            return [
                NotificationRecord(
                    notification=parse_notification(row.target, row),
                    status=row.status,
                    http_status=row.http_status,
                    error=row.error,
                    settled_at=row.settled_at,
                )
                for row in connection.execute(query)
            ]

    def resend(self, *, channel: str | None = None, ids: Collection[str] = ()) -> int:
        """Queue undelivered notifications again, in their original order.

        A notification stays undelivered if a later notification about the same alerts has been sent to its channel, or
        their resolution waits to be sent. Otherwise, a resolved alert would be reported as firing again.

        Args:
            channel: Only notifications to this channel.
            ids: Ids of notifications to resend, regardless of their age. By default, all of the last 7 days.

        Returns:
            The number of queued notifications.
        """
        columns = delivery.c
        wanted = select(columns.id, columns.target, columns.created_at, columns.payload, columns.order_keys)
        wanted = wanted.where(*matching(delivery, target=channel)).order_by(columns.created_at, columns.id)
        with self._database.write() as connection:
            now = self._context.now(connection)
            rows = connection.execute(wanted.where(_is_undelivered(None if ids else now - UNDELIVERED_MAX_AGE))).all()
            rows = [row for row in rows if not ids or row.payload["id"] in ids]
            if not rows:
                return 0
            query = select(columns.target, columns.status, columns.created_at, columns.payload)
            query = query.where(_IS_NOTIFICATION, columns.status.in_(["sent", "waiting"]))
            later = connection.execute(query.where(columns.created_at > rows[0].created_at))
            last_sent: dict[tuple[str, str], datetime] = {}
            for sent in later:
                for reported in sent.payload["alerts"]:
                    if sent.status == "sent" or reported["state"] == "resolved":
                        key = (sent.target, reported["key"])
                        last_sent[key] = max(sent.created_at, last_sent.get(key, sent.created_at))
            resent = 0
            for row in rows:
                at = row.created_at
                is_superseded = all(last_sent.get((row.target, key), at) > at for key in row.order_keys)
                if is_superseded:
                    continue
                # Distinct creation times preserve the original order.
                due_at = now + timedelta(microseconds=resent)
                values = {"status": "waiting", "attempt": 0, "due_at": due_at, "created_at": due_at, "settled_at": None}
                statement = update(delivery).where(columns.id == row.id, _is_undelivered())
                resent += connection.execute(statement.values(values)).rowcount
            return resent


def _is_undelivered(since: datetime | None = None) -> ColumnElement[bool]:
    is_undelivered = and_(_IS_NOTIFICATION, delivery.c.status == "undelivered")
    return is_undelivered if since is None else and_(is_undelivered, delivery.c.created_at >= since)
