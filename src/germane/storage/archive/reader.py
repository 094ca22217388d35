"""Reading the archive: which rows belong to it, and a connection on which the database's queries read them.

The archive is additive. Each row is either in the database or in the archive, as the table ``archived_day`` states in
the same snapshot, so that sums and lists over both are complete and count nothing twice.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    ExceptionContext,
    Table,
    create_engine,
    event,
    or_,
    select,
)
from sqlalchemy.pool import NullPool

from germane.errors import ArchiveError
from germane.storage.archive import dialect
from germane.storage.archive.days import ONE_DAY
from germane.storage.archive.files import day_folder, find_damaged
from germane.storage.archive.location import ArchiveLocation, describe_error, require
from germane.storage.archive.manifest import Manifest
from germane.storage.archive.rows import TABLES, arrow_schema
from germane.storage.db import migrate
from germane.storage.db.engine import share
from germane.storage.db.mappers import batched
from germane.storage.db.tables import archived_day, exchange

_SETTINGS: Final = {
    "autoinstall_known_extensions": False,  # nothing is downloaded
    "autoload_known_extensions": False,
    "temp_directory": "",  # nothing is written
}
_POINTER: Final = "'/' || replace(replace(name, '~', '~0'), '/', '~1')"
_MACROS: Final = f"""
CREATE MACRO jsonb_extract_path(value, name) AS json_extract(value, {_POINTER});
CREATE MACRO jsonb_extract_path_text(value, name) AS json_extract_string(value, {_POINTER});
CREATE MACRO jsonb_typeof(value) AS CASE json_type(value)
    WHEN 'VARCHAR' THEN 'string' WHEN 'BOOLEAN' THEN 'boolean'
    WHEN 'BIGINT' THEN 'number' WHEN 'UBIGINT' THEN 'number' WHEN 'DOUBLE' THEN 'number' END;
"""
"""PostgreSQL's functions for the attributes of an exchange."""
MAX_LOADED_ROWS: Final = 1_000_000
MAX_KEPT_VALUES: Final = 100_000
"""Maximum number of values in the results that are kept with each connection. They take about 3 MB."""
MAX_IDLE: Final = 8
"""Maximum number of DuckDB connections to keep for later queries."""
_BEGINNING: Final = datetime(1970, 1, 2, tzinfo=UTC)
"""No archived day is earlier."""
_MAX_NAMED: Final = 3
"""Maximum number of problems to describe in one error."""


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """The part of a day that was removed from the database, and is therefore read from the archive."""

    day: datetime
    until: datetime
    """End of the part; for a day whose removal is complete, the end of the day."""

    @property
    def is_whole(self) -> bool:
        """Whether the whole day was removed."""
        return self.until == self.day + ONE_DAY


def archived_ranges(
    connection: Connection, since: datetime | None, until: datetime | None, dimension: str = ""
) -> list[ArchivedRange]:
    """Return the removed parts of days that overlap a window, oldest first.

    The transaction should use snapshot isolation. With ``dimension``, return only days whose rollups are broken down by
    it.
    """
    columns = (archived_day.c.day, archived_day.c.removed_before, *((archived_day.c.dimensions,) if dimension else ()))
    query = select(*columns).where(*in_window(since, until))
    return [
        ArchivedRange(row.day, row.removed_before)
        for row in connection.execute(query.order_by(archived_day.c.day))
        if not dimension or dimension in row.dimensions
    ]


def in_window(since: datetime | None, until: datetime | None) -> list[ColumnElement[bool]]:
    """Return the SQL conditions on ``archived_day`` that the removed part of a day overlaps a window."""
    # Without a lower bound, databases would not use the index.
    since = _BEGINNING if since is None else since
    conditions = [archived_day.c.day > since - ONE_DAY, archived_day.c.removed_before > since]
    conditions += [] if until is None else [archived_day.c.day < until]
    return [*conditions, archived_day.c.removed_before > archived_day.c.day]


def find_days(connection: Connection, *conditions: ColumnElement[bool], limit: int | None = None) -> list[datetime]:
    """Return the archived days that meet conditions on ``archived_day``, oldest first."""
    query = select(archived_day.c.day).where(*conditions).order_by(archived_day.c.day)
    return list(connection.execute(query.limit(limit)).scalars())


