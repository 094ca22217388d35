"""One elected process per job, by a row that is compared and set."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, Insert, or_
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.tables import lease


def elect(connection: Connection, name: str, owner: str, ttl: timedelta, now: datetime) -> bool:
    """Take or renew the lease; False when another owner's has not run out."""
    statement = _statement(connection.dialect.name, {"name": name, "owner": owner, "expires_at": now + ttl}, now)
    return connection.execute(statement).first() is not None


def _statement(dialect: str, values: dict[str, object], now: datetime) -> Insert:
    free = or_(lease.c.owner == values["owner"], lease.c.expires_at <= now)
    update = {"owner": values["owner"], "expires_at": values["expires_at"]}
    if dialect == "sqlite":
        on_sqlite = sqlite.insert(lease).values(values)
        return on_sqlite.on_conflict_do_update(index_elements=["name"], set_=update, where=free).returning(lease.c.name)
    on_postgresql = postgresql.insert(lease).values(values)
    return on_postgresql.on_conflict_do_update(index_elements=["name"], set_=update, where=free).returning(lease.c.name)
