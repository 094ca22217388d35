"""Tasks that nobody runs any more: of a scorer that was dropped, changed or renamed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, bindparam, select

from germane.storage.cluster.workers import workers
from germane.storage.counts.tally import Deltas
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue.backlog import CANDIDATE, OPEN, Pair, pairs
from germane.storage.queue.candidates import take_out
from germane.storage.queue.expired import count_expired, expired

TOLD: Final = "no process has run this scorer with this fingerprint for an hour or more"


def expire(connection: Connection, process: str, after: timedelta, limit: int, now: datetime) -> int:
    """End up to ``limit`` tasks of scorers that nobody has run for so long; return how many.

    Nothing ends before some process has been there for that long to see it: after a night in which all rested, those
    whose scorers are missing may just not have started yet.
    """
    seen = workers(connection, since=now - after)
    if not any(one.started_at <= now - after for one in seen):
        return 0
    run = {pair for one in seen for pair in one.scorers.items()}
    ended: list[Row[Any]] = []
    for pair in sorted(set(pairs(connection)) - run):
        values = {"scorer": pair[0], "fingerprint": pair[1], "before": now - after, "now": now}
        for query in (_DUE, _POOLED):
            ended += connection.execute(query, {**values, "limit": limit - len(ended)}).all()
    _end(connection, process, ended)
    return len(ended)


def abandoned(connection: Connection, after: timedelta, now: datetime) -> list[Pair]:
    """Return scorers and fingerprints that have open tasks and were run by no process within that time."""
    run = {pair for one in workers(connection, since=now - after) for pair in one.scorers.items()}
    return sorted(set(pairs(connection)) - run)


def _gone(condition: Any, order: ColumnElement[Any], *more: Any, locked: Sequence[Table]) -> Select[Any]:
    of_task = (scoring_task.c.id, scoring_task.c.scorer, scoring_task.c.scored_as)
    columns = (*of_task, exchange.c.service, exchange.c.route, exchange.c.started_at)
    query = select(*columns, exchange.c.id.label("of")).join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    query = query.where(
        condition,
        scoring_task.c.scorer == bindparam("scorer"),
        scoring_task.c.fingerprint == bindparam("fingerprint"),
        scoring_task.c.first_pending_at <= bindparam("before"),
        *more,
    )
    return query.order_by(order).limit(bindparam("limit")).with_for_update(of=locked, skip_locked=True)


# Pending and due, or running under a lease that has ended: whoever holds one still gives an answer.
_DUE = _gone(OPEN, scoring_task.c.not_before, scoring_task.c.not_before <= bindparam("now"), locked=[scoring_task])
_POOLED = _gone(CANDIDATE, scoring_task.c.first_pending_at, locked=[scoring_task, exchange])


def _end(connection: Connection, process: str, rows: Sequence[Row[Any]]) -> None:
    deltas = Deltas()
    for some in batched(rows):
        connection.execute(_CLOSE.where(scoring_task.c.id.in_([row.id for row in some])))
    for row in rows:
        names = (row.service, row.route, row.scorer)
        deltas.count(row.started_at, names, "pending", by=-1)
        count_expired(deltas, row.started_at, names, row.scored_as)
    # Nobody can score them any more: they are not to be picked in the place of others.
    take_out(connection, sorted({row.of for row in rows}))
    deltas.write(connection, process)


_CLOSE = expired(TOLD)
