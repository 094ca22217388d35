"""The processes that score: what each last told of itself, and the leases that it renews in the same breath."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Insert, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean
from germane.storage.db.tables import job, scoring_task, worker

KEPT: Final = 50
"""Runs of each job that are kept."""
MILLISECONDS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One time that a job was done."""

    started_at: datetime
    """UTC, by the clock of its process."""
    seconds: float
    """That it took."""
    problem: str | None = None
    """What went wrong; it holds no text of users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """A job, and how it went lately."""

    name: str
    every: float | None = None
    """Seconds between two runs; None of one that is done when something asks for it."""
    runs: Sequence[Run] = ()
    """The last 50 at most, the oldest first."""
    process: str = ""
    """Id of the worker whose job it is."""

    @property
    def last(self) -> Run | None:
        """The newest run."""
        return self.runs[-1] if self.runs else None

    @property
    def next_at(self) -> datetime | None:
        """When it is due again; UTC. None where nobody can say."""
        last = self.last
        return None if last is None or self.every is None else last.started_at + timedelta(seconds=self.every)


def write(connection: Connection, process: str, told: Iterable[JobRuns]) -> None:
    """Take over what a process tells of its jobs."""
    rows = [
        {"process": process, "name": one.name, "every": one.every, "runs": list(map(_plain, one.runs[-KEPT:]))}
        for one in told
    ]
    if rows:
        connection.execute(_UPSERTS_JOBS[connection.dialect.name], rows)


def read(connection: Connection, process: str | None = None) -> list[JobRuns]:
    """Return the jobs of all processes, or of one, by process and name."""
    query = select(job).order_by(job.c.process, job.c.name)
    rows = connection.execute(query if process is None else query.where(job.c.process == process)).all()
    return [JobRuns(process=row.process, name=row.name, every=row.every, runs=_runs(row.runs)) for row in rows]


def drop(connection: Connection, process: str) -> None:
    """Drop the jobs of a process."""
    connection.execute(delete(job).where(job.c.process == process))


def _plain(run: Run) -> list[Any]:
    at, took = round(run.started_at.timestamp() * MILLISECONDS), round(run.seconds * MILLISECONDS)
    return [at, took] if run.problem is None else [at, took, clean(run.problem)]


def _runs(rows: Iterable[Sequence[Any]]) -> tuple[Run, ...]:
    return tuple(
        Run(
            started_at=datetime.fromtimestamp(row[0] / MILLISECONDS, UTC),
            seconds=row[1] / MILLISECONDS,
            problem=row[2] if len(row) > 2 else None,
        )
        for row in rows
    )


def _upserts_jobs() -> dict[str, Insert]:
    changing = ("every", "runs")
    on_sqlite, on_postgresql = sqlite.insert(job), postgresql.insert(job)
    key = ["process", "name"]
    return {
        "sqlite": on_sqlite.on_conflict_do_update(
            index_elements=key, set_={name: on_sqlite.excluded[name] for name in changing}
        ),
        "postgresql": on_postgresql.on_conflict_do_update(
            index_elements=key, set_={name: on_postgresql.excluded[name] for name in changing}
        ),
    }


_UPSERTS_JOBS = _upserts_jobs()


MANY: Final = 1000
"""Tasks that are brought back at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """What a process that scores tells of itself."""

    id: str
    """The owner of its leases."""
    host: str
    pid: int
    service: str
    version: str
    """Of germane."""
    scorers: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint by name."""
    concurrency: int = 0
    in_flight: int = 0
    """Scorers at work for an exchange."""
    problem: str | None = None
    """Why a scorer leaves its judge alone for a while."""
    jobs: Sequence[JobRuns] = ()
    """What it does again and again, as far as that ran since it told the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker(Presence):
    """A process that scores, as it was last heard of. Its jobs are read apart."""

    started_at: datetime
    """UTC, when it was first heard of."""
    seen_at: datetime
    """UTC, by the database's clock where it is PostgreSQL."""


