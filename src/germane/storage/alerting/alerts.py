"""Alerts, their events, and silences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, Protocol

from sqlalchemy import Connection, RowMapping, delete, insert, or_, select, text, update

from germane.alert import Alert, AlertChange, AlertEvent, AlertState, Notification, Severity, Silence
from germane.storage.alerting import notifications
from germane.storage.db import tables
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.mappers import RecordMapper, batched
from germane.storage.db.sanitize import clean_json
from germane.storage.db.upsert import insert_into
from germane.storage.workers import lock_lease

_OPEN = text("state <> 'resolved'")
"""Spelled exactly as in the partial index. With a bound parameter, the databases would not use the index."""
_VERSION_COLUMNS = ("state", "evaluated_at", "notified_at", "acknowledged_at")
"""Columns that serve as a version check. An alert is updated only if they have not changed since it was read."""
_ALERTS: Final = RecordMapper(tables.alert, Alert)
_BODY: Final = tuple(field.name for field in fields(Alert) if field.name not in _ALERTS.columns)
"""Alert fields that are stored as JSON, together in one column."""
_EVENTS: Final = RecordMapper(tables.alert_event, AlertEvent)
_SILENCES: Final = RecordMapper(tables.silence, Silence)


class ConditionalWrite(Protocol):
    """A value to write in the same transaction, unless another process has changed it since it was read."""

    def write(self, connection: Connection, now: datetime) -> bool:
        """Write the value. Return False if another process has changed it; the caller then rolls back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTransaction:
    """The result of one evaluation of the alert rules. It is written completely or not at all."""

    holder: tuple[str, str] | None = None
    """The lease name and its required owner; None for changes made by people."""
    detector_states: Sequence[ConditionalWrite] = ()
    """New detector states."""
    processed_score_ids: Sequence[int] = ()
    """Queue ids of the scores that the detectors have processed. The transaction deletes them from the queue."""
    changes: Sequence[AlertChange] = ()
    notifications: Sequence[Notification] = ()


class _ConcurrentUpdate(Exception):
    """Raised to roll back the transaction when another process has changed the data that was evaluated."""


