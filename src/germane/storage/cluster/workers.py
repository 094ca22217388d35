"""Worker processes: their heartbeats, job runs and task leases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Insert, Table, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.db.mappers import batched
from germane.storage.db.sanitize import clean_text
from germane.storage.db.tables import job, scoring_task, worker

MAX_JOB_RUNS: Final = 50
"""Stored runs of each job."""
_MAX_RESET_TASKS: Final = 1000
"""Tasks of one scorer that a heartbeat reschedules after the clock was set back."""
_MILLISECONDS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job."""

    started_at: datetime
    """UTC, by the clock of the process."""
    seconds: float
    """Duration."""
    problem: str | None = None
    """The error, without user data; None on success."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """The recent runs of a job in one process."""

    name: str
    every: float | None = None
    """Seconds between runs; None if it runs on demand."""
    runs: Sequence[JobRun] = ()
    """At most the last 50, oldest first."""
    process: str = ""
    """Id of the worker."""

    @property
    def last(self) -> JobRun | None:
        """The latest run."""
        return self.runs[-1] if self.runs else None

    @property
    def next_at(self) -> datetime | None:
        """Start of the next run, in UTC; None if unknown."""
        last = self.last
        return None if last is None or self.every is None else last.started_at + timedelta(seconds=self.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHeartbeat:
    """What a worker process reports about itself."""

    id: str
    """The owner of its task leases."""
    host: str
    pid: int
    service: str
    version: str
    """Version of germane."""
    scorers: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint by name."""
    concurrency: int = 0
    in_flight: int = 0
    """Running scoring tasks."""
    problem: str | None = None
    """Why a scorer has paused its judge."""
    jobs: Sequence[JobRuns] = ()
    """Jobs that ran since the previous heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker(WorkerHeartbeat):
    """A worker process by its latest heartbeat, without its jobs."""

    started_at: datetime
    """Time of the first heartbeat, in UTC."""
    seen_at: datetime
    """Time of the latest heartbeat, in UTC; on PostgreSQL by the server's clock."""


def record_heartbeat(
    connection: Connection,
    heartbeat: WorkerHeartbeat,
    held: Collection[int],
    lease: timedelta,
    max_wait: timedelta,
    now: datetime,
) -> int:
    """Write a heartbeat and renew the leases of the worker's tasks.

    Tasks of its scorers that are scheduled later than the longest wait were scheduled by a clock that has been set
    back since. They are rescheduled to now, or, if they are running, to the end of a lease.

    Args:
        connection: A transaction that writes.
        heartbeat: The report.
        held: Ids of the tasks that the worker is scoring.
        lease: Length of a task lease.
        max_wait: The longest time that a task may be postponed.
        now: The current time.

    Returns:
        The number of renewed leases. Tasks that another worker has taken over are not renewed.
    """
    renewed = sum(_renew_leases(connection, heartbeat.id, ids, now + lease) for ids in batched(sorted(held)))
    _reschedule(connection, heartbeat.scorers, lease, max(max_wait, lease), now)
    values = {
        "id": heartbeat.id,
        "host": clean_text(heartbeat.host),
        "pid": heartbeat.pid,
        "service": clean_text(heartbeat.service),
        "version": heartbeat.version,
        "scorers": dict(heartbeat.scorers),
        "concurrency": heartbeat.concurrency,
        "in_flight": heartbeat.in_flight,
        "problem": clean_text(heartbeat.problem),
        "started_at": now,
        "seen_at": now,
    }
    connection.execute(_UPSERT_WORKER[connection.dialect.name], values)
    save_jobs(connection, heartbeat.id, heartbeat.jobs)
    return renewed


def _renew_leases(connection: Connection, owner: str, ids: Collection[int], lease_end: datetime) -> int:
    rows = connection.execute(_RUNNING.where(scoring_task.c.id.in_(ids)))
    owned = [row.id for row in rows if row.lease_owner == owner]
    if owned:
        connection.execute(_RENEW.where(scoring_task.c.id.in_(owned)), {"lease_end": lease_end})
    return len(owned)


