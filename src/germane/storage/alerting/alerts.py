"""Alerts, their events, and silences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import Connection, RowMapping, delete, insert, or_, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.alert import Alert, AlertChange, AlertEvent, AlertState, Notification, Severity, Silence
from germane.storage.alerting import notifications, scoring_flow
from germane.storage.alerting.scoring_flow import FailingTasks, ScoringFlow
from germane.storage.cluster import leases
from germane.storage.db import tables
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean_json, clean_text

_OPEN = text("state <> 'resolved'")
"""Literally as in the partial index: with a bound parameter the databases would not use it."""
_BODY = ("current", "baseline", "shifts", "exchange_ids", "details")
"""Fields of an alert that are stored as JSON."""
_VERSION_COLUMNS = ("state", "evaluated_at", "notified_at", "acknowledged_at")
"""Columns that change with every write: an alert is only updated if they are unchanged since it was read."""
_COLUMNS = (
    "id", "key", "rule", "type", "labels", "state", "severity", "cause", "message", "fingerprint", "value", "threshold",
    "window", "evidence", "onset", "starts_at", "fired_at", "resolved_at", "evaluated_at", "notified_at",
    "acknowledged_at", "acknowledged_by", "resolve_reason",
)  # fmt: skip


class ConditionalWrite(Protocol):
    """A value that is written in the same transaction, unless another process changed it since it was read."""

    def write(self, connection: Connection, now: datetime) -> bool:
        """Write the value; return False if another process changed it, and the transaction must be rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTransaction:
    """The result of an evaluation of alert rules, written completely or not at all."""

    holder: tuple[str, str] | None = None
    """The lease and its required owner; None for changes by people."""
    detector_states: Sequence[ConditionalWrite] = ()
    """New states of the detectors."""
    processed_score_ids: Sequence[int] = ()
    """Ids of the scores that the detectors processed. They are removed from the queue."""
    changes: Sequence[AlertChange] = ()
    notifications: Sequence[Notification] = ()


class ConcurrentUpdate(Exception):
    """Another process changed something that the evaluation was based on. Internal: rolls back the transaction."""


def commit_transaction(connection: Connection, step: AlertTransaction, now: datetime) -> None:
    """Write a transaction.

    Raises:
        ConcurrentUpdate: Another process holds the lease or changed something that the evaluation was based on.
    """
    if step.holder is not None and not leases.lock_lease(connection, *step.holder):
        raise ConcurrentUpdate
    if not all(detector_state.write(connection, now) for detector_state in step.detector_states):
        raise ConcurrentUpdate
    _consume(connection, step.processed_score_ids)
    if not all(_write(connection, change) for change in step.changes):
        raise ConcurrentUpdate
    _append(connection, [change.event for change in step.changes if change.event is not None])
    notifications.insert_notifications(connection, step.notifications, now)


