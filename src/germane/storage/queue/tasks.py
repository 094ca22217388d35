"""Scoring tasks, which are claimed under a lease and finished exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    RowMapping,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
    update,
)

from germane.exchange import Exchange
from germane.sanitize import clean_text
from germane.score import Score, UnscoredReason
from germane.storage.alerting import detectors
from germane.storage.counts.tally import TallyChanges
from germane.storage.db import leases
from germane.storage.db.mappers import (
    EXCHANGES,
    SCORE_COLUMNS,
    SHARED_COLUMNS,
    batched,
    bulk_insert,
    score_values,
    timestamp_encoder,
)
from germane.storage.db.tables import exchange, score, scoring_task, worker

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


def complete_tasks(
    connection: Connection, process: str, owner: str, results: Sequence[Result], now: datetime
) -> list[Result]:
    """Write the results of the tasks that this owner still holds, and return those results.

    Writes the scores, the task states and the tally.
    """
    held = lock_owned_tasks(connection, owner, [task for task, _ in results])
    first_results: dict[int, Result] = {}
    for task, result in results:
        if task.id in held:
            first_results.setdefault(task.id, (task, result))
    finished = list(first_results.values())
    write_results(connection, process, finished, held, now)
    return finished


def write_results(
    connection: Connection, process: str, finished: Sequence[Result], held: dict[int, RowMapping], now: datetime
) -> None:
    """Write the results of tasks; ``held`` contains their rows from :func:`lock_owned_tasks`."""
    stamp, tally_changes = timestamp_encoder(connection.dialect.name), TallyChanges()
    closed: list[dict[str, Any]] = []
    scored: list[tuple[RowMapping, Score]] = []
    for task, result in finished:
        row = held[task.id]
        names = (row["service"], row["route"], row["scorer"])
        tally_changes.add(row["started_at"], names, "pending", by=-1)
        error = None if result.reason is None else clean_text(result.explanation)
        if result.value is None and row["scored_as"]:  # a failed rescoring leaves the existing score in place
            tally_changes.add(row["started_at"], names, "scored")
            message = f"rescoring failed: {result.reason}: {error or 'unknown error'}"
            closed.append(
                {"task_id": task.id, "new_state": "done", "why": None, "message": message, "made": row["scored_as"]}
            )
            continue
        reason = result.reason.value if result.reason else None
        tally_changes.add(row["started_at"], names, result.state, reason or "")
        state = "done" if result.state == "scored" else result.state
        fingerprint = None if result.value is None else clean_text(result.fingerprint)
        closed.append({"task_id": task.id, "new_state": state, "why": reason, "message": error, "made": fingerprint})
        if result.value is not None:
            scored.append((row, result))
    if closed:
        connection.execute(_CLOSE, closed)
    replaced = [
        {"of": row["exchange_id"], "by": row["scorer"], "made": row["scored_as"]}
        for row, _ in scored
        if row["scored_as"]
    ]
    if replaced:
        connection.execute(DELETE_REPLACED, replaced)
    bulk_insert(connection, score, SCORE_COLUMNS, [score_values(row, result, now, stamp) for row, result in scored])
    # Rescored answers were not chosen at random, so they would bias the detectors.
    new = [(row, result) for row, result in scored if row["scored_as"] is None]
    detectors.insert_scores(connection, new, now, stamp)
    tally_changes.apply(connection, process)


def count_unpaid(connection: Connection, over_budget: Sequence[ScoringTask]) -> int:
    """Return the number of exchanges without a judge request, because all tasks that need one exceeded the budget.

    An open task may still cause a request. Skipped tasks, and scores without a judge, cost nothing.

    Args:
        connection: The transaction that closed the tasks.
        over_budget: The tasks that it closed for this reason. A task for rescoring keeps its earlier score.
    """
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


DELETE_REPLACED = delete(score).where(
    score.c.exchange_id == bindparam("of"),
    score.c.scorer == bindparam("by"),
    score.c.fingerprint == bindparam("made"),
)


_CLOSE = (
    update(scoring_task)
    .where(scoring_task.c.id == bindparam("task_id"))
    .values(
        state=bindparam("new_state"),
        reason=bindparam("why"),
        error=bindparam("message"),
        scored_as=bindparam("made"),
        **leases.FINISHED,
    )
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


MAX_CLAIMS: Final = 5
"""Number of claims without a result after which a task fails."""
MAX_CONCURRENT_OWNERS: Final = 32
"""Expected maximum number of owners that claim at once. With more, an owner may get only some of the ready tasks."""
_BETWEEN = literal_column("' '", Text)
_LATEST = ("reason", "error")


def claim_tasks(
    connection: Connection,
    process: str,
    owner: str,
    scorers: Mapping[str, str],
    limit: int,
    lease: timedelta,
    now: datetime,
    preferred: Sequence[str] = (),
) -> list[TaskClaim]:
    """Claim the ready tasks of these scorers for up to ``limit`` exchanges: preferred ones first, then the oldest."""
    if not scorers:
        return []
    pairs = [f"{scorer} {fingerprint}" for scorer, fingerprint in sorted(scorers.items())]
    rows = _lock_preferred_tasks(connection, pairs, preferred, limit) if preferred else []
    limit -= len({row["exchange_id"] for row in rows})
    if limit:
        taken = {row["id"] for row in rows}
        rows += [row for row in _lock_ready_tasks(connection, pairs, scorers, limit, now) if row["id"] not in taken]
    for ids in batched([row["id"] for row in rows]):
        connection.execute(_TAKE.where(scoring_task.c.id.in_(ids)), {"owner": owner, "lease_end": now + lease})
    tasks: dict[str, list[ScoringTask]] = {}
    failed: list[Result] = []
    for row in rows:
        task = ScoringTask(**{name: row[name] for name in ScoringTask.__slots__} | {"claims": row["claims"] + 1})
        if row["claims"] < MAX_CLAIMS:
            tasks.setdefault(task.exchange_id, []).append(task)
            continue
        # The task probably crashes the process that scores it.
        explanation = f"scoring was attempted {row['claims']} times, but the process exited each time before finishing"
        if row["reason"]:
            explanation += f"; earlier error: {row['reason']}: {row['error'] or 'unknown error'}"
        error = Score(
            scorer=task.scorer,
            fingerprint=task.fingerprint,
            reason=UnscoredReason.SCORER_ERROR,
            explanation=explanation,
            scored_at=now,
        )
        failed.append((task, error))
    if failed:
        write_results(
            connection, process, failed, lock_owned_tasks(connection, owner, [task for task, _ in failed]), now
        )
    exchanges: list[Exchange] = []
    for batch in batched(list(tasks)):
        exchange_rows = connection.execute(select(exchange).where(exchange.c.id.in_(batch))).mappings()
        exchanges += map(EXCHANGES.decode, exchange_rows)
    exchanges.sort(key=lambda claimed: (claimed.started_at, claimed.id))
    return [TaskClaim(claimed, tuple(sorted(tasks[claimed.id], key=lambda task: task.id))) for claimed in exchanges]


def _lock_preferred_tasks(
    connection: Connection, pairs: Sequence[str], exchange_ids: Sequence[str], limit: int
) -> list[RowMapping]:
    """Lock the never-claimed tasks of up to ``limit`` of these exchanges, whether or not the tasks are due."""
    rows: list[RowMapping] = []
    for ids in batched(exchange_ids):
        values = {"ids": ids, "pairs": pairs, "rows": limit * len(pairs)}
        rows += connection.execute(_PREFERRED, values).mappings()
    claimed = set(list(dict.fromkeys(row["exchange_id"] for row in rows))[:limit])
    return [row for row in rows if row["exchange_id"] in claimed]


def _lock_ready_tasks(
    connection: Connection, pairs: Sequence[str], scorers: Mapping[str, str], limit: int, now: datetime
) -> Sequence[RowMapping]:
    """Lock all ready tasks of the ``limit`` exchanges that have been waiting longest."""
    window = limit * len(scorers) * (1 if connection.dialect.name == "sqlite" else MAX_CONCURRENT_OWNERS)
    values: dict[str, Any] = {"now": now, "limit": limit, "window": window, "pairs": pairs}
    for number, (scorer, fingerprint) in enumerate(sorted(scorers.items())):
        values |= {f"scorer_{number}": scorer, f"fingerprint_{number}": fingerprint}
    return connection.execute(_ready_tasks(connection.dialect.name, len(scorers)), values).mappings().all()


_TAKE = leases.claim(scoring_task, owner=bindparam("owner"), until=bindparam("lease_end")).values(
    state="running", claims=scoring_task.c.claims + 1
)


def _is_ours(task: FromClause) -> ColumnElement[bool]:
    """Return the SQL condition that a task belongs to these scorers, in a form that prevents use of a scorer index."""
    return task.c.scorer.concat(_BETWEEN).concat(task.c.fingerprint).in_(bindparam("pairs", expanding=True))


_is_new = and_(
    scoring_task.c.state == "pending",
    scoring_task.c.due_at.is_not(None),
    scoring_task.c.claims == 0,
    scoring_task.c.retries == 0,
)
"""SQL condition that a task is not a candidate and that no process has claimed it yet."""
_PREFERRED = (
    select(*(scoring_task.c[name] for name in (*ScoringTask.__slots__, *_LATEST)))
    .where(
        scoring_task.c.exchange_id.in_(bindparam("ids", expanding=True)),
        _is_ours(scoring_task),
        _is_new,
    )
    .order_by(scoring_task.c.exchange_id, scoring_task.c.id)
    .limit(bindparam("rows", type_=Integer))
    .with_for_update(skip_locked=True)
)


def release_reserved_tasks(
    connection: Connection, scorers: Mapping[str, str], now: datetime, *, alive_since: datetime, stopping: str | None
) -> None:
    """Let all workers claim the tasks of these scorers that are reserved for a stopping or dead worker.

    Args:
        connection: A transaction that writes.
        scorers: Fingerprints by scorer name.
        now: The current time.
        alive_since: Workers without a heartbeat since this time are dead.
        stopping: Id of a worker that is stopping, if any.
    """
    alive = select(worker.c.id).where(worker.c.seen_at >= alive_since, worker.c.id != (stopping or ""))
    for scorer, fingerprint in scorers.items():
        reserved = (
            select(scoring_task.c.id)
            .join(exchange, exchange.c.id == scoring_task.c.exchange_id)
            .where(scoring_task.c.scorer == scorer, scoring_task.c.fingerprint == fingerprint)
            .where(scoring_task.c.due_at > now, _is_new)
            .where(exchange.c.span_holder.is_not(None), exchange.c.span_holder.not_in(alive))
        )
        for ids in batched(connection.execute(reserved).scalars().all()):
            due = update(scoring_task).where(scoring_task.c.id.in_(ids), _is_new)
            connection.execute(due.values(due_at=scoring_task.c.first_pending_at))


_ready = scoring_task.c.due_at <= bindparam("now")


def _heads(dialect: str, count: int) -> CTE:
    """Return a query for the exchanges to claim. On PostgreSQL, the query locks the first ready task of each.

    Locking the first task claims the whole exchange, so two owners never wait for each other's tasks.
    """
    columns, limit, window = scoring_task.c, bindparam("limit", type_=Integer), bindparam("window", type_=Integer)
    # Read each scorer's first ready tasks from its own part of the index. Both databases merge these parts by time and
    # stop at the limit, so they do not read tasks of other scorers.
    arms = []
    for number in range(count):
        arm = select(columns.id, columns.exchange_id, columns.due_at).where(
            columns.scorer == bindparam(f"scorer_{number}"),
            columns.fingerprint == bindparam(f"fingerprint_{number}"),
            _ready,
        )
        arms.append(select(arm.order_by(columns.due_at).limit(window).subquery(f"waiting_{number}")))
    waiting = union_all(*arms).order_by("due_at").limit(window).subquery("waiting")
    if dialect == "sqlite":  # no other process can write now
        waiting_exchanges = select(waiting.c.exchange_id).group_by(waiting.c.exchange_id)
        return waiting_exchanges.order_by(func.min(waiting.c.due_at)).limit(limit).cte("heads")
    # Use the order of the queue, so that the oldest task in the queue is always the first task of its exchange.
    sibling = scoring_task.alias("sibling")
    is_first = ~exists().where(
        sibling.c.exchange_id == columns.exchange_id,
        _is_ours(sibling),
        sibling.c.due_at <= bindparam("now"),
        or_(
            sibling.c.due_at < columns.due_at,
            and_(sibling.c.due_at == columns.due_at, sibling.c.id < columns.id),
        ),
    )
    # Use limits at every step and a lateral join, because without statistics, PostgreSQL would read and join all rows.
    first = select(columns.exchange_id).where(columns.id == waiting.c.id, _ready, is_first)
    locked = first.with_for_update(of=scoring_task, skip_locked=True).lateral("locked")
    heads = select(locked.c.exchange_id).select_from(waiting.join(locked, true()))
    return heads.order_by(waiting.c.due_at).limit(limit).cte("heads")


@cache
def _ready_tasks(dialect: str, count: int) -> Select[Any]:
    """Return a query that locks all ready tasks of the exchanges to claim."""
    heads = _heads(dialect, count)
    tasks = select(*(scoring_task.c[name] for name in (*ScoringTask.__slots__, *_LATEST)))
    tasks = tasks.where(scoring_task.c.exchange_id == heads.c.exchange_id, _is_ours(scoring_task), _ready)
    if dialect == "sqlite":
        return tasks
    # Use a lateral join, so that each exchange is looked up in the index. Without statistics, PostgreSQL expects so
    # many tasks per exchange that it would read the whole table.
    found = tasks.with_for_update(skip_locked=True).lateral("found")
    return select(found).select_from(heads.join(found, true()))
