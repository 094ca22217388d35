"""The clock that all processes on one database share."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, func, select


def database_time(connection: Connection) -> datetime:
    """Return the time of the PostgreSQL server, or of the one host that an SQLite file is on, in UTC."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now.astimezone(UTC)