def _reschedule(
    connection: Connection, scorers: Mapping[str, str], lease: timedelta, max_wait: timedelta, now: datetime
) -> None:
    for scorer, fingerprint in scorers.items():
        values = {"scorer": scorer, "fingerprint": fingerprint, "latest": now + max_wait}
        rows = connection.execute(_TOO_LATE, values).all()
        for ids in batched([row.id for row in rows if row.state != "running"]):
            connection.execute(update(scoring_task).where(scoring_task.c.id.in_(ids)).values(not_before=now))
        for ids in batched([row.id for row in rows if row.state == "running"]):
            connection.execute(_RENEW.where(scoring_task.c.id.in_(ids)), {"lease_end": now + lease})


def load_workers(connection: Connection, since: datetime | None = None) -> list[Worker]:
    """Return the workers with a heartbeat since a time, latest heartbeat first."""
    query = select(worker).order_by(worker.c.seen_at.desc(), worker.c.id)
    if since is not None:
        query = query.where(worker.c.seen_at >= since)
    return [Worker(**row) for row in connection.execute(query).mappings()]


def deregister(connection: Connection, owner: str) -> None:
    """Delete a worker that stops, and its jobs."""
    connection.execute(delete(job).where(job.c.process == owner))
    connection.execute(delete(worker).where(worker.c.id == owner))


def save_jobs(connection: Connection, process: str, jobs: Iterable[JobRuns]) -> None:
    """Write the latest runs of a process's jobs."""
    rows = [
        {
            "process": process,
            "name": one.name,
            "every": one.every,
            "runs": list(map(_encode_run, one.runs[-MAX_JOB_RUNS:])),
        }
        for one in jobs
    ]
    if rows:
        connection.execute(_UPSERT_JOB[connection.dialect.name], rows)


def load_jobs(connection: Connection, process: str | None = None) -> list[JobRuns]:
    """Return the jobs of one process or of all, by process and name."""
    query = select(job).order_by(job.c.process, job.c.name)
    rows = connection.execute(query if process is None else query.where(job.c.process == process)).all()
    return [
        JobRuns(process=row.process, name=row.name, every=row.every, runs=tuple(map(_decode_run, row.runs)))
        for row in rows
    ]


def _encode_run(run: JobRun) -> list[Any]:
    started, took = round(run.started_at.timestamp() * _MILLISECONDS), round(run.seconds * _MILLISECONDS)
    return [started, took] if run.problem is None else [started, took, clean_text(run.problem)]


def _decode_run(values: Sequence[Any]) -> JobRun:
    return JobRun(
        started_at=datetime.fromtimestamp(values[0] / _MILLISECONDS, UTC),
        seconds=values[1] / _MILLISECONDS,
        problem=values[2] if len(values) > 2 else None,
    )


def _upserts(table: Table, key: Sequence[str], columns: Sequence[str]) -> dict[str, Insert]:
    on_sqlite, on_postgresql = sqlite.insert(table), postgresql.insert(table)
    return {
        "sqlite": on_sqlite.on_conflict_do_update(
            index_elements=key, set_={name: on_sqlite.excluded[name] for name in columns}
        ),
        "postgresql": on_postgresql.on_conflict_do_update(
            index_elements=key, set_={name: on_postgresql.excluded[name] for name in columns}
        ),
    }


_UPSERT_JOB: Final = _upserts(job, ["process", "name"], ["every", "runs"])
_UPSERT_WORKER: Final = _upserts(
    worker, ["id"], [column.name for column in worker.c if column.name not in {"id", "started_at"}]
)
_RUNNING: Final = (
    select(scoring_task.c.id, scoring_task.c.lease_owner)
    .where(scoring_task.c.state == "running")
    .order_by(scoring_task.c.id)
    # A locked task is just being finished by this process, or taken over by another one.
    .with_for_update(skip_locked=True)
)
_RENEW: Final = update(scoring_task).values(lease_until=bindparam("lease_end"), not_before=bindparam("lease_end"))
_TOO_LATE: Final = (
    select(scoring_task.c.id, scoring_task.c.state)
    .where(
        scoring_task.c.scorer == bindparam("scorer"),
        scoring_task.c.fingerprint == bindparam("fingerprint"),
        scoring_task.c.not_before > bindparam("latest"),
    )
    .order_by(scoring_task.c.not_before)
    .limit(_MAX_RESET_TASKS)
    .with_for_update(skip_locked=True)
)
