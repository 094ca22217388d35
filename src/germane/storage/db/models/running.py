"""Tables for work: leases, quotas, workers, jobs, calibrations, runs over history and deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Float, Index, Integer, LargeBinary, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base, partial_index
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


class DeliveryRow(Base, table=True):
    """An item for one target, written in the same transaction as its cause and sent at least once."""

    __tablename__ = "delivery"
    __table_args__ = (
        partial_index("ix_delivery_waiting", "kind", "target", "created_at", "size", where="due_at IS NOT NULL"),
        Index("ix_delivery_created_at", "kind", "created_at"),
        partial_index("ix_delivery_span", "trace_id", "span_id", "target", unique=True, where="trace_id IS NOT NULL"),
        partial_index("ix_delivery_exchange_id", "exchange_id", where="exchange_id IS NOT NULL"),
        partial_index("ix_delivery_sink", "target", "exchange_id", unique=True, where="kind = 'sink'"),
        partial_index("ix_delivery_sink_due", "target", "due_at", where="kind = 'sink' AND due_at IS NOT NULL"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    kind: str = Field(sa_type=Text)
    """``notification``, ``forwarding`` or ``sink``."""
    target: str = Field(sa_type=Text)
    """Name of the channel or sink in the settings; the endpoint's URL and a fingerprint of the headers."""
    order_keys: list[str] = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})
    """Items with a common key are sent in order. Items without keys are in the order of the target. Those of sinks have
    no order."""
    payload: dict[str, Any] = Field(sa_type=Json)
    """A notification with its alerts, as they were at the time of the events; the signal of a request, and the scores
    to attach to its span. Empty for sinks: scores, labels and texts are read when they are sent."""
    size: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    """Size of the body in bytes."""
    status: str = Field(sa_type=Text, sa_column_kwargs={"server_default": "waiting"})
    """One of ``waiting``, ``sent`` and ``undelivered``. Requests and items for sinks are deleted instead of becoming
    ``sent``, except spans that waited for their scores: without their content, they are kept for a while, so that none
    is sent twice."""
    attempt: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    due_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Earliest time of the next attempt; during an attempt, the end of the lease. Null once sent or undelivered."""
    lease_owner: str | None = Field(default=None, sa_type=Text)
    http_status: int | None = Field(default=None, sa_type=Integer)
    error: str | None = Field(default=None, sa_type=Text)
    """The last attempt's error, without secrets."""
    created_at: datetime = Field(sa_type=UtcDateTime)
    """Position in the order of the target. For a span that waits for its scores, the time until which it waits."""
    settled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Time at which the item was sent or became undelivered."""
    trace_id: str | None = Field(default=None, sa_type=Text)
    """If the item is a single span that waits, or has waited, for its scores: the id of its trace."""
    span_id: str | None = Field(default=None, sa_type=Text)
    exchange_id: str | None = Field(default=None, sa_type=Text)
    """The exchange of the span, once its trace is complete; the exchange whose scores and labels a sink gets."""
    changes: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    """How often the exchange got scores or labels since the item was last claimed. They must be sent, too."""
    body: bytes | None = Field(default=None, sa_type=LargeBinary)
    """A request as an OTLP protobuf message, compressed with gzip. The last column, because SQLite reads
    through it to reach the others."""
