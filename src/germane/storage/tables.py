"""The tables, as SQLModel classes: portable between SQLite and PostgreSQL.

There are no foreign keys on purpose: an exchange is written on a hot path, and scores outlive the text they are of.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    DateTime,
    Dialect,
    Float,
    Index,
    Integer,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC, with its zone on both databases."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Refuse a moment without a zone: nobody can say when it was."""
        if value is not None and value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Give SQLite's moments the zone that they were written in."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


Json = JSON().with_variant(JSONB(), "postgresql")
Key = BigInteger().with_variant(Integer(), "sqlite")


class Base(SQLModel, registry=registry()):
    """A registry of our own, so that an application's own SQLModel tables never meet these."""


class ExchangeRow(Base, table=True):
    """One exchange, with how it was sampled."""

    __tablename__ = "exchange"
    __table_args__ = (
        Index("ix_exchange_started_at", "started_at", "route"),
        Index(
            "ix_exchange_unsampled",
            "started_at",
            sqlite_where=text("sampling_reason IS NULL"),
            postgresql_where=text("sampling_reason IS NULL"),
        ),
        Index(
            "ix_exchange_candidate",
            "started_at",
            sqlite_where=text("sampling_reason = 'candidate'"),
            postgresql_where=text("sampling_reason = 'candidate'"),
        ),
        Index(
            "ix_exchange_text",
            "started_at",
            sqlite_where=text("erased_at IS NULL"),
            postgresql_where=text("erased_at IS NULL"),
        ),
    )

    id: str = Field(primary_key=True, sa_type=Text)
    trace_id: str = Field(sa_type=Text)
    span_id: str = Field(sa_type=Text)
    service: str = Field(sa_type=Text)
    route: str = Field(sa_type=Text)
    question: str | None = Field(default=None, sa_type=Text)
    answer: str | None = Field(default=None, sa_type=Text)
    contexts: list[dict[str, Any]] = Field(sa_type=Json)
    history: list[dict[str, Any]] = Field(sa_type=Json)
    model: str | None = Field(default=None, sa_type=Text)
    prompt_version: str | None = Field(default=None, sa_type=Text)
    session: str | None = Field(default=None, sa_type=Text)
    user: str | None = Field(default=None, sa_type=Text)
    attributes: dict[str, Any] = Field(sa_type=Json)
    status: str = Field(sa_type=Text)
    error: str | None = Field(default=None, sa_type=Text)
    started_at: datetime = Field(sa_type=UtcDateTime)
    duration: float = Field(sa_type=Float)
    """Seconds."""
    draw: float = Field(sa_type=Float)
    """In (0, 1]."""
    traced: bool = Field(sa_type=Boolean)
    """Whether its span is exported."""
    capture_probability: float = Field(sa_type=Float, sa_column_kwargs={"server_default": "1"})
    """Of being kept under the capture limit, in (0, 1]."""
    proxy: float | None = Field(default=None, sa_type=Float)
    """Free local score; null outside the part that has one."""
    proxy_probability: float | None = Field(default=None, sa_type=Float)
    """Of being in that part, in (0, 1]; it does not count the capture limit."""
    sampling_probability: float | None = Field(default=None, sa_type=Float)
    """Of being scored, the capture limit counted, in (0, 1]; null until it is decided, and where nothing was drawn."""
    sampling_reason: str | None = Field(default=None, sa_type=Text)
    """Null until the sampler has looked at it."""
    erased_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """When its text was erased."""