def archived_extent(
    connection: Connection, since: datetime, until: datetime
) -> tuple[datetime, datetime, set[datetime]] | None:
    """Return the first and the last archived day that overlap a window, and the missing days between them.

    Days are missing if they are still in the database, or were deleted from the archive. Returns None if no archived
    day overlaps the window.
    """
    # A page asks this for a dozen windows.
    ranges = share(connection, "archived ranges", lambda: archived_ranges(connection, None, None))
    days = [one.day for one in ranges if one.day < until and one.until > since]
    if not days:
        return None
    length = (days[-1] - days[0]) // ONE_DAY + 1
    return days[0], days[-1], {days[0] + number * ONE_DAY for number in range(length)}.difference(days)


@contextmanager
def open_archive(connection: Connection, days: Iterable[datetime]) -> Iterator[Connection]:
    """Open a connection on which the tables contain the archived rows of the given days.

    Its tables are those of :mod:`germane.storage.archive.rows`. Rollups are hourly.

    Raises:
        ArchiveError: Files are missing or damaged, or the archive cannot be accessed. Raised by queries too.
        UsageError: The ``archive`` extra is not installed.
    """
    query = select(archived_day.c.day, archived_day.c.removed_before, archived_day.c.location, archived_day.c.manifest)
    query = query.where(archived_day.c.day.in_(sorted(set(days)))).order_by(archived_day.c.day)
    stored = [
        (ArchivedRange(row.day, row.removed_before), row.location, Manifest.from_json(row.manifest))
        for row in connection.execute(query)
    ]
    with connect_to_files([(part, ArchiveLocation(url), manifest) for part, url, manifest in stored]) as reading:
        yield reading


@contextmanager
def open_window(connection: Connection, since: datetime | None, until: datetime | None) -> Iterator[Connection | None]:
    """Open the archive if a window reaches into it; otherwise, the context is None."""
    with open_newest(connection, since, until, count=None) as (archive, _):
        yield archive


@contextmanager
def open_newest(
    connection: Connection, since: datetime | None, until: datetime | None, *, count: int | None
) -> Iterator[tuple[Connection | None, datetime | None]]:
    """Open the last days of a window that are in the archive, with at least ``count`` exchanges and scores.

    Pass None for ``count`` to open all days.

    Yields:
        A connection, or None if the window does not reach into the archive; and the start of the oldest opened day if
        older days were not opened, or else None.

    Raises:
        ArchiveError: The archive cannot be read.
    """
    days = find_days(connection, *in_window(since, until))[::-1]
    opened = days if count is None else _first_days(connection, days, count)
    with _open_any(connection, opened) as archive:
        yield archive, opened[-1] if len(opened) < len(days) else None


@contextmanager
def open_labeled(
    connection: Connection, since: datetime | None, until: datetime | None, *, count: int
) -> Iterator[Connection | None]:
    """Open the last days of a window with at least ``count`` labels; None if the archive has no labels there."""
    has_labels = or_(archived_day.c.labels.is_(None), archived_day.c.labels > 0)
    query = select(archived_day.c.day, archived_day.c.labels).where(*in_window(since, until), has_labels)
    days, labels = [], 0
    for row in connection.execute(query.order_by(archived_day.c.day.desc())):
        days.append(row.day)
        labels += row.labels or 0
        if labels >= count:
            break
    with _open_any(connection, days) as archive:
        yield archive


def latest(*moments: datetime | None) -> datetime | None:
    """Return the latest of the times that are not None, or None if all are None."""
    return max((moment for moment in moments if moment is not None), default=None)


@contextmanager
def open_oldest(
    connection: Connection, since: datetime | None, until: datetime | None, *, count: int | None
) -> Iterator[Connection | None]:
    """Open the first days of a window that are in the archive, with at least ``count`` exchanges since its start.

    The context is None if the window does not reach into the archive. Pass None for ``count`` to open the whole window,
    as a search with a filter must, because the number of matches in a day is unknown.
    """
    days: Sequence[datetime] = find_days(connection, *in_window(since, until))
    if count is not None:
        days = _first_days(connection, days, count)
    with _open_any(connection, days) as archive:
        yield archive


