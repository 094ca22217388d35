"""Scoring tasks: taken under a lease, finished exactly once."""

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
from germane.score import Reason, Score
from germane.storage.counts.tally import Deltas
from germane.storage.db.mappers import SCORE, batched, exchange_of, insert, score_values, stamp_for
from germane.storage.db.sanitize import clean
from germane.storage.db.tables import exchange, score, scoring_task
from germane.storage.queue import detector_inbox

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
    detector_inbox.add(connection, [(row, found) for row, found in made if row["scored_as"] is None], now, stamp)
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


ATTEMPTS: Final = 5
"""Claims after which a task that was neither finished nor handed back is not begun again."""
MOST_OWNERS: Final = 32
"""Owners that may claim at the very same moment. With more, one may come away with less than there is."""
_BETWEEN = literal_column("' '", Text)
_LATEST = ("reason", "error")


def claim(
    connection: Connection,
    process: str,
    owner: str,
    scorers: Mapping[str, str],
    limit: int,
    lease: timedelta,
    now: datetime,
) -> list[Claim]:
    """Take the ready tasks that these scorers have of up to ``limit`` exchanges, oldest first."""
    if not scorers:
        return []
    window = limit * len(scorers) * (1 if connection.dialect.name == "sqlite" else MOST_OWNERS)
    values = {"now": now, "limit": limit, "window": window, **_values(scorers)}
    found = connection.execute(_ready_tasks(connection.dialect.name, len(scorers)), values).mappings().all()
    for ids in batched([row["id"] for row in found]):
        connection.execute(_TAKE.where(scoring_task.c.id.in_(ids)), {"owner": owner, "lease_end": now + lease})
    _give_up(connection, process, owner, [row for row in found if row["attempts"] >= ATTEMPTS], now)
    tasks: dict[str, list[Task]] = {}
    for row in found:
        if row["attempts"] < ATTEMPTS:
            tasks.setdefault(row["exchange_id"], []).append(_claimed(row))
    exchanges = _exchanges(connection, list(tasks))
    return [Claim(one, tuple(sorted(tasks[one.id], key=lambda task: task.id))) for one in exchanges]


_TAKE = update(scoring_task).values(
    state="running",
    lease_owner=bindparam("owner"),
    lease_until=bindparam("lease_end"),
    not_before=bindparam("lease_end"),
    attempts=scoring_task.c.attempts + 1,
)


def _values(scorers: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters by which statements know scorers and fingerprints."""
    pairs = sorted(scorers.items())
    numbered = {f"scorer_{number}": scorer for number, (scorer, _) in enumerate(pairs)}
    numbered |= {f"fingerprint_{number}": fingerprint for number, (_, fingerprint) in enumerate(pairs)}
    return {**numbered, "pairs": [f"{scorer} {fingerprint}" for scorer, fingerprint in pairs]}


def _is_ours(task: FromClause) -> ColumnElement[bool]:
    """Whether a task is of these scorers; said in a way that invites no index but that of the exchange's tasks."""
    return task.c.scorer.concat(_BETWEEN).concat(task.c.fingerprint).in_(bindparam("pairs", expanding=True))


_ready = scoring_task.c.not_before <= bindparam("now")


def _of_scorer(number: int) -> tuple[ColumnElement[bool], ...]:
    columns = scoring_task.c
    return columns.scorer == bindparam(f"scorer_{number}"), columns.fingerprint == bindparam(f"fingerprint_{number}")


def _waiting(count: int) -> CompoundSelect[Any]:
    """Return the first ready tasks of so many scorers, each scorer's from its own part of the index.

    Both databases merge such parts in the order of time, and read no further than the limit: tasks of other scorers are
    not met on the way, however many there are.
    """
    columns = (scoring_task.c.id, scoring_task.c.exchange_id, scoring_task.c.not_before)
    window = bindparam("window", type_=Integer)
    arms = [select(*columns).where(*_of_scorer(number), _ready) for number in range(count)]
    ordered = [arm.order_by(scoring_task.c.not_before).limit(window) for arm in arms]
    limited = [arm.subquery(f"waiting_{number}") for number, arm in enumerate(ordered)]
    return union_all(*map(select, limited)).order_by("not_before").limit(window)


def _is_first() -> ColumnElement[bool]:
    """Whether a task comes before all other ready ones of its exchange.

    Whoever locks that one has the whole exchange, and two owners never wait for one another's siblings. By the order of
    the queue, so that its oldest task is always one of these.
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
    """Return the exchanges to take: on PostgreSQL each by its first ready task, which is locked."""
    waiting, limit = _waiting(count).subquery("waiting"), bindparam("limit", type_=Integer)
    if dialect == "sqlite":  # nobody else can write now
        found = select(waiting.c.exchange_id).group_by(waiting.c.exchange_id)
        return found.order_by(func.min(waiting.c.not_before)).limit(limit).cte("heads")
    # Cut off at every step, and lateral: before PostgreSQL has statistics it would rather read and join everything.
    first = select(scoring_task.c.exchange_id).where(scoring_task.c.id == waiting.c.id, _ready, _is_first())
    locked = first.with_for_update(of=scoring_task, skip_locked=True).lateral("locked")
    heads = select(locked.c.exchange_id).select_from(waiting.join(locked, true()))
    return heads.order_by(waiting.c.not_before).limit(limit).cte("heads")


@cache
def _ready_tasks(dialect: str, count: int) -> Select[Any]:
    """Return all ready tasks of the heads' exchanges, locked."""
    heads = _heads(dialect, count)
    tasks = select(*(scoring_task.c[name] for name in (*Task.__slots__, *_LATEST)))
    tasks = tasks.where(scoring_task.c.exchange_id == heads.c.exchange_id, _is_ours(scoring_task), _ready)
    if dialect == "sqlite":
        return tasks
    # Lateral, so that each exchange is looked up in the index: before PostgreSQL has statistics it expects so many of
    # one exchange that it would rather read them all.
    found = tasks.with_for_update(skip_locked=True).lateral("found")
    return select(found).select_from(heads.join(found, true()))


def _claimed(row: RowMapping) -> Task:
    values = {name: row[name] for name in Task.__slots__}
    return Task(**values | {"attempts": row["attempts"] + 1})


def _give_up(connection: Connection, process: str, owner: str, rows: Sequence[RowMapping], now: datetime) -> None:
    """End tasks that were begun too often: whoever scores them does not live to tell, and they block nobody."""
    if not rows:
        return
    failed = [(_claimed(row), _failure(row, now)) for row in rows]
    finish(connection, process, failed, held_by(connection, owner, [task for task, _ in failed]), now)


def _failure(row: RowMapping, now: datetime) -> Score:
    told = f"its scoring was begun {row['attempts']} times and ended with the process each time"
    if row["reason"]:
        told += f": before that, {row['reason']}: {row['error'] or 'no more is known'}"
    return Score(
        scorer=row["scorer"],
        fingerprint=row["fingerprint"],
        reason=Reason.SCORER_ERROR,
        explanation=told,
        scored_at=now,
    )


def _exchanges(connection: Connection, ids: Sequence[str]) -> list[Exchange]:
    found: list[Exchange] = []
    for some in batched(ids):
        query = select(exchange).where(exchange.c.id.in_(some))
        found += [exchange_of(row) for row in connection.execute(query).mappings()]
    return sorted(found, key=lambda one: (one.started_at, one.id))
