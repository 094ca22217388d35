"""Tables for running processes: leases, quotas, workers, jobs and calibrations."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Float, Index, Integer, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base
from germane.storage.db.types import Json, Key, UtcDateTime


class LeaseRow(Base, table=True):
    """A lease on a job that only one process at a time may run."""

    __tablename__ = "lease"

    name: str = Field(primary_key=True, sa_type=Text)
    owner: str = Field(sa_type=Text)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    cursor: str | None = Field(default=None, sa_type=Text)
    """The job's progress, in a job-specific format."""
    renewed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class RateLimitRow(Base, table=True):
    """The schedule of a rate limit, shared by all processes."""

    __tablename__ = "rate_limit"

    name: str = Field(primary_key=True, sa_type=Text)
    arrival: float = Field(sa_type=Float)
    """Theoretical arrival time of the next request, in seconds since 1970."""
    waited: float = Field(sa_type=Float)
    """Seconds that the latest request waited for its slot."""
    used_at: datetime = Field(sa_type=UtcDateTime)


class WorkerRow(Base, table=True):
    """A worker process, as of its latest heartbeat."""

    __tablename__ = "worker"
    __table_args__ = (Index("ix_worker_seen_at", "seen_at"),)

    id: str = Field(primary_key=True, sa_type=Text)
    """Id of the worker, which is also the owner of its task leases."""
    host: str = Field(sa_type=Text)
    pid: int = Field(sa_type=Integer)
    service: str = Field(sa_type=Text)
    version: str = Field(sa_type=Text)
    """The germane version that the worker runs."""
    scorers: dict[str, Any] = Field(sa_type=Json)
    """Fingerprints by scorer name."""
    concurrency: int = Field(sa_type=Integer)
    in_flight: int = Field(sa_type=Integer)
    problem: str | None = Field(default=None, sa_type=Text)
    settings: dict[str, Any] | None = Field(default=None, sa_type=Json)
    """The settings of the process, without secrets; None before its first heartbeat."""
    started_at: datetime = Field(sa_type=UtcDateTime)
    seen_at: datetime = Field(sa_type=UtcDateTime)


class JobRow(Base, table=True):
    """A job in one process, with its latest runs."""

    __tablename__ = "job"

    process: str = Field(primary_key=True, sa_type=Text)
    """Id of the worker."""
    name: str = Field(primary_key=True, sa_type=Text)
    every: float | None = Field(default=None, sa_type=Float)
    """Seconds between runs; null if the job runs on demand."""
    runs: list[Any] = Field(sa_type=Json)
    """Runs, oldest first: start in milliseconds since 1970, duration in milliseconds, and the error, if any."""


class SavedViewRow(Base, table=True):
    """A named link to a page of the dashboard."""

    __tablename__ = "saved_view"

    name: str = Field(primary_key=True, sa_type=Text)
    path: str = Field(sa_type=Text)
    """Path and query of the page."""
    created_at: datetime = Field(sa_type=UtcDateTime)
    created_by: str | None = Field(default=None, sa_type=Text)
    """The display name that the person entered."""


class BudgetRow(Base, table=True):
    """Judge usage for one day, including reservations for in-flight requests."""

    __tablename__ = "budget"

    day: str = Field(primary_key=True, sa_type=Text)
    """UTC day in ISO format, such as ``2026-03-01``."""
    requests: int = Field(sa_type=BigInteger)
    tokens: float = Field(sa_type=Float)
    usd: float = Field(sa_type=Float)
    selected: int = Field(sa_type=BigInteger)
    """Number of exchanges selected for scoring."""


class CalibrationRow(Base, table=True):
    """Similarity that an embedder assigns to unrelated texts. The newest row is in effect."""

    __tablename__ = "calibration"
    __table_args__ = (Index("ix_calibration_made_at", "made_at"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    embedder: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    """Fingerprint of the calibration method."""
    floor: float = Field(sa_type=Float)
    topic_floor: float = Field(sa_type=Float)
    """The same-topic floor, see :class:`germane.calibration.Calibration`."""
    n: int = Field(sa_type=Integer)
    """Number of exchanges that were measured."""
    made_at: datetime = Field(sa_type=UtcDateTime)
