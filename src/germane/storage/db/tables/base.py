"""What all tables stand on: their registry, and the kinds of columns that differ between the two databases."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import registry
from sqlmodel import SQLModel


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
