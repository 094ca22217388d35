"""What processes do again and again, and how it went lately: told with each sign of life, and gone with the process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Insert, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.tables import job
from germane.storage.text import clean

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
        connection.execute(_UPSERTS[connection.dialect.name], rows)


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


def _upserts() -> dict[str, Insert]:
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


_UPSERTS = _upserts()
