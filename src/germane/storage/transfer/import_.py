"""Writing exported records into a database, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import JSON, Column, Connection, RowMapping, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.mappers import TimestampEncoder, batched, bulk_insert, score_key, timestamp_encoder
from germane.storage.db.sanitize import to_json
from germane.storage.db.tables import exchange, feedback, score, scoring_task, tally
from germane.storage.queue.erase_text import keep_numbers
from germane.storage.transfer.record import DroppedCount, ExchangeRecord, Row

TaskKey = tuple[str, str, str]
"""Exchange, scorer and fingerprint."""
NewTask = tuple[ExchangeRecord, Row]
"""A task that the database did not have, and its record."""
StoredExchanges = Mapping[str, RowMapping]
"""Exchanges by id as the database has them. These win over the values of a file."""

_TASKS_PER_STATEMENT: Final = 50
"""Every version of SQLite accepts the parameters of this many tasks."""
_TASK_KEY: Final = (scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The number of new rows."""

    exchanges: int = 0
    tasks: int = 0


def restore(connection: Connection, process: str, records: Sequence[ExchangeRecord]) -> ImportResult:
    """Write records. Existing rows are left alone; each new task is counted in the tally with its state."""
    # Sorted: all processes lock rows in the same order.
    records = sorted(records, key=lambda record: str(record.exchange["id"]))
    ids = sorted({record.exchange["id"] for record in records})
    new_exchanges = len(ids) - len(_lock_exchanges(connection, ids))
    _insert(connection, exchange, [record.exchange for record in records])
    stored = _lock_exchanges(connection, ids)
    new_tasks = _restore_tasks(connection, [one for one in records if one.exchange["id"] in stored], stored)
    _restore_scores(connection, new_tasks, stored)
    labels = [{**label, "exchange_id": record.exchange["id"]} for record in records for label in record.feedback]
    _insert(connection, feedback, labels)
    _count(connection, process, new_tasks, stored)
    # An exchange without tasks may still have a proxy score.
    dirty_hours.mark_dirty(connection, [row["started_at"] for row in stored.values()])
    return ImportResult(new_exchanges, len(new_tasks))


def _lock_exchanges(connection: Connection, ids: Sequence[str]) -> dict[str, RowMapping]:
    """Return the stored exchanges, locked against erasure and deletion."""
    columns = (exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.erased_at)
    query = select(*columns).order_by(exchange.c.id).with_for_update(read=True, key_share=True)
    return {
        row["id"]: row
        for some in batched(ids)
        for row in connection.execute(query.where(exchange.c.id.in_(some))).mappings()
    }


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows with the same columns, ignoring existing rows."""
    encode = timestamp_encoder(connection.dialect.name)
    columns = [column for column in table.columns if rows and column.name in rows[0]]
    values = [tuple(_encode(column, row[column.name], encode) for column in columns) for row in rows]
    bulk_insert(connection, table, tuple(column.name for column in columns), values)


def _encode(column: Column[Any], value: Any, encode: TimestampEncoder) -> Any:
    if isinstance(value, datetime):
        return encode(value)
    return to_json(value) if isinstance(column.type, JSON) else value


def _restore_tasks(connection: Connection, records: Sequence[ExchangeRecord], stored: StoredExchanges) -> list[NewTask]:
    """Write the tasks that the database does not have, and return them.

    Existing tasks are left out before the insert: a scoring process locks tasks and may wait for an exchange that is
    locked here.
    """
    known: set[TaskKey] = set()
    for some in batched(list(stored)):
        query = select(*_TASK_KEY).where(scoring_task.c.exchange_id.in_(some))
        known |= {(row[0], row[1], row[2]) for row in connection.execute(query)}
    new: dict[TaskKey, NewTask] = {}
    for record in records:
        for task in record.tasks:
            key = (record.exchange["id"], task["scorer"], task["fingerprint"])
            if key not in known:
                new.setdefault(key, (record, task))
    rows = []
    for key, (_, task) in sorted(new.items(), key=itemgetter(0)):
        erased = {} if stored[key[0]]["erased_at"] is None else {"error": None}
        rows.append({**task, **erased, "exchange_id": key[0]})
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement, written = make(scoring_task).on_conflict_do_nothing().returning(*_TASK_KEY), set[TaskKey]()
    for start in range(0, len(rows), _TASKS_PER_STATEMENT):
        returned = connection.execute(statement.values(rows[start : start + _TASKS_PER_STATEMENT]))
        written |= {(row[0], row[1], row[2]) for row in returned}
    return [task for key, task in new.items() if key in written]


def _restore_scores(connection: Connection, tasks: Sequence[NewTask], stored: StoredExchanges) -> None:
    rows: list[Row] = []
    for record, task in tasks:
        row = stored[record.exchange["id"]]
        erased = row["erased_at"] is not None
        shared = {"exchange_id": row["id"], **{name: row[name] for name in ("service", "route", "started_at")}}
        for values in record.scores:
            if task["state"] == "done" and (values["scorer"], values["fingerprint"]) == score_key(task):
                text = {"explanation": None, "details": keep_numbers(values["details"])} if erased else {}
                rows.append({**values, **shared, **text})
    _insert(connection, score, rows)


def _count(connection: Connection, process: str, tasks: Sequence[NewTask], stored: StoredExchanges) -> None:
    tally_changes = TallyChanges()
    for record, task in tasks:
        row = stored[record.exchange["id"]]
        names, started_at, state = (row["service"], row["route"], task["scorer"]), row["started_at"], task["state"]
        tally_changes.add(started_at, names, "seen")
        if state in {"done", "pending"}:
            tally_changes.add(started_at, names, "scored" if state == "done" else "pending")
        else:
            tally_changes.add(started_at, names, state, task["reason"])
    tally_changes.apply(connection, process)


def restore_dropped(connection: Connection, counts: Sequence[DroppedCount]) -> None:
    """Write counts of exchanges that were not stored. Counts that exist already are not added again."""
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = make(tally).on_conflict_do_nothing().returning(tally.c.count)
    for one in counts:
        row = {name: getattr(one, name) for name in one.__slots__}
        if connection.execute(statement.values({**row, "outcome": "skipped"})).first() is not None:
            tally_changes = TallyChanges()
            tally_changes.add(one.minute, (one.service, one.route, one.scorer), "seen", by=one.count)
            tally_changes.apply(connection, one.process)
