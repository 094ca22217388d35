"""Recording scores from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Insert, RowMapping, select
from sqlalchemy.dialects import postgresql, sqlite

from germane.annotation import RECORDED_FINGERPRINT, RecordedScore
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean_text
from germane.storage.db.tables import exchange, score, scoring_task
from germane.storage.queue.erase_text import keep_numbers

_ROWS_PER_STATEMENT = 50
"""Rows per statement, within the parameter limit of every SQLite version."""


def record_scores(connection: Connection, process: str, given: Sequence[RecordedScore]) -> list[RecordedScore]:
    """Write scores from elsewhere; return those whose exchange is not stored.

    Each gets a finished task like any other score, so that the tally adds up.
    """
    latest: dict[tuple[str, str], RecordedScore] = {}
    for one in sorted(given, key=lambda one: one.recorded_at):
        latest[clean_text(one.exchange_id), clean_text(one.name)] = one
    exchanges = _exchanges(connection, sorted({exchange_id for exchange_id, _ in latest}))
    # Sorted, so that two processes lock the rows in the same order.
    known = [(exchanges[key[0]], one) for key, one in sorted(latest.items()) if key[0] in exchanges]
    for start in range(0, len(known), _ROWS_PER_STATEMENT):
        _record(connection, process, known[start : start + _ROWS_PER_STATEMENT])
    return [score for score in given if clean_text(score.exchange_id) not in exchanges]


def _exchanges(connection: Connection, ids: Sequence[str]) -> dict[str, RowMapping]:
    columns = (exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.erased_at)
    query = select(*columns).order_by(exchange.c.id)
    found: dict[str, RowMapping] = {}
    for some in batched(ids):
        # Locked, so that no process erases or deletes them before the scores are written.
        held = query.where(exchange.c.id.in_(some)).with_for_update(read=True, key_share=True)
        found |= {row["id"]: row for row in connection.execute(held).mappings()}
    return found


def _record(connection: Connection, process: str, known: Sequence[tuple[RowMapping, RecordedScore]]) -> None:
    dialect, tally_changes = connection.dialect.name, TallyChanges()
    tasks = _TASKS[dialect].values([_task(row["id"], one) for row, one in known])
    new = {tuple(task) for task in connection.execute(tasks)}
    for row, one in known:
        if (row["id"], clean_text(one.name)) in new:
            names = (row["service"], row["route"], clean_text(one.name))
            tally_changes.add(row["started_at"], names, "seen")
            tally_changes.add(row["started_at"], names, "scored")
    connection.execute(_SCORES[dialect], [_score(row, one) for row, one in known])
    dirty_hours.mark_dirty(connection, [row["started_at"] for row, _ in known])  # also if the score existed
    tally_changes.apply(connection, process)


def _task(exchange_id: str, one: RecordedScore) -> dict[str, Any]:
    return {
        "exchange_id": exchange_id,
        "scorer": clean_text(one.name),
        "fingerprint": RECORDED_FINGERPRINT,
        "state": "done",
        "claims": 0,
        "first_pending_at": one.recorded_at,
    }


def _score(row: RowMapping, one: RecordedScore) -> dict[str, Any]:
    details = dict(one.details) if row["erased_at"] is None else keep_numbers(one.details)
    return {
        "exchange_id": row["id"],
        "scorer": clean_text(one.name),
        "fingerprint": RECORDED_FINGERPRINT,
        "service": row["service"],
        "route": row["route"],
        "started_at": row["started_at"],
        "sampling_probability": 1.0,  # our sampling did not decide which exchanges were scored elsewhere
        "value": float(one.value),
        "label": clean_text(one.label),
        "explanation": clean_text(one.explanation) if row["erased_at"] is None else None,
        "details": details,
        "scored_at": one.recorded_at,
    }


def _task_inserts() -> dict[str, Any]:
    key = (scoring_task.c.exchange_id, scoring_task.c.scorer)
    return {
        dialect: make(scoring_task).on_conflict_do_nothing().returning(*key)
        for dialect, make in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
    }


def _score_upserts() -> dict[str, Insert]:
    changed = ("value", "label", "explanation", "details", "scored_at")
    key = (score.c.exchange_id, score.c.scorer, score.c.fingerprint)
    found: dict[str, Insert] = {}
    for dialect, make in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert)):
        statement = make(score)
        found[dialect] = statement.on_conflict_do_update(
            index_elements=key,
            set_={name: statement.excluded[name] for name in changed},
            where=score.c.scored_at <= statement.excluded.scored_at,
        )
    return found


_TASKS = _task_inserts()
_SCORES = _score_upserts()
