"""The part of a store in which notifications wait for their channels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, func, insert, select, update

from germane.alert import Alert, Notification
from germane.storage.db.component import Part
from germane.storage.db.sanitize import clean, tidy
from germane.storage.db.tables import notification

AHEAD: Final = timedelta(hours=2)
"""Nothing waits for longer: what is due later than that was dated by a clock that has been set back since."""
LOOKED_AT: Final = 200
"""Rows of one channel that are looked at for one that is due."""
_WAITS = notification.c.next_attempt_at.is_not(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one try."""

    http_status: int | None = None
    error: str | None = None
    """What went wrong, without secrets; None of one that went well."""
    again: timedelta | None = None
    """After what time it is tried again; None of one that is never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What one channel has before it, and what it did not take."""

    channel: str
    waiting: int = 0
    since: datetime | None = None
    """When the oldest that waits was written; UTC."""
    failing: str | None = None
    """What went wrong with the oldest that waits and was tried."""
    dead: int = 0
    """Notifications that are tried no more."""
    died_at: datetime | None = None
    error: str | None = None
    """Of the last that died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A notification, and how far it has come."""

    notification: Notification
    status: Literal["waiting", "sent", "dead"]
    http_status: int | None
    error: str | None
    settled_at: datetime | None
    """UTC."""


