"""Loads exchanges, scores, tasks and labels by exchange id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, Select, select

from germane.annotation import Feedback
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage.answers.filter import TaskStatus
from germane.storage.archive.dialect import NAME as ARCHIVE
from germane.storage.db.mappers import EXCHANGES, SCORES, batched
from germane.storage.db.tables import exchange, feedback, score, scoring_task
from germane.storage.queue.erase_text import OPEN_STATES
from germane.storage.queue.feedback import LABELS

Item = TypeVar("Item")


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

    Pass the start times if they are known: the archive, which has no index, is then read faster.
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
    return _load_by_exchange(connection, select(score), exchange_ids, SCORES.decode)


def load_tasks(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[TaskStatus]]:
    """Return a dict of exchange ids to lists of task states, oldest first."""
    names = ("exchange_id", "scorer", "fingerprint", "state", "reason", "error", "retries", "due_at", "scored_as")
    query = select(*(scoring_task.c[name] for name in names)).order_by(scoring_task.c.id)
    return _load_by_exchange(connection, query, exchange_ids, _task_status)


def load_labels(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Feedback]]:
    """Return a dict of exchange ids to lists of labels, oldest first."""
    query = select(*LABELS.selected).order_by(feedback.c.created_at, feedback.c.id)
    return _load_by_exchange(connection, query, exchange_ids, LABELS.decode)


def _load_by_exchange(
    connection: Connection, query: Select[Any], ids: Sequence[str], decode: Callable[[RowMapping], Item]
) -> dict[str, list[Item]]:
    items: dict[str, list[Item]] = {}
    for batch in batched(ids):
        for row in connection.execute(query.where(query.selected_columns["exchange_id"].in_(batch))).mappings():
            items.setdefault(row["exchange_id"], []).append(decode(row))
    return items


def _task_status(row: RowMapping) -> TaskStatus:
    return TaskStatus(
        **{name: row[name] for name in ("scorer", "fingerprint", "state", "error", "retries", "due_at")},
        reason=None if row["reason"] is None else UnscoredReason(row["reason"]),
        is_rescore=row["state"] in OPEN_STATES and row["scored_as"] is not None,
    )


def load_all_labels(
    connection: Connection, source: Connection, exchange_ids: Sequence[str]
) -> dict[str, list[Feedback]]:
    """Return the labels of exchanges in the database or the archive, oldest first.

    Labels that were given after their exchange was archived are in the database. The exchanges are on ``source``: the
    database or the archive.
    """
    labels = load_labels(connection, exchange_ids)
    if source is not connection:
        for exchange_id, archived in load_labels(source, exchange_ids).items():
            labels[exchange_id] = [*archived, *labels.get(exchange_id, ())]
    return labels
