"""Alerting tables: detector input, baselines, detector states, alerts and silences."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, Text, UniqueConstraint
from sqlmodel import Field

from germane.storage.db.models.base import Base, partial_index
from germane.storage.db.types import Json, Key, UtcDateTime


class DetectorInputRow(Base, table=True):
    """A score that the detectors have not processed yet. The table is a queue in order of arrival."""

    __tablename__ = "detector_input"
    __table_args__ = (
        Index("ix_detector_input_exchange_id", "exchange_id"),
        {"sqlite_autoincrement": True},  # a reused id would break the order
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    service: str = Field(sa_type=Text)
    route: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str = Field(sa_type=Text)
    exchange_id: str = Field(sa_type=Text)
    value: float = Field(sa_type=Float)
    is_zero: bool = Field(sa_type=Boolean)
    """Whether the answer is noncommittal or the score is at most 0."""
    arrived_at: datetime = Field(sa_type=UtcDateTime)


class BaselineRow(Base, table=True):
    """A baseline version for one service, scorer and fingerprint. Once learned, it is replaced but never changed."""

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
    """Attribute patterns that select the exchanges, as JSON with sorted keys; empty for all exchanges."""
    version: int = Field(sa_type=Integer)
    status: str = Field(sa_type=Text)
    """One of ``learning``, ``active`` and ``superseded``."""
    reason: str = Field(sa_type=Text)
    """One of ``first``, ``judge_changed``, ``route_joined``, ``traffic_changed``, ``extended``, ``accepted``,
    ``imported`` and ``provisional``."""
    since: datetime = Field(sa_type=UtcDateTime)
    until: datetime = Field(sa_type=UtcDateTime)
    n: int = Field(sa_type=BigInteger)
    mean: float | None = Field(default=None, sa_type=Float)
    deviation: float | None = Field(default=None, sa_type=Float)
    numbers: dict[str, Any] = Field(sa_type=Json)
    """Detector parameters, by route and in total; empty while the baseline is being learned."""
    model: str | None = Field(default=None, sa_type=Text)
    """The application's most common model."""
    prompt_version: str | None = Field(default=None, sa_type=Text)
    created_at: datetime = Field(sa_type=UtcDateTime)
    accepted_by: str | None = Field(default=None, sa_type=Text)
    """Name of the person who accepted the baseline."""


class DetectorRow(Base, table=True):
    """The detector's state for one rule, service and scorer."""

    __tablename__ = "detector"

    rule: str = Field(primary_key=True, sa_type=Text)
    service: str = Field(primary_key=True, sa_type=Text)
    scorer: str = Field(primary_key=True, sa_type=Text)
    parameters: str = Field(sa_type=Text)
    """Hash of the rule's settings. If they change, the detector starts over."""
    baseline_id: int = Field(sa_type=BigInteger)
    state: dict[str, Any] = Field(sa_type=Json)
    log_evidence: float | None = Field(default=None, sa_type=Float)
    seen_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Time of the newest answer whose score has been processed."""
    row_version: int = Field(sa_type=BigInteger)


class AlertRow(Base, table=True):
    """An alert in its current state."""

    __tablename__ = "alert"
    __table_args__ = (
        partial_index("uq_alert_open", "key", unique=True, where="state <> 'resolved'"),
        Index("ix_alert_starts_at", "starts_at"),
    )

    id: str = Field(primary_key=True, sa_type=Text)
    key: str = Field(sa_type=Text)
    rule: str = Field(sa_type=Text)
    type: str = Field(sa_type=Text)
    labels: dict[str, Any] = Field(sa_type=Json)
    state: str = Field(sa_type=Text)
    severity: str = Field(sa_type=Text)
    cause: str | None = Field(default=None, sa_type=Text)
    message: str = Field(sa_type=Text)
    fingerprint: str | None = Field(default=None, sa_type=Text)
    value: float | None = Field(default=None, sa_type=Float)
    threshold: float | None = Field(default=None, sa_type=Float)
    window: float | None = Field(default=None, sa_type=Float)
    onset: datetime | None = Field(default=None, sa_type=UtcDateTime)
    body: dict[str, Any] = Field(sa_type=Json)
    """Score levels, shifts, exchange ids and details."""
    starts_at: datetime = Field(sa_type=UtcDateTime)
    fired_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    resolved_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    evaluated_at: datetime = Field(sa_type=UtcDateTime)
    notified_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    acknowledged_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    acknowledged_by: str | None = Field(default=None, sa_type=Text)
    resolve_reason: str | None = Field(default=None, sa_type=Text)


class AlertEventRow(Base, table=True):
    """An event in the history of an alert. Rows are never changed."""

    __tablename__ = "alert_event"
    __table_args__ = (Index("ix_alert_event_alert_id", "alert_id"),)

    id: str = Field(primary_key=True, sa_type=Text)
    alert_id: str = Field(sa_type=Text)
    at: datetime = Field(sa_type=UtcDateTime)
    type: str = Field(sa_type=Text)
    """For example ``fired``, ``escalated``, ``recovering``, ``resolved``, ``repeated`` or ``acknowledged``."""
    before: str | None = Field(default=None, sa_type=Text)
    """The alert's state before the event."""
    after: str = Field(sa_type=Text)
    """The alert's state after the event."""
    detail: dict[str, Any] = Field(sa_type=Json)


class SilenceRow(Base, table=True):
    """A period during which notifications about matching alerts are suppressed."""

    __tablename__ = "silence"
    __table_args__ = (Index("ix_silence_ends_at", "ends_at"),)

    id: str = Field(primary_key=True, sa_type=Text)
    matchers: dict[str, Any] = Field(sa_type=Json)
    """Patterns by label name."""
    starts_at: datetime = Field(sa_type=UtcDateTime)
    ends_at: datetime = Field(sa_type=UtcDateTime)
    created_by: str | None = Field(default=None, sa_type=Text)
    comment: str | None = Field(default=None, sa_type=Text)
