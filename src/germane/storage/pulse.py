"""How scoring does at one moment, in a few readings that stay short however much there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, func, select

from germane.storage import budget, queue, workers
from germane.storage.backlog import OpenTasks
from germane.storage.budget import Spent
from germane.storage.queue import MANY
from germane.storage.tables import exchange, scoring_task, tally
from germane.storage.workers import Worker

LATELY: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What tells whether scoring works."""

    now: datetime
    """UTC, by the clock that all processes share."""
    workers: tuple[Worker, ...] = ()
    """Processes that score, and have not ended as they should; the one seen last first."""
    undecided: int = 0
    """Exchanges that no sampler has looked at; not above :data:`MANY`."""
    queue: tuple[OpenTasks, ...] = ()
    """What waits for each scorer; no number of it is above :data:`MANY`."""
    retried: int = 0
    """Of these, such as were tried in vain; not above :data:`MANY`."""
    oldest: datetime | None = None
    """UTC: since when the oldest waits to be decided on, or to be scored."""
    scored: int = 0
    """Scores of answers of the last hour."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Of answers of the last hour, by reason."""
    captured_at: datetime | None = None
    """UTC: when the newest exchange that is stored began."""
    spent: Spent
    """Today."""

    @property
    def waiting(self) -> int:
        """Tasks that are free to be claimed, postponed or running."""
        return sum(one.under_way for one in self.queue)

    @property
    def candidates(self) -> int:
        """In the pool that a budget picks from. They are not late."""
        return sum(one.candidates for one in self.queue)

    @property
    def is_capped(self) -> bool:
        """Whether more may wait than was counted."""
        return self.undecided >= MANY or any(MANY in {one.ready, one.postponed} for one in self.queue)


def pulse(connection: Connection, now: datetime) -> Pulse:
    """Read how scoring does."""
    waits = queue.queue(connection, now)
    retried = (scoring_task.c.state == "pending", scoring_task.c.reason.is_not(None))
    undecided = exchange.c.sampling_reason.is_(None)
    lately = _lately(connection, now - LATELY)
    return Pulse(
        now=now,
        workers=tuple(workers.workers(connection)),
        undecided=_count(connection, exchange.c.started_at, undecided),
        queue=waits,
        retried=_count(connection, scoring_task.c.state, *retried),
        oldest=_oldest(connection, waits),
        scored=lately.pop("", 0),
        failed=lately,
        captured_at=connection.execute(select(func.max(exchange.c.started_at))).scalar_one(),
        spent=budget.spent(connection, None, now),
    )


def _count(connection: Connection, column: Any, *conditions: Any) -> int:
    first = select(column).where(*conditions).limit(MANY).subquery("first")
    return int(connection.execute(select(func.count()).select_from(first)).scalar_one())


def _oldest(connection: Connection, waits: Sequence[OpenTasks]) -> datetime | None:
    undecided = select(func.min(exchange.c.started_at)).where(exchange.c.sampling_reason.is_(None))
    moments = [connection.execute(undecided).scalar_one(), *(one.since for one in waits)]
    return min((moment for moment in moments if moment is not None), default=None)


def _lately(connection: Connection, since: datetime) -> dict[str, int]:
    """Return how much failed, by reason; under no reason how much was scored."""
    outcomes = tally.c.outcome.in_(("scored", "failed"))
    query = select(tally.c.outcome, tally.c.reason, func.sum(tally.c.count).label("n"))
    query = query.where(tally.c.minute >= since, outcomes, tally.c.scorer != "")
    rows = connection.execute(query.group_by(tally.c.outcome, tally.c.reason)).all()
    return {row.reason if row.outcome == "failed" else "": int(row.n) for row in rows if row.n}
