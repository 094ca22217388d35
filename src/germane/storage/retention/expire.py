"""Erasure and deletion of old rows, in small transactions so that writers never wait for long.

Exchanges are removed first, with their tasks, scores and labels, and then counts, markers, alerts, workers, budget
days, and scores and labels whose exchange is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, Table, delete, func, select, update

from germane.storage.alerting.notifications import NOTIFICATION
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import DECLARED_MINUTE, TallyChanges
from germane.storage.counts.watched import delete_watched
from germane.storage.db.batches import BATCH_SIZE, PruneBatch, PruneResult, RowCursor
from germane.storage.db.conditions import count_rows, following
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import batched
from germane.storage.db.tables import (
    alert,
    alert_event,
    anchor,
    anchor_score,
    budget,
    delivery,
    detector_input,
    exchange,
    feedback,
    job,
    label_draw,
    marker,
    received_trace,
    score,
    scoring_task,
    silence,
    tally,
    worker,
)
from germane.storage.ingest.forwarding import old_requests
from germane.storage.ingest.received_spans import overdue_since
from germane.storage.ingest.unreadable_traces import delete_unreadable
from germane.storage.queue.candidates import CANDIDATE, remove_from_pool
from germane.storage.queue.erase_text import OPEN_STATES, erase_closed_exchanges, erase_exchanges, lock_tasks
from germane.storage.queue.expired import count_expired, expire_tasks_statement
from germane.storage.sink_items import SINK, delete_items

BATCH_ROWS: Final = 2000
"""Maximum number of rows per transaction."""
_PARTS: Final = (score, feedback, scoring_task, detector_input, label_draw)
"""Tables whose rows belong to an exchange."""
WORKER_RETENTION: Final = timedelta(days=1)
"""Time without a heartbeat after which a worker is deleted."""
_CLOSE: Final = expire_tasks_statement(None)


def erase_batch(
    connection: Connection, process: str, before: datetime, after: RowCursor | None, now: datetime
) -> PruneBatch:
    """Erase the text of the next batch of exchanges that started before ``before``, except those being scored."""
    rows, last = _lock_oldest(connection, before, after, with_text=True)
    ids, expired_tasks = _expire_exchanges(connection, process, rows, now)
    erase_exchanges(connection, ids, now)
    waiting = {row["id"] for row in rows if row["sampling_reason"] == CANDIDATE}
    remove_from_pool(connection, sorted(waiting.intersection(ids)))
    return PruneBatch(PruneResult(texts=len(ids), expired=expired_tasks), last)


def erase_scored_batch(
    connection: Connection, _process: str, before: datetime, after: RowCursor | None, now: datetime
) -> PruneBatch:
    """Erase the text of the next batch of exchanges that started before ``before`` and have no open task."""
    rows, last = _lock_oldest(connection, before, after, with_text=True)
    return PruneBatch(PruneResult(texts=erase_closed_exchanges(connection, [row["id"] for row in rows], now)), last)


def delete_batch(
    connection: Connection, process: str, before: datetime, after: RowCursor | None, now: datetime
) -> PruneBatch:
    """Delete the next batch of exchanges that started before ``before``, except those being scored."""
    rows, last = _lock_oldest(connection, before, after, with_text=False)
    ids, expired_tasks = _expire_exchanges(connection, process, rows, now)
    moments = {row["id"]: row["started_at"] for row in rows}
    removed = delete_exchanges(connection, {exchange_id: moments[exchange_id] for exchange_id in ids})
    return PruneBatch(removed + PruneResult(expired=expired_tasks), last)


def delete_exchanges(connection: Connection, moments: Mapping[str, datetime], *, archived: bool = False) -> PruneResult:
    """Delete locked exchanges with their tasks, scores and labels. Their counts in the tally are kept.

    ``moments`` are their start times by id. Answers that are ``archived`` stay in the waves in which they were drawn.
    """
    if not moments:
        return PruneResult()
    ids, dialect = list(moments), connection.dialect.name
    deleted = {
        table.name: connection.execute(delete(table).where(is_one_of(key, ids, dialect))).rowcount
        for table, key in (*((table, table.c.exchange_id) for table in _PARTS), (exchange, exchange.c.id))
        if not (archived and table is label_draw)
    }
    delete_items(connection, ids)
    dirty_hours.mark_dirty(connection, moments.values())
    return PruneResult(exchanges=deleted["exchange"], scores=deleted["score"], feedback=deleted["feedback"])


def _lock_oldest(
    connection: Connection, before: datetime, after: RowCursor | None, *, with_text: bool
) -> tuple[Sequence[RowMapping], RowCursor | None]:
    """Lock and return the next exchanges that nobody has locked, oldest first, and the position of the last one."""
    columns = ("id", "service", "route", "started_at", "sampling_reason")
    query = select(*(exchange.c[name] for name in columns)).where(exchange.c.started_at < before)
    if with_text:
        query = query.where(exchange.c.erased_at.is_(None))
    query = query.where(*following(exchange.c.started_at, exchange.c.id, after))
    query = query.order_by(exchange.c.started_at, exchange.c.id).limit(BATCH_SIZE)
    rows = connection.execute(query.with_for_update(skip_locked=True)).mappings().all()
    return rows, RowCursor.after_batch(rows, "started_at")


def _expire_exchanges(
    connection: Connection, process: str, rows: Sequence[RowMapping], now: datetime
) -> tuple[list[str], int]:
    """Expire pending tasks. Return the ids of exchanges without a running or locked task, and the number of tasks."""
    exchanges = {row["id"]: row for row in rows}
    open_tasks, held = lock_tasks(connection, list(exchanges), open_only=True)
    running = [row for row in open_tasks if row["state"] == "running" and row["due_at"] > now]
    busy = {exchange_id for exchange_id, _ in held} | {row["exchange_id"] for row in running}
    closed = [row for row in open_tasks if row["exchange_id"] not in busy]
    expire_tasks(connection, process, [(exchanges[row["exchange_id"]], row) for row in closed])
    return [exchange_id for exchange_id in exchanges if exchange_id not in busy], len(closed)


def expire_tasks(connection: Connection, process: str, tasks: Sequence[tuple[RowMapping, RowMapping]]) -> None:
    """Expire locked open tasks, and update the tally. ``tasks`` are pairs of exchange row and task row."""
    tally_changes = TallyChanges()
    for row, task in tasks:
        names = (row["service"], row["route"], task["scorer"])
        tally_changes.add(row["started_at"], names, "pending", by=-1)
        count_expired(tally_changes, row["started_at"], names, task["scored_as"])
    for ids in batched([task["id"] for _, task in tasks]):
        connection.execute(_CLOSE.where(scoring_task.c.id.in_(ids)))
    tally_changes.apply(connection, process)


def count_expired_rows(connection: Connection, texts_before: datetime | None, before: datetime | None) -> PruneResult:
    """Return the numbers of rows that would be erased and deleted now if no task were running."""
    total = PruneResult()
    if before is not None:
        labels = feedback.join(exchange, exchange.c.id == feedback.c.exchange_id)
        newer_label = (exchange.c.started_at < before, feedback.c.created_at >= before)
        total += PruneResult(
            exchanges=count_rows(connection, exchange, exchange.c.started_at < before),
            scores=count_rows(connection, score, score.c.started_at < before),
            feedback=count_rows(connection, feedback, feedback.c.created_at < before)
            + count_rows(connection, labels, *newer_label),
            markers=count_rows(connection, marker, marker.c.at < before),
            counts=count_rows(connection, tally, tally.c.minute > DECLARED_MINUTE, tally.c.minute < before),
        )
    if texts_before is not None:
        with_text = [exchange.c.erased_at.is_(None), exchange.c.started_at < texts_before]
        kept = [] if before is None else [exchange.c.started_at >= before]
        total += PruneResult(
            texts=count_rows(connection, exchange, *with_text, *kept),
            traces=count_rows(connection, received_trace, overdue_since(texts_before)),
            requests=count_rows(connection, delivery, *old_requests(texts_before)),
        )
    last = max((moment for moment in (texts_before, before) if moment is not None), default=None)
    if last is not None:
        tasks = scoring_task.join(exchange, exchange.c.id == scoring_task.c.exchange_id)
        is_open = scoring_task.c.state.in_(OPEN_STATES)
        total += PruneResult(expired=count_rows(connection, tasks, is_open, exchange.c.started_at < last))
    return total


def erase_comments(connection: Connection, before: datetime) -> PruneResult:
    """Erase the comments in labels older than ``before``, including labels whose exchange arrived late or never."""
    old = select(feedback.c.id).where(feedback.c.comment.is_not(None), feedback.c.created_at < before)
    some = old.order_by(feedback.c.created_at).limit(BATCH_ROWS)
    erased = update(feedback).values(comment=None).where(feedback.c.id.in_(some.scalar_subquery()))
    return PruneResult(comments=connection.execute(erased).rowcount)


def delete_feedback(connection: Connection, before: datetime) -> PruneResult:
    """Delete labels older than ``before``. At this point, these are labels whose exchange never arrived."""
    return PruneResult(feedback=_delete_oldest(connection, feedback, feedback.c.created_at, before))


def delete_scores(connection: Connection, before: datetime) -> PruneResult:
    """Delete scores older than ``before`` whose exchange was deleted while the score was being recorded."""
    old = select(score.c.id).where(score.c.started_at < before).order_by(score.c.started_at).limit(BATCH_ROWS)
    statement = delete(score).where(score.c.id.in_(old.scalar_subquery())).returning(score.c.started_at)
    moments = connection.execute(statement).scalars().all()
    dirty_hours.mark_dirty(connection, moments)
    return PruneResult(scores=len(moments))


def delete_markers(connection: Connection, before: datetime) -> PruneResult:
    """Delete markers older than ``before``, because no exchanges remain to compare."""
    return PruneResult(markers=_delete_oldest(connection, marker, marker.c.at, before))


def delete_anchors(connection: Connection, before: datetime) -> PruneResult:
    """Delete anchors that were retired before a given time, with their scores."""
    _delete_oldest(connection, anchor, anchor.c.retired_at, before, part=anchor_score.c.anchor_id)
    return PruneResult()


def delete_alerts(connection: Connection, before: datetime) -> PruneResult:
    """Delete alerts that were resolved before a given time, with their events."""
    resolved = (alert.c.state == "resolved", alert.c.resolved_at < before)
    deleted = _delete_oldest(connection, alert, alert.c.starts_at, before, *resolved, part=alert_event.c.alert_id)
    return PruneResult(alerts=deleted)


def delete_notifications(connection: Connection, before: datetime) -> PruneResult:
    """Delete notifications, and items for sinks whose exchange never arrived, older than ``before``."""
    is_one = delivery.c.kind.in_((NOTIFICATION, SINK))
    return PruneResult(alerts=_delete_oldest(connection, delivery, delivery.c.created_at, before, is_one))


def delete_silences(connection: Connection, before: datetime) -> PruneResult:
    """Delete silences that ended before a given time."""
    return PruneResult(alerts=_delete_oldest(connection, silence, silence.c.ends_at, before))


def delete_workers(connection: Connection, now: datetime) -> PruneResult:
    """Delete workers that have not sent a heartbeat for a day, with their jobs."""
    before = now - WORKER_RETENTION
    return PruneResult(workers=_delete_oldest(connection, worker, worker.c.seen_at, before, part=job.c.process))


def delete_budget_days(connection: Connection, before: datetime) -> PruneResult:
    """Delete the budget usage for days before ``before``."""
    connection.execute(delete(budget).where(budget.c.day < f"{before:%Y-%m-%d}"))
    return PruneResult()


def _delete_oldest(
    connection: Connection, table: Table, moment: Any, before: datetime, *conditions: Any, part: Any = None
) -> int:
    """Delete the oldest rows that meet the conditions, with the rows whose column ``part`` contains their key."""
    (key,) = table.primary_key.columns
    old = select(key).where(moment < before, *conditions).order_by(moment).limit(BATCH_ROWS)
    ids = connection.execute(old).scalars().all()
    if ids and part is not None:
        connection.execute(delete(part.table).where(part.in_(ids)))
    return connection.execute(delete(table).where(key.in_(ids))).rowcount if ids else 0


def delete_traces(connection: Connection, before: datetime) -> PruneResult:
    """Delete counts and samples of old traces."""
    delete_watched(connection, before)
    delete_unreadable(connection, before)
    return PruneResult()


def delete_counts(connection: Connection, before: datetime) -> PruneResult:
    """Delete the oldest minutes in the tally for which no exchanges remain.

    Only whole minutes are deleted, because a process that finishes another process's tasks has negative counts.
    """
    oldest = connection.execute(select(func.min(exchange.c.started_at))).scalar_one()
    end = min(before, oldest or before).replace(second=0, microsecond=0)
    old = select(tally.c.minute).where(tally.c.minute > DECLARED_MINUTE, tally.c.minute < end).order_by(tally.c.minute)
    minutes = list(connection.execute(old.limit(BATCH_ROWS)).scalars())
    if not minutes:
        return PruneResult()
    condition = (tally.c.minute > DECLARED_MINUTE, tally.c.minute <= minutes[-1])
    deleted = connection.execute(delete(tally).where(*condition).returning(tally.c.minute)).scalars().all()
    dirty_hours.mark_dirty(connection, deleted)  # may include rows that were added since the query
    return PruneResult(counts=len(deleted))
