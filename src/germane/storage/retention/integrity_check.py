"""Integrity checks of a database's file, tables, counts and rollups. All checks are read-only."""

from __future__ import annotations

import math
import shutil
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, MetaData, case, func, inspect, select, text

from germane.storage.counts import dirty_hours
from germane.storage.db.component import StoreComponent
from germane.storage.db.network_filesystem import filesystem_type, read_mount_table
from germane.storage.db.tables import metadata, rollup, rollup_count, rollup_proxy, tally
from germane.storage.retention.store_retention import database_size
from germane.storage.trends import dimensions
from germane.storage.trends.rollup import compute_hour
from germane.storage.trends.time_ranges import END, HOUR

ROLLUP_HOURS: Final = 8
"""Number of rolled-up hours to recompute. Half of them are the newest hours, and the others are spread over older ones.
"""
_VIEW: Final = "answers"
_MAX_REPORTED: Final = 20
"""Maximum number of problems of each kind to report."""
_ROLLUP_KEYS: Final = {
    rollup: ("dimension", "label", "service", "route", "scorer", "fingerprint"),
    rollup_count: ("dimension", "service", "route", "scorer", "outcome", "reason"),
    rollup_proxy: ("dimension", "service", "route"),
}
_TOLERANCE: Final = 1e-6
"""Tolerated relative and absolute difference between sums, which depend on the order of summation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyMismatch:
    """Counts that do not add up: seen does not equal scored + skipped + failed + pending."""

    service: str
    route: str
    scorer: str
    seen: int
    accounted: int
    """The sum of scored, skipped, failed and pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityReport:
    """The result of an integrity check. Without problems, all sequences except ``recomputed_hours`` are empty."""

    damage: Sequence[str] = ()
    """Error messages from the database."""
    missing: Sequence[str] = ()
    """Missing tables, columns, indexes and views."""
    tables: int
    indexes: int
    tally_mismatches: Sequence[TallyMismatch] = ()
    counted: int
    """Number of (service, route, scorer) combinations with counts."""
    dirty_hours: int
    """Number of hours that have changed since their last rollup. For these, trends read rows instead of rollups."""
    recomputed_hours: Sequence[datetime] = ()
    """Hours whose rollups were recomputed, newest first."""
    wrong_hours: Sequence[datetime] = ()
    """Recomputed hours whose rollups differ from their rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """The disk usage of a database, in bytes."""

    rows: int
    """Size of the rows, including indexes."""
    file: Path | None = None
    """The SQLite file; None for PostgreSQL and in-memory databases."""
    file_size: int = 0
    log_size: int = 0
    """Size of SQLite's write-ahead log."""
    free: int | None = None
    """Free space on the disk that contains the file."""
    filesystem: str | None = None
    """Type of the file system that contains the file, if known."""


