"""Scoring skipped exchanges because of a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, exists, select, tuple_, update

from germane.score import UnscoredReason
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.batches import BATCH_SIZE, PruneBatch, PruneResult, RowCursor
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.queue.candidates import CANDIDATE
from germane.storage.queue.feedback import LabeledExchange, select_labels

REASON: Final = "always"
RECOVERABLE_REASONS: Final = (UnscoredReason.NOT_SAMPLED.value, UnscoredReason.BUDGET.value)
"""Skip reasons that do not depend on the exchange: random sampling and the budget."""
LABEL_TIMEOUT: Final = timedelta(days=1)
"""How long a label waits for its exchange, which may be written later."""

_HAS_EXCHANGE = exists().where(exchange.c.id == feedback.c.exchange_id)


def list_pending_feedback(connection: Connection, limit: int) -> list[LabeledExchange]:
    """Return unprocessed labels of exchanges with a sampling decision, oldest first."""
    conditions = (feedback.c.considered_at.is_(None), exchange.c.sampling_reason.is_not(None))
    return select_labels(connection, *conditions, order=(feedback.c.created_at, feedback.c.id), limit=limit)


def force_sampling(connection: Connection, exchange_ids: Sequence[str], *, drawn: bool) -> None:
    """Note that these exchanges are scored whatever the draw said; one whose text is erased stays as it is.

    Those that the draw has decided on are among them only where ``drawn``: had those that were not picked lost their
    text by now, the others would stand for themselves alone, and not for these any more.

    To be committed before :func:`reopen`: scores that are being written meanwhile then either have the new probability,
    or are there to be given it.
    """
    for some in batched(sorted(set(exchange_ids))):
        locked = select(exchange.c.id).where(exchange.c.id.in_(some), exchange.c.erased_at.is_(None))
        if not drawn:
            locked = locked.where(exchange.c.sampling_reason == CANDIDATE)
        found = connection.execute(locked.order_by(exchange.c.id).with_for_update()).scalars().all()
        values = {"sampling_reason": REASON, "sampling_probability": exchange.c.capture_probability}
        connection.execute(update(exchange).where(exchange.c.id.in_(found)).values(values))


def queue_skipped_tasks(
    connection: Connection, process: str, exchange_ids: Sequence[str], scorers: Mapping[str, str], now: datetime
) -> Counter[str]:
    """Make skipped and candidate tasks of these scorers ready; return the number of tasks by exchange."""
    tally_changes, ready = TallyChanges(), Counter[str]()
    for some in batched(sorted(set(exchange_ids))):
        tasks = _tasks(connection, some, scorers)
        _correct(connection, [task for task in tasks if task["state"] == "done" or task["scored_as"]])
        left_out = [task for task in tasks if _is_recoverable(task)]
        _make_ready(connection, left_out, tally_changes, now)
        ready.update(task["exchange_id"] for task in left_out)
    tally_changes.apply(connection, process)
    return ready


def mark_processed(connection: Connection, feedback_ids: Sequence[str], now: datetime) -> None:
    """Mark labels as processed."""
    for some in batched(sorted(set(feedback_ids))):
        connection.execute(update(feedback).where(feedback.c.id.in_(some)).values(considered_at=now))


def abandon_unmatched(
    connection: Connection, _process: str, before: datetime, after: RowCursor | None, now: datetime
) -> PruneBatch:
    """Mark labels from before ``before`` without a stored exchange as processed, so that they are not read again."""
    moment, key = feedback.c.created_at, feedback.c.id
    query = select(moment, key, _HAS_EXCHANGE.label("is_of_one")).where(feedback.c.considered_at.is_(None))
    query = query.where(moment < before)
    if after is not None:
        query = query.where(moment >= after[0], tuple_(moment, key) > tuple_(*after))
    found = connection.execute(query.order_by(moment, key).limit(BATCH_SIZE)).all()
    mark_processed(connection, [row.id for row in found if not row.is_of_one], now)
    return PruneBatch(
        PruneResult(), RowCursor(found[-1].created_at, found[-1].id) if len(found) == BATCH_SIZE else None
    )


def _tasks(connection: Connection, exchange_ids: Sequence[str], scorers: Mapping[str, str]) -> Sequence[RowMapping]:
    """Lock the tasks of exchanges with the reason, in the order in which all processes lock them."""
    columns = [
        scoring_task.c[name]
        for name in ("id", "exchange_id", "scorer", "fingerprint", "state", "reason", "not_before", "scored_as")
    ]
    of_exchange = (exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.sampling_probability)
    query = select(*columns, *of_exchange).join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    query = query.where(scoring_task.c.exchange_id.in_(exchange_ids), exchange.c.sampling_reason == REASON)
    query = query.where(exchange.c.erased_at.is_(None), _of(scorers))
    return connection.execute(query.order_by(scoring_task.c.id).with_for_update(of=scoring_task)).mappings().all()


def _of(scorers: Mapping[str, str]) -> ColumnElement[bool]:
    """Return the condition that a task has one of these fingerprints."""
    return tuple_(scoring_task.c.scorer, scoring_task.c.fingerprint).in_(list(scorers.items()))


def _is_recoverable(task: RowMapping) -> bool:
    waits_in_pool = task["state"] == "pending" and task["not_before"] is None
    return waits_in_pool or (task["state"] == "skipped" and task["reason"] in RECOVERABLE_REASONS)


def _make_ready(
    connection: Connection, tasks: Sequence[RowMapping], tally_changes: TallyChanges, now: datetime
) -> None:
    for task in tasks:
        if task["state"] == "skipped":
            names = (task["service"], task["route"], task["scorer"])
            tally_changes.add(task["started_at"], names, "skipped", task["reason"], by=-1)
            tally_changes.add(task["started_at"], names, "pending")
    values = {"state": "pending", "reason": None, "error": None, "first_pending_at": now, "not_before": now}
    for some in batched([task["id"] for task in tasks]):
        connection.execute(update(scoring_task).where(scoring_task.c.id.in_(some)).values(values))


_CORRECT = (
    update(score)
    .where(
        score.c.exchange_id == bindparam("of"),
        score.c.scorer == bindparam("by"),
        score.c.fingerprint == bindparam("made"),
    )
    .values(sampling_probability=bindparam("probability"))
)


def _correct(connection: Connection, tasks: Sequence[RowMapping]) -> None:
    """Update the sampling probability of existing scores to that of their exchange."""
    rows = [
        {
            "of": task["exchange_id"],
            "by": task["scorer"],
            "made": task["scored_as"] or task["fingerprint"],
            "probability": task["sampling_probability"],
        }
        for task in tasks
    ]
    if rows:
        connection.execute(_CORRECT, rows)
        dirty_hours.mark_dirty(connection, [task["started_at"] for task in tasks])
