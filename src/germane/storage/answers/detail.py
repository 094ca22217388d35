"""Loads exchanges, scores, tasks and labels by exchange id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage.answers.filter import TaskStatus
from germane.storage.archive.dialect import NAME as ARCHIVE
from germane.storage.db.mappers import EXCHANGES, SCORES, batched
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.queue.feedback import LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDetail:
    """One exchange with its scores, tasks and labels."""

    exchange: Exchange
    scores: Sequence[Score]
    """Sorted by scorer, oldest first."""
    tasks: Sequence[TaskStatus]
    feedback: Sequence[Feedback]
    """Oldest first."""
    sampling_reason: str | None
    """The reason for the sampling decision; None before the decision."""
    sampling_probability: float | None
    """Probability of being scored, in (0, 1]; None without random sampling."""
    proxy: float | None
    """Proxy score, computed locally without an LLM; None if there is none."""
    erased_at: datetime | None
    """Time at which the text was erased; None if it is still stored."""


def load_exchanges(
    connection: Connection, ids: Sequence[str], moments: Mapping[str, datetime] | None = None
) -> dict[str, Exchange]:
    """Return a dict of ids to exchanges. Unknown ids are omitted.

    Args:
        connection: A connection to the database or the archive.
        ids: The ids.
        moments: Start times by id, if they are known. The archive, which has no index, is then read faster.
    """
    exchanges: dict[str, Exchange] = {}
    for batch in batched(ids):
        query = select(exchange).where(exchange.c.id.in_(batch))
        if moments is not None and connection.dialect.name == ARCHIVE:
            query = query.where(exchange.c.started_at.in_(sorted({moments[id_] for id_ in batch})))
        for row in connection.execute(query).mappings():
            exchanges[row["id"]] = EXCHANGES.decode(row)
    return exchanges


def load_scores(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Score]]:
    """Return a dict of exchange ids to lists of scores. Exchanges without a score are omitted."""
    scores: dict[str, list[Score]] = {}
    for batch in batched(exchange_ids):
        for row in connection.execute(select(score).where(score.c.exchange_id.in_(batch))).mappings():
            scores.setdefault(row["exchange_id"], []).append(SCORES.decode(row))
    return scores


def load_tasks(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[TaskStatus]]:
    """Return a dict of exchange ids to lists of task states, oldest first."""
    names = ("exchange_id", "scorer", "fingerprint", "state", "reason", "error", "retries", "due_at", "scored_as")
    tasks: dict[str, list[TaskStatus]] = {}
    for batch in batched(exchange_ids):
        query = select(*(scoring_task.c[name] for name in names)).where(scoring_task.c.exchange_id.in_(batch))
        for row in connection.execute(query.order_by(scoring_task.c.id)).mappings():
            task = TaskStatus(
                scorer=row["scorer"],
                fingerprint=row["fingerprint"],
                state=row["state"],
                reason=None if row["reason"] is None else UnscoredReason(row["reason"]),
                error=row["error"],
                retries=row["retries"],
                due_at=row["due_at"],
                is_rescore=row["state"] in {"pending", "running"} and row["scored_as"] is not None,
            )
            tasks.setdefault(row["exchange_id"], []).append(task)
    return tasks


def load_labels(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Feedback]]:
    """Return a dict of exchange ids to lists of labels, oldest first."""
    labels: dict[str, list[Feedback]] = {}
    for batch in batched(exchange_ids):
        query = select(*LABELS.selected).where(feedback.c.exchange_id.in_(batch))
        for row in connection.execute(query.order_by(feedback.c.created_at, feedback.c.id)).mappings():
            labels.setdefault(row["exchange_id"], []).append(LABELS.decode(row))
    return labels


def load_all_labels(
    connection: Connection, source: Connection, exchange_ids: Sequence[str]
) -> dict[str, list[Feedback]]:
    """Return the labels of exchanges in the database or the archive, oldest first.

    Labels that were given after their exchange was archived are in the database.

    Args:
        connection: The database.
        source: The database or the archive.
        exchange_ids: Ids of exchanges in ``source``.
    """
    labels = load_labels(connection, exchange_ids)
    if source is not connection:
        for exchange_id, archived in load_labels(source, exchange_ids).items():
            labels[exchange_id] = [*archived, *labels.get(exchange_id, ())]
    return labels
