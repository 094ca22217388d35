"""Scoring tasks: claimed under a lease, finished exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    CTE,
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Integer,
    RowMapping,
    Select,
    Text,
    Update,
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
from germane.score import Score, UnscoredReason
from germane.storage.alerting import detectors
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.mappers import (
    SCORE_COLUMNS,
    batched,
    bulk_insert,
    exchange_from_row,
    score_values,
    timestamp_encoder,
)
from germane.storage.db.sanitize import clean_text
from germane.storage.db.tables import exchange, score, scoring_task

Result = tuple["ScoringTask", Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringTask:
    """The work of one scorer on one exchange."""

    id: int
    exchange_id: str
    scorer: str
    fingerprint: str
    claims: int
    """Number of claims, including this one, without those that were returned: an unreachable judge uses up none."""
    first_pending_at: datetime
    """UTC."""
    retries: int = 0
    """Number of postponed attempts."""


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """An exchange with its ready tasks, claimed by one owner until the lease expires."""

    exchange: Exchange
    tasks: tuple[ScoringTask, ...]


def complete_tasks(
    connection: Connection, process: str, owner: str, results: Sequence[Result], now: datetime
) -> list[Result]:
    """Write scores, states and tally of the tasks that this owner still holds; return their results."""
    held = lock_owned_tasks(connection, owner, [task for task, _ in results])
    firsts: dict[int, Result] = {}
    for task, found in results:
        if task.id in held:
            firsts.setdefault(task.id, (task, found))
    finished = list(firsts.values())
    write_results(connection, process, finished, held, now)
    return finished


def write_results(
    connection: Connection, process: str, finished: Sequence[Result], held: dict[int, RowMapping], now: datetime
) -> None:
    """Write the results of tasks; ``held`` are their rows from :func:`lock_owned_tasks`."""
    stamp, tally_changes = timestamp_encoder(connection.dialect.name), TallyChanges()
    for task, found in finished:
        row = held[task.id]
        names = (row["service"], row["route"], row["scorer"])
        tally_changes.add(row["started_at"], names, "pending", by=-1)
        if _keeps_score(row, found):
            tally_changes.add(row["started_at"], names, "scored")
        else:
            tally_changes.add(row["started_at"], names, found.state, found.reason.value if found.reason else "")
    if finished:
        connection.execute(_CLOSE, [_closed(task, found, held[task.id]) for task, found in finished])
    made = [(held[task.id], found) for task, found in finished if found.value is not None]
    _delete_replaced(connection, [row for row, _ in made if row["scored_as"]])
    bulk_insert(connection, score, SCORE_COLUMNS, [score_values(row, found, now, stamp) for row, found in made])
    # Rescored answers were chosen by a person: the detector must not see them.
    detectors.insert_scores(connection, [(row, found) for row, found in made if row["scored_as"] is None], now, stamp)
    tally_changes.apply(connection, process)


def _keeps_score(row: RowMapping, found: Score) -> bool:
    """Whether a failed rescoring leaves the existing score in place."""
    return found.value is None and bool(row["scored_as"])


def _closed(task: ScoringTask, found: Score, row: RowMapping) -> dict[str, Any]:
    error = None if found.reason is None else clean_text(found.explanation)
    if _keeps_score(row, found):
        said = f"rescoring failed: {found.reason}: {error or 'unknown error'}"
        return {"task_id": task.id, "new_state": "done", "why": None, "said": said, "made": row["scored_as"]}
    state = "done" if found.state == "scored" else found.state
    made = None if found.value is None else clean_text(found.fingerprint)
    why = found.reason and found.reason.value
    return {"task_id": task.id, "new_state": state, "why": why, "said": error, "made": made}


def _delete_replaced(connection: Connection, replaced: Sequence[RowMapping]) -> None:
    """Delete scores that new ones replace."""
    keys = [{"of": row["exchange_id"], "by": row["scorer"], "made": row["scored_as"]} for row in replaced]
    if keys:
        connection.execute(_REPLACED, keys)


_REPLACED = delete(score).where(
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
        error=bindparam("said"),
        scored_as=bindparam("made"),
        not_before=None,
        lease_owner=None,
        lease_until=None,
    )
)


def lock_owned_tasks(connection: Connection, owner: str, tasks: Sequence[ScoringTask]) -> dict[int, RowMapping]:
    """Lock the tasks that this owner still holds; return their rows with the columns that a score needs."""
    held: dict[int, RowMapping] = {}
    for ids in batched(sorted({task.id for task in tasks})):
        rows = connection.execute(_HOLD.where(scoring_task.c.id.in_(ids))).mappings()
        # Compared here: in SQL the database might use the index of owners, which is slower.
        held |= {row["id"]: row for row in rows if row["lease_owner"] == owner}
    return held


_HOLD = (
    select(
        scoring_task.c.id,
        scoring_task.c.exchange_id,
        scoring_task.c.scorer,
        scoring_task.c.lease_owner,
        scoring_task.c.scored_as,
        exchange.c.service,
        exchange.c.route,
        exchange.c.started_at,
        exchange.c.sampling_probability,
        exchange.c.sampling_reason,
        exchange.c.proxy,
    )
    .join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    .order_by(scoring_task.c.id)
    .with_for_update(of=scoring_task)
)


def postpone_tasks(
    connection: Connection,
    owner: str,
    tasks: Sequence[ScoringTask],
    until: datetime,
    reason: UnscoredReason,
    error: str,
) -> None:
    """Return tasks to the queue, not to be claimed before ``until``."""
    held = lock_owned_tasks(connection, owner, tasks)
    statement = _back().where(scoring_task.c.id == bindparam("task_id"))
    statement = statement.values(
        not_before=until,
        reason=reason.value,
        error=clean_text(error),
        claims=scoring_task.c.claims - 1,
        retries=scoring_task.c.retries + 1,
    )
    if held:
        connection.execute(statement, [{"task_id": task_id} for task_id in held])


def release_tasks(connection: Connection, owner: str) -> int:
    """Return all tasks of this owner to the queue, as if they had never been claimed."""
    statement = _back().where(scoring_task.c.lease_owner == owner)
    statement = statement.values(not_before=scoring_task.c.first_pending_at, claims=scoring_task.c.claims - 1)
    return connection.execute(statement).rowcount


def _back() -> Update:
    return update(scoring_task).values(state="pending", lease_owner=None, lease_until=None)


MAX_CLAIMS: Final = 5
"""Claims without a result after which a task fails."""
MAX_CONCURRENT_OWNERS: Final = 32
"""Owners that can claim simultaneously. With more, one may get fewer tasks than there are."""
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
) -> list[TaskClaim]:
    """Claim the ready tasks of these scorers for up to ``limit`` exchanges, oldest first."""
    if not scorers:
        return []
    window = limit * len(scorers) * (1 if connection.dialect.name == "sqlite" else MAX_CONCURRENT_OWNERS)
    values = {"now": now, "limit": limit, "window": window, **_values(scorers)}
    found = connection.execute(_ready_tasks(connection.dialect.name, len(scorers)), values).mappings().all()
    for ids in batched([row["id"] for row in found]):
        connection.execute(_TAKE.where(scoring_task.c.id.in_(ids)), {"owner": owner, "lease_end": now + lease})
    _give_up(connection, process, owner, [row for row in found if row["claims"] >= MAX_CLAIMS], now)
    tasks: dict[str, list[ScoringTask]] = {}
    for row in found:
        if row["claims"] < MAX_CLAIMS:
            tasks.setdefault(row["exchange_id"], []).append(_claimed(row))
    exchanges = _exchanges(connection, list(tasks))
    return [TaskClaim(claimed, tuple(sorted(tasks[claimed.id], key=lambda task: task.id))) for claimed in exchanges]


_TAKE = update(scoring_task).values(
    state="running",
    lease_owner=bindparam("owner"),
    lease_until=bindparam("lease_end"),
    not_before=bindparam("lease_end"),
    claims=scoring_task.c.claims + 1,
)


def _values(scorers: Mapping[str, str]) -> dict[str, Any]:
    """Return the SQL parameters for scorers and fingerprints."""
    pairs = sorted(scorers.items())
    numbered = {f"scorer_{number}": scorer for number, (scorer, _) in enumerate(pairs)}
    numbered |= {f"fingerprint_{number}": fingerprint for number, (_, fingerprint) in enumerate(pairs)}
    return {**numbered, "pairs": [f"{scorer} {fingerprint}" for scorer, fingerprint in pairs]}


def _is_ours(task: FromClause) -> ColumnElement[bool]:
    """Whether a task is of these scorers, in a form that uses only the index of the exchange's tasks."""
    return task.c.scorer.concat(_BETWEEN).concat(task.c.fingerprint).in_(bindparam("pairs", expanding=True))


