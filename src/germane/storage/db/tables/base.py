"""The base class for tables, and column types that differ between SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import registry
from sqlmodel import SQLModel


class UtcDateTime(TypeDecorator[datetime]):
    """A timezone-aware time in UTC, on both databases."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Convert a time to UTC.

        Raises:
            ValueError: The time has no time zone.
        """
        if value is not None and value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return the time with its time zone, which SQLite does not store."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


Json = JSON().with_variant(JSONB(), "postgresql")
Key = BigInteger().with_variant(Integer(), "sqlite")


class Base(SQLModel, registry=registry()):
    """Base class with its own registry, which keeps the tables separate from the application's SQLModel tables."""
