"""Looking whether a database is whole: its file, its tables, its counts, and what is rolled up."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Table, case, func, inspect, select, text

from germane.storage.counts import dirty_hours as due
from germane.storage.db.component import Part
from germane.storage.db.network_filesystem import kind_of, read_mounts
from germane.storage.db.tables import metadata, rollup, rollup_count, rollup_proxy, tally
from germane.storage.retention import size
from germane.storage.trends import dimensions
from germane.storage.trends.rollup import summed_up
from germane.storage.trends.time_ranges import END, HOUR

HOURS: Final = 8
"""Hours that are summed up anew, unless another number is given."""
VIEW: Final = "answers"
_TOLD: Final = 20
"""Faults of one kind that are told."""
_KEYS: Final = {
    rollup: ("dimension", "label", "service", "route", "scorer", "fingerprint"),
    rollup_count: ("dimension", "service", "route", "scorer", "outcome", "reason"),
    rollup_proxy: ("dimension", "service", "route"),
}
_CLOSE: Final = 1e-6
"""Relative difference of sums that were added in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uneven:
    """Counts that do not add up: seen is not scored + skipped + failed + pending."""

    service: str
    route: str
    scorer: str
    seen: int
    accounted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found. Where nothing is wrong, all sequences but ``hours`` are empty."""

    damage: Sequence[str] = ()
    """In the words of the database."""
    missing: Sequence[str] = ()
    """Tables, columns, indexes and the view that should be there."""
    tables: int
    indexes: int
    uneven: Sequence[Uneven] = ()
    counted: int
    """How many services, routes and scorers have counts."""
    due: int
    """Hours that changed since they were rolled up: trends read them from their rows."""
    hours: Sequence[datetime] = ()
    """Hours that were summed up anew, newest first."""
    different: Sequence[datetime] = ()
    """Those of them whose rollup is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a database takes, in bytes, and where."""

    rows: int
    """With their indexes."""
    file: Path | None = None
    """Of SQLite; None of a server, or of memory."""
    file_size: int = 0
    log_size: int = 0
    """Of SQLite's write-ahead log."""
    free: int | None = None
    """On the file's disk."""
    kind: str | None = None
    """Of the file system, where that can be told."""


class Inspecting(Part):
    """The part of a store that looks whether all is well. Nothing here writes."""

    def inspect(self, *, quick: bool = False, hours: int = HOURS) -> Inspection:
        """Look at the whole database. That takes about as long as reading it.

        Args:
            quick: Leave out whether indexes fit their rows (SQLite's ``quick_check``).
            hours: How many of those rolled up are summed up anew: half of them the newest, the others spread evenly.
        """
        with self._database.read(snapshot=True) as connection:
            found = _rolled_up(connection, hours)
            return Inspection(
                damage=_damage(connection, quick=quick),
                missing=_missing(connection),
                tables=len(metadata.tables),
                indexes=sum(len(table.indexes) for table in metadata.tables.values()),
                **_counts(connection),
                due=len(due.newest(connection, None, END)),
                hours=found,
                different=[hour for hour in found if _differs(connection, hour)],
            )

    def room(self) -> Room:
        """Return what the database takes of the disk."""
        with self._database.read() as connection:
            rows = size.size_of(connection)
        url = self._database.url
        path = Path(str(url.database)) if self._database.dialect == "sqlite" else None
        if path is None or not path.is_file():
            return Room(rows=rows)
        log = path.with_name(f"{path.name}-wal")
        return Room(
            rows=rows,
            file=path,
            file_size=path.stat().st_size,
            log_size=log.stat().st_size if log.exists() else 0,
            free=shutil.disk_usage(path.parent).free,
            kind=kind_of(path.resolve(), read_mounts()),
        )


