"""The part of a store in which alerts stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import Connection, RowMapping, delete, insert, or_, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.alert import Alert, AlertState, Change, Event, Notification, Severity, Silence
from germane.storage.alerting import notifications, scoring_flow
from germane.storage.alerting.scoring_flow import Failing, Flow
from germane.storage.cluster import leases
from germane.storage.db import tables
from germane.storage.db.component import Part
from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean, tidy
from germane.storage.stats.models import RouteMean
from germane.storage.trends import attribute_means

_OPEN = text("state <> 'resolved'")
"""As the index has it: a parameter in its place would hide it."""
_BODY = ("current", "baseline", "shifts", "exchange_ids", "details")
"""What is kept as JSON."""
_READ_AS = ("state", "evaluated_at", "notified_at", "acknowledged_at")
"""What is no longer as it was read where anybody has written since."""
_COLUMNS = (
    "id", "key", "rule", "kind", "labels", "state", "severity", "cause", "message", "fingerprint", "value", "threshold",
    "window", "evidence", "onset", "starts_at", "fired_at", "resolved_at", "evaluated_at", "notified_at",
    "acknowledged_at", "acknowledged_by", "resolve_reason",
)  # fmt: skip


class Written(Protocol):
    """Something of another concern that is written in the same transaction, or not at all."""

    def write(self, connection: Connection, now: datetime) -> bool:
        """Write it; False when somebody else was faster, and nothing may be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """One step of what watches: all of it is written, or nothing."""

    holder: tuple[str, str] | None = None
    """The office and who must hold it; None of what a person does."""
    progress: Sequence[Written] = ()
    """How far the detectors have come."""
    consumed: Sequence[int] = ()
    """Ids of the arrivals that they have seen: these go."""
    changes: Sequence[Change] = ()
    notifications: Sequence[Notification] = ()


class Overtaken(Exception):
    """Somebody else has written meanwhile what this step goes by. It ends a transaction, and goes no further."""


def advance(connection: Connection, step: Advance, now: datetime) -> None:
    """Write a step.

    Raises:
        Overtaken: another process holds the office, or has moved on what this step goes by.
    """
    if step.holder is not None and not leases.holds(connection, *step.holder):
        raise Overtaken
    if not all(one.write(connection, now) for one in step.progress):
        raise Overtaken
    _consume(connection, step.consumed)
    if not all(_write(connection, change) for change in step.changes):
        raise Overtaken
    _append(connection, [change.event for change in step.changes if change.event is not None])
    notifications.add(connection, step.notifications, now)


