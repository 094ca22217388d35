"""What waits to be decided on and to be scored: how much, for how long, and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, func, select

from germane.storage.tables import exchange, scoring_task, worker


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTasks:
    """How many tasks of one scorer and fingerprint are not done."""

    scorer: str
    fingerprint: str
    candidates: int = 0
    """In the pool that a budget picks from, when its interval ends."""
    ready: int = 0
    """Free to be claimed."""
    postponed: int = 0
    """Tried in vain, to be claimed later."""
    running: int = 0
    """Claimed by a process, which may be gone."""
    since: datetime | None = None
    """UTC: since when the oldest of them waits that is to be scored."""

    @property
    def under_way(self) -> int:
        """How many are to be scored, now or later; of candidates nobody knows."""
        return self.ready + self.postponed + self.running


@dataclass(frozen=True, slots=True)
class Outstanding:
    """What is left to be done."""

    undecided: int
    """Exchanges that no sampler has looked at."""
    tasks: tuple[OpenTasks, ...]

    def __bool__(self) -> bool:
        return bool(self.undecided or self.tasks)

    def of(self, scorers: Collection[tuple[str, str]]) -> tuple[OpenTasks, ...]:
        """Return what is left for these scorers, each given with its fingerprint."""
        return tuple(one for one in self.tasks if (one.scorer, one.fingerprint) in scorers)


def outstanding(connection: Connection, now: datetime) -> Outstanding:
    """Return what is left to be done, and of what kind."""
    undecided = select(func.count()).select_from(exchange).where(exchange.c.sampling_reason.is_(None))
    return Outstanding(int(connection.execute(undecided).scalar_one()), _open_tasks(connection, now))


def _open_tasks(connection: Connection, now: datetime) -> tuple[OpenTasks, ...]:
    kind = case(
        (scoring_task.c.state == "running", "running"),
        (scoring_task.c.not_before.is_(None), "candidates"),
        (scoring_task.c.not_before <= now, "ready"),
        else_="postponed",
    ).label("kind")
    names = (scoring_task.c.scorer, scoring_task.c.fingerprint)
    sums = (func.count().label("n"), func.min(scoring_task.c.first_pending_at).label("since"))
    query = select(*names, kind, *sums).where(scoring_task.c.state.in_(("pending", "running")))
    found: dict[tuple[str, str], dict[str, int]] = {}
    oldest: dict[tuple[str, str], datetime] = {}
    for row in connection.execute(query.group_by(*names, kind)):
        key = (row.scorer, row.fingerprint)
        found.setdefault(key, {})[row.kind] = int(row.n)
        if row.kind != "candidates":
            oldest[key] = min(row.since, oldest.get(key, row.since))
    return tuple(
        OpenTasks(scorer=key[0], fingerprint=key[1], since=oldest.get(key), **kinds)
        for key, kinds in sorted(found.items())
    )


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