class AlertReader(StoreComponent):
    """Reads alerts: ``germane.Store(url).alerts``."""

    def list_open(self) -> list[Alert]:
        """Return the open alerts, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(tables.alert).where(_OPEN)).mappings().all()
        # Sort in Python: with ORDER BY, SQLite would scan all alerts by start time instead of the few open ones.
        return sorted(map(_alert_of, rows), key=lambda alert: (alert.starts_at, alert.id))

    def search(
        self,
        *,
        since: datetime | None = None,
        state: AlertState | None = None,
        rule: str | None = None,
        severity: Severity | None = None,
        service: str | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int = 100,
    ) -> list[Alert]:
        """Return alerts, newest first.

        Args:
            since: Only alerts that started at this time or later.
            state: Only alerts in this state.
            rule: Only alerts raised by the rule with this name.
            severity: Only alerts with this severity.
            service: Only alerts for this service.
            after: Start time and id of the last alert of the previous page.
            limit: Maximum number of alerts to return.
        """
        columns = tables.alert.c
        query = select(tables.alert).order_by(columns.starts_at.desc(), columns.id).limit(limit)
        query = query.where(
            *within(columns.starts_at, since, None), *matching(tables.alert, state=state, rule=rule, severity=severity)
        )
        if service is not None:
            query = query.where(columns.labels["service"].as_string() == service)
        if after is not None:
            at, id_ = after
            query = query.where(columns.starts_at <= at, or_(columns.starts_at < at, columns.id > id_))
        with self._database.read() as connection:
            return [_alert_of(row) for row in connection.execute(query).mappings()]


class AlertStore(AlertReader):
    """Extends :class:`AlertReader` with writes, events and silences.

    Only one process at a time evaluates rules: the holder of the evaluator's lease.
    """

    def commit(self, step: AlertTransaction) -> bool:
        """Write one evaluation in one transaction. Return False, and write nothing, if its data has changed since it
        was read.
        """
        try:
            with self._database.write() as connection:
                _write_transaction(connection, step, self._context.now(connection))
        except _ConcurrentUpdate:
            return False
        return True

    def get(self, alert_id: str) -> Alert | None:
        """Return the alert with this id, or None if the id is unknown."""
        query = select(tables.alert).where(tables.alert.c.id == alert_id)
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else _alert_of(row)

    def list_events(self, alert_id: str) -> list[AlertEvent]:
        """Return the events of an alert, oldest first."""
        columns = tables.alert_event.c
        query = select(tables.alert_event).where(columns.alert_id == alert_id).order_by(columns.at, columns.id)
        with self._database.read() as connection:
            return [_EVENTS.decode(row) for row in connection.execute(query).mappings()]

    def list_silences(self) -> list[Silence]:
        """Return current and future silences, sorted by end time."""
        columns = tables.silence.c
        query = select(tables.silence).order_by(columns.ends_at, columns.id)
        with self._database.read() as connection:
            rows = connection.execute(query.where(columns.ends_at > self._context.now(connection))).mappings()
            return [_SILENCES.decode(row) for row in rows]

    def add_silence(self, silence: Silence) -> None:
        """Store a silence, which suppresses notifications about matching alerts from ``starts_at`` to ``ends_at``."""
        with self._database.write() as connection:
            connection.execute(insert(tables.silence), _SILENCES.values(silence))

    def end_silence(self, silence_id: str) -> bool:
        """End a silence now. Return False if no current or future silence has this id."""
        columns = tables.silence.c
        with self._database.write() as connection:
            now = self._context.now(connection)
            ended = update(tables.silence).where(columns.id == silence_id, columns.ends_at > now).values(ends_at=now)
            return connection.execute(ended).rowcount == 1


def _write_transaction(connection: Connection, step: AlertTransaction, now: datetime) -> None:
    if step.holder is not None and not lock_lease(connection, *step.holder):
        raise _ConcurrentUpdate
    if not all(detector_state.write(connection, now) for detector_state in step.detector_states):
        raise _ConcurrentUpdate
    queue = tables.detector_input
    for ids in batched(sorted(step.processed_score_ids)):
        if connection.execute(delete(queue).where(queue.c.id.in_(ids))).rowcount != len(ids):
            raise _ConcurrentUpdate
    if not all(_write_alert(connection, change) for change in step.changes):
        raise _ConcurrentUpdate
    events = [change.event for change in step.changes if change.event is not None]
    if events:
        connection.execute(insert(tables.alert_event), [_EVENTS.values(event) for event in events])
    notifications.insert_notifications(connection, step.notifications, now)


def _write_alert(connection: Connection, change: AlertChange) -> bool:
    """Insert or update an alert. Return False if another process has opened or changed it since it was read."""
    alert, before = change.alert, change.before
    plain = alert.as_dict()
    values = _ALERTS.values(alert) | {"body": clean_json({name: plain[name] for name in _BODY})}
    if before is None:
        added = insert_into(tables.alert, connection.dialect.name).values(values).on_conflict_do_nothing()
        return connection.execute(added.returning(tables.alert.c.id)).first() is not None
    as_read = (tables.alert.c[name].is_not_distinct_from(getattr(before, name)) for name in _VERSION_COLUMNS)
    changed = update(tables.alert).where(tables.alert.c.id == before.id, _OPEN, *as_read).values(values)
    return connection.execute(changed).rowcount == 1


def _alert_of(row: RowMapping) -> Alert:
    columns = {name: row[name] for name in _ALERTS.columns}
    times = {name: value.isoformat() for name, value in columns.items() if isinstance(value, datetime)}
    return Alert.from_dict({**columns, **times, **row["body"]})