def open_alerts(connection: Connection) -> list[Alert]:
    """Return the alerts that are not over, the oldest first."""
    # Sorted here: asked to sort, SQLite goes through all alerts by their beginning instead of the few that are open.
    rows = connection.execute(select(tables.alert).where(_OPEN)).mappings()
    return sorted(map(_alert_of, rows), key=lambda alert: (alert.starts_at, alert.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenAlerts:
    """Which alerts are wanted: those that fit all that is given."""

    since: datetime | None = None
    """When they began, or later."""
    state: AlertState | None = None
    rule: str | None = None
    severity: Severity | None = None
    service: str | None = None
    after: tuple[datetime, str] | None = None
    """Beginning and id of the last one of the page before."""


def alerts(connection: Connection, chosen: ChosenAlerts, limit: int) -> list[Alert]:
    """Return alerts, the newest first."""
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


def alert(connection: Connection, alert_id: str) -> Alert | None:
    """Return one alert; None where there is none of that id."""
    row = connection.execute(select(tables.alert).where(tables.alert.c.id == alert_id)).mappings().first()
    return None if row is None else _alert_of(row)


def events(connection: Connection, alert_id: str) -> list[Event]:
    """Return what happened to an alert, the first first."""
    columns = tables.alert_event.c
    query = select(tables.alert_event).where(columns.alert_id == alert_id).order_by(columns.at, columns.id)
    return [Event(**row) for row in connection.execute(query).mappings()]


def silences(connection: Connection, ending_after: datetime) -> list[Silence]:
    """Return what is not over by then, the one that ends first first."""
    columns = tables.silence.c
    query = select(tables.silence).where(columns.ends_at > ending_after).order_by(columns.ends_at, columns.id)
    return [Silence(**row) for row in connection.execute(query).mappings()]


def add_silence(connection: Connection, silence: Silence) -> None:
    """Write a silence."""
    values = {
        "id": silence.id,
        "matchers": tidy(silence.matchers),
        "starts_at": silence.starts_at,
        "ends_at": silence.ends_at,
        "created_by": clean(silence.created_by),
        "comment": clean(silence.comment),
    }
    connection.execute(insert(tables.silence), values)


def end_silence(connection: Connection, silence_id: str, now: datetime) -> bool:
    """End a silence now; False where there is none that lasts."""
    columns = tables.silence.c
    ended = update(tables.silence).where(columns.id == silence_id, columns.ends_at > now).values(ends_at=now)
    return connection.execute(ended).rowcount == 1


def _consume(connection: Connection, ids: Sequence[int]) -> None:
    for some in batched(sorted(ids)):
        gone = connection.execute(delete(tables.arrival).where(tables.arrival.c.id.in_(some))).rowcount
        if gone != len(some):
            raise Overtaken


def _write(connection: Connection, change: Change) -> bool:
    """Insert an alert that begins, or move on one that is as it was read; False where it is otherwise by now."""
    values, before = _values(change.alert), change.before
    if before is None:
        return _insert(connection, values)
    as_read = (tables.alert.c[name].is_not_distinct_from(getattr(before, name)) for name in _READ_AS)
    statement = update(tables.alert).where(tables.alert.c.id == before.id, _OPEN, *as_read).values(values)
    return connection.execute(statement).rowcount == 1


def _insert(connection: Connection, values: dict[str, Any]) -> bool:
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(tables.alert).values(values).on_conflict_do_nothing().returning(tables.alert.c.id)
    return connection.execute(statement).first() is not None


def _append(connection: Connection, happened: Sequence[Event]) -> None:
    rows = [
        {
            "id": event.id,
            "alert_id": event.alert_id,
            "at": event.at,
            "what": event.what,
            "before": event.before,
            "after": event.after,
            "detail": tidy(event.detail),
        }
        for event in happened
    ]
    if rows:
        connection.execute(insert(tables.alert_event), rows)


def _values(alert: Alert) -> dict[str, Any]:
    values = {name: getattr(alert, name) for name in _COLUMNS}
    texts = {name: clean(value) for name, value in values.items() if isinstance(value, str)}
    plain = alert.as_dict()
    return values | texts | {"labels": tidy(alert.labels), "body": tidy({name: plain[name] for name in _BODY})}


def _alert_of(row: RowMapping) -> Alert:
    columns = {name: row[name] for name in _COLUMNS}
    moments = {name: value.isoformat() for name, value in columns.items() if isinstance(value, datetime)}
    return Alert.read({**columns, **moments, **row["body"]})


class Watching(Part):
    """Alerts, what happened to them, and silences. One process at a time moves them: the one that holds the office."""

    def advance(self, step: Advance) -> bool:
        """Write detectors, alerts, events and notifications in one transaction.

        Returns:
            False, and nothing is written, when another process holds the office by now, or somebody has changed
            meanwhile what the step goes by: read anew, and look again.
        """
        try:
            with self._database.write() as connection:
                advance(connection, step, self._moment(connection))
        except Overtaken:
            return False
        return True

    def open_alerts(self) -> list[Alert]:
        """Return the alerts that are not over, the oldest first."""
        with self._database.read() as connection:
            return open_alerts(connection)

    def alerts(
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
        """Return alerts that began since then, the newest first.

        Args:
            since: When they began, or later.
            state: Only such.
            rule: Only of this name.
            severity: Only such.
            service: Only of this one.
            after: Beginning and id of the last one of the page before.
            limit: How many at most.
        """
        chosen = ChosenAlerts(since=since, state=state, rule=rule, severity=severity, service=service, after=after)
        with self._database.read() as connection:
            return alerts(connection, chosen, limit)

    def alert(self, alert_id: str) -> Alert | None:
        """Return one alert; None where there is none of that id."""
        with self._database.read() as connection:
            return alert(connection, alert_id)

    def alert_events(self, alert_id: str) -> list[Event]:
        """Return what happened to an alert, the first first."""
        with self._database.read() as connection:
            return events(connection, alert_id)

    def silences(self) -> list[Silence]:
        """Return the silences that last or are still to come, the one that ends first first."""
        with self._database.read() as connection:
            return silences(connection, self._moment(connection))

    def add_silence(self, silence: Silence) -> None:
        """Have nobody told of alerts that match, from ``starts_at`` to ``ends_at``."""
        with self._database.write() as connection:
            add_silence(connection, silence)

    def end_silence(self, silence_id: str) -> bool:
        """End a silence now; False where there is none that lasts."""
        with self._database.write() as connection:
            return end_silence(connection, silence_id, self._moment(connection))

    def means_with(
        self,
        attributes: Mapping[str, str],
        *,
        scorer: str,
        since: datetime | None,
        until: datetime | None = None,
        route: str | None = None,
        service: str | None = None,
    ) -> list[RouteMean]:
        """Return one mean per service, route and fingerprint of the answers whose attributes fit all patterns.

        It reads each score of the window.
        """
        with self._database.read() as connection:
            equal = {"scorer": scorer, "route": route, "service": service}
            return attribute_means.means_with(connection, attributes, since, until, **equal)

    def flows(
        self, *, since: datetime, until: datetime | None = None, takes: Callable[[str], bool] = lambda _: True
    ) -> list[Flow]:
        """Return whether scores keep coming for answers since then, by service and scorer; ``takes`` chooses routes.

        With ``until`` whether they did then.
        """
        with self._database.read() as connection:
            return scoring_flow.flows(connection, since, takes, until)

    def usual_wait(
        self, service: str, scorer: str, *, since: datetime, until: datetime | None = None
    ) -> timedelta | None:
        """Return the time that it takes from one score to the next but once in a hundred times; None if unknown."""
        with self._database.read() as connection:
            return scoring_flow.usual_wait(connection, service, scorer, since, until)

    def failing(self) -> list[Failing]:
        """Return what tasks wait for that were tried in vain and are to be tried again."""
        with self._database.read() as connection:
            return scoring_flow.failing(connection)