_ready = scoring_task.c.not_before <= bindparam("now")


def _of_scorer(number: int) -> tuple[ColumnElement[bool], ...]:
    columns = scoring_task.c
    return columns.scorer == bindparam(f"scorer_{number}"), columns.fingerprint == bindparam(f"fingerprint_{number}")


def _waiting(count: int) -> CompoundSelect[Any]:
    """Return the first ready tasks of ``count`` scorers, each from its own part of the index.

    Both databases merge these parts by time and stop at the limit, so they read no tasks of other scorers.
    """
    columns = (scoring_task.c.id, scoring_task.c.exchange_id, scoring_task.c.not_before)
    window = bindparam("window", type_=Integer)
    arms = [select(*columns).where(*_of_scorer(number), _ready) for number in range(count)]
    ordered = [arm.order_by(scoring_task.c.not_before).limit(window) for arm in arms]
    limited = [arm.subquery(f"waiting_{number}") for number, arm in enumerate(ordered)]
    return union_all(*map(select, limited)).order_by("not_before").limit(window)


def _is_first() -> ColumnElement[bool]:
    """Whether a task is the first ready one of its exchange.

    Locking the first task claims the whole exchange, so two owners never wait for each other's tasks. Ordered like the
    queue, so that the oldest task of the queue is always a first one.
    """
    sibling = scoring_task.alias("sibling")
    earlier = and_(sibling.c.not_before == scoring_task.c.not_before, sibling.c.id < scoring_task.c.id)
    return ~exists().where(
        sibling.c.exchange_id == scoring_task.c.exchange_id,
        _is_ours(sibling),
        sibling.c.not_before <= bindparam("now"),
        or_(sibling.c.not_before < scoring_task.c.not_before, earlier),
    )


