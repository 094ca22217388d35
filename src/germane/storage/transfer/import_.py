"""What comes back into a database: exactly as it left, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import JSON, Column, Connection, RowMapping, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import Deltas
from germane.storage.db.mappers import Stamp, batched, insert, stamp_for
from germane.storage.db.sanitize import to_json
from germane.storage.db.tables import exchange, feedback, score, scoring_task, tally
from germane.storage.queue.erase_text import numbers
from germane.storage.transfer.record import Dropped, Record, Row, made_by

_AT_ONCE: Final = 50
"""Rows with all their values in one statement: every SQLite takes that many."""
Key = tuple[str, str, str]
"""Exchange, scorer and fingerprint of a task."""
Fresh = tuple[Record, Row]
"""A task that was not here, after the record that it came with."""
Here = Mapping[str, RowMapping]
"""Exchanges by id as they are here, which counts more than what a file says of them."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was new."""

    exchanges: int = 0
    tasks: int = 0


def restore(connection: Connection, process: str, records: Sequence[Record]) -> Restored:
    """Write records; what is here already stays as it is. Each new task is counted in the tally as what it is."""
    records = sorted(records, key=lambda one: str(one.exchange["id"]))  # two processes lock rows in the same order
    ids = sorted({one.exchange["id"] for one in records})
    new = len(ids) - len(_here(connection, ids))
    _write(connection, exchange, [one.exchange for one in records])
    here = _here(connection, ids)
    fresh = _restore_tasks(connection, [one for one in records if one.exchange["id"] in here], here)
    _restore_scores(connection, fresh, here)
    labels = [{**label, "exchange_id": one.exchange["id"]} for one in records for label in one.feedback]
    _write(connection, feedback, labels)
    _count(connection, process, fresh, here)
    dirty_hours.note(
        connection, [row["started_at"] for row in here.values()]
    )  # an exchange may bring no more than its proxy
    return Restored(new, len(fresh))


def _here(connection: Connection, ids: Sequence[str]) -> dict[str, RowMapping]:
    """Return the exchanges that are here, held, so that nobody erases or deletes them meanwhile."""
    columns = (exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.erased_at)
    query = select(*columns).order_by(exchange.c.id).with_for_update(read=True, key_share=True)
    return {
        row["id"]: row
        for some in batched(ids)
        for row in connection.execute(query.where(exchange.c.id.in_(some))).mappings()
    }


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


def _restore_tasks(connection: Connection, records: Sequence[Record], here: Here) -> list[Fresh]:
    """Write the tasks that are not here, and return them, each once.

    Those that are here are left out before: whoever scores holds tasks, and may wait for an exchange that is held here.
    """
    known, fresh = _known_tasks(connection, list(here)), dict[Key, Fresh]()
    for one in records:
        for task in one.tasks:
            key = (one.exchange["id"], task["scorer"], task["fingerprint"])
            if key not in known:
                fresh.setdefault(key, (one, task))
    rows = [
        {**_bare_task(task, here[key[0]]), "exchange_id": key[0]} for key, (_, task) in sorted(fresh.items(), key=_KEY)
    ]
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement, written = make(scoring_task).on_conflict_do_nothing().returning(*_TASK_KEY), set[Key]()
    for start in range(0, len(rows), _AT_ONCE):
        found = connection.execute(statement.values(rows[start : start + _AT_ONCE]))
        written |= {(row[0], row[1], row[2]) for row in found}
    return [one for key, one in fresh.items() if key in written]


_KEY = itemgetter(0)
_TASK_KEY = (scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)


def _known_tasks(connection: Connection, ids: Sequence[str]) -> set[Key]:
    query = select(*_TASK_KEY)
    return {
        (row[0], row[1], row[2])
        for some in batched(ids)
        for row in connection.execute(query.where(scoring_task.c.exchange_id.in_(some)))
    }


def _bare_task(task: Row, exchange_here: RowMapping) -> Row:
    return task if exchange_here["erased_at"] is None else {**task, "error": None}


def _restore_scores(connection: Connection, fresh: Sequence[Fresh], here: Here) -> None:
    rows: list[Row] = []
    for one, task in fresh:
        shared = here[one.exchange["id"]]
        more = {"exchange_id": shared["id"], **{name: shared[name] for name in ("service", "route", "started_at")}}
        more |= {} if shared["erased_at"] is None else {"explanation": None}
        for row in one.scores:
            if task["state"] == "done" and (row["scorer"], row["fingerprint"]) == made_by(task):
                bare = row["details"] if shared["erased_at"] is None else numbers(row["details"])
                rows.append({**row, **more, "details": bare})
    _write(connection, score, rows)


def _count(connection: Connection, process: str, fresh: Sequence[Fresh], here: Here) -> None:
    deltas = Deltas()
    for one, task in fresh:
        shared = here[one.exchange["id"]]
        names, moment = (shared["service"], shared["route"], task["scorer"]), shared["started_at"]
        deltas.count(moment, names, "seen")
        if task["state"] == "done":
            deltas.count(moment, names, "scored")
        elif task["state"] == "pending":
            deltas.count(moment, names, "pending")
        else:
            deltas.count(moment, names, task["state"], task["reason"])
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
