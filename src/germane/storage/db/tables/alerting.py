"""What watches: scores on their way to the detector, baselines, alerts, and what is told of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, Text, UniqueConstraint, text
from sqlmodel import Field

from germane.storage.db.tables.base import Base, Json, Key, UtcDateTime


class ArrivalRow(Base, table=True):
    """A score that the detector has not seen: a queue, in the order of arrival."""

    __tablename__ = "arrival"
    __table_args__ = (
        Index("ix_arrival_exchange_id", "exchange_id"),
        {"sqlite_autoincrement": True},  # an id that is used again would come too early
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    service: str = Field(sa_type=Text)
    route: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    exchange_id: str = Field(sa_type=Text)
    value: float = Field(sa_type=Float)
    zero: bool = Field(sa_type=Boolean)
    """Whether it is noncommittal, or up to 0."""
    arrived_at: datetime = Field(sa_type=UtcDateTime)


class BaselineRow(Base, table=True):
    """A baseline of one service, scorer and fingerprint. Its numbers never change; a newer version supersedes it."""

    __tablename__ = "baseline"
    __table_args__ = (
        UniqueConstraint("service", "scorer", "fingerprint", "scope", "version", name="uq_baseline"),
        Index("ix_baseline_status", "status"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    service: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    scope: str = Field(sa_type=Text)
    """Patterns of attributes that its exchanges fit, as JSON with sorted names; empty of all exchanges."""
    version: int = Field(sa_type=Integer)
    status: str = Field(sa_type=Text)
    """learning, active or superseded."""
    reason: str = Field(sa_type=Text)
    """Why it is there: first, judge_changed, route_joined, accepted or imported."""
    since: datetime = Field(sa_type=UtcDateTime)
    until: datetime = Field(sa_type=UtcDateTime)
    n: int = Field(sa_type=BigInteger)
    mean: float | None = Field(default=None, sa_type=Float)
    deviation: float | None = Field(default=None, sa_type=Float)
    numbers: dict[str, Any] = Field(sa_type=Json)
    """By route, and what else the detector goes by; empty while it is learned."""
    model: str | None = Field(default=None, sa_type=Text)
    """Of the application, as most of these answers had it."""
    prompt_version: str | None = Field(default=None, sa_type=Text)
    created_at: datetime = Field(sa_type=UtcDateTime)


class DetectorRow(Base, table=True):
    """How far the detector of one rule, service and scorer has come."""

    __tablename__ = "detector"

    rule: str = Field(primary_key=True, sa_type=Text)
    service: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    parameters: str = Field(sa_type=Text)
    """Hash of the rule's settings: with others it begins anew."""
    baseline_id: int = Field(sa_type=BigInteger)
    state: dict[str, Any] = Field(sa_type=Json)
    log_evidence: float | None = Field(default=None, sa_type=Float)
    seen_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Arrival of the last score that it has seen."""
    row_version: int = Field(sa_type=BigInteger)


class AlertRow(Base, table=True):
    """One thing that is wrong, or was."""

    __tablename__ = "alert"
    __table_args__ = (
        Index(
            "uq_alert_open",
            "key",
            unique=True,
            sqlite_where=text("state <> 'resolved'"),
            postgresql_where=text("state <> 'resolved'"),
        ),
        Index("ix_alert_starts_at", "starts_at"),
    )

    id: str = Field(primary_key=True, sa_type=Text)
    key: str = Field(sa_type=Text)
    rule: str = Field(sa_type=Text)
    kind: str = Field(sa_type=Text)
    labels: dict[str, Any] = Field(sa_type=Json)
    state: str = Field(sa_type=Text)
    severity: str = Field(sa_type=Text)
    cause: str | None = Field(default=None, sa_type=Text)
    message: str = Field(sa_type=Text)
    fingerprint: str | None = Field(default=None, sa_type=Text)
    value: float | None = Field(default=None, sa_type=Float)
    threshold: float | None = Field(default=None, sa_type=Float)
    window: float | None = Field(default=None, sa_type=Float)
    evidence: float | None = Field(default=None, sa_type=Float)
    onset: datetime | None = Field(default=None, sa_type=UtcDateTime)
    body: dict[str, Any] = Field(sa_type=Json)
    """Its levels, shifts, exchange ids and details."""
    starts_at: datetime = Field(sa_type=UtcDateTime)
    fired_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    resolved_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    evaluated_at: datetime = Field(sa_type=UtcDateTime)
    notified_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    acknowledged_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    acknowledged_by: str | None = Field(default=None, sa_type=Text)
    resolve_reason: str | None = Field(default=None, sa_type=Text)


class AlertEventRow(Base, table=True):
    """Something that happened to an alert: appended, never changed."""

    __tablename__ = "alert_event"
    __table_args__ = (Index("ix_alert_event_alert_id", "alert_id"),)

    id: str = Field(primary_key=True, sa_type=Text)
    alert_id: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=UtcDateTime)
    what: str = Field(sa_type=Text)
    """fired, escalated, recovering, resolved, repeated, acknowledged or the like."""
    before: str | None = Field(default=None, sa_type=Text)
    """State."""
    after: str = Field(sa_type=Text)
    detail: dict[str, Any] = Field(sa_type=Json)


class NotificationRow(Base, table=True):
    """Something to tell by one channel: written with what it tells, sent later, at least once."""

    __tablename__ = "notification"
    __table_args__ = (
        Index(
            "ix_notification_due",
            "next_attempt_at",
            sqlite_where=text("next_attempt_at IS NOT NULL"),
            postgresql_where=text("next_attempt_at IS NOT NULL"),
        ),
        Index("ix_notification_created_at", "created_at"),
    )

    id: str = Field(primary_key=True, sa_type=Text)
    channel: str = Field(sa_type=Text)
    """Its name in the settings."""
    event_ids: list[str] = Field(sa_type=Json)
    payload: dict[str, Any] = Field(sa_type=Json)
    """The alerts as they were."""
    idempotency_key: str = Field(sa_type=Text)
    """The same for every try."""
    status: str = Field(sa_type=Text)
    """waiting, sent or dead."""
    attempt: int = Field(sa_type=Integer)
    next_attempt_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Nobody may try it earlier: while somebody does, the end of their lease. Null once it is sent or dead."""
    lease_owner: str | None = Field(default=None, sa_type=Text)
    http_status: int | None = Field(default=None, sa_type=Integer)
    error: str | None = Field(default=None, sa_type=Text)
    """Without secrets."""
    created_at: datetime = Field(sa_type=UtcDateTime)
    settled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class SilenceRow(Base, table=True):
    """For a time nobody is told of alerts that match."""

    __tablename__ = "silence"
    __table_args__ = (Index("ix_silence_ends_at", "ends_at"),)

    id: str = Field(primary_key=True, sa_type=Text)
    matchers: dict[str, Any] = Field(sa_type=Json)
    """Patterns by label."""
    starts_at: datetime = Field(sa_type=UtcDateTime)
    ends_at: datetime = Field(sa_type=UtcDateTime)
    created_by: str | None = Field(default=None, sa_type=Text)
    comment: str | None = Field(default=None, sa_type=Text)