def _open_any(connection: Connection, days: Sequence[datetime]) -> AbstractContextManager[Connection | None]:
    return open_archive(connection, days) if days else nullcontext()


def _first_days(connection: Connection, days: Sequence[datetime], count: int) -> Sequence[datetime]:
    """Return the first days with more than ``count`` rows, not counting the first one, which may be partly used."""
    total = 0
    for number, day in enumerate(days[1:], 2):
        manifest = connection.execute(select(archived_day.c.manifest).where(archived_day.c.day == day)).scalar_one()
        files = Manifest.from_json(manifest)
        total += min(files.rows("exchange"), files.rows("score"))
        if total > count:
            return days[:number]
    return days


@contextmanager
def open_exchanges(
    connection: Connection,
    moments: Mapping[str, datetime | None],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[Sequence[tuple[Connection, Sequence[str]]]]:
    """Open the database and, if it lacks some exchanges, the archive.

    ``moments`` are start times by exchange id. If a time is None, the days around the time with which the id starts are
    searched, and then all other days. Archived days outside the window are not searched.

    Yields:
        Connections, and for each the ids of the exchanges to look for. Unknown ids with a time are among those of the
        archive.
    """
    ids, window = list(moments), in_window(since, until)
    if not ids or not find_days(connection, *window, limit=1):
        yield [(connection, ids)]
        return
    stored = find_ids(connection, ids)
    missing = [id_ for id_ in ids if id_ not in stored]
    sources: list[tuple[Connection, Sequence[str]]] = [(connection, sorted(stored))]
    with ExitStack() as stack:
        near = {day for id_ in missing for day in _days_near(id_, moments[id_])}
        opened = find_days(connection, *window, archived_day.c.day.in_(sorted(near)))
        if opened:
            archive = stack.enter_context(open_archive(connection, opened))
            undated = [id_ for id_ in missing if moments[id_] is None]
            found = find_ids(archive, undated)
            # An exchange whose time is known can only be in the archive of its day.
            sources.append((archive, [id_ for id_ in missing if moments[id_] or id_ in found]))
            missing = [id_ for id_ in undated if id_ not in found]
        is_other = archived_day.c.day.not_in(opened)
        others = find_days(connection, *window, is_other) if missing else []
        if others:
            archive = stack.enter_context(open_archive(connection, others))
            sources.append((archive, sorted(find_ids(archive, missing))))
        yield sources


def find_ids(connection: Connection, ids: Sequence[str], table: Table = exchange) -> set[str]:
    """Return the ids that rows of a table on this connection have. By default, the rows are exchanges."""
    found: set[str] = set()
    for batch in batched(ids):
        found.update(connection.execute(select(table.c.id).where(table.c.id.in_(batch))).scalars())
    return found


def _days_near(exchange_id: str, started_at: datetime | None) -> list[datetime]:
    """Return the day of an exchange; if its time is unknown, the days around the time with which its id starts."""
    moment = (started_at or _creation_time(exchange_id)).astimezone(UTC)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return [day] if started_at else [day - ONE_DAY, day, day + ONE_DAY]


def _creation_time(exchange_id: str) -> datetime:
    """Return the time with which an id starts; for an id of another format, a time without archived days."""
    try:
        created = datetime.fromtimestamp(int(exchange_id[:12], 16) / 1000, UTC)
        _ = created - ONE_DAY, created + ONE_DAY  # the days around it are searched
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
    return created


ArchivedFiles = Sequence[tuple[ArchivedRange, ArchiveLocation, Manifest]]


class _Reader:
    """A DuckDB connection to the files of days. Its tables are created when a query first mentions them."""

    def __init__(self, days: ArchivedFiles, *, load: bool) -> None:
        self.days = days
        self.database = _instance().cursor()
        self._load = load
        self._created: set[str] = set()
        self._checked: set[str] = set()
        self.kept: dict[Hashable, list[Any]] = {}  # results of queries, least recently used first

    def begin(self) -> None:
        """Check the files again before they are read."""
        self._checked.clear()

    def prepare(self, statement: str) -> None:
        """Create the tables that a statement mentions. Raise an ArchiveError if files are missing or damaged."""
        for table, mentioned in _MENTIONS.items():
            if table in self._checked or not mentioned.search(statement):
                continue
            self._checked.add(table)
            files = [(location, manifest) for _, location, manifest in self.days]
            _require_complete(find_damaged(files, table=table, has_content=True))
            if table not in self._created:
                query = _select_table(self.database, table, self.days)
                self.prepare(query)  # the tables that it joins
                kind = "TABLE" if self._load else "VIEW"
                try:
                    self.database.execute(f'CREATE TEMP {kind} "{table}" AS {query}')
                except require("duckdb").Error as error:
                    raise _read_error(self.days, error) from None
                self._created.add(table)


@contextmanager
def connect_to_files(days: ArchivedFiles, *, load: bool = False) -> Iterator[Connection]:
    """Open a connection to the files of days. Raises the same errors as :func:`open_archive`.

    With ``load``, the rows are loaded into memory first, if there are not too many: many queries on one day are then
    faster.
    """
    load = load and sum(manifest.rows(table) for _, _, manifest in days for table in manifest.files) <= MAX_LOADED_ROWS
    # Files never change, so a connection to the same files can be used again.
    names = [tuple(file.name for file in manifest.files.values()) for _, _, manifest in days]
    key = tuple((part, location.url, files) for (part, location, _), files in zip(days, names, strict=True))
    with _lock:
        reader = None if load else _idle.pop(key, None)
        reader = reader or _Reader(days, load=load)
    reader.begin()
    token = _opening.set(reader)
    try:
        connection = _engine().connect()
    finally:
        _opening.reset(token)
    unused: _Reader | None = reader  # closed at the end, unless it is kept for the next query of the same files
    try:
        with connection:
            connection.info[_READER] = reader
            yield connection
        if not load:
            with _lock:
                unused = _idle.pop(key, None)
                _idle[key] = reader
                if len(_idle) > MAX_IDLE:
                    unused = _idle.pop(next(iter(_idle)))
    finally:
        if unused is not None:
            unused.database.close()


def read_once(connection: Connection, table: str, key: Hashable, read: Callable[[], list[Any]]) -> list[Any]:
    """Return the rows of a query of one table of the archive, which are kept for later queries of the same files."""
    reader: _Reader = connection.info[_READER]
    reader.prepare(table)
    rows = reader.kept.pop(key, None)
    reader.kept[key] = rows = read() if rows is None else rows
    while sum(1 + sum(map(len, kept)) for kept in reader.kept.values()) > MAX_KEPT_VALUES:
        del reader.kept[next(iter(reader.kept))]
    return rows


_MENTIONS: Final = {table: re.compile(rf"\b{table}\b") for table in TABLES}
_lock = threading.Lock()
_idle: dict[Any, _Reader] = {}
"""Connections that are not in use, by the files that they read, oldest first."""
_of_parent: list[Any] = []
"""DuckDB of the parent process. Freeing it would wait for threads that do not exist in this process."""
_opening: ContextVar[_Reader] = ContextVar("germane_archive")
_READER: Final = "germane_reader"
"""Key in ``Connection.info`` for what a connection reads."""


@cache
def _instance() -> Any:
    """Return this process's DuckDB, whose threads and caches all connections share."""
    database = require("duckdb").connect(":memory:", config=_SETTINGS)
    database.execute(_MACROS)
    return database


@cache
def _engine() -> Engine:
    """Return the engine for all archives, which compiles each statement once."""

    def connect() -> dialect.SharedConnection:
        reader = _opening.get()
        return dialect.SharedConnection(reader.database, reader.prepare)

    engine = create_engine(dialect.URL, creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "handle_error")
    def translate(context: ExceptionContext) -> None:
        if context.connection is not None and not isinstance(context.original_exception, ArchiveError):
            raise _read_error(context.connection.info[_READER].days, context.original_exception)

    return engine


def _close_in_child() -> None:
    """Forget DuckDB, whose threads do not exist in a forked child."""
    global _lock
    _lock = threading.Lock()
    if _instance.cache_info().currsize:
        _of_parent.append(_instance())
        _instance.cache_clear()
    _of_parent.extend(_idle.values())
    _idle.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_close_in_child)


