"""Worker heartbeats, job runs and leases of the processes that share a database.

A lease is a row that is updated with compare-and-set, so at most one process holds it.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, or_, select, update

from germane.sanitize import clean_text
from germane.storage.db import leases
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.mappers import RecordMapper, batched
from germane.storage.db.tables import job, scoring_task, worker
from germane.storage.db.tables import lease as lease_table
from germane.storage.db.upsert import insert_into, insert_or_replace

ORPHANED_AFTER: Final = timedelta(hours=1)
"""Time after which a scorer that no process runs is considered orphaned."""
HEARTBEAT_TIMEOUT: Final = timedelta(seconds=60)
"""Time without a heartbeat after which a process is considered dead."""
MAX_CLOCK_STEP: Final = timedelta(seconds=60)
"""A lease that was renewed further in the future than this is free, because the clock must have been set back."""
MAX_JOB_RUNS: Final = 50
"""Maximum number of stored runs per job."""
_MAX_RESET_TASKS: Final = 1000
"""Maximum number of tasks per scorer that a heartbeat reschedules after the clock has been set back."""
_MILLISECONDS: Final = 1000


def new_worker_id() -> str:
    """Return a new, unique worker id for this process."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job."""

    started_at: datetime
    """Start time in UTC, from the process's clock."""
    seconds: float
    """Duration in seconds."""
    problem: str | None = None
    """The error, without user data; None on success."""

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> JobRun:
        """Create a run from its stored form, a list."""
        return cls(
            started_at=datetime.fromtimestamp(values[0] / _MILLISECONDS, UTC),
            seconds=values[1] / _MILLISECONDS,
            problem=values[2] if len(values) > 2 else None,
        )

    def appended_to(self, runs: Sequence[JobRun]) -> tuple[JobRun, ...]:
        """Return the newest runs with this one, as many as are stored."""
        return (*runs[1 - MAX_JOB_RUNS :], self)

    def as_list(self) -> list[Any]:
        """Return the stored form: a list of start and duration in milliseconds, and the error, if any."""
        times = [round(self.started_at.timestamp() * _MILLISECONDS), round(self.seconds * _MILLISECONDS)]
        return times if self.problem is None else [*times, clean_text(self.problem)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """A job's recent runs in one process."""

    name: str
    every: float | None = None
    """Seconds between runs; None if the job runs on demand."""
    runs: Sequence[JobRun] = ()
    """The last runs, at most 50, oldest first."""
    process: str = ""
    """Id of the worker."""

    @property
    def last(self) -> JobRun | None:
        """The latest run; None if there is none."""
        return self.runs[-1] if self.runs else None

    @property
    def next_at(self) -> datetime | None:
        """Start time of the next run, in UTC; None if unknown."""
        last = self.last
        return None if last is None or self.every is None else last.started_at + timedelta(seconds=self.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHeartbeat:
    """The state that a worker process reports with each heartbeat."""

    id: str
    """Id of the worker, which is also the owner of its task leases."""
    host: str
    pid: int
    service: str
    version: str
    """The germane version that the worker runs."""
    scorers: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints by scorer name."""
    concurrency: int = 0
    in_flight: int = 0
    """Number of scoring tasks in progress."""
    problem: str | None = None
    """The reason that a scorer has paused requests to its judge; None if no scorer has."""
    settings: Mapping[str, Any] | None = None
    """The settings of the process, without secrets; None or empty before its first heartbeat."""
    jobs: Sequence[JobRuns] = ()
    """Jobs that have run since the previous heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker(WorkerHeartbeat):
    """A worker process as of its latest heartbeat, without its jobs."""

    started_at: datetime
    """Time of the first heartbeat, in UTC."""
    seen_at: datetime
    """Time of the latest heartbeat, in UTC; on PostgreSQL, from the server's clock."""


def load_workers(connection: Connection, since: datetime | None = None) -> list[Worker]:
    """Return the workers that have sent a heartbeat since a given time, latest heartbeat first."""
    query = select(worker).where(*within(worker.c.seen_at, since, None)).order_by(worker.c.seen_at.desc(), worker.c.id)
    return [_WORKERS.decode(row) for row in connection.execute(query).mappings()]


def register_workers(connection: Connection, services: Mapping[str, str], now: datetime) -> None:
    """Register workers of this process that have not sent a heartbeat yet. Known workers are not changed.

    ``services`` are by worker id.
    """
    process = {"host": clean_text(socket.gethostname()), "pid": os.getpid(), "version": version("germane")}
    state = {"scorers": {}, "concurrency": 0, "in_flight": 0, "started_at": now, "seen_at": now}
    rows = [{"id": id_, "service": clean_text(service), **process, **state} for id_, service in services.items()]
    connection.execute(insert_into(worker, connection.dialect.name).on_conflict_do_nothing(), rows)


class WorkerStore(StoreComponent):
    """Heartbeats from worker processes, and leases that only one process at a time can hold."""

    def heartbeat(
        self,
        presence: WorkerHeartbeat,
        held: Collection[int],
        *,
        lease: timedelta,
        longest_wait: timedelta = ORPHANED_AFTER,
    ) -> int:
        """Register a worker process and renew the leases of its tasks. Return the number of renewed leases.

        The presence's id is the owner of the leases. Tasks in progress that another owner has claimed in the meantime
        are not changed. A task of this worker's scorers that is postponed for longer than ``longest_wait`` becomes due,
        because the clock must have been set back.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            renewed = 0
            for ids in batched(sorted(held)):
                rows = scoring_task.c.id.in_(ids)
                # Skip locked tasks: this process is finishing them, or another process is claiming them.
                renewed += leases.renew(connection, scoring_task, rows, presence.id, now + lease, skip_locked=True)
            # Reset the tasks that were scheduled before the clock was set back: pending tasks become due, and running
            # tasks get a new lease.
            latest = now + max(longest_wait, lease)
            for scorer, fingerprint in presence.scorers.items():
                values = {"scorer": scorer, "fingerprint": fingerprint, "latest": latest}
                tasks = connection.execute(_TOO_LATE, values).all()
                for state, due_at in (("pending", now), ("running", now + lease)):
                    for ids in batched([task.id for task in tasks if task.state == state]):
                        reset = update(scoring_task).where(scoring_task.c.id.in_(ids))
                        connection.execute(reset.values(due_at=due_at))
            reported = _HEARTBEATS.values(presence) | {"started_at": now, "seen_at": now}
            connection.execute(insert_or_replace(worker, connection.dialect.name, _WORKER_COLUMNS), reported)
            jobs = [
                {
                    "process": presence.id,
                    "name": job_runs.name,
                    "every": job_runs.every,
                    "runs": [run.as_list() for run in job_runs.runs[-MAX_JOB_RUNS:]],
                }
                for job_runs in presence.jobs
            ]
            if jobs:
                connection.execute(insert_or_replace(job, connection.dialect.name, _JOB_COLUMNS), jobs)
        self._context.registered_workers.add(presence.id)
        return renewed

    def deregister_worker(self, owner: str) -> None:
        """Delete the worker and job rows of a process that is shutting down."""
        with self._database.write() as connection:
            connection.execute(delete(job).where(job.c.process == owner))
            connection.execute(delete(worker).where(worker.c.id == owner))

    def list_workers(self, *, within: timedelta | None = None) -> list[Worker]:
        """Return the worker processes, latest heartbeat first.

        A process that was killed is still listed for a day. With ``within``, only processes that sent a heartbeat
        within this time are listed.
        """
        with self._database.read() as connection:
            since = None if within is None else self._context.now(connection) - within
            return load_workers(connection, since)

    def list_job_runs(self, process: str | None = None) -> list[JobRuns]:
        """Return the last 50 runs of each job, sorted by process and name."""
        query = select(job).where(*matching(job, process=process)).order_by(job.c.process, job.c.name)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [
            JobRuns(process=row.process, name=row.name, every=row.every, runs=tuple(map(JobRun.from_list, row.runs)))
            for row in rows
        ]

    def acquire_lease(self, name: str, owner: str, *, ttl: timedelta) -> bool:
        """Acquire or renew the lease ``name``. Return False if another owner holds it."""
        with self._database.write() as connection:
            now = self._context.now(connection)
            values = {"name": name, "owner": owner, "expires_at": now + ttl, "renewed_at": now}
            renewed = {column: value for column, value in values.items() if column != "name"}
            is_free = or_(
                lease_table.c.owner == owner,
                lease_table.c.expires_at <= now,
                lease_table.c.renewed_at > now + MAX_CLOCK_STEP,
            )
            upsert = insert_into(lease_table, connection.dialect.name).values(values)
            upsert = upsert.on_conflict_do_update(index_elements=["name"], set_=renewed, where=is_free)
            return connection.execute(upsert.returning(lease_table.c.name)).first() is not None


def load_cursor(connection: Connection, name: str) -> str | None:
    """Return the saved progress of a job, or None before its first step."""
    return connection.execute(select(lease_table.c.cursor).where(lease_table.c.name == name)).scalar_one_or_none()


def lock_lease(connection: Connection, name: str, owner: str) -> bool:
    """Lock a lease until the transaction ends, and return whether the owner holds it."""
    query = select(lease_table.c.owner).where(lease_table.c.name == name).with_for_update()
    return connection.execute(query).scalar_one_or_none() == owner


def save_cursor(connection: Connection, name: str, owner: str, cursor: str) -> bool:
    """Save the progress of a job, and lock its lease. Return False, and write nothing, if another owner holds it."""
    statement = (
        update(lease_table).where(lease_table.c.name == name, lease_table.c.owner == owner).values(cursor=cursor)
    )
    return connection.execute(statement).rowcount == 1


_HEARTBEATS: Final = RecordMapper(worker, WorkerHeartbeat)
_WORKERS: Final = RecordMapper(worker, Worker)
_JOB_COLUMNS: Final = ("every", "runs")
_WORKER_COLUMNS: Final = tuple(column.name for column in worker.c if column.name not in {"id", "started_at"})
"""Columns that a heartbeat replaces."""
_TOO_LATE: Final = (
    select(scoring_task.c.id, scoring_task.c.state)
    .where(
        scoring_task.c.scorer == bindparam("scorer"),
        scoring_task.c.fingerprint == bindparam("fingerprint"),
        scoring_task.c.due_at > bindparam("latest"),
    )
    .order_by(scoring_task.c.due_at)
    .limit(_MAX_RESET_TASKS)
    .with_for_update(skip_locked=True)
)
