"""What comes back into a database: exactly as it left, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import JSON, Column, Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.record import Dropped, Record, Row, made_by
from germane.storage.rows import Stamp, batched, insert, stamp_for
from germane.storage.tables import exchange, feedback, score, scoring_task, tally
from germane.storage.tally import Deltas
from germane.storage.text import to_json

_AT_ONCE: Final = 50
"""Rows with all their values in one statement: every SQLite takes that many."""
Key = tuple[str, str, str]
"""Exchange, scorer and fingerprint of a task."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was new."""

    exchanges: int = 0
    tasks: int = 0


def restore(connection: Connection, process: str, records: Sequence[Record]) -> Restored:
    """Write records; what is here already stays as it is. Each new task is counted in the tally as what it is."""
    records = sorted(records, key=lambda one: str(one.exchange["id"]))  # two processes lock rows in the same order
    new = _new_exchanges(connection, [one.exchange["id"] for one in records])
    _write(connection, exchange, [one.exchange for one in records])
    fresh = _restore_tasks(connection, records)
    _restore_scores(connection, records, fresh)
    labels = [{**label, "exchange_id": one.exchange["id"]} for one in records for label in one.feedback]
    _write(connection, feedback, labels)
    _count(connection, process, records, fresh)
    return Restored(new, len(fresh))


def _write(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that all have the same columns, and leave those that are there as they are."""
    stamp = stamp_for(connection.dialect.name)
    columns = [column for column in table.columns if rows and column.name in rows[0]]  # in the order of the table
    values = [tuple(_driven(column, row[column.name], stamp) for column in columns) for row in rows]
    insert(connection, table, tuple(column.name for column in columns), values)


def _driven(column: Column[Any], value: Any, stamp: Stamp) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return to_json(value) if isinstance(column.type, JSON) else value


def _new_exchanges(connection: Connection, ids: Sequence[str]) -> int:
    known = sum(
        len(connection.execute(select(exchange.c.id).where(exchange.c.id.in_(some))).all()) for some in batched(ids)
    )
    return len(set(ids)) - known


def _restore_tasks(connection: Connection, records: Sequence[Record]) -> set[Key]:
    """Write the tasks, and return those that were not here."""
    rows = [{**task, "exchange_id": one.exchange["id"]} for one in records for task in one.tasks]
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    key = (scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)
    statement, fresh = make(scoring_task).on_conflict_do_nothing().returning(*key), set[Key]()
    for start in range(0, len(rows), _AT_ONCE):
        written = connection.execute(statement.values(rows[start : start + _AT_ONCE]))
        fresh |= {(row[0], row[1], row[2]) for row in written}
    return fresh


def _restore_scores(connection: Connection, records: Sequence[Record], fresh: set[Key]) -> None:
    rows: list[Row] = []
    for one in records:
        id_ = one.exchange["id"]
        made = {made_by(task) for task in one.tasks if (id_, task["scorer"], task["fingerprint"]) in fresh}
        more = {"exchange_id": id_, **{name: one.exchange[name] for name in ("service", "route", "started_at")}}
        rows += [{**row, **more} for row in one.scores if (row["scorer"], row["fingerprint"]) in made]
    _write(connection, score, rows)


def _count(connection: Connection, process: str, records: Sequence[Record], fresh: set[Key]) -> None:
    deltas = Deltas()
    for one in records:
        row = one.exchange
        for task in one.tasks:
            if (row["id"], task["scorer"], task["fingerprint"]) not in fresh:
                continue
            names = (row["service"], row["route"], task["scorer"])
            deltas.count(row["started_at"], names, "seen")
            if task["state"] == "done":
                deltas.count(row["started_at"], names, "scored")
            elif task["state"] == "pending":
                deltas.count(row["started_at"], names, "pending")
            else:
                deltas.count(row["started_at"], names, task["state"], task["reason"])
    deltas.write(connection, process)


def restore_dropped(connection: Connection, counts: Sequence[Dropped]) -> None:
    """Write counts of exchanges that never became rows; those that are here already are not added again."""
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = make(tally).on_conflict_do_nothing().returning(tally.c.count)
    for one in counts:
        row = {name: getattr(one, name) for name in one.__slots__}
        if connection.execute(statement.values({**row, "outcome": "skipped"})).first() is not None:
            deltas = Deltas()
            deltas.count(one.minute, (one.service, one.route, one.scorer), "seen", by=one.count)
            deltas.write(connection, one.process)
