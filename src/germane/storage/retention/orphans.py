"""Old rows that belong to no exchange of their own: comments, labels, counts, marks, processes, days of a budget."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, delete, func, select, update

from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import DECLARED
from germane.storage.db.tables import (
    alert,
    alert_event,
    budget,
    exchange,
    feedback,
    job,
    mark,
    notification,
    score,
    silence,
    tally,
    worker,
)
from germane.storage.retention.expire import Removed

ROWS = 500
"""Rows in one transaction."""
FORGOTTEN = timedelta(days=1)
"""After which a process that was not seen again is not listed any more."""


def erase_comments(connection: Connection, before: datetime) -> Removed:
    """Erase some comments given before then: those whose exchange came too late, or never."""
    old = select(feedback.c.id).where(feedback.c.comment.is_not(None), feedback.c.created_at < before)
    some = old.order_by(feedback.c.created_at).limit(ROWS)
    return Removed(comments=connection.execute(_WITHOUT.where(feedback.c.id.in_(some.scalar_subquery()))).rowcount)


_WITHOUT = update(feedback).values(comment=None)


def delete_feedback(connection: Connection, before: datetime) -> Removed:
    """Delete some labels given before then: those whose exchange never came."""
    return Removed(feedback=_delete_oldest(connection, feedback, feedback.c.created_at, before))


def delete_scores(connection: Connection, before: datetime) -> Removed:
    """Delete some scores of answers given before then: those whose exchange went while they were being recorded."""
    old = select(score.c.id).where(score.c.started_at < before).order_by(score.c.started_at).limit(ROWS)
    statement = delete(score).where(score.c.id.in_(old.scalar_subquery())).returning(score.c.started_at)
    moments = connection.execute(statement).scalars().all()
    dirty_hours.note(connection, moments)
    return Removed(scores=len(moments))


def delete_marks(connection: Connection, before: datetime) -> Removed:
    """Delete some marks of moments before then: there is nothing left to compare across them."""
    return Removed(marks=_delete_oldest(connection, mark, mark.c.at, before))


def delete_alerts(connection: Connection, before: datetime) -> Removed:
    """Delete some alerts that were over by then, with what happened to them."""
    old = select(alert.c.id).where(
        alert.c.state == "resolved", alert.c.starts_at < before, alert.c.resolved_at < before
    )
    ids = connection.execute(old.order_by(alert.c.starts_at).limit(ROWS)).scalars().all()
    if not ids:
        return Removed()
    connection.execute(delete(alert_event).where(alert_event.c.alert_id.in_(ids)))
    return Removed(alerts=connection.execute(delete(alert).where(alert.c.id.in_(ids))).rowcount)


def delete_notifications(connection: Connection, before: datetime) -> Removed:
    """Delete some notifications of then."""
    return Removed(alerts=_delete_oldest(connection, notification, notification.c.created_at, before))


def delete_silences(connection: Connection, before: datetime) -> Removed:
    """Delete some silences that had ended by then."""
    return Removed(alerts=_delete_oldest(connection, silence, silence.c.ends_at, before))


def delete_workers(connection: Connection, now: datetime) -> Removed:
    """Delete processes that were not seen for a day, with what they told of their jobs."""
    gone = select(worker.c.id).where(worker.c.seen_at < now - FORGOTTEN).order_by(worker.c.seen_at).limit(ROWS)
    connection.execute(delete(job).where(job.c.process.in_(gone.scalar_subquery())))
    return Removed(workers=_delete_oldest(connection, worker, worker.c.seen_at, now - FORGOTTEN))


def delete_days(connection: Connection, before: datetime) -> Removed:
    """Delete what was spent on the days before."""
    connection.execute(delete(budget).where(budget.c.day < f"{before:%Y-%m-%d}"))
    return Removed()


def _delete_oldest(connection: Connection, table: Table, moment: Any, before: datetime) -> int:
    (key,) = table.primary_key.columns
    old = select(key).where(moment < before).order_by(moment).limit(ROWS)
    return connection.execute(delete(table).where(key.in_(old.scalar_subquery()))).rowcount


def delete_counts(connection: Connection, before: datetime) -> Removed:
    """Delete the oldest minutes of the tally, whole ones, none of which an exchange is left of.

    Of one minute the processes' rows make sense together only: one that finished what another began has counts below 0.
    """
    oldest = connection.execute(select(func.min(exchange.c.started_at))).scalar_one()
    end = min(before, oldest or before).replace(second=0, microsecond=0)
    old = select(tally.c.minute).where(tally.c.minute > DECLARED, tally.c.minute < end).order_by(tally.c.minute)
    minutes = list(connection.execute(old.limit(ROWS)).scalars())
    if not minutes:
        return Removed()
    condition = (tally.c.minute > DECLARED, tally.c.minute <= minutes[-1])
    gone = connection.execute(delete(tally).where(*condition).returning(tally.c.minute)).scalars().all()
    dirty_hours.note(connection, gone)  # what was counted since they were looked for is among them
    return Removed(counts=len(gone))


def count_minutes(connection: Connection, before: datetime) -> int:
    """Return how many rows of the tally are of minutes before then."""
    query = select(func.count()).select_from(tally).where(tally.c.minute > DECLARED, tally.c.minute < before)
    return int(connection.execute(query).scalar_one())
