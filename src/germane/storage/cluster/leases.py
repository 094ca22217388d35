"""Leases: at most one process holds each, by a row that is changed with compare-and-set."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.db.tables import lease

MAX_CLOCK_STEP: Final = timedelta(seconds=60)
"""A lease that was renewed further in the future than this is free: the clock was set back since."""


def acquire_lease(connection: Connection, name: str, owner: str, ttl: timedelta, now: datetime) -> bool:
    """Acquire or renew a lease; False if another owner holds it."""
    values = {"name": name, "owner": owner, "expires_at": now + ttl, "renewed_at": now}
    renewed = {column: value for column, value in values.items() if column != "name"}
    is_free = or_(lease.c.owner == owner, lease.c.expires_at <= now, lease.c.renewed_at > now + MAX_CLOCK_STEP)
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    upsert = make(lease).values(values).on_conflict_do_update(index_elements=["name"], set_=renewed, where=is_free)
    return connection.execute(upsert.returning(lease.c.name)).first() is not None


def load_cursor(connection: Connection, name: str) -> str | None:
    """Return the progress of a job; None before its first step."""
    return connection.execute(select(lease.c.cursor).where(lease.c.name == name)).scalar_one_or_none()


def lock_lease(connection: Connection, name: str, owner: str) -> bool:
    """Return whether an owner holds a lease, and keep it there until the transaction ends."""
    query = select(lease.c.owner).where(lease.c.name == name).with_for_update()
    return connection.execute(query).scalar_one_or_none() == owner


def save_cursor(connection: Connection, name: str, owner: str, cursor: str) -> bool:
    """Save the progress of a job, and keep the lease until the transaction ends.

    Returns:
        False if another owner holds the lease. Nothing is saved then.
    """
    statement = update(lease).where(lease.c.name == name, lease.c.owner == owner).values(cursor=cursor)
    return connection.execute(statement).rowcount == 1
