"""What was captured, and what is said of it: exchanges, their scoring tasks and scores, people's labels, marks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, Text, UniqueConstraint, text
from sqlmodel import Field

from germane.storage.db.tables.base import Base, Json, Key, UtcDateTime


class ExchangeRow(Base, table=True):
    """One exchange, with how it was sampled."""

    __tablename__ = "exchange"
    __table_args__ = (
        Index("ix_exchange_started_at", "started_at"),
        Index("ix_exchange_route", "route", "started_at"),
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
        Index(
            "ix_exchange_proxy",
            "started_at",
            "service",
            "route",
            "proxy",
            "proxy_probability",
            "capture_probability",
            sqlite_where=text("proxy IS NOT NULL"),
            postgresql_where=text("proxy IS NOT NULL"),
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
    """Fingerprint of its score, which tells what really made it; null without one, and where it is the task's own.
    Of an open task it says that the exchange is scored again, and which score stands until then; empty without one."""
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
            "proxy",
        ),
        Index("ix_score_value", "value", "scorer", "started_at", "route"),
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


class MarkRow(Base, table=True):
    """A moment that people compare before and since: a deploy, a new index."""

    __tablename__ = "mark"
    __table_args__ = (Index("ix_mark_at", "at"),)

    id: str = Field(primary_key=True, sa_type=Text)
    name: str = Field(sa_type=Text)
    service: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=UtcDateTime)
    attributes: dict[str, Any] = Field(sa_type=Json)
