"""What leaves the database, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, and_, exists, or_, select

from germane.storage.counts.tally import DECLARED
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task, tally
from germane.storage.queue.erase_text import OPEN
from germane.storage.transfer.record import COLUMNS, NEVER_ROWS, Dropped, Record, Row, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which exchanges: since <= started_at < until."""

    since: datetime | None = None
    until: datetime | None = None
    route: str | None = None
    scorer: str | None = None
    """Only exchanges that have a task of it, with what is of it."""


def page(connection: Connection, chosen: Selection, after: Row | None, limit: int) -> list[Record]:
    """Return the next exchanges by moment and id, after that one; from the first on without one."""
    if connection.dialect.name == "postgresql":  # tasks and scores as they are at one moment
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    query = _chosen(chosen).order_by(exchange.c.started_at, exchange.c.id).limit(limit)
    if after is not None:
        at, id_ = after["started_at"], after["id"]
        later = or_(exchange.c.started_at > at, and_(exchange.c.started_at == at, exchange.c.id > id_))
        query = query.where(exchange.c.started_at >= at, later)  # the first alone finds the place in the index
    found = [dict(row) for row in connection.execute(query).mappings()]
    ids = [row["id"] for row in found]
    tasks, scores, labels = (_by_exchange(connection, part, ids, chosen) for part in ("task", "score", "feedback"))
    records = []
    for row in found:
        parts = [part.get(row["id"], []) for part in (tasks, scores, labels)]
        records.append(Record(row, [_unheld(task) for task in parts[0]], parts[1], parts[2]))
    return records


def _chosen(chosen: Selection) -> Select[Any]:
    query = select(*COLUMNS["exchange"])
    if chosen.since is not None:
        query = query.where(exchange.c.started_at >= chosen.since)
    if chosen.until is not None:
        query = query.where(exchange.c.started_at < chosen.until)
    if chosen.route is not None:
        query = query.where(exchange.c.route == chosen.route)
    if chosen.scorer is not None:
        query = query.where(
            exists().where(scoring_task.c.exchange_id == exchange.c.id, scoring_task.c.scorer == chosen.scorer)
        )
    return query


def _by_exchange(connection: Connection, part: str, ids: Sequence[str], chosen: Selection) -> dict[str, list[Row]]:
    table, found = table_of(part), dict[str, list[Row]]()
    columns = [table.c.exchange_id.label("of"), *COLUMNS[part]]
    for some in batched(ids):
        query = select(*columns).where(table.c.exchange_id.in_(some)).order_by(table.c.exchange_id, table.c.id)
        if chosen.scorer is not None and part != "feedback":
            query = query.where(table.c.scorer == chosen.scorer)
        for row in connection.execute(query).mappings():
            values = dict(row)
            found.setdefault(values.pop("of"), []).append(values)
    return found


def _unheld(task: Row) -> Row:
    """Return a task as it is when nobody holds it: a lease does not travel, nor does the wish to score it again."""
    if task["scored_as"] and task["state"] in OPEN:
        return {**task, "state": "done", "reason": None, "error": None, "not_before": None}
    if task["state"] != "running":
        return task
    return {
        **task,
        "state": "pending",
        "not_before": task["first_pending_at"],
        "attempts": max(0, task["attempts"] - 1),
    }


def dropped(connection: Connection, chosen: Selection) -> list[Dropped]:
    """Return the counts of exchanges that never became rows, by minute and process."""
    query = select(*(tally.c[name] for name in Dropped.__slots__))
    first = (chosen.since or DECLARED).replace(second=0, microsecond=0)
    query = query.where(tally.c.minute >= first, tally.c.outcome == "skipped", tally.c.reason.in_(NEVER_ROWS))
    if chosen.until is not None:
        query = query.where(tally.c.minute < chosen.until)
    for name in ("route", "scorer"):
        if (value := getattr(chosen, name)) is not None:
            query = query.where(tally.c[name] == value)
    return [Dropped(**row) for row in connection.execute(query.order_by(tally.c.minute)).mappings()]
