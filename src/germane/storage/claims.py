"""Taking tasks: the oldest that are ready, of the scorers that a process has, whole exchanges at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    and_,
    bindparam,
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
from germane.storage.rows import batched, exchange_of
from germane.storage.tables import exchange, scoring_task
from germane.storage.tasks import Claim, Task, finish, held_by

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