class TaskRow(Base, table=True):
    """One scorer's work on one exchange."""

    __tablename__ = "scoring_task"
    __table_args__ = (
        UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_scoring_task"),
        Index(
            "ix_scoring_task_open",
            "scorer",
            "fingerprint",
            "not_before",
            "first_pending_at",
            sqlite_where=text("not_before IS NOT NULL"),
            postgresql_where=text("not_before IS NOT NULL"),
        ),
        Index(
            "ix_scoring_task_candidate",
            "scorer",
            "fingerprint",
            "first_pending_at",
            sqlite_where=text("state = 'pending' AND not_before IS NULL"),
            postgresql_where=text("state = 'pending' AND not_before IS NULL"),
        ),
        Index(
            "ix_scoring_task_lease_owner",
            "lease_owner",
            sqlite_where=text("lease_owner IS NOT NULL"),
            postgresql_where=text("lease_owner IS NOT NULL"),
        ),
        Index("ix_scoring_task_state", "state", "reason"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    exchange_id: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    state: str = Field(sa_type=Text)
    """pending, running, done, failed or skipped."""
    reason: str | None = Field(default=None, sa_type=Text)
    error: str | None = Field(default=None, sa_type=Text)
    attempts: int = Field(sa_type=Integer)
    """How often it was claimed and not handed back untouched."""
    first_pending_at: datetime = Field(sa_type=UtcDateTime)
    not_before: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Nobody may claim it earlier: of a running task, the end of its lease. Null once it is closed."""
    lease_owner: str | None = Field(default=None, sa_type=Text)
    lease_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    scored_as: str | None = Field(default=None, sa_type=Text)
    """Fingerprint of its score, which tells what really made it; null without one, and where it is the task's own."""
    tries: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    """How often it was tried in vain and handed back to be tried later."""


class ScoreRow(Base, table=True):
    """A value that a scorer found: an absence of one is a task's state, never a row here."""

    __tablename__ = "score"
    __table_args__ = (
        UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_score"),
        Index(
            "ix_score_started_at",
            "started_at",
            "scorer",
            "service",
            "route",
            "fingerprint",
            "value",
            "label",
            "sampling_probability",
        ),
        Index("ix_score_value", "value"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    exchange_id: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    service: str = Field(sa_type=Text)
    route: str = Field(sa_type=Text)
    started_at: datetime = Field(sa_type=UtcDateTime)
    """Of the exchange: trends go by when the answer was given."""
    sampling_probability: float | None = Field(default=None, sa_type=Float)
    proxy: float | None = Field(default=None, sa_type=Float)
    """Of the exchange."""
    value: float = Field(sa_type=Float)
    label: str | None = Field(default=None, sa_type=Text)
    explanation: str | None = Field(default=None, sa_type=Text)
    details: dict[str, Any] = Field(sa_type=Json)
    judge: str | None = Field(default=None, sa_type=Text)
    embedder: str | None = Field(default=None, sa_type=Text)
    input_tokens: int | None = Field(default=None, sa_type=BigInteger)
    output_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cost: float | None = Field(default=None, sa_type=Float)
    """US dollars."""
    latency: float | None = Field(default=None, sa_type=Float)
    """Seconds."""
    scored_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class TallyRow(Base, table=True):
    """What became of the exchanges of one minute: each process counts in rows of its own, readers sum them.

    A process that finishes what another one began has negative counts of pending.
    """

    __tablename__ = "tally"
    __table_args__ = ({"sqlite_with_rowid": False},)

    minute: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    service: str = Field(primary_key=True, sa_type=Text)
    route: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    process: str = Field(primary_key=True, sa_type=Text)
    outcome: str = Field(primary_key=True, sa_type=Text)
    """seen, pending, scored, skipped or failed."""
    reason: str = Field(primary_key=True, sa_type=Text)
    """Empty unless skipped or failed."""
    count: int = Field(sa_type=BigInteger)


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


class FeedbackRow(Base, table=True):
    """A person's label of one answer."""

    __tablename__ = "feedback"
    __table_args__ = (
        Index("ix_feedback_created_at", "created_at"),
        Index("ix_feedback_exchange_id", "exchange_id"),
        Index(
            "ix_feedback_unconsidered",
            "created_at",
            sqlite_where=text("considered_at IS NULL"),
            postgresql_where=text("considered_at IS NULL"),
        ),
        Index(
            "ix_feedback_comment",
            "created_at",
            sqlite_where=text("comment IS NOT NULL"),
            postgresql_where=text("comment IS NOT NULL"),
        ),
    )

    id: str = Field(primary_key=True, sa_type=Text)
    exchange_id: str = Field(sa_type=Text)
    score: float = Field(sa_type=Float)
    """0 to 1."""
    comment: str | None = Field(default=None, sa_type=Text)
    user: str | None = Field(default=None, sa_type=Text)
    created_at: datetime = Field(sa_type=UtcDateTime)
    considered_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """When the sampler looked whether its exchange is to be scored for it."""


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


metadata = Base.metadata
exchange = metadata.tables["exchange"]
scoring_task = metadata.tables["scoring_task"]
score = metadata.tables["score"]
tally = metadata.tables["tally"]
lease = metadata.tables["lease"]
feedback = metadata.tables["feedback"]
calibration = metadata.tables["calibration"]
rate_limit = metadata.tables["rate_limit"]
worker = metadata.tables["worker"]
budget = metadata.tables["budget"]
