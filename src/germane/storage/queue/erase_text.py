"""Erasing text from rows; numbers and names are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, literal, select, update

from germane.score import Score
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, feedback, score, scoring_task

OPEN_STATES = frozenset({"pending", "running"})
"""States of open tasks."""
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,40}( \d{1,4})?", re.ASCII)
"""Keys of details to keep, such as ``claims`` or ``claim 3``. Entries with other keys are removed."""


def without_text(score: Score) -> Score:
    """Return a score without its explanation, and with only the numbers and booleans of its details."""
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
    """Erase the text of exchanges, their closed tasks, scores and labels."""
    blank: dict[str, Any] = dict.fromkeys(("question", "answer", "error"))
    blank |= {"contexts": [], "history": [], "erased_at": now}
    for batch in batched(ids):
        if connection.dialect.name == "sqlite":
            # Rewrite the row after the last one: SQLite does not reuse the space of a row that only becomes shorter.
            columns = [
                literal(blank[column.name], column.type) if column.name in blank else column
                for column in exchange.columns
            ]
            rows = select(*columns).where(exchange.c.id.in_(batch))
            connection.execute(insert(exchange).prefix_with("OR REPLACE").from_select(list(exchange.columns), rows))
        else:
            connection.execute(update(exchange).where(exchange.c.id.in_(batch)).values(blank))
        connection.execute(_ERRORS.where(scoring_task.c.exchange_id.in_(batch)))
        connection.execute(_COMMENTS.where(feedback.c.exchange_id.in_(batch)))
        scores = select(score.c.id, score.c.explanation, score.c.details).where(score.c.exchange_id.in_(batch))
        bare_scores = []
        for row in connection.execute(scores.order_by(score.c.id).with_for_update()):
            bare = keep_numbers(row.details)
            if row.explanation is not None or bare != row.details:
                bare_scores.append({"score_id": row.id, "bare": bare})
        if bare_scores:
            connection.execute(_SCORE, bare_scores)


def erase_closed_exchanges(connection: Connection, ids: Sequence[str], now: datetime) -> int:
    """Erase the exchanges that have a sampling decision and only closed tasks; return their number.

    Exchanges are locked first: if two processes close the last two tasks concurrently, the later one sees both closed.
    """
    erased = 0
    for batch in batched(sorted(set(ids))):
        query = select(exchange.c.id).where(exchange.c.id.in_(batch), *_DECIDED)
        decided = list(connection.execute(query.order_by(exchange.c.id).with_for_update()).scalars())
        free, held = lock_tasks(connection, decided)
        closed = {row["exchange_id"] for row in free} - {
            row["exchange_id"] for row in free if row["state"] in OPEN_STATES
        }
        erase_exchanges(connection, sorted(closed - held), now)
        erased += len(closed - held)
    return erased


_DECIDED = (exchange.c.erased_at.is_(None), exchange.c.sampling_reason.is_not(None))


def lock_tasks(connection: Connection, ids: Sequence[str]) -> tuple[list[RowMapping], set[str]]:
    """Lock the tasks of exchanges; return the locked tasks, and the exchanges with a task locked by another process."""
    query = select(*(scoring_task.c[name] for name in _TASK)).order_by(scoring_task.c.id)
    free: list[RowMapping] = []
    everything: list[RowMapping] = []
    for batch in batched(ids):
        theirs = query.where(scoring_task.c.exchange_id.in_(batch))
        free += connection.execute(theirs.with_for_update(skip_locked=True)).mappings()
        everything += connection.execute(theirs).mappings()
    known = {row["id"] for row in free}
    return free, {row["exchange_id"] for row in everything if row["id"] not in known}


_TASK = ("id", "exchange_id", "scorer", "state", "lease_until", "scored_as")


_ERRORS = (
    update(scoring_task)
    .where(scoring_task.c.error.is_not(None), scoring_task.c.state.not_in(["pending", "running"]))
    .values(error=None)
)
_COMMENTS = update(feedback).where(feedback.c.comment.is_not(None)).values(comment=None)
_SCORE = (
    update(score)
    .where(score.c.id == bindparam("score_id"))
    .values(explanation=None, details=bindparam("bare", type_=score.c.details.type))
)
