"""Candidates, which wait until their interval ends, and what then becomes of them.

All of it is written by one process, the one that holds an office: each transaction locks the office's row and does
nothing when another process holds it by now. In the same row stands how far the holder has come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, bindparam, exists, func, literal_column, select, tuple_, update

from germane.score import Reason
from germane.storage.cluster import leases
from germane.storage.counts.tally import Deltas
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.quota import budget_ledger

CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Of an exchange in the pool what decides whether it is picked."""

    id: str
    service: str
    route: str
    started_at: datetime
    """UTC."""
    draw: float
    """In (0, 1]."""
    capture_probability: float
    """In (0, 1]."""
    proxy: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """Who goes on where: an office, who must still hold it, and how far its holder has come with this step."""

    office: str
    owner: str
    cursor: str


@dataclass(frozen=True, slots=True)
class Pick:
    """An exchange that is to be scored."""

    exchange_id: str
    probability: float
    """Of being scored, in (0, 1]."""
    sampling_reason: str


# Written out: with a parameter SQLite would not know that the partial index holds them all.
_WAITS = exchange.c.sampling_reason == literal_column(f"'{CANDIDATE}'")
_LIGHT = tuple(exchange.c[name] for name in Candidate.__slots__)


def candidates(connection: Connection, limit: int, after: Candidate | None) -> list[Candidate]:
    """Return up to ``limit`` candidates, oldest first, from the one on that follows ``after``."""
    query = select(*_LIGHT).where(_WAITS)
    if after is not None:
        query = query.where(
            exchange.c.started_at >= after.started_at,
            tuple_(exchange.c.started_at, exchange.c.id) > tuple_(after.started_at, after.id),
        )
    rows = connection.execute(query.order_by(exchange.c.started_at, exchange.c.id).limit(limit))
    return [Candidate(**row) for row in rows.mappings()]


def under_way(connection: Connection) -> int:
    """Return how many exchanges have tasks that may be claimed, now or later, or are running."""
    query = select(func.count(func.distinct(scoring_task.c.exchange_id)))
    return int(connection.execute(query.where(scoring_task.c.not_before.is_not(None))).scalar_one())


def release(connection: Connection, step: Step, picks: Sequence[Pick], now: datetime) -> bool:
    """Let the picks be scored, count them, and note the step; False when the office has gone to another."""
    if not leases.move(connection, step.office, step.owner, step.cursor):
        return False
    found = {one.exchange_id: one for one in picks}
    there = _locked(connection, list(found))
    _decide(connection, {one: (found[one].probability, found[one].sampling_reason) for one in there})
    for ids in batched(there):
        waiting = scoring_task.c.exchange_id.in_(ids), *_WAITING
        # From now on it waits to be scored: what it waited in the pool is no delay.
        connection.execute(update(scoring_task).where(*waiting).values(not_before=now, first_pending_at=now))
    if there:
        budget_ledger.count_picked(connection, len(there), now)
    return True


def pass_over(
    connection: Connection, process: str, step: Step, passed: Mapping[str, float | None], reason: Reason
) -> Sequence[str] | None:
    """Close the tasks of candidates that were not picked, each with its probability.

    Returns:
        Those that were candidates still; None when the office has gone to another.
    """
    if not leases.move(connection, step.office, step.owner, step.cursor):
        return None
    there, deltas = _locked(connection, sorted(passed)), Deltas()
    _decide(connection, {one: (passed[one], reason.value) for one in there})
    for ids in batched(there):
        tasks = connection.execute(_TASKS.where(scoring_task.c.exchange_id.in_(ids))).all()
        _count(deltas, tasks, reason)
        waiting = scoring_task.c.exchange_id.in_(ids), *_WAITING
        connection.execute(update(scoring_task).where(*waiting).values(state=reason.state, reason=reason.value))
    deltas.write(connection, process)
    return there


def take_out(connection: Connection, ids: Sequence[str]) -> None:
    """Take those of these exchanges, which are locked, out of the pool that have no task waiting in it any more."""
    for some in batched(ids):
        connection.execute(_TAKE_OUT.where(exchange.c.id.in_(some)))


def _count(deltas: Deltas, tasks: Sequence[Row[str, str, str, datetime]], reason: Reason) -> None:
    for service, route, scorer, started_at in tasks:
        deltas.count(started_at, (service, route, scorer), "pending", by=-1)
        deltas.count(started_at, (service, route, scorer), reason.state, reason.value)


# Only tasks of candidates are pending and may not be claimed at any time.
_WAITING = (scoring_task.c.state == "pending", scoring_task.c.not_before.is_(None))
_TASKS = (
    select(exchange.c.service, exchange.c.route, scoring_task.c.scorer, exchange.c.started_at)
    .join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    .where(*_WAITING)
)
_TAKE_OUT = (
    update(exchange)
    .where(_WAITS, ~exists().where(scoring_task.c.exchange_id == exchange.c.id, *_WAITING))
    .values(sampling_reason=Reason.NOT_DRAWN.value)
)
_DECIDE = (
    update(exchange)
    .where(exchange.c.id == bindparam("decided"))
    .values(sampling_probability=bindparam("probability"), sampling_reason=bindparam("why"))
)


def _locked(connection: Connection, ids: Sequence[str]) -> list[str]:
    """Return those that are still candidates, locked: a rule or an erasure may have taken some away."""
    found: list[str] = []
    for some in batched(sorted(ids)):
        query = select(exchange.c.id, exchange.c.sampling_reason).where(exchange.c.id.in_(some))
        rows = connection.execute(query.order_by(exchange.c.id).with_for_update())
        found += [row.id for row in rows if row.sampling_reason == CANDIDATE]
    return found


def _decide(connection: Connection, decided: Mapping[str, tuple[float | None, str]]) -> None:
    rows = [{"decided": one, "probability": found[0], "why": found[1]} for one, found in decided.items()]
    if rows:
        connection.execute(_DECIDE, rows)