def beat(
    connection: Connection, presence: Presence, held: Collection[int], lease: timedelta, wait: timedelta, now: datetime
) -> int:
    """Renew the leases of those tasks that are still this process's, and write its row; return how many are.

    What its scorers' tasks wait for longer than anything waits was dated by a clock that has been set back since: that
    is brought back too, to now, or to the end of a lease.
    """
    renewed = sum(_renew(connection, presence.id, ids, now + lease) for ids in batched(sorted(held)))
    _bring_back(connection, presence.scorers, lease, max(wait, lease), now)
    values = {"started_at": now, "seen_at": now, **_values(presence)}
    connection.execute(_UPSERTS[connection.dialect.name], values)
    write(connection, presence.id, presence.jobs)
    return renewed


_HELD = (
    select(scoring_task.c.id, scoring_task.c.lease_owner)
    .where(scoring_task.c.state == "running")
    .order_by(scoring_task.c.id)
    # What is locked is being finished by this process at this moment, or taken by another.
    .with_for_update(skip_locked=True)
)
_RENEW = update(scoring_task).values(lease_until=bindparam("lease_end"), not_before=bindparam("lease_end"))


def _renew(connection: Connection, owner: str, ids: Collection[int], lease_end: datetime) -> int:
    rows = connection.execute(_HELD.where(scoring_task.c.id.in_(ids)))
    ours = [row.id for row in rows if row.lease_owner == owner]
    if ours:
        connection.execute(_RENEW.where(scoring_task.c.id.in_(ours)), {"lease_end": lease_end})
    return len(ours)


_TOO_LATE = (
    select(scoring_task.c.id, scoring_task.c.state)
    .where(
        scoring_task.c.scorer == bindparam("scorer"),
        scoring_task.c.fingerprint == bindparam("fingerprint"),
        scoring_task.c.not_before > bindparam("latest"),
    )
    .order_by(scoring_task.c.not_before)
    .limit(MANY)
    .with_for_update(skip_locked=True)
)


def _bring_back(
    connection: Connection, scorers: Mapping[str, str], lease: timedelta, wait: timedelta, now: datetime
) -> None:
    for scorer, fingerprint in scorers.items():
        values = {"scorer": scorer, "fingerprint": fingerprint, "latest": now + wait}
        rows = connection.execute(_TOO_LATE, values).all()
        running = [row.id for row in rows if row.state == "running"]
        for ids in batched([row.id for row in rows if row.state != "running"]):
            connection.execute(update(scoring_task).where(scoring_task.c.id.in_(ids)).values(not_before=now))
        for ids in batched(running):
            connection.execute(_RENEW.where(scoring_task.c.id.in_(ids)), {"lease_end": now + lease})


def _values(presence: Presence) -> dict[str, Any]:
    return {
        "id": presence.id,
        "host": clean(presence.host),
        "pid": presence.pid,
        "service": clean(presence.service),
        "version": presence.version,
        "scorers": dict(presence.scorers),
        "concurrency": presence.concurrency,
        "in_flight": presence.in_flight,
        "problem": clean(presence.problem),
    }


def _upserts() -> dict[str, Insert]:
    changing = [column.name for column in worker.c if column.name not in {"id", "started_at"}]
    on_sqlite, on_postgresql = sqlite.insert(worker), postgresql.insert(worker)
    return {
        "sqlite": on_sqlite.on_conflict_do_update(
            index_elements=["id"], set_={name: on_sqlite.excluded[name] for name in changing}
        ),
        "postgresql": on_postgresql.on_conflict_do_update(
            index_elements=["id"], set_={name: on_postgresql.excluded[name] for name in changing}
        ),
    }


_UPSERTS = _upserts()


def workers(connection: Connection, since: datetime | None = None) -> list[Worker]:
    """Return the processes that were seen since then, the one seen last first."""
    query = select(worker).order_by(worker.c.seen_at.desc(), worker.c.id)
    if since is not None:
        query = query.where(worker.c.seen_at >= since)
    return [Worker(**row) for row in connection.execute(query).mappings()]


def dismiss(connection: Connection, owner: str) -> None:
    """Drop the rows of a process that has ended as it should."""
    drop(connection, owner)
    connection.execute(delete(worker).where(worker.c.id == owner))