def _heads(dialect: str, count: int) -> CTE:
    """Return the exchanges to claim; on PostgreSQL, by locking the first ready task of each."""
    waiting, limit = _waiting(count).subquery("waiting"), bindparam("limit", type_=Integer)
    if dialect == "sqlite":  # no other process can write now
        found = select(waiting.c.exchange_id).group_by(waiting.c.exchange_id)
        return found.order_by(func.min(waiting.c.not_before)).limit(limit).cte("heads")
    # With limits at every step, and lateral: without statistics PostgreSQL would read and join everything.
    first = select(scoring_task.c.exchange_id).where(scoring_task.c.id == waiting.c.id, _ready, _is_first())
    locked = first.with_for_update(of=scoring_task, skip_locked=True).lateral("locked")
    heads = select(locked.c.exchange_id).select_from(waiting.join(locked, true()))
    return heads.order_by(waiting.c.not_before).limit(limit).cte("heads")


@cache
def _ready_tasks(dialect: str, count: int) -> Select[Any]:
    """Return a query for all ready tasks of the exchanges to claim, locked."""
    heads = _heads(dialect, count)
    tasks = select(*(scoring_task.c[name] for name in (*ScoringTask.__slots__, *_LATEST)))
    tasks = tasks.where(scoring_task.c.exchange_id == heads.c.exchange_id, _is_ours(scoring_task), _ready)
    if dialect == "sqlite":
        return tasks
    # Lateral, so that each exchange is looked up in the index: without statistics PostgreSQL expects so many tasks per
    # exchange that it would read them all.
    found = tasks.with_for_update(skip_locked=True).lateral("found")
    return select(found).select_from(heads.join(found, true()))


def _claimed(row: RowMapping) -> ScoringTask:
    values = {name: row[name] for name in ScoringTask.__slots__}
    return ScoringTask(**values | {"claims": row["claims"] + 1})


def _give_up(connection: Connection, process: str, owner: str, rows: Sequence[RowMapping], now: datetime) -> None:
    """Fail tasks that were claimed too often: they probably crash the process that scores them."""
    if not rows:
        return
    failed = [(_claimed(row), _failure(row, now)) for row in rows]
    write_results(connection, process, failed, lock_owned_tasks(connection, owner, [task for task, _ in failed]), now)


def _failure(row: RowMapping, now: datetime) -> Score:
    explanation = f"scoring was started {row['claims']} times and the process ended each time"
    if row["reason"]:
        explanation += f"; before that: {row['reason']}: {row['error'] or 'unknown error'}"
    return Score(
        scorer=row["scorer"],
        fingerprint=row["fingerprint"],
        reason=UnscoredReason.SCORER_ERROR,
        explanation=explanation,
        scored_at=now,
    )


def _exchanges(connection: Connection, ids: Sequence[str]) -> list[Exchange]:
    found: list[Exchange] = []
    for some in batched(ids):
        query = select(exchange).where(exchange.c.id.in_(some))
        found += [exchange_from_row(row) for row in connection.execute(query).mappings()]
    return sorted(found, key=lambda exchange_: (exchange_.started_at, exchange_.id))
