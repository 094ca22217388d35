"""Tables for runs over history and their partitions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Float, Integer, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base
from germane.storage.db.types import Json, UtcDateTime


class HistoryRunRow(Base, table=True):
    """A run that rescores stored answers, partition by partition."""

    __tablename__ = "history_run"

    id: str = Field(primary_key=True, sa_type=Text)
    kind: str = Field(sa_type=Text)
    """The kind of work: ``rescore``."""
    since: datetime = Field(sa_type=UtcDateTime)
    until: datetime = Field(sa_type=UtcDateTime)
    selection: dict[str, Any] = Field(sa_type=Json)
    """The answers to score, and the fingerprints by scorer."""
    partition_size: int = Field(sa_type=Integer)
    """Maximum number of exchanges in a partition."""
    partitions: int = Field(sa_type=Integer)
    exchanges: int = Field(sa_type=BigInteger)
    """Number of exchanges in all partitions."""
    created_at: datetime = Field(sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class PartitionRow(Base, table=True):
    """A contiguous range of exchanges by (started_at, id), which one process at a time scores."""

    __tablename__ = "partition"

    run_id: str = Field(primary_key=True, sa_type=Text)
    number: int = Field(primary_key=True, sa_type=Integer)
    first_at: datetime = Field(sa_type=UtcDateTime)
    first_id: str = Field(sa_type=Text)
    last_at: datetime = Field(sa_type=UtcDateTime)
    """Start time of the last exchange, which belongs to the partition."""
    last_id: str = Field(sa_type=Text)
    exchanges: int = Field(sa_type=Integer)
    attempts: int = Field(sa_type=Integer)
    """Number of claims."""
    due_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Earliest time of the next claim; for a claimed partition, the end of the lease. Null once it is done."""
    lease_owner: str | None = Field(default=None, sa_type=Text)
    error: str | None = Field(default=None, sa_type=Text)
    """Why the last attempt failed."""
    scored: int = Field(sa_type=Integer)
    """Number of scores with a value that the partition wrote."""
    failed: int = Field(sa_type=Integer)
    skipped: int = Field(sa_type=Integer)
    cost: float | None = Field(default=None, sa_type=Float)
    """Cost of the scores in US dollars; null if no price is known."""
    checksum: str = Field(sa_type=Text)
    """Sum of the hashes of the written scores; see ``score_checksum``."""
    remaining: list[list[str]] | None = Field(default=None, sa_type=Json)
    """Pairs of exchange id and scorer to score, if an attempt has written a part of the scores; null for all."""
