"""What processes share while they run: leases, limits, budgets, and who is there."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Float, Index, Integer, Text
from sqlmodel import Field

from germane.storage.db.tables.base import Base, Json, Key, UtcDateTime


class LeaseRow(Base, table=True):
    """Who does a job that only one process may do."""

    __tablename__ = "lease"

    name: str = Field(primary_key=True, sa_type=Text)
    owner: str = Field(sa_type=Text)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    cursor: str | None = Field(default=None, sa_type=Text)
    """How far the job has come."""
    renewed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class RateLimitRow(Base, table=True):
    """How fast judge requests may start, for all processes together."""

    __tablename__ = "rate_limit"

    name: str = Field(primary_key=True, sa_type=Text)
    arrival: float = Field(sa_type=Float)
    """Theoretical arrival of the next one, in seconds since 1970."""
    waited: float = Field(sa_type=Float)
    """Seconds that the one waited which took its place last."""
    used_at: datetime = Field(sa_type=UtcDateTime)


class WorkerRow(Base, table=True):
    """A process that scores, as it last told of itself."""

    __tablename__ = "worker"
    __table_args__ = (Index("ix_worker_seen_at", "seen_at"),)

    id: str = Field(primary_key=True, sa_type=Text)
    """The owner of its leases."""
    host: str = Field(sa_type=Text)
    pid: int = Field(sa_type=Integer)
    service: str = Field(sa_type=Text)
    version: str = Field(sa_type=Text)
    """Of germane."""
    scorers: dict[str, Any] = Field(sa_type=Json)
    """Fingerprint by name."""
    concurrency: int = Field(sa_type=Integer)
    in_flight: int = Field(sa_type=Integer)
    problem: str | None = Field(default=None, sa_type=Text)
    started_at: datetime = Field(sa_type=UtcDateTime)
    seen_at: datetime = Field(sa_type=UtcDateTime)


class JobRow(Base, table=True):
    """What one process does again and again, and how its last runs went: as many as a person looks at, and no more."""

    __tablename__ = "job"

    process: str = Field(primary_key=True, sa_type=Text)
    """Id of a worker."""
    name: str = Field(primary_key=True, sa_type=Text)
    every: float | None = Field(default=None, sa_type=Float)
    """Seconds between two runs; null of one that is done when something asks for it."""
    runs: list[Any] = Field(sa_type=Json)
    """The oldest first: milliseconds since 1970 at its beginning, milliseconds that it took, and what went wrong."""


class BudgetRow(Base, table=True):
    """What judging took on one day, reservations of requests under way included."""

    __tablename__ = "budget"

    day: str = Field(primary_key=True, sa_type=Text)
    """In UTC, such as 2026-03-01."""
    calls: int = Field(sa_type=BigInteger)
    tokens: float = Field(sa_type=Float)
    usd: float = Field(sa_type=Float)
    picked: int = Field(sa_type=BigInteger)
    """Exchanges that were picked to be scored."""


class CalibrationRow(Base, table=True):
    """What one embedder makes of texts that have nothing to do with one another. The newest one counts."""

    __tablename__ = "calibration"
    __table_args__ = (Index("ix_calibration_made_at", "made_at"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    embedder: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    """Of how the floor was found."""
    floor: float = Field(sa_type=Float)
    high: float = Field(sa_type=Float)
    """The value that 95 % of unrelated pairs stay under."""
    n: int = Field(sa_type=Integer)
    """Exchanges that it was found from."""
    made_at: datetime = Field(sa_type=UtcDateTime)
