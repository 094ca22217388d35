"""Tables for anchors, the answers that are scored repeatedly to watch the judge."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base
from germane.storage.db.types import Key, UtcDateTime


class AnchorRow(Base, table=True):
    """An answer that a scorer scores again in every round, with the mean of its first scores by one judge."""

    __tablename__ = "anchor"
    __table_args__ = (Index("ix_anchor_scorer", "scorer", "retired_at"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    exchange_id: str = Field(sa_type=Text)
    scorer: str = Field(sa_type=Text)
    fingerprint: str | None = Field(default=None, sa_type=Text)
    """Fingerprint of the scores in the baseline; null before the first one."""
    baseline: float | None = Field(default=None, sa_type=Float)
    """Mean of its first scores with this fingerprint; never the score by which it was drawn."""
    baseline_count: int = Field(sa_type=Integer)
    """Number of scores in the baseline; it is complete at five."""
    created_at: datetime = Field(sa_type=UtcDateTime)
    """Time at which the answer was drawn."""
    retired_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Time from which it is not scored: its text is gone, or another row with a new baseline replaced it."""


class AnchorScoreRow(Base, table=True):
    """An anchor's score in one round."""

    __tablename__ = "anchor_score"

    anchor_id: int = Field(primary_key=True, sa_type=BigInteger)
    round: int = Field(primary_key=True, sa_type=Integer)
    """Number of the round, counted per scorer."""
    started_at: datetime = Field(sa_type=UtcDateTime)
    """Start of the round."""
    cause: str = Field(sa_type=Text)
    """Why the round started: ``daily``, ``judge_changed`` or ``drop``."""
    fingerprint: str | None = Field(default=None, sa_type=Text)
    """Fingerprint of the score, which differs from the anchor's in the round in which the judge's model changed."""
    judge: str | None = Field(default=None, sa_type=Text)
    value: float | None = Field(default=None, sa_type=Float)
    """Null while the score is pending, and if it is missing."""
    reason: str | None = Field(default=None, sa_type=Text)
    """Why the value is missing."""
    is_baseline: bool = Field(sa_type=Boolean)
    """Whether the value is part of the anchor's baseline."""
    scored_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    """Null while the score is pending."""
