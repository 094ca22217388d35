"""Scoring tasks, which are claimed under a lease and finished exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

from sqlalchemy import (
    Connection,
    RowMapping,
    and_,
    bindparam,
    delete,
    or_,
    select,
    update,
)

from germane.exchange import Exchange
from germane.sanitize import clean_text
from germane.score import Score
from germane.storage.alerting import detectors
from germane.storage.counts.tally import TallyChanges
from germane.storage.db import leases
from germane.storage.db.mappers import (
    HAS_SCORE_KEY,
    SCORE_COLUMNS,
    SHARED_COLUMNS,
    batched,
    bulk_insert,
    score_values,
    timestamp_encoder,
)
from germane.storage.db.tables import exchange, score, scoring_task
from germane.storage.sink_items import mark_for_sinks

Result = tuple["ScoringTask", Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringTask:
    """One scorer's work on one exchange."""

    id: int
    exchange_id: str
    scorer: str
    fingerprint: str
    claims: int
    """Number of claims, including this one and excluding claims after which the task was postponed or released."""
    first_pending_at: datetime
    """Time at which the task started waiting; UTC."""
    retries: int = 0
    """Number of times that the task was postponed after a failed attempt."""


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """An exchange with its ready tasks, claimed by one owner until the lease expires."""

    exchange: Exchange
    tasks: tuple[ScoringTask, ...]


class TaskEnd(NamedTuple):
    """What a task gets when it is closed."""

    state: str
    reason: str | None
    error: str | None
    scored_as: str | None

    @classmethod
    def of(cls, result: Score) -> Self:
        """Return the end of a task with this result."""
        if result.reason is None:
            return cls("done", None, None, clean_text(result.fingerprint))
        return cls(result.state, result.reason.value, clean_text(result.explanation), None)

    def keep(self, scored_as: str) -> Self:
        """Return the end of a task whose rescoring failed, which leaves the existing score in place."""
        message = f"rescoring failed: {self.reason}: {self.error or 'unknown error'}"
        return self._replace(state="done", reason=None, error=message, scored_as=scored_as)


def write_results(
    connection: Connection, process: str, finished: Sequence[Result], held: dict[int, RowMapping], now: datetime
) -> None:
    """Write the results of tasks; ``held`` contains their rows from :func:`lock_owned_tasks`."""
    stamp, tally_changes = timestamp_encoder(connection.dialect.name), TallyChanges()
    ended: list[tuple[int, TaskEnd]] = []
    scored: list[tuple[RowMapping, Score]] = []
    for task, result in finished:
        row = held[task.id]
        names = (row["service"], row["route"], row["scorer"])
        tally_changes.add(row["started_at"], names, "pending", by=-1)
        end = TaskEnd.of(result)
        if result.value is None and row["scored_as"]:
            ended.append((task.id, end.keep(row["scored_as"])))
            tally_changes.add(row["started_at"], names, "scored")
        else:
            ended.append((task.id, end))
            tally_changes.add(row["started_at"], names, result.state, end.reason or "")
        if result.value is not None:
            scored.append((row, result))
    close_tasks(connection, ended)
    replaced = [
        {"of": row["exchange_id"], "by": row["scorer"], "made": row["scored_as"]}
        for row, _ in scored
        if row["scored_as"]
    ]
    if replaced:
        connection.execute(DELETE_REPLACED, replaced)
    bulk_insert(connection, score, SCORE_COLUMNS, [score_values(row, result, now, stamp) for row, result in scored])
    mark_for_sinks(connection, [row["exchange_id"] for row, _ in scored])
    # Rescored answers were not chosen at random, so they would bias the detectors.
    new = [(row, result) for row, result in scored if row["scored_as"] is None]
    detectors.insert_scores(connection, new, now, stamp)
    tally_changes.apply(connection, process)


def count_unpaid(connection: Connection, over_budget: Sequence[ScoringTask]) -> int:
    """Return the number of exchanges without a judge request, because all tasks that need one exceeded the budget.

    An open task may still cause a request. Skipped tasks, and scores without a judge, cost nothing. ``over_budget`` are
    the tasks that the transaction closed for this reason. A task for rescoring keeps its earlier score.
    """
    if not over_budget:
        return 0
    closed = {task.id for task in over_budget}
    exchange_ids = {task.exchange_id for task in over_budget}
    has_score = and_(score.c.exchange_id == scoring_task.c.exchange_id, score.c.scorer == scoring_task.c.scorer)
    is_paid = or_(scoring_task.c.state.in_(("pending", "running", "failed")), score.c.judge.is_not(None))
    query = select(scoring_task.c.id, scoring_task.c.exchange_id).outerjoin(score, has_score).where(is_paid)
    paid: set[str] = set()
    for batch in batched(sorted(exchange_ids)):
        rows = connection.execute(query.where(scoring_task.c.exchange_id.in_(batch)))
        paid |= {row.exchange_id for row in rows if row.id not in closed}
    return len(exchange_ids - paid)


DELETE_REPLACED = delete(score).where(HAS_SCORE_KEY)


def close_tasks(connection: Connection, ended: Iterable[tuple[int, TaskEnd]]) -> None:
    """Close locked tasks, given by id. Almost all end like others, and share a statement with them."""
    groups: dict[TaskEnd, list[int]] = {}
    for task_id, end in ended:
        groups.setdefault(end, []).append(task_id)
    for end, task_ids in groups.items():
        for ids in batched(task_ids):
            connection.execute(_CLOSE, {"ids": ids, **{f"new_{name}": value for name, value in end._asdict().items()}})


_CLOSE = (
    update(scoring_task)
    .where(scoring_task.c.id.in_(bindparam("ids", expanding=True)))
    .values(**{name: bindparam(f"new_{name}") for name in TaskEnd._fields}, **leases.FINISHED)
)


def lock_owned_tasks(connection: Connection, owner: str, tasks: Sequence[ScoringTask]) -> dict[int, RowMapping]:
    """Lock the tasks that this owner still holds. Return their rows by task id, with the columns that a score needs."""
    held: dict[int, RowMapping] = {}
    for ids in batched(sorted({task.id for task in tasks})):
        held |= {row["id"]: row for row in connection.execute(_HELD, {"ids": ids, "owner": owner}).mappings()}
    return held


_HELD = leases.lock_held(
    select(
        scoring_task.c.id,
        scoring_task.c.exchange_id,
        scoring_task.c.scorer,
        scoring_task.c.scored_as,
        exchange.c.sampling_reason,
        *(exchange.c[name] for name in SHARED_COLUMNS),
    )
    .join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    .where(scoring_task.c.id.in_(bindparam("ids", expanding=True))),
    scoring_task,
    bindparam("owner"),
)
