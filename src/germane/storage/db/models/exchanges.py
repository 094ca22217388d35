"""Tables for exchanges, scoring tasks, scores, labels, drawn answers and markers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, Text, UniqueConstraint
from sqlmodel import Field

from germane.storage.db.conditions import LOW_SQL
from germane.storage.db.models.base import Base, partial_index
from germane.storage.db.types import Json, Key, UtcDateTime

ANSWERS_VIEW: Final = """
CREATE VIEW answers AS
SELECT exchange.id AS exchange_id, exchange.trace_id, exchange.service, exchange.route, exchange.model,
    exchange.prompt_version, exchange.started_at, exchange.duration, exchange.question, exchange.answer,
    exchange.status, scoring_task.scorer, COALESCE(scoring_task.scored_as, scoring_task.fingerprint) AS fingerprint,
    scoring_task.state, scoring_task.reason,
    score.value, score.label, score.explanation, score.judge, score.cost, score.scored_at,
    1.0 / NULLIF(COALESCE(score.sampling_probability, exchange.sampling_probability), 0) AS weight
FROM scoring_task
JOIN exchange ON exchange.id = scoring_task.exchange_id
LEFT JOIN score ON score.exchange_id = scoring_task.exchange_id AND score.scorer = scoring_task.scorer
    AND score.fingerprint = COALESCE(scoring_task.scored_as, scoring_task.fingerprint)
"""
"""One row per exchange and scorer, for people who read the database with SQL."""


class ExchangeRow(Base, table=True):
    """An exchange and its sampling decision."""

    __tablename__ = "exchange"
    __table_args__ = (
        Index("ix_exchange_started_at", "started_at"),
        Index("ix_exchange_route", "route", "started_at", "service", "duration"),
        partial_index("ix_exchange_unsampled", "started_at", where="sampling_reason IS NULL"),
        partial_index("ix_exchange_candidate", "started_at", where="sampling_reason = 'candidate'"),
        partial_index("ix_exchange_text", "started_at", where="erased_at IS NULL"),
        partial_index(
            "ix_exchange_proxy",
            "started_at",
            "service",
            "route",
            "proxy",
            "proxy_probability",
            "capture_probability",
            where="proxy IS NOT NULL",
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
    """Duration in seconds."""
    sampling_key: float = Field(sa_type=Float)
    """Random number in (0, 1] that decides whether the exchange is sampled."""
    traced: bool = Field(sa_type=Boolean)
    """Whether the exchange's span is exported."""
    capture_probability: float = Field(sa_type=Float, sa_column_kwargs={"server_default": "1"})
    """Probability of being kept under ``max_exchanges_per_minute``, in (0, 1]."""
    proxy: float | None = Field(default=None, sa_type=Float)
    """Proxy score, computed locally without an LLM; null if there is none."""
    proxy_probability: float | None = Field(default=None, sa_type=Float)
    """Probability of having a proxy score, in (0, 1], excluding the capture probability."""
    sampling_probability: float | None = Field(default=None, sa_type=Float)
    """Probability of being scored, in (0, 1], including the capture probability. Null before the sampling decision, and
    without random sampling."""
    sampling_reason: str | None = Field(default=None, sa_type=Text)
    """Null before the sampling decision."""
    erased_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Time at which the text was erased."""
    span_holder: str | None = Field(default=None, sa_type=Text)
    """Id of the worker process that holds the exchange's span until its scores arrive."""


