"""The backlog per scorer, counted exactly or up to a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Column, Connection, Row, Table, bindparam, case, func, select, text, tuple_, union

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.storage.db.component import StoreComponent
from germane.storage.db.tables import exchange, score, scoring_task, worker

RECENT: Final = timedelta(minutes=10)
MAX_RECENT_ROWS: Final = 100_000
ScorerKey = tuple[str, str]
"""A (scorer, fingerprint) pair."""
BACKLOG_COUNT_LIMIT: Final = 10_000
"""Number at which counting stops."""
# Spelled exactly as in the partial indexes. With bound parameters, the databases would not use the indexes.
OPEN: Final = text("due_at IS NOT NULL")
CANDIDATE: Final = text("state = 'pending' AND due_at IS NULL")
_OF_PAIR: Final = (
    scoring_task.c.scorer == bindparam("scorer"),
    scoring_task.c.fingerprint == bindparam("fingerprint"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTasks:
    """Numbers of open tasks for one scorer and fingerprint."""

    scorer: str
    fingerprint: str
    candidates: int = 0
    """Tasks in the candidate pool, from which the sampler selects within the budget at the end of each interval."""
    ready: int = 0
    """Tasks that can be claimed."""
    postponed: int = 0
    """Tasks that failed and are waiting for a retry."""
    running: int = 0
    """Tasks that a process has claimed. The process may have been killed since."""
    waiting_since: datetime | None = None
    """Time at which the oldest task, excluding candidates, started waiting; UTC."""

    @property
    def in_progress(self) -> int:
        """Number of ready, postponed and running tasks, excluding candidates."""
        return self.ready + self.postponed + self.running


@dataclass(frozen=True, slots=True)
class OutstandingWork:
    """Numbers of exchanges without a sampling decision, and of open tasks."""

    undecided: int
    """Number of exchanges without a sampling decision."""
    tasks: tuple[OpenTasks, ...]

    def __bool__(self) -> bool:
        return bool(self.undecided or self.tasks)

    def by_state(self) -> Counter[tuple[str, str]]:
        """Return the number of tasks by scorer and state (candidate, ready, postponed or running), even if it is 0."""
        counts = Counter[tuple[str, str]]()
        for queue in self.tasks:
            counts[queue.scorer, "candidate"] += queue.candidates
            counts[queue.scorer, "ready"] += queue.ready
            counts[queue.scorer, "postponed"] += queue.postponed
            counts[queue.scorer, "running"] += queue.running
        return counts

    def for_scorers(self, scorers: Collection[tuple[str, str]]) -> tuple[OpenTasks, ...]:
        """Return the open tasks for the given (scorer, fingerprint) pairs."""
        return tuple(queue for queue in self.tasks if (queue.scorer, queue.fingerprint) in scorers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Recent hourly rates of one scorer and fingerprint.

    Measured over the last 10 minutes, or over the last 100,000 rows of all scorers if these cover less time.
    """

    scores_per_hour: float
    tasks_per_hour: float
    """Rate of new tasks, excluding tasks that were skipped immediately."""

    def drain_time(self, tasks: int) -> timedelta | None:
        """Estimate the time to score the given number of tasks. Return None if nothing is being scored."""
        return timedelta(hours=tasks / self.scores_per_hour) if self.scores_per_hour else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The backlog at one point in time."""

    outstanding: OutstandingWork
    lag: timedelta
    """Age of the oldest entry: the time since an undecided exchange started, or since a task became ready. Excludes
    candidates."""
    workers: int
    """Number of worker processes with a recent heartbeat."""


class BacklogReader(StoreComponent):
    """Measures the work that is still to be done, and how fast it is done."""

    def load_backlog(self, *, alive_within: timedelta) -> Backlog:
        """Return the backlog, its age, and the number of workers that sent a heartbeat within ``alive_within``."""
        undecided = select(func.min(exchange.c.started_at)).where(exchange.c.sampling_reason.is_(None))
        ready = select(func.min(scoring_task.c.first_pending_at)).where(scoring_task.c.due_at.is_not(None))
        with self._database.read() as connection:
            now = self._context.now(connection)
            moments = [connection.execute(query).scalar_one() for query in (undecided, ready)]
            since = min((moment for moment in moments if moment is not None), default=None)
            seen = select(func.count()).select_from(worker).where(worker.c.seen_at >= now - alive_within)
            return Backlog(
                outstanding=_load_outstanding(connection, now),
                lag=timedelta() if since is None else max(timedelta(), now - since),
                workers=int(connection.execute(seen).scalar_one()),
            )

    def load_outstanding(self) -> OutstandingWork:
        """Return the exact numbers of exchanges without a sampling decision and of open tasks."""
        with self._database.read() as connection:
            return _load_outstanding(connection, self._context.now(connection))

    def count_unscored(self, pairs: Collection[ScorerKey]) -> int:
        """Return the number of exchanges without a sampling decision, or with an open task of a given (scorer,
        fingerprint) pair.
        """
        has_task = tuple_(scoring_task.c.scorer, scoring_task.c.fingerprint).in_(sorted(pairs))
        waiting = select(scoring_task.c.exchange_id).where(OPEN, has_task)
        undecided = select(exchange.c.id).where(exchange.c.sampling_reason.is_(None))
        ids = union(undecided, waiting).subquery()
        with self._database.read() as connection:
            return int(connection.execute(select(func.count()).select_from(ids)).scalar_one())

    def load_throughput(self) -> dict[ScorerKey, Throughput]:
        """Return the recent rates of each (scorer, fingerprint) pair that had scores or new tasks recently.

        Externally computed scores are not included.
        """
        with self._database.read() as connection:
            now = self._context.now(connection)
            scores = _rates_per_hour(connection, score, score.c.scored_at, now)
            tasks = _rates_per_hour(connection, scoring_task, scoring_task.c.first_pending_at, now)
        return {
            pair: Throughput(scores_per_hour=scores.get(pair, 0.0), tasks_per_hour=tasks.get(pair, 0.0))
            for pair in sorted(scores.keys() | tasks.keys())
        }


def _load_outstanding(connection: Connection, now: datetime) -> OutstandingWork:
    undecided = select(func.count()).select_from(exchange).where(exchange.c.sampling_reason.is_(None))
    kind = case(
        (scoring_task.c.state == "running", "running"),
        (scoring_task.c.due_at.is_(None), "candidates"),
        (scoring_task.c.due_at <= now, "ready"),
        else_="postponed",
    ).label("kind")
    names = (scoring_task.c.scorer, scoring_task.c.fingerprint)
    sums = (func.count().label("n"), func.min(scoring_task.c.first_pending_at).label("since"))
    query = select(*names, kind, *sums).where(scoring_task.c.state.in_(("pending", "running")))
    counts: dict[tuple[str, str], dict[str, int]] = {}
    oldest: dict[tuple[str, str], datetime] = {}
    for row in connection.execute(query.group_by(*names, kind)):
        key = (row.scorer, row.fingerprint)
        counts.setdefault(key, {})[row.kind] = int(row.n)
        if row.kind != "candidates":
            oldest[key] = min(row.since, oldest.get(key, row.since))
    tasks = tuple(
        OpenTasks(scorer=key[0], fingerprint=key[1], waiting_since=oldest.get(key), **kinds)
        for key, kinds in sorted(counts.items())
    )
    return OutstandingWork(int(connection.execute(undecided).scalar_one()), tasks)


def _rates_per_hour(
    connection: Connection, table: Table, moment: Column[datetime], now: datetime
) -> dict[tuple[str, str], float]:
    """Return the number of recent rows per hour, by scorer and fingerprint."""
    # Use one window for all scorers, because the newest rows may all belong to the fastest scorer. Reading by id
    # limits the number of rows, because there is no index on these times.
    columns = (table.c.scorer, table.c.fingerprint, moment.label("moment"))
    newest = select(*columns).order_by(table.c.id.desc()).limit(MAX_RECENT_ROWS).subquery("newest")
    pair = (newest.c.scorer, newest.c.fingerprint)
    groups = select(*pair, func.count().label("n"), func.min(newest.c.moment).label("first")).group_by(*pair)
    rows = connection.execute(groups.where(newest.c.moment > now - RECENT)).all()
    is_capped = sum(int(row.n) for row in rows) >= MAX_RECENT_ROWS
    hours = max((now - min(row.first for row in rows) if is_capped else RECENT) / timedelta(hours=1), 1e-6)
    return {
        (row.scorer, row.fingerprint): int(row.n) / hours for row in rows if row.fingerprint != EXTERNAL_FINGERPRINT
    }


def list_scorers_with_tasks(connection: Connection) -> list[ScorerKey]:
    """Return the (scorer, fingerprint) pairs that have open tasks or candidates, sorted."""
    return sorted({*_distinct(connection, OPEN), *_distinct(connection, CANDIDATE)})


def _distinct(connection: Connection, condition: Any) -> Iterator[ScorerKey]:
    """Yield the distinct (scorer, fingerprint) pairs, from pair to pair through an index, because tasks are many."""
    scorer, fingerprint = scoring_task.c.scorer, scoring_task.c.fingerprint
    query = select(scorer, fingerprint).where(condition).order_by(scorer, fingerprint).limit(1)
    row = connection.execute(query).first()
    while row is not None:
        yield row.scorer, row.fingerprint
        # Use two queries: when comparing pairs, SQLite would use only the first column of the index and read all tasks
        # of one scorer.
        same = query.where(scorer == row.scorer, fingerprint > row.fingerprint)
        row = connection.execute(same).first() or connection.execute(query.where(scorer > row.scorer)).first()


def count_open_tasks(connection: Connection, now: datetime) -> tuple[OpenTasks, ...]:
    """Return the open tasks of each scorer, counted up to :data:`BACKLOG_COUNT_LIMIT`.

    If there are more tasks, ``waiting_since`` considers only those that are due first.
    """
    # Lease ends of running tasks. Their number is limited by the concurrency of all processes.
    running: dict[ScorerKey, list[datetime]] = {}
    columns = (scoring_task.c.scorer, scoring_task.c.fingerprint, scoring_task.c.due_at)
    leased = select(*columns).where(scoring_task.c.state == "running", scoring_task.c.due_at.is_not(None))
    for scorer, fingerprint, lease_end in connection.execute(leased.limit(BACKLOG_COUNT_LIMIT)):
        running.setdefault((scorer, fingerprint), []).append(lease_end)
    queues = []
    for scorer, fingerprint in list_scorers_with_tasks(connection):
        values = {"scorer": scorer, "fingerprint": fingerprint, "now": now}
        ready, later = (connection.execute(query, values).one() for query in (_READY, _LATER))
        lease_ends = running.get((scorer, fingerprint), [])
        late = sum(lease_end <= now for lease_end in lease_ends)
        queue = OpenTasks(
            scorer=scorer,
            fingerprint=fingerprint,
            candidates=int(connection.execute(_CANDIDATES, values).scalar_one()),
            ready=_without_running(ready, late),
            postponed=_without_running(later, len(lease_ends) - late),
            running=len(lease_ends),
            waiting_since=min((group.since for group in (ready, later) if group.since is not None), default=None),
        )
        queues.append(queue)
    return tuple(queues)


def _without_running(counted: Row[Any], running: int) -> int:
    """Subtract running tasks from a count. A count at the limit stays at the limit."""
    return BACKLOG_COUNT_LIMIT if counted.n >= BACKLOG_COUNT_LIMIT else max(0, int(counted.n) - running)


def _counting(condition: Any) -> Any:
    wanted = select(scoring_task.c.first_pending_at).where(*_OF_PAIR, OPEN, condition)
    first = wanted.order_by(scoring_task.c.due_at).limit(BACKLOG_COUNT_LIMIT).subquery("first")
    return select(func.count().label("n"), func.min(first.c.first_pending_at).label("since"))


_READY = _counting(scoring_task.c.due_at <= bindparam("now"))
_LATER = _counting(scoring_task.c.due_at > bindparam("now"))
_CANDIDATES = select(func.count()).select_from(
    select(scoring_task.c.scorer).where(*_OF_PAIR, CANDIDATE).limit(BACKLOG_COUNT_LIMIT).subquery("first")
)
