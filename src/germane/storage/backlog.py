"""How much waits to be scored, and for how long: what a gauge shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from germane.storage.outstanding import Outstanding, outstanding
from germane.storage.tables import exchange, scoring_task, worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits at one moment."""

    left: Outstanding
    lag: timedelta
    """How long the oldest has waited: an exchange that nobody has decided on since it began, or a task since it may be
    scored. Candidates of a budget's pool are not late."""
    workers: int
    """Processes that score, and told of themselves lately."""


def backlog(connection: Connection, now: datetime, lately: timedelta) -> Backlog:
    """Return what waits."""
    since = _oldest(connection)
    seen = select(func.count()).select_from(worker).where(worker.c.seen_at >= now - lately)
    return Backlog(
        left=outstanding(connection, now),
        lag=timedelta() if since is None else max(timedelta(), now - since),
        workers=int(connection.execute(seen).scalar_one()),
    )


def _oldest(connection: Connection) -> datetime | None:
    undecided = select(func.min(exchange.c.started_at)).where(exchange.c.sampling_reason.is_(None))
    ready = select(func.min(scoring_task.c.first_pending_at)).where(scoring_task.c.not_before.is_not(None))
    moments = [connection.execute(query).scalar_one() for query in (undecided, ready)]
    return min((moment for moment in moments if moment is not None), default=None)
