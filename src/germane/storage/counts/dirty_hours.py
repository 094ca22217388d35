"""Hours of which something changed since they were rolled up: each transaction that changes one says so.

Plainly by a row of its own, and not by one that is there already: a transaction that is not committed yet could not be
waited for, and whoever rolls up before it would be the last one to look.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, select

from germane.storage.db.mappers import batched, insert, stamp_for
from germane.storage.db.tables import rollup_due

_PLACE: Final = "germane_due"


def hour_of(moment: datetime) -> datetime:
    """Return the beginning of the hour (UTC) that a moment lies in."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def note(connection: Connection, moments: Iterable[datetime]) -> None:
    """Note that this transaction changes scores, proxies or counts of exchanges that began at these moments."""
    connection.info.setdefault(_PLACE, set()).update(map(hour_of, moments))


def settle(connection: Connection) -> None:
    """Write what was noted. It waits for nobody: nobody else has these rows."""
    stamp, hours = stamp_for(connection.dialect.name), sorted(take(connection))
    insert(connection, rollup_due, ("hour",), [(stamp(hour),) for hour in hours])


def take(connection: Connection) -> set[datetime]:
    """Return what was noted, and forget it: a connection outlives its transactions."""
    found: set[datetime] = connection.info.pop(_PLACE, set())
    return found


def hours(connection: Connection, since: datetime, until: datetime) -> list[datetime]:
    """Return the hours that are due of those that reach into since <= moment < until, oldest first."""
    query = select(rollup_due.c.hour).distinct().order_by(rollup_due.c.hour)
    query = query.where(rollup_due.c.hour >= hour_of(since), rollup_due.c.hour < until)
    return list(connection.execute(query).scalars())


def newest(connection: Connection, limit: int | None, before: datetime) -> list[datetime]:
    """Return hours that are due and began before then, newest first."""
    query = select(rollup_due.c.hour).distinct().where(rollup_due.c.hour < before)
    return list(connection.execute(query.order_by(rollup_due.c.hour.desc()).limit(limit)).scalars())


def marks(connection: Connection, chosen: Iterable[datetime]) -> dict[datetime, list[int]]:
    """Return the ids of the marks of these hours, lowest first."""
    found: dict[datetime, list[int]] = {hour: [] for hour in chosen}
    query = select(rollup_due.c.hour, rollup_due.c.id).where(rollup_due.c.hour.in_(list(found)))
    for row in connection.execute(query.order_by(rollup_due.c.hour, rollup_due.c.id)):
        found[row.hour].append(row.id)
    return found


def clear(connection: Connection, ids: Iterable[int]) -> None:
    """Delete marks."""
    for some in batched(sorted(ids)):
        connection.execute(rollup_due.delete().where(rollup_due.c.id.in_(some)))
