"""How scoring does at one moment, in a few readings that stay short however much there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Subquery, case, func, select

from germane.score import Reason
from germane.storage.cluster import workers
from germane.storage.cluster.workers import Worker
from germane.storage.db.tables import exchange, scoring_task, tally
from germane.storage.queue import backlog as queue
from germane.storage.queue.backlog import MANY, OpenTasks
from germane.storage.quota import budget_ledger
from germane.storage.quota.budget_ledger import Spent

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
        spent=budget_ledger.spent(connection, None, now),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Tasks of one scorer that were tried, came to nothing for one reason, and are tried again."""

    scorer: str
    reason: Reason
    tasks: int
    """Of one reason no more than :data:`~germane.storage.queue.backlog.MANY` are looked at."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Exchanges that were decided on for one reason."""

    reason: str
    """Such as drawn, not_drawn, uniform, suspicion, route_floor, always; empty of what nobody has decided on."""
    n: int
    lowest: float | None
    """Probability of being scored; None where nothing was drawn."""
    highest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What the newest exchanges tell."""

    n: int
    """Exchanges that were looked at."""
    since: datetime | None
    """When the oldest of them began; UTC."""
    sampled: Sequence[Sampled]
    """The most common first."""
    without_text: int
    """Of which neither question nor answer was kept."""
    erased: int
    """Of which the text was kept, and has gone."""


def manner(connection: Connection, newest: int) -> Manner:
    """Return how the newest exchanges were sampled and kept."""
    columns = exchange.c
    hidden = columns.question.is_(None) & columns.answer.is_(None) & columns.erased_at.is_(None)
    wanted = (
        columns.started_at,
        func.coalesce(columns.sampling_reason, "").label("reason"),
        columns.sampling_probability.label("probability"),
        case((hidden, 1), else_=0).label("hidden"),
        case((columns.erased_at.is_not(None), 1), else_=0).label("erased"),
    )
    first = select(*wanted).order_by(columns.started_at.desc()).limit(newest).subquery("first").c
    sums = (func.count().label("n"), func.min(first.probability), func.max(first.probability))
    others = (func.min(first.started_at), func.sum(first.hidden), func.sum(first.erased))
    rows = connection.execute(select(first.reason, *sums, *others).group_by(first.reason)).all()
    found = [Sampled(reason=row[0], n=int(row[1]), lowest=row[2], highest=row[3]) for row in rows]
    return Manner(
        n=sum(one.n for one in found),
        since=min((row[4] for row in rows), default=None),
        sampled=sorted(found, key=lambda one: (-one.n, one.reason)),
        without_text=sum(int(row[5]) for row in rows),
        erased=sum(int(row[6]) for row in rows),
    )
