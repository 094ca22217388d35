"""What was tried in vain and is tried again: for what reasons, and what was said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Subquery, func, select

from germane.score import Reason
from germane.storage.queue import MANY
from germane.storage.tables import scoring_task


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Tasks of one scorer that were tried, came to nothing for one reason, and are tried again."""

    scorer: str
    reason: Reason
    tasks: int
    """Of one reason no more than :data:`~germane.storage.queue.MANY` are looked at."""
    since: datetime
    """UTC: since when the oldest of them waits to be scored."""
    until: datetime
    """UTC: when the last of them is tried again."""
    error: str
    """What stood in the way of that one, in the words of its server."""
    is_capped: bool = False
    """Whether there may be more than were counted."""


def troubles(connection: Connection) -> list[Trouble]:
    """Return what tasks wait for, the most common first."""
    found = [one for reason in _reasons(connection) for one in _of(connection, reason)]
    return sorted(found, key=lambda one: (-one.tasks, one.scorer, one.reason))


def _reasons(connection: Connection) -> Iterator[str]:
    """Step from reason to reason through an index: the tasks may be many."""
    query = select(func.min(scoring_task.c.reason)).where(scoring_task.c.state == "pending")
    reason = connection.execute(query).scalar_one()
    while reason is not None:
        yield reason
        reason = connection.execute(query.where(scoring_task.c.reason > reason)).scalar_one()


def _of(connection: Connection, reason: str) -> list[Trouble]:
    columns = scoring_task.c
    wanted = select(columns.scorer, columns.first_pending_at, columns.not_before, columns.error)
    wanted = wanted.where(columns.state == "pending", columns.reason == reason)
    first = wanted.limit(MANY).subquery("first")
    sums = (func.count(), func.min(first.c.first_pending_at), func.max(first.c.not_before))
    groups = connection.execute(select(first.c.scorer, *sums).group_by(first.c.scorer)).all()
    is_capped = sum(row[1] for row in groups) >= MANY
    return [
        Trouble(
            scorer=scorer,
            reason=Reason(reason),
            tasks=tasks,
            since=since,
            until=until,
            error=_said_last(connection, first, scorer),
            is_capped=is_capped,
        )
        for scorer, tasks, since, until in groups
    ]


def _said_last(connection: Connection, first: Subquery, scorer: str) -> str:
    last = select(first.c.error).where(first.c.scorer == scorer).order_by(first.c.not_before.desc()).limit(1)
    return connection.execute(last).scalar_one_or_none() or ""
