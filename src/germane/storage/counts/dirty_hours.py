"""Hours whose rows have changed since the last rollup.

Every transaction that changes an hour's data adds its own row. With one shared row per hour, transactions would wait
for each other, and a rollup could delete the row before a transaction that needs it has committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, select

from germane.storage.db.engine import get_pending, pop_pending, share
from germane.storage.db.mappers import batched, bulk_insert, timestamp_encoder
from germane.storage.db.tables import rollup_dirty_hour

_PENDING: Final = "dirty_hours"
_DIRTY: Final = select(rollup_dirty_hour.c.hour).distinct().order_by(rollup_dirty_hour.c.hour)


def start_of_hour(moment: datetime) -> datetime:
    """Return the start of the UTC hour that contains the given time."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def mark_dirty(connection: Connection, moments: Iterable[datetime]) -> None:
    """Mark as dirty the hours of the exchanges whose scores, proxy scores or counts this transaction changes.

    ``moments`` are their start times.
    """
    get_pending(connection, _PENDING, set[datetime]).update(map(start_of_hour, moments))


def write_pending(connection: Connection) -> None:
    """Write the hours that this transaction marked as dirty. The inserts never wait for another transaction."""
    encode, hours = timestamp_encoder(connection.dialect.name), sorted(pop_pending(connection, _PENDING, set[datetime]))
    bulk_insert(connection, rollup_dirty_hour, ("hour",), [(encode(hour),) for hour in hours])


def dirty_between(connection: Connection, since: datetime, until: datetime) -> list[datetime]:
    """Return the dirty hours that overlap the window ``[since, until)``, oldest first."""
    # A page asks this for a dozen windows, so all are read once. They are few, unless the worker was stopped for long.
    hours = share(connection, "dirty hours", lambda: connection.execute(_DIRTY).scalars().all())
    start = start_of_hour(since)
    return [hour for hour in hours if start <= hour < until]


def newest_dirty(connection: Connection, limit: int | None, before: datetime) -> list[datetime]:
    """Return up to ``limit`` dirty hours that started before a given time, newest first."""
    query = select(rollup_dirty_hour.c.hour).distinct().where(rollup_dirty_hour.c.hour < before)
    return list(connection.execute(query.order_by(rollup_dirty_hour.c.hour.desc()).limit(limit)).scalars())


def dirty_ids(connection: Connection, hours: Iterable[datetime]) -> dict[datetime, list[int]]:
    """Return a dict of hours to the ids of their dirty-hour rows, in ascending order."""
    ids: dict[datetime, list[int]] = {hour: [] for hour in hours}
    query = select(rollup_dirty_hour.c.hour, rollup_dirty_hour.c.id).where(rollup_dirty_hour.c.hour.in_(list(ids)))
    for row in connection.execute(query.order_by(rollup_dirty_hour.c.hour, rollup_dirty_hour.c.id)):
        ids[row.hour].append(row.id)
    return ids


def delete_ids(connection: Connection, ids: Iterable[int]) -> None:
    """Delete the dirty-hour rows that a rollup has processed."""
    for batch in batched(sorted(ids)):
        connection.execute(rollup_dirty_hour.delete().where(rollup_dirty_hour.c.id.in_(batch)))
