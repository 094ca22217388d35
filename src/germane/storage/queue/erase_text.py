"""Erasure of text from rows. Numbers and names are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Update, bindparam, cast, func, insert, literal, select, update

from germane.score import Score
from germane.storage.db.functions import is_one_of, json_text
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, feedback, score, scoring_task

OPEN_STATES = frozenset({"pending", "running"})
"""States of open tasks."""
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,40}( \d{1,4})?", re.ASCII)
"""Pattern for the keys in details to keep, such as ``claims`` or ``claim 3``. Entries with other keys are removed."""


def without_text(score: Score) -> Score:
    """Return a copy of a score without the explanation, and with only numbers and booleans in the details."""
    return replace(score, explanation=None, details=keep_numbers(score.details))


def keep_numbers(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the numeric and boolean values of ``details``, at any depth."""
    kept = {key: _keep_number(value) for key, value in details.items() if _NAME.fullmatch(str(key))}
    return {key: value for key, value in kept.items() if value is not None}


def _keep_number(value: Any) -> Any:
    if isinstance(value, Mapping):
        return keep_numbers(value)
    if isinstance(value, (list, tuple)):
        return [bare for item in value if (bare := _keep_number(item)) is not None]
    return value if isinstance(value, (bool, int, float)) else None


def erase_exchanges(connection: Connection, ids: Sequence[str], now: datetime) -> None:
    """Erase the text of exchanges, and of their closed tasks, scores and labels."""
    if not ids:
        return
    dialect = connection.dialect.name
    blank: dict[str, Any] = dict.fromkeys(("question", "answer", "error"))
    blank |= {"contexts": [], "history": [], "erased_at": now}
    if dialect == "sqlite":
        # Rewrite each row at the end of the table, because SQLite does not reuse the space of a row that only shrinks.
        columns = [
            literal(blank[column.name], column.type) if column.name in blank else column for column in exchange.columns
        ]
        rows = select(*columns).where(is_one_of(exchange.c.id, ids, dialect))
        connection.execute(insert(exchange).prefix_with("OR REPLACE").from_select(list(exchange.columns), rows))
    else:
        connection.execute(update(exchange).where(is_one_of(exchange.c.id, ids, dialect)).values(blank))
    connection.execute(_ERRORS.where(is_one_of(scoring_task.c.exchange_id, ids, dialect)))
    connection.execute(_COMMENTS.where(is_one_of(feedback.c.exchange_id, ids, dialect)))
    of_exchanges = is_one_of(score.c.exchange_id, ids, dialect)
    bare: dict[int, Any] = {}
    # Nobody writes scores of locked exchanges, so these need no lock.
    query = select(score.c.id, json_text(score.c.details, dialect)).where(of_exchanges)
    for score_id, details in connection.execute(query):
        stored = json.loads(details)
        if (kept := keep_numbers(stored)) != stored:
            bare[score_id] = kept
    if bare:
        connection.execute(_replace_details(dialect), {"bare": bare})
    connection.execute(_EXPLANATIONS.where(of_exchanges))


@lru_cache
def _replace_details(dialect: str) -> Update:
    """Return an update of scores, given a JSON object of score ids to details."""
    each = func.json_each if dialect == "sqlite" else func.jsonb_each
    new = each(bindparam("bare", type_=score.c.details.type)).table_valued("key", "value")
    return (
        update(score)
        .where(score.c.id == cast(new.c.key, score.c.id.type))
        .values(details=new.c.value, explanation=None)
    )


def erase_closed_exchanges(connection: Connection, ids: Sequence[str], now: datetime) -> int:
    """Erase the text of exchanges that have a sampling decision and only closed tasks. Return their number.

    Exchanges are locked first: if two processes close the last two tasks concurrently, the later process sees that both
    tasks are closed.
    """
    erased = 0
    for batch in batched(sorted(set(ids))):
        query = select(exchange.c.id).where(exchange.c.id.in_(batch), *_DECIDED)
        decided = list(connection.execute(query.order_by(exchange.c.id).with_for_update()).scalars())
        free, held = lock_tasks(connection, decided)
        busy = {id_ for id_, _ in held} | {row["exchange_id"] for row in free if row["state"] in OPEN_STATES}
        closed = {row["exchange_id"] for row in free} - busy
        erase_exchanges(connection, sorted(closed), now)
        erased += len(closed)
    return erased


_DECIDED = (exchange.c.erased_at.is_(None), exchange.c.sampling_reason.is_not(None))


def lock_tasks(
    connection: Connection, ids: Sequence[str], *, open_only: bool = False
) -> tuple[list[RowMapping], set[tuple[str, str]]]:
    """Lock the tasks of exchanges, skipping tasks that another process has locked.

    Waiting for locks could cause a deadlock, because a process that has locked a task may wait for its exchange. With
    ``open_only``, closed tasks are not returned.

    Returns:
        The locked tasks, and the exchange ids and scorers of tasks that another process has locked.
    """
    dialect = connection.dialect.name
    of_exchanges = is_one_of(scoring_task.c.exchange_id, ids, dialect)
    query = select(*(scoring_task.c[name] for name in _TASK)).where(of_exchanges).order_by(scoring_task.c.id)
    if dialect == "sqlite":  # only one transaction writes
        query = query.where(scoring_task.c.state.in_(OPEN_STATES)) if open_only else query
        return list(connection.execute(query).mappings()), set()
    free = query.with_for_update(skip_locked=True).cte("free")
    both = select(free, scoring_task.c.exchange_id.label("of"), scoring_task.c.scorer.label("by")).where(of_exchanges)
    both = both.outerjoin_from(scoring_task, free, free.c.id == scoring_task.c.id)
    if open_only:
        both = both.where(free.c.id.is_(None) | free.c.state.in_(OPEN_STATES))
    rows = connection.execute(both).mappings().all()
    return [row for row in rows if row["id"] is not None], {(row["of"], row["by"]) for row in rows if row["id"] is None}


_TASK = ("id", "exchange_id", "scorer", "fingerprint", "state", "reason", "due_at", "scored_as")


_ERRORS = (
    update(scoring_task)
    .where(scoring_task.c.error.is_not(None), scoring_task.c.state.not_in(["pending", "running"]))
    .values(error=None)
)
_COMMENTS = update(feedback).where(feedback.c.comment.is_not(None)).values(comment=None)
_EXPLANATIONS = update(score).where(score.c.explanation.is_not(None)).values(explanation=None)
