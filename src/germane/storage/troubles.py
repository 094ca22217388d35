"""What keeps scores from being made, as any process on the database can see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from germane.score import Reason
from germane.storage.tables import scoring_task


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Tasks of one scorer that were tried, came to nothing for one reason, and are tried again."""

    scorer: str
    reason: Reason
    tasks: int
    since: datetime
    """UTC: since when the oldest of them waits to be scored."""
    until: datetime
    """UTC: when the last of them is tried again."""
    error: str
    """What stood in the way of that one, in the words of its server."""


def troubles(connection: Connection) -> list[Trouble]:
    """Return what tasks wait for, the most common first."""
    columns = scoring_task.c
    trouble = (columns.state == "pending", columns.reason.is_not(None))
    sums = (func.count().label("tasks"), func.min(columns.first_pending_at), func.max(columns.not_before))
    groups = select(columns.scorer, columns.reason, *sums).where(*trouble).group_by(columns.scorer, columns.reason)
    found = []
    for scorer, reason, tasks, since, until in connection.execute(groups.order_by(func.count().desc(), columns.scorer)):
        last = select(columns.error).where(*trouble, columns.scorer == scorer, columns.reason == reason)
        error = connection.execute(last.order_by(columns.not_before.desc()).limit(1)).scalar_one_or_none() or ""
        found.append(Trouble(scorer=scorer, reason=Reason(reason), tasks=tasks, since=since, until=until, error=error))
    return found
