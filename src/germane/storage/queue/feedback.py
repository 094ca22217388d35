"""Human labels for answers, which can also cause skipped exchanges to be scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, bindparam, exists, select, tuple_, update

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.batches import BATCH_SIZE, PruneBatch, PruneResult, RowCursor
from germane.storage.db.conditions import following
from germane.storage.db.mappers import EXCHANGES, HAS_SCORE_KEY, RecordMapper, batched
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.queue.candidates import CANDIDATE

LABELS: Final = RecordMapper(feedback, Feedback)
REASON: Final = "always"
RECOVERABLE_REASONS: Final = (UnscoredReason.NOT_SAMPLED.value, UnscoredReason.BUDGET.value)
"""Skip reasons that do not depend on the exchange: random sampling and the budget."""
LABEL_TIMEOUT: Final = timedelta(days=1)
"""Maximum time that a label waits for its exchange, which may be written later than the label."""


@dataclass(frozen=True, slots=True)
class LabeledExchange:
    """A human label with its exchange."""

    feedback: Feedback
    exchange: Exchange


def select_labels(
    connection: Connection, *conditions: ColumnElement[bool], order: Sequence[ColumnElement[Any]], limit: int
) -> list[LabeledExchange]:
    """Return up to ``limit`` labels that match all conditions, each with its exchange, which must be stored."""
    columns = [column.label(f"feedback_{column.name}") for column in LABELS.selected]
    query = select(*columns, exchange).join(exchange, exchange.c.id == feedback.c.exchange_id)
    query = query.where(*conditions).order_by(*order).limit(limit)
    return [
        LabeledExchange(
            LABELS.decode({name: row[f"feedback_{name}"] for name in LABELS.columns}), EXCHANGES.decode(row)
        )
        for row in connection.execute(query).mappings()
    ]


def force_sampling(connection: Connection, exchange_ids: Sequence[str], *, drawn: bool) -> None:
    """Mark exchanges to be scored regardless of sampling. Exchanges with erased text are not changed.

    If ``drawn`` is false, only candidates without a final sampling decision are marked. Pass false if text is erased
    after scoring: exchanges that were not selected may already have lost their text, and marking only the selected ones
    would bias the means.

    Commit this change before calling :func:`queue_skipped_tasks`. A score that is written concurrently then either gets
    the new probability, or already exists when :func:`queue_skipped_tasks` corrects it.
    """
    for batch in batched(sorted(set(exchange_ids))):
        locked = select(exchange.c.id).where(exchange.c.id.in_(batch), exchange.c.erased_at.is_(None))
        if not drawn:
            locked = locked.where(exchange.c.sampling_reason == CANDIDATE)
        ids = connection.execute(locked.order_by(exchange.c.id).with_for_update()).scalars().all()
        values = {"sampling_reason": REASON, "sampling_probability": exchange.c.capture_probability}
        connection.execute(update(exchange).where(exchange.c.id.in_(ids)).values(values))


def is_unsampled(task: RowMapping) -> bool:
    """Return whether a task was skipped by sampling or the budget, or is still in the candidate pool."""
    waits_in_pool = task["state"] == "pending" and task["due_at"] is None
    return waits_in_pool or (task["state"] == "skipped" and task["reason"] in RECOVERABLE_REASONS)


def queue_skipped_tasks(
    connection: Connection, process: str, exchange_ids: Sequence[str], scorers: Mapping[str, str], now: datetime
) -> Counter[str]:
    """Make the skipped and candidate tasks of these scorers ready. Return the number of tasks by exchange id."""
    names = ("id", "exchange_id", "scorer", "fingerprint", "state", "reason", "due_at", "scored_as")
    of_exchange = (exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.sampling_probability)
    query = select(*(scoring_task.c[name] for name in names), *of_exchange)
    query = query.join(exchange, exchange.c.id == scoring_task.c.exchange_id).where(
        exchange.c.sampling_reason == REASON,
        exchange.c.erased_at.is_(None),
        tuple_(scoring_task.c.scorer, scoring_task.c.fingerprint).in_(list(scorers.items())),
    )
    # All processes lock tasks in this order.
    query = query.order_by(scoring_task.c.id).with_for_update(of=scoring_task)
    tally_changes, ready = TallyChanges(), Counter[str]()
    for batch in batched(sorted(set(exchange_ids))):
        tasks = connection.execute(query.where(scoring_task.c.exchange_id.in_(batch))).mappings().all()
        _correct_weights(connection, [task for task in tasks if task["state"] == "done" or task["scored_as"]])
        unsampled = [task for task in tasks if is_unsampled(task)]
        for task in unsampled:
            if task["state"] == "skipped":
                key = (task["service"], task["route"], task["scorer"])
                tally_changes.add(task["started_at"], key, "skipped", task["reason"], by=-1)
                tally_changes.add(task["started_at"], key, "pending")
        values = {"state": "pending", "reason": None, "error": None, "first_pending_at": now, "due_at": now}
        for ids in batched([task["id"] for task in unsampled]):
            connection.execute(update(scoring_task).where(scoring_task.c.id.in_(ids)).values(values))
        ready.update(task["exchange_id"] for task in unsampled)
    tally_changes.apply(connection, process)
    return ready


def _correct_weights(connection: Connection, scored: Sequence[RowMapping]) -> None:
    """Give existing scores the new sampling probability of their exchange."""
    corrected = [
        {
            "of": task["exchange_id"],
            "by": task["scorer"],
            "made": task["scored_as"] or task["fingerprint"],
            "probability": task["sampling_probability"],
        }
        for task in scored
    ]
    if corrected:
        connection.execute(CHANGE_WEIGHT, corrected)
        dirty_hours.mark_dirty(connection, [task["started_at"] for task in scored])


def mark_processed(connection: Connection, feedback_ids: Sequence[str], now: datetime) -> None:
    """Mark labels as processed by the sampler."""
    for batch in batched(sorted(set(feedback_ids))):
        connection.execute(update(feedback).where(feedback.c.id.in_(batch)).values(considered_at=now))


def abandon_unmatched(
    connection: Connection, _process: str, before: datetime, after: RowCursor | None, now: datetime
) -> PruneBatch:
    """Mark labels older than ``before`` as processed if their exchange is not stored, to avoid reading them again."""
    moment, key = feedback.c.created_at, feedback.c.id
    has_exchange = exists().where(exchange.c.id == feedback.c.exchange_id)
    query = select(moment, key, has_exchange.label("has_exchange")).where(feedback.c.considered_at.is_(None))
    query = query.where(moment < before, *following(moment, key, after))
    rows = connection.execute(query.order_by(moment, key).limit(BATCH_SIZE)).mappings().all()
    mark_processed(connection, [row["id"] for row in rows if not row["has_exchange"]], now)
    return PruneBatch(PruneResult(), RowCursor.after_batch(rows, "created_at"))


CHANGE_WEIGHT = update(score).where(HAS_SCORE_KEY).values(sampling_probability=bindparam("probability"))
"""Gives existing scores another probability of being scored, by the keys ``of``, ``by`` and ``made``."""
