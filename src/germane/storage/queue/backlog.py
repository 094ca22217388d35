"""What waits to be scored, by scorer, counted up to so many of each kind: short to read, however much there is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, case, func, select, text

from germane.storage.db.tables import exchange, scoring_task, worker


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


Pair = tuple[str, str]
"""Scorer and fingerprint."""
MANY: Final = 10_000
"""What waits is counted up to so many."""
# As the indices have it, which a value that is bound does not show.
OPEN: Final = text("not_before IS NOT NULL")
CANDIDATE: Final = text("state = 'pending' AND not_before IS NULL")
_OF_PAIR: Final = (
    scoring_task.c.scorer == bindparam("scorer"),
    scoring_task.c.fingerprint == bindparam("fingerprint"),
)


def pairs(connection: Connection) -> list[Pair]:
    """Return the scorers that have open tasks or candidates, with their fingerprints."""
    return sorted({*_distinct(connection, OPEN), *_distinct(connection, CANDIDATE)})


def _distinct(connection: Connection, condition: Any) -> Iterator[Pair]:
    """Step from pair to pair through an index: they are few, the tasks may be many."""
    scorer, fingerprint = scoring_task.c.scorer, scoring_task.c.fingerprint
    query = select(scorer, fingerprint).where(condition).order_by(scorer, fingerprint).limit(1)
    found = connection.execute(query).first()
    while found is not None:
        yield found.scorer, found.fingerprint
        # Two steps: SQLite would go by the first part of a pair alone, and read all tasks of one scorer.
        same = query.where(scorer == found.scorer, fingerprint > found.fingerprint)
        found = connection.execute(same).first() or connection.execute(query.where(scorer > found.scorer)).first()


def queue(connection: Connection, now: datetime) -> tuple[OpenTasks, ...]:
    """Return what waits for each scorer; no number is above :data:`MANY`.

    Of more the oldest is that of the tasks that are up first.
    """
    running = _running(connection)
    return tuple(_of(connection, pair, now, running.get(pair, [])) for pair in pairs(connection))


def _of(connection: Connection, pair: Pair, now: datetime, running: list[datetime]) -> OpenTasks:
    values = {"scorer": pair[0], "fingerprint": pair[1], "now": now}
    ready, later = (connection.execute(query, values).one() for query in (_READY, _LATER))
    late = sum(until <= now for until in running)
    return OpenTasks(
        scorer=pair[0],
        fingerprint=pair[1],
        candidates=int(connection.execute(_CANDIDATES, values).scalar_one()),
        ready=_beside(ready, late),
        postponed=_beside(later, len(running) - late),
        running=len(running),
        since=min((one.since for one in (ready, later) if one.since is not None), default=None),
    )


def _beside(counted: Row[Any], running: int) -> int:
    """Return how many of what was counted are not running; of many it is not known how many there are."""
    return MANY if counted.n >= MANY else max(0, int(counted.n) - running)


def _counting(condition: Any) -> Any:
    wanted = select(scoring_task.c.first_pending_at).where(*_OF_PAIR, OPEN, condition)
    first = wanted.order_by(scoring_task.c.not_before).limit(MANY).subquery("first")
    return select(func.count().label("n"), func.min(first.c.first_pending_at).label("since"))


_READY = _counting(scoring_task.c.not_before <= bindparam("now"))
_LATER = _counting(scoring_task.c.not_before > bindparam("now"))
_CANDIDATES = select(func.count()).select_from(
    select(scoring_task.c.scorer).where(*_OF_PAIR, CANDIDATE).limit(MANY).subquery("first")
)


def _running(connection: Connection) -> Mapping[Pair, list[datetime]]:
    """Return when the leases end of what runs: that is no more than all processes can do at once."""
    columns = (scoring_task.c.scorer, scoring_task.c.fingerprint, scoring_task.c.not_before)
    found: dict[Pair, list[datetime]] = {}
    query = select(*columns).where(scoring_task.c.state == "running", scoring_task.c.not_before.is_not(None))
    for row in connection.execute(query.limit(MANY)):
        found.setdefault((row.scorer, row.fingerprint), []).append(row.not_before)
    return found