def _damage(connection: Connection, *, quick: bool) -> list[str]:
    if connection.dialect.name == "sqlite":
        look = "quick_check" if quick else "integrity_check"
        said = connection.exec_driver_sql(f"PRAGMA {look}({_TOLD})").scalars()
        return [line for line in said if line != "ok"]
    query = text(
        "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        "WHERE NOT indisvalid AND indrelid = ANY "
        "(SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)"
    )
    found = connection.execute(query, {"tables": list(metadata.tables)}).scalars()
    return [f"the index {name} is not valid: REINDEX INDEX {name}" for name in found]


def _missing(connection: Connection) -> list[str]:
    looked = inspect(connection)
    there = set(looked.get_table_names())
    missing = [f"table {name}" for name in metadata.tables if name not in there]
    for table in metadata.tables.values():
        if table.name in there:
            missing += _missing_of(table, looked.get_columns(table.name), looked.get_indexes(table.name))
    return missing if VIEW in looked.get_view_names() else [*missing, f"view {VIEW}"]


def _missing_of(table: Table, columns: Iterable[Any], indexes: Iterable[Any]) -> list[str]:
    names = {one["name"] for one in columns}, {one["name"] for one in indexes}
    lacking = [f"column {table.name}.{one.name}" for one in table.columns if one.name not in names[0]]
    return lacking + sorted(f"index {one.name} of {table.name}" for one in table.indexes if one.name not in names[1])


def _counts(connection: Connection) -> dict[str, Any]:
    """Return which counts do not add up, and how many there are."""
    keys = (tally.c.service, tally.c.route, tally.c.scorer)
    seen = func.sum(case((tally.c.outcome == "seen", tally.c.count), else_=0)).label("seen")
    accounted = func.sum(case((tally.c.outcome != "seen", tally.c.count), else_=0)).label("accounted")
    rows = connection.execute(select(*keys, seen, accounted).group_by(*keys).order_by(*keys)).mappings().all()
    uneven = [Uneven(**{**row, "seen": int(row["seen"]), "accounted": int(row["accounted"])}) for row in rows]
    return {"counted": len(rows), "uneven": [one for one in uneven if one.seen != one.accounted][:_TOLD]}


def _rolled_up(connection: Connection, most: int) -> list[datetime]:
    """Return hours that are rolled up and did not change since, newest first."""
    query = select(rollup_count.c.start).distinct().where(rollup_count.c.span == HOUR)
    starts = connection.execute(query.order_by(rollup_count.c.start.desc())).scalars().all()
    waiting = set(due.newest(connection, None, END))
    known = [start for start in starts if start not in waiting]
    newest, older = known[: most - most // 2], known[most - most // 2 :]
    step = max(1, -(-len(older) // max(1, most // 2)))
    return newest + older[::step]


def _differs(connection: Connection, hour: datetime) -> bool:
    """Whether the rollup of an hour is another than the sums of its rows."""
    names = dimensions.rolled(connection)
    sums = summed_up(connection, hour, (), names)
    made = ((rollup, sums.scores), (rollup_count, sums.counts), (rollup_proxy, sums.proxies))
    return any(not _alike(table, _stored(connection, table, hour, names), rows) for table, rows in made)


def _stored(connection: Connection, table: Table, hour: datetime, names: Sequence[str]) -> list[Mapping[str, Any]]:
    wanted = table.c.dimension.in_(["", dimensions.ROUTE, *(names if table is rollup else ())])
    query = select(table).where(table.c.span == HOUR, table.c.start == hour, wanted)
    return [dict(row) for row in connection.execute(query).mappings()]


def _alike(table: Table, stored: Iterable[Mapping[str, Any]], made: Iterable[Mapping[str, Any]]) -> bool:
    keys = _KEYS[table]
    before, after = ({tuple(row[key] for key in keys): row for row in rows} for rows in (stored, made))
    return before.keys() == after.keys() and all(_equal(before[key], after[key]) for key in before)


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    numbers = [name for name, value in other.items() if isinstance(value, (int, float))]
    return all(math.isclose(one[name], other[name], rel_tol=_CLOSE, abs_tol=_CLOSE) for name in numbers)
