"""Tables for received spans and outlines of unreadable traces.

Times of received spans are in seconds since 1970, because the databases compute with them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Float, Index, Integer, LargeBinary, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base, partial_index
from germane.storage.db.types import Json, UtcDateTime


class ReceivedTraceRow(Base, table=True):
    """A trace whose spans are arriving, or that was finished recently. If receivers with different options receive its
    spans, there is a row for each.
    """

    __tablename__ = "received_trace"
    __table_args__ = (
        partial_index("ix_received_trace_due_at", "options", "due_at", where="due_at IS NOT NULL"),
        partial_index("ix_received_trace_finished_at", "finished_at", where="finished_at IS NOT NULL"),
    )

    trace_id: str = Field(primary_key=True, sa_type=Text)
    options: str = Field(primary_key=True, sa_type=Text)
    """The options that apply to the texts of the trace. Only a process with the same options finishes it."""
    due_at: float | None = Field(default=None, sa_type=Float)
    """Time at which the trace is finished, unless more spans arrive; for a claimed trace, the end of the lease. Null
    once the trace is finished."""
    deadline: float = Field(sa_type=Float)
    """Time at which the trace is finished even if more spans arrive; for a finished trace, the end of its latest
    exchange, or 0 without one. Spans that started later open the trace again."""
    wait: float = Field(sa_type=Float)
    """Seconds without new spans after which the trace is finished."""
    spans: int = Field(sa_type=Integer)
    """Number of staged spans and log records."""
    size: int = Field(sa_type=Integer)
    """Size of the staged spans and log records in bytes."""
    dropped: int = Field(sa_type=Integer)
    """Number of spans and log records that were not staged, because the trace is too large."""
    lease_owner: str | None = Field(default=None, sa_type=Text)
    """The process that has claimed the trace. Null if new spans have arrived since."""
    finished_at: float | None = Field(default=None, sa_type=Float)
    span_keys: bytes | None = Field(default=None, sa_type=LargeBinary)
    """Keys of a finished trace's spans, by which repeated spans are recognized."""


class ReceivedSpanRow(Base, table=True):
    """A span or log record of an unfinished trace."""

    __tablename__ = "received_span"

    trace_id: str = Field(primary_key=True, sa_type=Text)
    options: str = Field(primary_key=True, sa_type=Text)
    key: str = Field(primary_key=True, sa_type=Text)
    """The span id; for a log record, a hash of its content."""
    is_log: bool = Field(sa_type=Boolean)
    service: str = Field(sa_type=Text)
    scope: str = Field(sa_type=Text)
    payload: bytes = Field(sa_type=LargeBinary)
    """The span or log record as an OTLP protobuf message."""


class UnreadableTraceRow(Base, table=True):
    """An outline of a watched or received trace that could not be read. It contains names, but no values."""

    __tablename__ = "unreadable_trace"
    __table_args__ = (
        Index("ix_unreadable_trace_sampled_at", "sampled_at"),
        Index("ix_unreadable_trace_reason", "service", "scope", "reason", "sampled_at"),
    )

    trace_id: str = Field(primary_key=True, sa_type=Text)
    service: str = Field(sa_type=Text)
    scope: str = Field(sa_type=Text)
    reason: str = Field(sa_type=Text)
    started_at: datetime = Field(sa_type=UtcDateTime)
    """Start of the trace, which is set by its sender."""
    sampled_at: datetime = Field(sa_type=UtcDateTime)
    """Time at which the row was written, by which it expires."""
    spans: list[Any] = Field(sa_type=Json)
    spans_omitted: int = Field(sa_type=Integer)
