"""Text taken out of rows: what was said goes, numbers and names stay."""

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

OPEN = frozenset({"pending", "running"})
"""States of tasks that are not closed."""
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,40}( \d{1,4})?", re.ASCII)
"""Keys of details such as ``claims`` or ``claim 3``. Whoever keeps text as a key loses the entry."""


def without_text(found: Score) -> Score:
    """Return a score without explanation, and with what in its details is a number or a flag."""
    return replace(found, explanation=None, details=numbers(found.details))


def numbers(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details without any text, of whatever shape a scorer gave them."""
    kept = {key: _bare(value) for key, value in details.items() if _NAME.fullmatch(str(key))}
    return {key: value for key, value in kept.items() if value is not None}


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return numbers(value)
    if isinstance(value, (list, tuple)):
        return [bare for item in value if (bare := _bare(item)) is not None]
    return value if isinstance(value, (bool, int, float)) else None


def erase(connection: Connection, ids: Sequence[str], now: datetime) -> None:
    """Erase the text of exchanges, of their closed tasks and scores, and of people's labels of them."""
    for some in batched(ids):
        _blank(connection, some, now)
        connection.execute(_ERRORS.where(scoring_task.c.exchange_id.in_(some)))
        connection.execute(_COMMENTS.where(feedback.c.exchange_id.in_(some)))
        _erase_scores(connection, some)


def erase_closed(connection: Connection, ids: Sequence[str], now: datetime) -> int:
    """Erase the text of those exchanges that were decided on and have tasks, all of them closed; return how many.

    Each is locked first: of two processes that close its last two tasks at once, the later one finds both closed.
    """
    erased = 0
    for some in batched(sorted(set(ids))):
        query = select(exchange.c.id).where(exchange.c.id.in_(some), *_DECIDED)
        found = list(connection.execute(query.order_by(exchange.c.id).with_for_update()).scalars())
        free, held = tasks_of(connection, found)
        closed = {row["exchange_id"] for row in free} - {row["exchange_id"] for row in free if row["state"] in OPEN}
        erase(connection, sorted(closed - held), now)
        erased += len(closed - held)
    return erased


_DECIDED = (exchange.c.erased_at.is_(None), exchange.c.sampling_reason.is_not(None))


def tasks_of(connection: Connection, ids: Sequence[str]) -> tuple[list[RowMapping], set[str]]:
    """Return the tasks of exchanges, locked, and which exchanges have one that somebody else has locked."""
    query = select(*(scoring_task.c[name] for name in _TASK)).order_by(scoring_task.c.id)
    free: list[RowMapping] = []
    everything: list[RowMapping] = []
    for some in batched(ids):
        theirs = query.where(scoring_task.c.exchange_id.in_(some))
        free += connection.execute(theirs.with_for_update(skip_locked=True)).mappings()
        everything += connection.execute(theirs).mappings()
    known = {row["id"] for row in free}
    return free, {row["exchange_id"] for row in everything if row["id"] not in known}


_TASK = ("id", "exchange_id", "scorer", "state", "lease_until", "scored_as")


def _blank(connection: Connection, ids: Sequence[str], now: datetime) -> None:
    blank: dict[str, Any] = dict.fromkeys(("question", "answer", "error"))
    blank |= {"contexts": [], "history": [], "erased_at": now}
    if connection.dialect.name != "sqlite":
        connection.execute(update(exchange).where(exchange.c.id.in_(ids)).values(blank))
        return
    # Written anew behind the last row: SQLite does not use the room again that a row leaves which only becomes shorter.
    columns = [literal(blank[one.name], one.type) if one.name in blank else one for one in exchange.columns]
    moved = insert(exchange).prefix_with("OR REPLACE")
    connection.execute(moved.from_select(list(exchange.columns), select(*columns).where(exchange.c.id.in_(ids))))


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


def _erase_scores(connection: Connection, ids: Sequence[str]) -> None:
    query = select(score.c.id, score.c.explanation, score.c.details).where(score.c.exchange_id.in_(ids))
    rows = []
    for row in connection.execute(query.order_by(score.c.id).with_for_update()):
        bare = numbers(row.details)
        if row.explanation is not None or bare != row.details:
            rows.append({"score_id": row.id, "bare": bare})
    if rows:
        connection.execute(_SCORE, rows)