def add(connection: Connection, notifications: Iterable[Notification], now: datetime) -> None:
    """Write what is to be told, in the transaction of what it tells."""
    rows = [
        {
            "id": one.id,
            "channel": one.channel,
            "event_ids": list(one.event_ids),
            "payload": tidy({"what": one.what, "alerts": [alert.as_dict() for alert in one.alerts]}),
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


def due(connection: Connection, channels: Collection[str], now: datetime) -> set[str]:
    """Return those of the channels for which something may be due."""
    wanted = select(notification.c.channel).distinct()
    rows = connection.execute(wanted.where(_WAITS, _is_due(now), notification.c.channel.in_(sorted(channels))))
    return set(rows.scalars())


def take(
    connection: Connection, channel: str, owner: str, lease: timedelta, patience: timedelta, now: datetime
) -> Notification | None:
    """Take the oldest that is due, for the lease's time.

    What is about an alert of which something earlier waits has to wait too: nobody hears of the end of an alert before
    its beginning. What was due for all of the patience, and nobody could try it, is dead: it is no news any more.
    """
    query = select(notification).where(notification.c.channel == channel, _WAITS)
    rows = connection.execute(query.order_by(notification.c.created_at, notification.c.id).limit(LOOKED_AT)).mappings()
    held: set[str] = set()
    for row in rows.all():
        keys = _keys(row)
        is_due = row["next_attempt_at"] <= now or row["next_attempt_at"] > now + AHEAD
        if not is_due or not held.isdisjoint(keys):
            held |= keys
        elif now - row["next_attempt_at"] < patience:
            return _taken(connection, row, owner, now + lease)
        else:
            _bury(connection, row, now)
    return None


def keep(connection: Connection, notification_id: str, owner: str, lease: timedelta, now: datetime) -> bool:
    """Renew the lease of one that is still this owner's."""
    statement = update(notification).where(*_held(notification_id, owner)).values(next_attempt_at=now + lease)
    return connection.execute(statement).rowcount == 1


def settle(
    connection: Connection, notification_id: str, owner: str, outcome: Outcome, patience: timedelta, now: datetime
) -> str | None:
    """Note what became of a try; return the status that it has then, None where it is another's by now."""
    written = select(notification.c.created_at).where(*_held(notification_id, owner)).with_for_update()
    created_at = connection.execute(written).scalar_one_or_none()
    if created_at is None:
        return None
    status = _status(outcome, now - created_at < patience)
    values = {
        "status": status,
        "next_attempt_at": None if status != "waiting" else now + (outcome.again or timedelta()),
        "lease_owner": None,
        "http_status": outcome.http_status,
        "error": clean(outcome.error),
        "settled_at": None if status == "waiting" else now,
    }
    connection.execute(update(notification).where(notification.c.id == notification_id).values(values))
    return status


def release(connection: Connection, owner: str, now: datetime) -> int:
    """Hand back all that this owner has; return how many."""
    statement = update(notification).where(_WAITS, notification.c.lease_owner == owner)
    return connection.execute(statement.values(next_attempt_at=now, lease_owner=None)).rowcount


def lanes(connection: Connection, dead_since: datetime) -> list[Lane]:
    """Return per channel what waits, and what died since then, where there is any of it."""
    waiting = connection.execute(
        select(notification.c.channel, func.count().label("n"), func.min(notification.c.created_at).label("since"))
        .where(_WAITS)
        .group_by(notification.c.channel)
    ).all()
    died = connection.execute(
        select(notification.c.channel, func.count().label("n"), func.max(notification.c.settled_at).label("at"))
        .where(_died(dead_since))
        .group_by(notification.c.channel)
    ).all()
    found = {row.channel: Lane(channel=row.channel, waiting=row.n, since=row.since) for row in waiting}
    for row in died:
        lane = found.get(row.channel, Lane(channel=row.channel))
        found[row.channel] = replace(lane, dead=row.n, died_at=row.at)
    return [_with_errors(connection, lane, dead_since) for _, lane in sorted(found.items())]


def told(
    connection: Connection, window: tuple[datetime | None, datetime | None], limit: int, **equal: str | None
) -> list[Posted]:
    """Return notifications written within a window, the newest first."""
    columns = notification.c
    query = select(notification).order_by(columns.created_at.desc(), columns.id).limit(limit)
    query = query.where(*(columns[name] == value for name, value in equal.items() if value is not None))
    since, until = window
    if since is not None:
        query = query.where(columns.created_at >= since)
    if until is not None:
        query = query.where(columns.created_at < until)
    return [_posted_of(row) for row in connection.execute(query).mappings()]


def resend(
    connection: Connection, channel: str | None, ids: Collection[str], dead_since: datetime, now: datetime
) -> int:
    """Have what died since then, or has one of the ids, tried again, with all its patience; return how many.

    Not what a later notification has overtaken: an incident that is over would begin again, and never end.
    """
    columns = notification.c
    query = select(columns.id, columns.channel, columns.created_at, columns.payload).order_by(columns.created_at)
    query = query.where(_is_dead() & columns.id.in_(sorted(ids)) if ids else _died(dead_since))
    if channel is not None:
        query = query.where(columns.channel == channel)
    rows = connection.execute(query).mappings().all()
    told = _last_told(connection, rows[0]["created_at"]) if rows else {}
    again = [row["id"] for row in rows if not _is_overtaken(row, told)]
    return sum(_revive(connection, id_, now + timedelta(microseconds=place)) for place, id_ in enumerate(again))


def _last_told(connection: Connection, since: datetime) -> dict[tuple[str, str], datetime]:
    """Return, by channel and alert key, when the last notification that went out was written."""
    columns = notification.c
    query = select(columns.channel, columns.created_at, columns.payload)
    rows = connection.execute(query.where(columns.status == "sent", columns.created_at > since)).mappings()
    news = sorted(((row["channel"], key), row["created_at"]) for row in rows for key in _keys(row))
    return dict(news)


def _is_overtaken(row: RowMapping, told: Mapping[tuple[str, str], datetime]) -> bool:
    written = row["created_at"]
    return all(told.get((row["channel"], key), written) > written for key in _keys(row))


def _revive(connection: Connection, id_: str, moment: datetime) -> int:
    """Have it wait again, in the order of the moments; return 1, or 0 where it was faster."""
    again = {"status": "waiting", "attempt": 0, "next_attempt_at": moment, "created_at": moment, "settled_at": None}
    statement = update(notification).where(notification.c.id == id_, _is_dead())
    return connection.execute(statement.values(again)).rowcount


def _taken(connection: Connection, row: RowMapping, owner: str, until: datetime) -> Notification | None:
    """Take it unless somebody has done so since it was read."""
    columns = notification.c
    values = {"lease_owner": owner, "next_attempt_at": until, "attempt": row["attempt"] + 1}
    statement = update(notification).where(columns.id == row["id"], _unchanged(row)).values(values)
    if connection.execute(statement).rowcount != 1:
        return None
    return _notification_of(row, row["attempt"] + 1)


def _bury(connection: Connection, row: RowMapping, now: datetime) -> None:
    """Give up what has waited for too long, unless somebody has taken it since it was read."""
    columns = notification.c
    error = row["error"] or "nobody could try it in time"
    values = {"status": "dead", "next_attempt_at": None, "lease_owner": None, "error": error, "settled_at": now}
    connection.execute(update(notification).where(columns.id == row["id"], _unchanged(row)).values(values))


def _unchanged(row: RowMapping) -> ColumnElement[bool]:
    columns = notification.c
    return and_(columns.attempt == row["attempt"], columns.next_attempt_at == row["next_attempt_at"])


def _keys(row: RowMapping) -> set[str]:
    """Return the keys of the alerts that it is about."""
    return {str(alert["key"]) for alert in row["payload"]["alerts"]}


def _status(outcome: Outcome, patient: bool) -> Literal["waiting", "sent", "dead"]:  # noqa: FBT001 - one of two facts
    if outcome.error is None:
        return "sent"
    return "waiting" if outcome.again is not None and patient else "dead"


def _is_due(now: datetime) -> ColumnElement[bool]:
    when = notification.c.next_attempt_at
    return (when <= now) | (when > now + AHEAD)


def _is_dead() -> ColumnElement[bool]:
    return notification.c.status == "dead"


def _died(since: datetime) -> ColumnElement[bool]:
    return _is_dead() & (notification.c.created_at >= since)


def _held(notification_id: str, owner: str) -> tuple[Any, ...]:
    columns = notification.c
    return columns.id == notification_id, columns.lease_owner == owner, columns.status == "waiting"


def _with_errors(connection: Connection, lane: Lane, dead_since: datetime) -> Lane:
    columns = notification.c
    mine = select(columns.error).where(columns.channel == lane.channel).limit(1)
    failing = mine.where(_WAITS, columns.error.is_not(None)).order_by(columns.created_at)
    died = mine.where(_died(dead_since)).order_by(columns.settled_at.desc())
    return replace(
        lane,
        failing=connection.execute(failing).scalar_one_or_none(),
        error=connection.execute(died).scalar_one_or_none(),
    )


def _notification_of(row: RowMapping, attempt: int) -> Notification:
    payload = row["payload"]
    return Notification(
        id=row["id"],
        channel=row["channel"],
        idempotency_key=row["idempotency_key"],
        what=payload["what"],
        alerts=tuple(map(Alert.read, payload["alerts"])),
        event_ids=tuple(row["event_ids"]),
        created_at=row["created_at"],
        attempt=attempt,
    )


def _posted_of(row: RowMapping) -> Posted:
    return Posted(
        notification=_notification_of(row, row["attempt"]),
        status=row["status"],
        http_status=row["http_status"],
        error=row["error"],
        settled_at=row["settled_at"],
    )


PATIENCE: Final = timedelta(days=1)
"""How long a notification that nobody takes is tried."""
DEAD_FOR: Final = timedelta(days=7)
"""How long those are told that died."""


class Outbox(Part):
    """Notifications on their way. Any number of processes send them; moments are by the clock that all share."""

    def due_channels(self, channels: Collection[str]) -> set[str]:
        """Return those of the channels for which something may be due. Only reads."""
        with self._database.read() as connection:
            return due(connection, channels, self._moment(connection))

    def take_notification(
        self, channel: str, owner: str, *, lease: timedelta, patience: timedelta = PATIENCE
    ) -> Notification | None:
        """Take the oldest notification of a channel that is due; None where there is none, or another was faster.

        What is about an alert of which something earlier waits is not due. What has been due for too long, since no
        process could try it, is dead then: it would tell of what may long be over.

        Args:
            channel: Its name.
            owner: Whose it is then.
            lease: For how long, unless :meth:`keep_notification` renews it. Then others may take it.
            patience: How long it may have been due.
        """
        with self._database.write() as connection:
            return take(connection, channel, owner, lease, patience, self._moment(connection))

    def keep_notification(self, notification_id: str, owner: str, *, lease: timedelta) -> bool:
        """Renew a lease; False where it is another's by now."""
        with self._database.write() as connection:
            return keep(connection, notification_id, owner, lease, self._moment(connection))

    def settle_notification(
        self, notification_id: str, owner: str, outcome: Outcome, *, patience: timedelta = PATIENCE
    ) -> str | None:
        """Note what became of a try: ``sent``, ``waiting`` for the next one, or ``dead``.

        Args:
            notification_id: Of one that this owner has taken.
            owner: Who took it.
            outcome: What became of it.
            patience: After this time since it was written it is tried no more.

        Returns:
            The status that it has now; None, and nothing is noted, where it is another's by now.
        """
        with self._database.write() as connection:
            moment = self._moment(connection)
            return settle(connection, notification_id, owner, outcome, patience, moment)

    def release_notifications(self, owner: str) -> int:
        """Hand back what this owner has taken and not settled; return how many."""
        with self._database.write() as connection:
            return release(connection, owner, self._moment(connection))

    def lanes(self, *, dead_for: timedelta = DEAD_FOR) -> list[Lane]:
        """Return, per channel, what waits and what died within this time, where there is any of it."""
        with self._database.read() as connection:
            return lanes(connection, self._moment(connection) - dead_for)

    def notifications(
        self,
        *,
        status: str | None = None,
        channel: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
    ) -> list[Posted]:
        """Return notifications, of one status (``waiting``, ``sent``, ``dead``) or channel, the newest first.

        With ``since`` and ``until`` those that were written since then and before then.
        """
        with self._database.read() as connection:
            return told(connection, (since, until), limit, status=status, channel=channel)

    def resend(self, *, channel: str | None = None, ids: Collection[str] = (), dead_for: timedelta = DEAD_FOR) -> int:
        """Have notifications tried again, in their order: by their ids, or those that died within this time.

        What a later notification of the same alerts and channel has overtaken stays dead.

        Args:
            channel: Only of this one.
            ids: Of dead ones, however old.
            dead_for: How old others may be.

        Returns:
            How many these are.
        """
        with self._database.write() as connection:
            moment = self._moment(connection)
            return resend(connection, channel, ids, moment - dead_for, moment)