def load_open_alerts(connection: Connection) -> list[Alert]:
    """Return open alerts, oldest first."""
    # Sorted here: with ORDER BY, SQLite would scan all alerts by start time instead of the few open ones.
    rows = connection.execute(select(tables.alert).where(_OPEN)).mappings()
    return sorted(map(_alert_of, rows), key=lambda alert: (alert.starts_at, alert.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertQuery:
    """Conditions on alerts; None selects all."""

    since: datetime | None = None
    """Only alerts that started at this time or later."""
    state: AlertState | None = None
    rule: str | None = None
    severity: Severity | None = None
    service: str | None = None
    after: tuple[datetime, str] | None = None
    """Start time and id of the last alert of the previous page."""


def search_alerts(connection: Connection, chosen: AlertQuery, limit: int) -> list[Alert]:
    """Return alerts, newest first."""
    columns = tables.alert.c
    query = select(tables.alert).order_by(columns.starts_at.desc(), columns.id).limit(limit)
    if chosen.since is not None:
        query = query.where(columns.starts_at >= chosen.since)
    if chosen.after is not None:
        at, id_ = chosen.after
        query = query.where(columns.starts_at <= at, or_(columns.starts_at < at, columns.id > id_))
    equal = {columns.state: chosen.state, columns.rule: chosen.rule, columns.severity: chosen.severity}
    equal |= {columns.labels["service"].as_string(): chosen.service}
    wanted = [column == value for column, value in equal.items() if value is not None]
    return [_alert_of(row) for row in connection.execute(query.where(*wanted)).mappings()]


def load_alert(connection: Connection, alert_id: str) -> Alert | None:
    """Return one alert; None if the id is unknown."""
    row = connection.execute(select(tables.alert).where(tables.alert.c.id == alert_id)).mappings().first()
    return None if row is None else _alert_of(row)


def load_events(connection: Connection, alert_id: str) -> list[AlertEvent]:
    """Return the events of an alert, oldest first."""
    columns = tables.alert_event.c
    query = select(tables.alert_event).where(columns.alert_id == alert_id).order_by(columns.at, columns.id)
    return [AlertEvent(**row) for row in connection.execute(query).mappings()]


def load_silences(connection: Connection, ending_after: datetime) -> list[Silence]:
    """Return silences that end after a time, in the order in which they end."""
    columns = tables.silence.c
    query = select(tables.silence).where(columns.ends_at > ending_after).order_by(columns.ends_at, columns.id)
    return [Silence(**row) for row in connection.execute(query).mappings()]


def add_silence(connection: Connection, silence: Silence) -> None:
    """Write a silence."""
    values = {
        "id": silence.id,
        "matchers": clean_json(silence.matchers),
        "starts_at": silence.starts_at,
        "ends_at": silence.ends_at,
        "created_by": clean_text(silence.created_by),
        "comment": clean_text(silence.comment),
    }
    connection.execute(insert(tables.silence), values)


def end_silence(connection: Connection, silence_id: str, now: datetime) -> bool:
    """End a silence now; return False if there is no such current or future silence."""
    columns = tables.silence.c
    ended = update(tables.silence).where(columns.id == silence_id, columns.ends_at > now).values(ends_at=now)
    return connection.execute(ended).rowcount == 1


def _consume(connection: Connection, ids: Sequence[int]) -> None:
    for some in batched(sorted(ids)):
        gone = connection.execute(delete(tables.detector_input).where(tables.detector_input.c.id.in_(some))).rowcount
        if gone != len(some):
            raise ConcurrentUpdate


def _write(connection: Connection, change: AlertChange) -> bool:
    """Insert a new alert, or update an alert that is unchanged since it was read; return False otherwise."""
    values, before = _values(change.alert), change.before
    if before is None:
        return _insert(connection, values)
    as_read = (tables.alert.c[name].is_not_distinct_from(getattr(before, name)) for name in _VERSION_COLUMNS)
    statement = update(tables.alert).where(tables.alert.c.id == before.id, _OPEN, *as_read).values(values)
    return connection.execute(statement).rowcount == 1


def _insert(connection: Connection, values: dict[str, Any]) -> bool:
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(tables.alert).values(values).on_conflict_do_nothing().returning(tables.alert.c.id)
    return connection.execute(statement).first() is not None


def _append(connection: Connection, happened: Sequence[AlertEvent]) -> None:
    rows = [
        {
            "id": event.id,
            "alert_id": event.alert_id,
            "at": event.at,
            "type": event.type,
            "before": event.before,
            "after": event.after,
            "detail": clean_json(event.detail),
        }
        for event in happened
    ]
    if rows:
        connection.execute(insert(tables.alert_event), rows)


def _values(alert: Alert) -> dict[str, Any]:
    values = {name: getattr(alert, name) for name in _COLUMNS}
    texts = {name: clean_text(value) for name, value in values.items() if isinstance(value, str)}
    plain = alert.as_dict()
    return (
        values | texts | {"labels": clean_json(alert.labels), "body": clean_json({name: plain[name] for name in _BODY})}
    )


def _alert_of(row: RowMapping) -> Alert:
    columns = {name: row[name] for name in _COLUMNS}
    moments = {name: value.isoformat() for name, value in columns.items() if isinstance(value, datetime)}
    return Alert.from_dict({**columns, **moments, **row["body"]})


class AlertReader(StoreComponent):
    """Alerts. ``germane.Store(url).alerts``."""

    def list_open(self) -> list[Alert]:
        """Return open alerts, oldest first."""
        with self._database.read() as connection:
            return load_open_alerts(connection)

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
            rule: Only alerts of the rule with this name.
            severity: Only alerts with this severity.
            service: Only alerts of this service.
            after: Start time and id of the last alert of the previous page.
            limit: Maximum number of alerts.
        """
        chosen = AlertQuery(since=since, state=state, rule=rule, severity=severity, service=service, after=after)
        with self._database.read() as connection:
            return search_alerts(connection, chosen, limit)


class AlertStore(AlertReader):
    """Adds single alerts, their events, silences, and what alert rules evaluate.

    One process at a time evaluates rules: the holder of the evaluator's lease.
    """

    def commit(self, step: AlertTransaction) -> bool:
        """Write detector states, alerts, events and notifications in one transaction.

        Returns:
            False, and nothing is written, if another process holds the lease or has changed something that the
            evaluation was based on. Read again and reevaluate then.
        """
        try:
            with self._database.write() as connection:
                commit_transaction(connection, step, self._context.now(connection))
        except ConcurrentUpdate:
            return False
        return True

    def get(self, alert_id: str) -> Alert | None:
        """Return one alert; None if the id is unknown."""
        with self._database.read() as connection:
            return load_alert(connection, alert_id)

    def list_events(self, alert_id: str) -> list[AlertEvent]:
        """Return the events of an alert, oldest first."""
        with self._database.read() as connection:
            return load_events(connection, alert_id)

    def list_silences(self) -> list[Silence]:
        """Return current and future silences, in the order in which they end."""
        with self._database.read() as connection:
            return load_silences(connection, self._context.now(connection))

    def add_silence(self, silence: Silence) -> None:
        """Suppress notifications of matching alerts from ``starts_at`` to ``ends_at``."""
        with self._database.write() as connection:
            add_silence(connection, silence)

    def end_silence(self, silence_id: str) -> bool:
        """End a silence now; return False if there is no such current or future silence."""
        with self._database.write() as connection:
            return end_silence(connection, silence_id, self._context.now(connection))

    def list_flows(
        self, *, since: datetime, until: datetime | None = None, includes_route: Callable[[str], bool] = lambda _: True
    ) -> list[ScoringFlow]:
        """Return by service and scorer whether answers since then were scored.

        Args:
            since: Start of the window.
            until: The state at this time; by default now.
            takes: Selects routes by name.
        """
        with self._database.read() as connection:
            return scoring_flow.load_flows(connection, since, includes_route, until)

    def typical_score_delay(
        self, service: str, scorer: str, *, since: datetime, until: datetime | None = None
    ) -> timedelta | None:
        """Return the 99th percentile of the time from one score to the next; None without enough scores."""
        with self._database.read() as connection:
            return scoring_flow.typical_score_delay(connection, service, scorer, since, until)

    def list_failing(self) -> list[FailingTasks]:
        """Return the tasks that failed and will be retried, by service, route, scorer and reason."""
        with self._database.read() as connection:
            return scoring_flow.list_failing(connection)
