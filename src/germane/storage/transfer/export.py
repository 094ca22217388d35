"""Reading records for an export, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, exists, or_, select

from germane.storage.counts.tally import DECLARED_MINUTE
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task, tally
from germane.storage.queue.erase_text import OPEN_STATES
from germane.storage.transfer.record import COLUMNS, NEVER_STORED, TABLES, DroppedCount, ExchangeRecord, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSelection:
    """The exchanges to export: since <= started_at < until."""

    since: datetime | None = None
    until: datetime | None = None
    route: str | None = None
    scorer: str | None = None
    """Only exchanges with a task of this scorer, and only its tasks and scores."""


def load_page(
    connection: Connection, selection: ExportSelection, after: Row | None, limit: int
) -> list[ExchangeRecord]:
    """Return the next page ordered by (started_at, id), starting after ``after`` or at the beginning."""
    if connection.dialect.name == "postgresql":  # tasks and scores of the same moment
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    query = select(*COLUMNS["exchange"]).order_by(exchange.c.started_at, exchange.c.id).limit(limit)
    if selection.since is not None:
        query = query.where(exchange.c.started_at >= selection.since)
    if selection.until is not None:
        query = query.where(exchange.c.started_at < selection.until)
    if selection.route is not None:
        query = query.where(exchange.c.route == selection.route)
    if selection.scorer is not None:
        query = query.where(
            exists().where(scoring_task.c.exchange_id == exchange.c.id, scoring_task.c.scorer == selection.scorer)
        )
    if after is not None:
        at, id_ = after["started_at"], after["id"]
        later = or_(exchange.c.started_at > at, and_(exchange.c.started_at == at, exchange.c.id > id_))
        query = query.where(exchange.c.started_at >= at, later)  # the index can use the first condition only
    rows = [dict(row) for row in connection.execute(query).mappings()]
    ids = [row["id"] for row in rows]
    tasks, scores, labels = (
        _load_by_exchange(connection, part, ids, selection) for part in ("task", "score", "feedback")
    )
    return [
        ExchangeRecord(
            row,
            [_released(task) for task in tasks.get(row["id"], [])],
            scores.get(row["id"], []),
            labels.get(row["id"], []),
        )
        for row in rows
    ]


def _load_by_exchange(
    connection: Connection, part: str, ids: Sequence[str], selection: ExportSelection
) -> dict[str, list[Row]]:
    table, by_exchange = TABLES[part], dict[str, list[Row]]()
    columns = [table.c.exchange_id.label("of"), *COLUMNS[part]]
    for some in batched(ids):
        query = select(*columns).where(table.c.exchange_id.in_(some)).order_by(table.c.exchange_id, table.c.id)
        if selection.scorer is not None and part != "feedback":
            query = query.where(table.c.scorer == selection.scorer)
        for row in connection.execute(query).mappings():
            values = dict(row)
            by_exchange.setdefault(values.pop("of"), []).append(values)
    return by_exchange


def _released(task: Row) -> Row:
    """Return a task without its lease, and a task that is being scored again as done: neither is exported."""
    if task["scored_as"] and task["state"] in OPEN_STATES:
        return {**task, "state": "done", "reason": None, "error": None, "not_before": None}
    if task["state"] != "running":
        return task
    claims = max(0, task["claims"] - 1)
    return {**task, "state": "pending", "not_before": task["first_pending_at"], "claims": claims}


def load_dropped(connection: Connection, selection: ExportSelection) -> list[DroppedCount]:
    """Return the counts of exchanges that were not stored, by minute and process."""
    query = select(*(tally.c[name] for name in DroppedCount.__slots__))
    first = (selection.since or DECLARED_MINUTE).replace(second=0, microsecond=0)
    query = query.where(tally.c.minute >= first, tally.c.outcome == "skipped", tally.c.reason.in_(NEVER_STORED))
    if selection.until is not None:
        query = query.where(tally.c.minute < selection.until)
    for name in ("route", "scorer"):
        if (value := getattr(selection, name)) is not None:
            query = query.where(tally.c[name] == value)
    return [DroppedCount(**row) for row in connection.execute(query.order_by(tally.c.minute)).mappings()]