def _choose_hours(connection: Connection, dirty: Container[datetime]) -> list[datetime]:
    """Return the hours whose rollups to recompute: half of them the newest, the others spread over all older ones."""
    query = select(rollup_count.c.start).distinct().where(rollup_count.c.span == HOUR)
    starts = connection.execute(query.order_by(rollup_count.c.start.desc())).scalars()
    up_to_date = [start for start in starts if start not in dirty]
    half = ROLLUP_HOURS // 2
    newest, older = up_to_date[:half], up_to_date[half:]
    return newest + older[:: max(1, -(-len(older) // half))]


class IntegrityChecker(StoreComponent):
    """Checks a database's integrity and measures its disk usage."""

    def check_integrity(self, *, quick: bool = False) -> IntegrityReport:
        """Check the whole database. This takes about as long as reading all of it.

        A ``quick`` check skips the comparison of indexes with their rows (SQLite's ``quick_check``).
        """
        from germane.storage.db.models import metadata as expected  # imports the ORM

        with self._database.read(snapshot=True) as connection:
            dirty = dirty_hours.newest_dirty(connection, None, END)
            recomputed = _choose_hours(connection, set(dirty))
            keys = (tally.c.service, tally.c.route, tally.c.scorer)
            seen = func.sum(case((tally.c.outcome == "seen", tally.c.count), else_=0)).label("seen")
            accounted = func.sum(case((tally.c.outcome != "seen", tally.c.count), else_=0)).label("accounted")
            sums = connection.execute(select(*keys, seen, accounted).group_by(*keys).order_by(*keys)).mappings().all()
            mismatches = [
                TallyMismatch(**{**row, "seen": int(row["seen"]), "accounted": int(row["accounted"])})
                for row in sums
                if row["seen"] != row["accounted"]
            ]
            return IntegrityReport(
                damage=_find_damage(connection, quick=quick),
                missing=_find_missing(connection, expected),
                tables=len(expected.tables),
                indexes=sum(len(table.indexes) for table in expected.tables.values()),
                tally_mismatches=mismatches[:_MAX_REPORTED],
                counted=len(sums),
                dirty_hours=len(dirty),
                recomputed_hours=recomputed,
                wrong_hours=[hour for hour in recomputed if _is_wrong(connection, hour)],
            )

    def measure_disk_usage(self) -> DiskUsage:
        """Return the disk usage of the database."""
        with self._database.read() as connection:
            rows = database_size(connection)
        path = Path(str(self._database.url.database)) if self._database.dialect == "sqlite" else None
        if path is None or not path.is_file():
            return DiskUsage(rows=rows)
        log = path.with_name(f"{path.name}-wal")
        return DiskUsage(
            rows=rows,
            file=path,
            file_size=path.stat().st_size,
            log_size=log.stat().st_size if log.exists() else 0,
            free=shutil.disk_usage(path.parent).free,
            filesystem=filesystem_type(path.resolve(), read_mount_table()),
        )


def _find_damage(connection: Connection, *, quick: bool) -> list[str]:
    if connection.dialect.name == "sqlite":
        pragma = "quick_check" if quick else "integrity_check"
        messages = connection.exec_driver_sql(f"PRAGMA {pragma}({_MAX_REPORTED})").scalars()
        return [message for message in messages if message != "ok"]
    query = text(
        "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        "WHERE NOT indisvalid AND indrelid = ANY "
        "(SELECT to_regclass(name) FROM unnest(CAST(:tables AS text[])) AS name)"
    )
    names = connection.execute(query, {"tables": list(metadata.tables)}).scalars()
    return [f"the index {name} is invalid: run REINDEX INDEX {name}" for name in names]


def _find_missing(connection: Connection, expected: MetaData) -> list[str]:
    inspector = inspect(connection)
    existing, missing = set(inspector.get_table_names()), list[str]()
    for table in expected.tables.values():
        if table.name not in existing:
            missing.append(f"table {table.name}")
            continue
        columns = {column["name"] for column in inspector.get_columns(table.name)}
        indexes = {index["name"] for index in inspector.get_indexes(table.name)}
        missing += [f"column {table.name}.{column.name}" for column in table.columns if column.name not in columns]
        missing += sorted(f"index {index.name} of {table.name}" for index in table.indexes if index.name not in indexes)
    return missing if _VIEW in inspector.get_view_names() else [*missing, f"view {_VIEW}"]


def _is_wrong(connection: Connection, hour: datetime) -> bool:
    """Return whether an hour's rollups differ from the sums over its rows."""
    names = dimensions.rolled_dimensions(connection)
    sums = compute_hour(connection, hour, (), names)
    for table, rows in ((rollup, sums.scores), (rollup_count, sums.counts), (rollup_proxy, sums.proxies)):
        wanted = dimensions.dimension_condition(table, names)
        stored = connection.execute(select(table).where(table.c.span == HOUR, table.c.start == hour, wanted)).mappings()
        key_of = itemgetter(*_ROLLUP_KEYS[table])
        before, after = {key_of(row): row for row in stored}, {key_of(row): row for row in rows}
        if before.keys() != after.keys():
            return True
        for key, recomputed in after.items():
            for name, value in recomputed.items():
                if isinstance(value, (int, float)) and not math.isclose(
                    before[key][name], value, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE
                ):
                    return True
    return False
