"""Scoring tasks: taken under a lease, finished exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Update, bindparam, delete, select, update

from germane.exchange import Exchange
from germane.score import Reason, Score
from germane.storage import arrivals
from germane.storage.rows import SCORE, batched, insert, score_values, stamp_for
from germane.storage.tables import exchange, score, scoring_task
from germane.storage.tally import Deltas
from germane.storage.text import clean

Result = tuple["Task", Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One scorer's work on one exchange."""

    id: int
    exchange_id: str
    scorer: str
    fingerprint: str
    attempts: int
    """How often it was claimed, this time included, and not handed back: a judge that is away uses up none."""
    first_pending_at: datetime
    """UTC."""
    tries: int = 0
    """How often it was tried in vain and postponed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An exchange with those of its tasks that were ready, now this owner's until the lease ends."""

    exchange: Exchange
    tasks: tuple[Task, ...]


def complete(
    connection: Connection, process: str, owner: str, results: Sequence[Result], now: datetime
) -> list[Result]:
    """Write scores, states and tally for those tasks that are still this owner's; return these."""
    held = held_by(connection, owner, [task for task, _ in results])
    firsts: dict[int, Result] = {}
    for task, found in results:
        if task.id in held:
            firsts.setdefault(task.id, (task, found))
    finished = list(firsts.values())
    finish(connection, process, finished, held, now)
    return finished


def finish(
    connection: Connection, process: str, finished: Sequence[Result], held: dict[int, RowMapping], now: datetime
) -> None:
    """Write what came of tasks, each with its row of :func:`held_by`."""
    stamp, deltas = stamp_for(connection.dialect.name), Deltas()
    for task, found in finished:
        row = held[task.id]
        names = (row["service"], row["route"], row["scorer"])
        deltas.count(row["started_at"], names, "pending", by=-1)
        if _stands(row, found):
            deltas.count(row["started_at"], names, "scored")
        else:
            deltas.count(row["started_at"], names, found.state, found.reason.value if found.reason else "")
    if finished:
        connection.execute(_CLOSE, [_closed(task, found, held[task.id]) for task, found in finished])
    made = [(held[task.id], found) for task, found in finished if found.value is not None]
    _make_room(connection, [row for row, _ in made if row["scored_as"]])
    insert(connection, score, SCORE, [score_values(row, found, now, stamp) for row, found in made])
    # What is scored again was chosen by somebody: to the detector it is no news.
    arrivals.add(connection, [(row, found) for row, found in made if row["scored_as"] is None], now, stamp)
    deltas.write(connection, process)


def _stands(row: RowMapping, found: Score) -> bool:
    """Whether an exchange that was to be scored again keeps the score it has, for no new one came about."""
    return found.value is None and bool(row["scored_as"])


def _closed(task: Task, found: Score, row: RowMapping) -> dict[str, Any]:
    error = None if found.reason is None else clean(found.explanation)
    if _stands(row, found):
        said = f"scoring it again failed: {found.reason}: {error or 'no more is known'}"
        return {"task_id": task.id, "new_state": "done", "why": None, "said": said, "made": row["scored_as"]}
    state = "done" if found.state == "scored" else found.state
    made = None if found.value is None else clean(found.fingerprint)
    why = found.reason and found.reason.value
    return {"task_id": task.id, "new_state": state, "why": why, "said": error, "made": made}


def _make_room(connection: Connection, replaced: Sequence[RowMapping]) -> None:
    """Delete scores in whose place new ones come."""
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


def held_by(connection: Connection, owner: str, tasks: Sequence[Task]) -> dict[int, RowMapping]:
    """Return those tasks that this owner still holds, locked, each with what its score needs of the exchange."""
    held: dict[int, RowMapping] = {}
    for ids in batched(sorted({task.id for task in tasks})):
        rows = connection.execute(_HOLD.where(scoring_task.c.id.in_(ids))).mappings()
        # Compared here and not there, where it would invite the index of owners, which every claim leaves longer.
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


def postpone(
    connection: Connection, owner: str, tasks: Sequence[Task], until: datetime, reason: Reason, error: str
) -> None:
    """Hand tasks back, not to be claimed before ``until``."""
    held = held_by(connection, owner, tasks)
    statement = _back().where(scoring_task.c.id == bindparam("task_id"))
    statement = statement.values(
        not_before=until,
        reason=reason.value,
        error=clean(error),
        attempts=scoring_task.c.attempts - 1,
        tries=scoring_task.c.tries + 1,
    )
    if held:
        connection.execute(statement, [{"task_id": task_id} for task_id in held])


def release(connection: Connection, owner: str) -> int:
    """Hand back all that this owner holds, as if it had never been claimed."""
    statement = _back().where(scoring_task.c.lease_owner == owner)
    statement = statement.values(not_before=scoring_task.c.first_pending_at, attempts=scoring_task.c.attempts - 1)
    return connection.execute(statement).rowcount


def _back() -> Update:
    return update(scoring_task).values(state="pending", lease_owner=None, lease_until=None)