class TaskRow(Base, table=True):
    """One scorer's task for one exchange."""

    __tablename__ = "scoring_task"
    __table_args__ = (
        UniqueConstraint("exchange_id", "scorer", "fingerprint", name="uq_scoring_task"),
        partial_index(
            "ix_scoring_task_open", "scorer", "fingerprint", "due_at", "first_pending_at", where="due_at IS NOT NULL"
        ),
        partial_index(
            "ix_scoring_task_candidate",
            "scorer",
            "fingerprint",
            "first_pending_at",
            where="state = 'pending' AND due_at IS NULL",
        ),
        partial_index("ix_scoring_task_lease_owner", "lease_owner", where="lease_owner IS NOT NULL"),
        Index("ix_scoring_task_state", "state", "reason"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    exchange_id: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    state: str = Field(sa_type=Text)
    """One of ``pending``, ``running``, ``done``, ``failed`` and ``skipped``."""
    reason: str | None = Field(default=None, sa_type=Text)
    error: str | None = Field(default=None, sa_type=Text)
    claims: int = Field(sa_type=Integer)
    """Number of claims, excluding claims after which the task was postponed or released."""
    first_pending_at: datetime = Field(sa_type=UtcDateTime)
    due_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Earliest time of the next claim; for a running task, the end of the lease. Null for candidates and closed tasks.
    """
    lease_owner: str | None = Field(default=None, sa_type=Text)
    scored_as: str | None = Field(default=None, sa_type=Text)
    """Fingerprint of the score; null means the same as ``fingerprint``. In an open task, null means a first scoring,
    and empty a requested rescoring without an earlier score. Otherwise the fingerprint of the score to replace."""
    retries: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    """Number of times that the task was postponed after a failed attempt."""


class ScoreRow(Base, table=True):
    """A score with a value. A result without a value is stored only as the state of its task."""

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
        Index("ix_score_value", "value", "scorer", "started_at", "route", "label"),
        partial_index(
            "ix_score_low", "scorer", "started_at", "service", "route", "fingerprint", "value", "label", where=LOW_SQL
        ),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    exchange_id: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    service: str = Field(sa_type=Text)
    route: str = Field(sa_type=Text)
    started_at: datetime = Field(sa_type=UtcDateTime)
    """Start time of the exchange, by which trends are grouped."""
    sampling_probability: float | None = Field(default=None, sa_type=Float)
    proxy: float | None = Field(default=None, sa_type=Float)
    """The exchange's proxy score."""
    value: float = Field(sa_type=Float)
    label: str | None = Field(default=None, sa_type=Text)
    explanation: str | None = Field(default=None, sa_type=Text)
    details: dict[str, Any] = Field(sa_type=Json)
    judge: str | None = Field(default=None, sa_type=Text)
    embedder: str | None = Field(default=None, sa_type=Text)
    input_tokens: int | None = Field(default=None, sa_type=BigInteger)
    output_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cost: float | None = Field(default=None, sa_type=Float)
    """Cost in US dollars."""
    latency: float | None = Field(default=None, sa_type=Float)
    """Latency in seconds."""
    scored_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class FeedbackRow(Base, table=True):
    """A person's label for an answer."""

    __tablename__ = "feedback"
    __table_args__ = (
        Index("ix_feedback_created_at", "created_at"),
        Index("ix_feedback_exchange_id", "exchange_id"),
        partial_index("ix_feedback_unconsidered", "created_at", where="considered_at IS NULL"),
        partial_index("ix_feedback_comment", "created_at", where="comment IS NOT NULL"),
    )

    id: str = Field(primary_key=True, sa_type=Text)
    exchange_id: str = Field(sa_type=Text)
    score: float = Field(sa_type=Float)
    """The label's value, in [0, 1]."""
    comment: str | None = Field(default=None, sa_type=Text)
    user: str | None = Field(default=None, sa_type=Text)
    created_at: datetime = Field(sa_type=UtcDateTime)
    considered_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Time at which the sampler processed the label, deciding whether to score the exchange because of it."""
    wave: str | None = Field(default=None, sa_type=Text)
    """The wave in which the exchange was drawn for this label; null for a label that somebody gave unasked."""


class LabelDrawRow(Base, table=True):
    """An answer that was drawn at random to be labeled. Deleted with its exchange, but not when that is archived."""

    __tablename__ = "label_draw"
    __table_args__ = (
        Index("ix_label_draw_exchange_id", "exchange_id"),
        Index("ix_label_draw_window", "since", "until"),
        partial_index("ix_label_draw_settled_by", "settled_by", where="settled_by IS NOT NULL"),
    )

    wave: str = Field(primary_key=True, sa_type=Text)
    exchange_id: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    since: datetime = Field(sa_type=UtcDateTime)
    """Start of the wave's window."""
    until: datetime = Field(sa_type=UtcDateTime)
    service: str = Field(sa_type=Text)
    route: str = Field(sa_type=Text)
    probability: float = Field(sa_type=Float)
    """Probability that this answer was scored and then drawn, in (0, 1]."""
    drawn_at: datetime = Field(sa_type=UtcDateTime)
    position: int = Field(sa_type=Integer)
    """Place in the random order in which people see the answers of a wave; 1 is the first."""
    state: str = Field(sa_type=Text)
    """One of ``open``, ``labeled``, ``cannot_tell`` and ``skipped``."""
    settled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Time of the last label, or of skipping; null for an open answer."""
    settled_by: str | None = Field(default=None, sa_type=Text)
    """Display name of the person who gave the last label or skipped."""


class MarkerRow(Base, table=True):
    """A named point in time, such as a deploy or a new index."""

    __tablename__ = "marker"
    __table_args__ = (Index("ix_marker_at", "at"),)

    id: str = Field(primary_key=True, sa_type=Text)
    name: str = Field(sa_type=Text)
    service: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=UtcDateTime)
    attributes: dict[str, Any] = Field(sa_type=Json)
