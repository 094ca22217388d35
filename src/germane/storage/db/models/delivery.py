"""The table of deliveries: notifications, and requests that are forwarded to another OTLP endpoint."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, Integer, LargeBinary, Text
from sqlmodel import Field

from germane.storage.db.models.base import Base, partial_index
from germane.storage.db.types import Json, Key, UtcDateTime


class DeliveryRow(Base, table=True):
    """An item for one target, written in the same transaction as its cause and sent at least once."""

    __tablename__ = "delivery"
    __table_args__ = (
        partial_index("ix_delivery_waiting", "kind", "target", "created_at", "size", where="due_at IS NOT NULL"),
        Index("ix_delivery_created_at", "kind", "created_at"),
        partial_index("ix_delivery_span", "trace_id", "span_id", "target", unique=True, where="trace_id IS NOT NULL"),
        partial_index("ix_delivery_exchange_id", "exchange_id", where="exchange_id IS NOT NULL"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Key)
    kind: str = Field(sa_type=Text)
    """``notification`` or ``forwarding``."""
    target: str = Field(sa_type=Text)
    """Name of the channel in the settings; the endpoint's URL and a fingerprint of the headers."""
    order_keys: list[str] = Field(sa_type=Json, sa_column_kwargs={"server_default": "[]"})
    """Items with a common key are sent in order. Items without keys are in the order of the target."""
    payload: dict[str, Any] = Field(sa_type=Json)
    """A notification with its alerts, as they were at the time of the events; the signal of a request, and the scores
    to attach to its span."""
    size: int = Field(sa_type=Integer, sa_column_kwargs={"server_default": "0"})
    """Size of the body in bytes."""
    status: str = Field(sa_type=Text, sa_column_kwargs={"server_default": "waiting"})
    """One of ``waiting``, ``sent`` and ``undelivered``. Requests are deleted instead of becoming ``sent``, except
    spans that waited for their scores: without their content, they are kept for a while, so that none is sent twice."""
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
    """The exchange of the span, once its trace is complete."""
    body: bytes | None = Field(default=None, sa_type=LargeBinary)
    """A request as an OTLP protobuf message, compressed with gzip. The last column, because SQLite reads
    through it to reach the others."""