def _select_table(database: Any, table: str, days: ArchivedFiles) -> str:
    """Return the SQL query for a table's rows: those of whole days, and those of the removed part of others."""
    alike: dict[tuple[str, str], list[tuple[ArchiveLocation, Manifest]]] = {}
    for part, location, manifest in days:
        if part.is_whole:
            alike.setdefault((location.url, manifest.revision), []).append((location, manifest))
    parts = [
        _select_files(database, f"{table}_whole_{number}", table, files)
        for number, files in enumerate(alike.values() or [[]])
    ]
    for number, (part, location, manifest) in enumerate(days):
        if not part.is_whole:
            source = _select_files(database, f"{table}_part_{number}", table, [(location, manifest)])
            if table in {"scoring_task", "feedback"}:
                condition = "exchange_id IN (SELECT id FROM exchange)"
            else:
                column = {"exchange": "started_at", "score": "started_at", "tally": "minute"}.get(table, "start")
                condition = f"{column} < TIMESTAMP '{part.until:%Y-%m-%d %H:%M:%S.%f}'"
            parts.append(f"{source} WHERE {condition}")
    return " UNION ALL ".join(parts)


def _select_files(database: Any, name: str, table: str, files: Sequence[tuple[ArchiveLocation, Manifest]]) -> str:
    """Return the SQL query for the rows of files that are at one location and of one revision of the tables."""
    paths = [
        location.path(day_folder(manifest.day), manifest.files[table].name)
        for location, manifest in files
        if table in manifest.files and manifest.files[table].rows
    ]
    schema = arrow_schema(table)
    if not paths:
        database.register(name, schema.empty_table())
        return f'SELECT * FROM "{name}"'  # noqa: S608 - a constant
    location, manifest = files[0]
    is_current = manifest.revision == migrate.REVISIONS[-1]
    stored = schema if is_current else require("pyarrow.parquet").read_schema(paths[0], filesystem=location.filesystem)
    columns = "*" if is_current else _convert_columns(database, table, stored.names)
    if location.is_local:
        quoted = ", ".join(map(_quote, paths))
        return f"SELECT {columns} FROM read_parquet([{quoted}], hive_partitioning = false)"  # noqa: S608 - quoted paths
    dataset = require("pyarrow.dataset").dataset
    database.register(name, dataset(paths, schema=stored, format="parquet", filesystem=location.filesystem))
    return f'SELECT {columns} FROM "{name}"'  # noqa: S608 - a constant


