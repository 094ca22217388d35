"""One elected process per job, by a row that is compared and set."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from germane.storage.db.tables import lease

CLOCK_SET_BACK: Final = timedelta(seconds=60)
"""A lease that was renewed later than that from now is of a clock that was set back since: nobody waits for it."""


def elect(connection: Connection, name: str, owner: str, ttl: timedelta, now: datetime) -> bool:
    """Take or renew the lease; False when another owner's has not run out."""
    values = {"name": name, "owner": owner, "expires_at": now + ttl, "renewed_at": now}
    statement = _statement(connection.dialect.name, values, now)
    return connection.execute(statement).first() is not None


def cursor(connection: Connection, name: str) -> str | None:
    """Return how far the job has come; None before its first step."""
    return connection.execute(select(lease.c.cursor).where(lease.c.name == name)).scalar_one_or_none()


def holds(connection: Connection, name: str, owner: str) -> bool:
    """Whether this owner has the lease; nobody else can take it before this transaction ends."""
    query = select(lease.c.owner).where(lease.c.name == name).with_for_update()
    return connection.execute(query).scalar_one_or_none() == owner


def move(connection: Connection, name: str, owner: str, cursor: str) -> bool:
    """Note how far the job has come, and keep others from taking it before this transaction ends.

    False, and nothing is noted, when another owner has it by now.
    """
    statement = update(lease).where(lease.c.name == name, lease.c.owner == owner).values(cursor=cursor)
    return connection.execute(statement).rowcount == 1


def _statement(dialect: str, values: dict[str, object], now: datetime) -> Insert:
    renewed = {column: value for column, value in values.items() if column != "name"}
    of_the_future = lease.c.renewed_at > now + CLOCK_SET_BACK
    free = or_(lease.c.owner == values["owner"], lease.c.expires_at <= now, of_the_future)
    if dialect == "sqlite":
        on_sqlite = sqlite.insert(lease).values(values)
        return on_sqlite.on_conflict_do_update(index_elements=["name"], set_=renewed, where=free).returning(
            lease.c.name
        )
    on_postgresql = postgresql.insert(lease).values(values)
    return on_postgresql.on_conflict_do_update(index_elements=["name"], set_=renewed, where=free).returning(
        lease.c.name
    )
