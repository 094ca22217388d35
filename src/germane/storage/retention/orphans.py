"""Deleting old rows that do not belong to an exchange: counts, markers, alerts, workers, budget days, orphans."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, func, select, update

from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import DECLARED_MINUTE
from germane.storage.db.batches import PruneResult
from germane.storage.db.tables import (
    alert,
    alert_event,
    budget,
    exchange,
    feedback,
    job,
    marker,
    notification,
    score,
    silence,
    tally,
    worker,
)

BATCH_ROWS: Final = 500
"""Rows in one transaction."""
WORKER_RETENTION: Final = timedelta(days=1)
"""Time since its last heartbeat after which a worker is deleted."""


def erase_comments(connection: Connection, before: datetime) -> PruneResult:
    """Erase comments of labels older than ``before``, including labels whose exchange arrived late or never."""
    old = select(feedback.c.id).where(feedback.c.comment.is_not(None), feedback.c.created_at < before)
    some = old.order_by(feedback.c.created_at).limit(BATCH_ROWS)
    erased = update(feedback).values(comment=None).where(feedback.c.id.in_(some.scalar_subquery()))
    return PruneResult(comments=connection.execute(erased).rowcount)


def delete_feedback(connection: Connection, before: datetime) -> PruneResult:
    """Delete labels older than ``before``: only those whose exchange never arrived are left."""
    return PruneResult(feedback=_delete_oldest(connection, feedback, feedback.c.created_at, before))


def delete_scores(connection: Connection, before: datetime) -> PruneResult:
    """Delete scores of exchanges older than ``before`` that were deleted while the score was being recorded."""
    old = select(score.c.id).where(score.c.started_at < before).order_by(score.c.started_at).limit(BATCH_ROWS)
    statement = delete(score).where(score.c.id.in_(old.scalar_subquery())).returning(score.c.started_at)
    moments = connection.execute(statement).scalars().all()
    dirty_hours.mark_dirty(connection, moments)
    return PruneResult(scores=len(moments))


def delete_markers(connection: Connection, before: datetime) -> PruneResult:
    """Delete markers older than ``before``: no exchanges are left to compare with."""
    return PruneResult(markers=_delete_oldest(connection, marker, marker.c.at, before))


def delete_alerts(connection: Connection, before: datetime) -> PruneResult:
    """Delete alerts that were resolved before a time, with their events."""
    old = select(alert.c.id).where(
        alert.c.state == "resolved", alert.c.starts_at < before, alert.c.resolved_at < before
    )
    ids = connection.execute(old.order_by(alert.c.starts_at).limit(BATCH_ROWS)).scalars().all()
    if not ids:
        return PruneResult()
    connection.execute(delete(alert_event).where(alert_event.c.alert_id.in_(ids)))
    return PruneResult(alerts=connection.execute(delete(alert).where(alert.c.id.in_(ids))).rowcount)


def delete_notifications(connection: Connection, before: datetime) -> PruneResult:
    """Delete notifications older than ``before``."""
    return PruneResult(alerts=_delete_oldest(connection, notification, notification.c.created_at, before))


def delete_silences(connection: Connection, before: datetime) -> PruneResult:
    """Delete silences that ended before a time."""
    return PruneResult(alerts=_delete_oldest(connection, silence, silence.c.ends_at, before))


def delete_workers(connection: Connection, now: datetime) -> PruneResult:
    """Delete workers without a heartbeat for a day, with their jobs."""
    stopped = (
        select(worker.c.id)
        .where(worker.c.seen_at < now - WORKER_RETENTION)
        .order_by(worker.c.seen_at)
        .limit(BATCH_ROWS)
    )
    connection.execute(delete(job).where(job.c.process.in_(stopped.scalar_subquery())))
    return PruneResult(workers=_delete_oldest(connection, worker, worker.c.seen_at, now - WORKER_RETENTION))


def delete_budget_days(connection: Connection, before: datetime) -> PruneResult:
    """Delete the budget usage of earlier days."""
    connection.execute(delete(budget).where(budget.c.day < f"{before:%Y-%m-%d}"))
    return PruneResult()


def _delete_oldest(connection: Connection, table: Table, moment: Any, before: datetime) -> int:
    (key,) = table.primary_key.columns
    old = select(key).where(moment < before).order_by(moment).limit(BATCH_ROWS)
    return connection.execute(delete(table).where(key.in_(old.scalar_subquery()))).rowcount


def delete_counts(connection: Connection, before: datetime) -> PruneResult:
    """Delete the oldest minutes of the tally of which no exchange is left.

    Minutes are deleted whole: a process that finishes what another one started has negative counts.
    """
    oldest = connection.execute(select(func.min(exchange.c.started_at))).scalar_one()
    end = min(before, oldest or before).replace(second=0, microsecond=0)
    old = select(tally.c.minute).where(tally.c.minute > DECLARED_MINUTE, tally.c.minute < end).order_by(tally.c.minute)
    minutes = list(connection.execute(old.limit(BATCH_ROWS)).scalars())
    if not minutes:
        return PruneResult()
    condition = (tally.c.minute > DECLARED_MINUTE, tally.c.minute <= minutes[-1])
    deleted = connection.execute(delete(tally).where(*condition).returning(tally.c.minute)).scalars().all()
    dirty_hours.mark_dirty(connection, deleted)  # includes rows that were added since the query
    return PruneResult(counts=len(deleted))


def count_minutes(connection: Connection, before: datetime) -> int:
    """Return the number of tally rows older than ``before``."""
    query = select(func.count()).select_from(tally).where(tally.c.minute > DECLARED_MINUTE, tally.c.minute < before)
    return int(connection.execute(query).scalar_one())