def _convert_columns(database: Any, table: str, stored: Collection[str]) -> str:
    """Return SQL for a table's columns in files of another revision. Missing ones have their default or are null."""
    expressions = []
    types = database.from_arrow(arrow_schema(table).empty_table()).types
    for column, type_ in zip(TABLES[table].columns, types, strict=True):
        default: Any = column.server_default
        value = "NULL" if default is None else _quote(default.arg)
        if column.name in stored:
            value = f'"{column.name}"'
        expressions.append(f'CAST({value} AS {type_}) AS "{column.name}"')
    return ", ".join(expressions)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _require_complete(problems: Sequence[str]) -> None:
    """Raise an :class:`ArchiveError` if there are problems, which start with the day."""
    if problems:
        days = len({problem.partition(":")[0] for problem in problems})
        named = "; ".join(problems[:_MAX_NAMED]) + ("; ..." if len(problems) > _MAX_NAMED else "")
        raise ArchiveError(
            f"{days} {'day' if days == 1 else 'days'} of the archive could not be read: {named}. Restore the files "
            "from a backup; 'germane archive --verify' checks all days"
        )


def _read_error(days: ArchivedFiles, error: BaseException) -> ArchiveError:
    """Return an error that names the days whose files are missing or damaged."""
    try:
        _require_complete(find_damaged((location, manifest) for _, location, manifest in days))
    except ArchiveError as incomplete:
        return incomplete
    first, last = (f"{days[index][0].day:%Y-%m-%d}" for index in (0, -1))
    return ArchiveError(f"the archive could not be read between {first} and {last}: {describe_error(error)}")
