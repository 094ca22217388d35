"""Moving a closed day from the database to the archive.

A day passes through three states, each of which is committed before the next step starts:

- ``written``: the files are complete. The database has all rows.
- ``verified``: the bytes on the disk or on S3 contain exactly the database's rows. Rows are then removed from the
  database in small transactions. Each first compares its rows with the files, and moves ``removed_before``, which
  decides whether readers take a row from the database or from the archive.
- ``removed``: the database has no rows of the day; it keeps the day's rollups.

An interrupted step is repeated: nothing refers to the files of an interrupted write, and no row is deleted that is not
in the files. Rows that arrive later for a removed day are added to it by writing new files, and switching to them in
the transaction that deletes those rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, delete, exists, func, or_, select

from germane import sanitize
from germane.errors import ArchiveError
from germane.storage.archive.days import (
    ONE_DAY,
    ArchivedDay,
    delete_day,
    insert_day,
    load_day,
    update_day,
)
from germane.storage.archive.files import (
    Contents,
    contains_all,
    delete_stale_files,
    new_generation,
    sort_hashes,
    verify_files,
    write_manifest,
    write_table,
)
from germane.storage.archive.location import ArchiveLocation, claim
from germane.storage.archive.manifest import NAME as MANIFEST
from germane.storage.archive.manifest import ArchivedFile, Manifest
from germane.storage.archive.reader import ArchivedRange, connect_to_files
from germane.storage.archive.rows import (
    BATCH_ROWS,
    SOURCES,
    Row,
    column_index,
    from_dicts,
    hash_rows,
    read_rows,
)
from germane.storage.counts import dirty_hours
from germane.storage.db import migrate
from germane.storage.db.component import StoreContext
from germane.storage.db.conditions import count_rows
from germane.storage.db.errors import TransactionConflict
from germane.storage.db.tables import archived_day, exchange, scoring_task, tally
from germane.storage.queue.candidates import CANDIDATE
from germane.storage.queue.erase_text import OPEN_STATES, lock_tasks
from germane.storage.retention.archive_lease import NAME as LEASE
from germane.storage.retention.day_summary import DaySummary
from germane.storage.retention.expire import delete_exchanges
from germane.storage.trends import dimensions
from germane.storage.trends.archived_rollups import compute_hours
from germane.storage.workers import load_cursor

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH_EXCHANGES: Final = 1000
"""Approximate number of exchanges to remove in one transaction, which removes whole minutes."""
_ONE_MINUTE: Final = timedelta(minutes=1)
_MAX_STEPS: Final = 6
"""Maximum number of times that a day is written or removed in one run."""
_OTHER_PROCESS: Final = "another process is archiving it"


class DayChanged(Exception):
    """Raised when the rows of a day changed after they were written. The day has to be written again."""


class DayBusy(Exception):
    """Raised when the rows of a day are in use. The next run continues."""


def find_obstacle(connection: Connection, day: datetime) -> str | None:
    """Return why a day cannot be archived yet, such as "2 open tasks". None if it is closed."""
    inside = (exchange.c.started_at >= day, exchange.c.started_at < day + ONE_DAY)
    is_undecided = or_(exchange.c.sampling_reason.is_(None), exchange.c.sampling_reason == CANDIDATE)
    undecided = count_rows(connection, exchange, *inside, is_undecided)
    if undecided:
        return f"{sanitize.count_noun(undecided, 'exchange')} without a sampling decision"
    tasks = scoring_task.join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    open_tasks = count_rows(connection, tasks, *inside, scoring_task.c.state.in_(OPEN_STATES))
    if open_tasks:
        return sanitize.count_noun(open_tasks, "open task")
    changed = dirty_hours.dirty_between(connection, day, day + ONE_DAY)
    return f"{sanitize.count_noun(len(changed), 'hour')} waiting to be rolled up" if changed else None


def find_next_day(connection: Connection, since: datetime, before: datetime) -> datetime | None:
    """Return the first day after ``since`` that ends by ``before`` and has rows in the database."""
    firsts = [
        connection.execute(select(func.min(moment)).where(moment >= since, moment < before)).scalar()
        for moment in (exchange.c.started_at, tally.c.minute)
    ]
    days = [first.replace(hour=0, minute=0, second=0, microsecond=0) for first in firsts if first is not None]
    return min((day for day in days if day + ONE_DAY <= before), default=None)


@dataclass(slots=True)
class ForgottenRows:
    """The ids of one day's exchanges and labels that are left out when its files are written again."""

    exchanges: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _WrittenDay:
    """New files of a day."""

    manifest: Manifest
    summary: DaySummary
    stored: Contents
    """Hashes of the rows that came from the database."""


class DayArchiver:
    """Moves one day to an archive. The caller must hold the archive's lease.

    ``pause`` is called between transactions that write.

    All methods raise:
        DayBusy: The day's rows are in use, or another process is archiving the day.
        ArchiveError: The files cannot be written or read, or differ from what was written.
    """

    def __init__(
        self,
        context: StoreContext,
        location: ArchiveLocation,
        day: datetime,
        *,
        has_text: bool,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = context
        self._database = context.database
        self._location = location
        self._has_text = has_text
        self._pause = pause
        self.day = day
        self.until = day + ONE_DAY

    def run(self, stopping: Callable[[], bool]) -> ArchivedDay:
        """Archive the day, or continue where an earlier run ended. Return its record."""
        has_changed = False
        for _ in range(_MAX_STEPS):
            record = self._load()
            try:
                if record is None:
                    self._insert()
                elif has_changed or (record.removed_before > self.day and self._has_late_rows(record)):
                    self._replace_files(record, ForgottenRows())
                elif record.state != "removed":
                    contents = self._read_files(record)
                    if record.state == "written":
                        self._verify(record, contents)
                    self._remove(record, contents, stopping)
                has_changed = False
            except DayChanged:
                if stopping():
                    break
                has_changed = True
                continue
            record = self._finish_files()
            if stopping() or (record.state == "removed" and not self._has_late_rows(record)):
                return record
        raise DayBusy("its rows keep changing")

    def forget(self, forgotten: ForgottenRows) -> None:
        """Write the day's files again without some exchanges and labels, and delete the old files.

        The archived copy of a day whose rows are all in the database is deleted instead.
        """
        record = self._require()
        if record.removed_before > self.day:
            for _ in range(_MAX_STEPS):
                with suppress(DayChanged):
                    self._replace_files(record, forgotten)
                    self._finish_files()
                    return
            raise DayBusy("its rows keep changing")
        with self._database.write() as connection:
            current = load_day(connection, self.day, lock=True)
            if current is None or current.manifest != record.manifest or current.removed_before > self.day:
                raise DayBusy(_OTHER_PROCESS)
            delete_day(connection, self.day)
        delete_stale_files(record.files, self._label, [])

    def _load(self) -> ArchivedDay | None:
        """Return the day's record, after making sure that its archive belongs to this database."""
        with self._database.read() as connection:
            record = load_day(connection, self.day)
            archive_id = load_cursor(connection, LEASE)
            if record is not None:
                self._location = record.files  # a day stays where it is, even if the setting has changed
            is_here = (
                archived_day.c.location == self._location.url,
                archived_day.c.removed_before > archived_day.c.day,
            )
            is_used = connection.execute(select(exists().where(*is_here))).scalar_one()
        if archive_id is None:
            raise DayBusy("the archive's lease is not held")
        claim(self._location, archive_id, is_used=is_used)
        return record

    def _require(self) -> ArchivedDay:
        record = self._load()
        if record is None:
            raise DayBusy(_OTHER_PROCESS)
        return record

    def _insert(self) -> None:
        """Write the day for the first time."""
        written = self._write(None, ForgottenRows())
        with self._database.write() as connection:
            if load_day(connection, self.day, lock=True) is not None:
                raise DayBusy(_OTHER_PROCESS)
            now = self._context.now(connection)
            insert_day(connection, self.day, self._location.url, written.manifest, written.summary.dimensions, now)

    def _replace_files(self, record: ArchivedDay, forgotten: ForgottenRows) -> None:
        """Write the removed rows and the late rows to new files, and switch to them in the transaction that deletes
        those.
        """
        written = self._write(record, forgotten)
        verify_files(self._location, written.manifest)
        with self._removing() as connection:
            current = load_day(connection, self.day, lock=True)
            expected = (record.manifest, record.removed_before)
            if current is None or (current.manifest, current.removed_before) != expected:
                raise DayBusy(_OTHER_PROCESS)
            if record.removed_before > self.day:  # rows that were deleted, as of a forgotten user, would come back
                self._require_equal(connection, written.manifest, written.stored)
            self._delete_rows(connection, self.day, record.removed_before, written.manifest, written.stored)
            update_day(
                connection,
                self.day,
                state="written" if record.removed_before == self.day else record.state,
                manifest=written.manifest.to_json(),
                dimensions=list(written.summary.dimensions),
                has_stale_files=True,
                written_at=self._context.now(connection),
            )
            if record.state == "removed":
                written.summary.write(connection)

    def _write(self, record: ArchivedDay | None, forgotten: ForgottenRows) -> _WrittenDay:
        """Write new files with the day's removed rows and the database's rows."""
        label, generation, now = self._label, new_generation(), self._context.read_clock()
        files: dict[str, ArchivedFile] = {}
        # Removed rows keep the text that they were archived with.
        has_text = self._has_text or (
            record is not None and record.removed_before > self.day and record.manifest.has_text
        )
        manifest = Manifest(day=label, created_at=now, revision=migrate.REVISIONS[-1], has_text=has_text, files=files)
        stored: dict[str, NDArray[Any]] = {}
        with self._database.read(snapshot=True) as connection:
            names = dimensions.rolled_dimensions(connection)
            for table in SOURCES:
                hashes: list[NDArray[Any]] = []
                removed = self._removed_rows(record, table, forgotten)
                rows = read_rows(connection, table, self.day, self.until, blank_at=manifest.blank_at)
                batches: Iterable[list[Row]] = chain(removed, _with_hashes(rows, hashes))
                if table == "tally":
                    batches = _sum_counts(batches)
                files[table] = write_table(self._location, label, generation, table, batches)
                stored[table] = sort_hashes(hashes)
        with connect_to_files([(self._whole, self._location, manifest)], load=True) as reading:
            hours = compute_hours(reading, self.day, self.until, names)
        rolled = {"rollup": hours.scores, "rollup_count": hours.counts, "rollup_proxy": hours.proxies}
        for table, dicts in rolled.items():
            files[table] = write_table(self._location, label, generation, table, [from_dicts(table, dicts)])
        with connect_to_files([(self._whole, self._location, manifest)], load=True) as reading:
            summary = DaySummary.load(reading, self.day, names)
        return _WrittenDay(manifest, summary, stored)

    def _removed_rows(self, record: ArchivedDay | None, table: str, forgotten: ForgottenRows) -> Iterator[list[Row]]:
        """Yield the archived rows that the database no longer has, in batches."""
        if record is None or record.removed_before == self.day:
            return
        part = ArchivedRange(self.day, record.removed_before)
        excluded = {"exchange": [("id", forgotten.exchanges)], "tally": []}.get(
            table, [("exchange_id", forgotten.exchanges)]
        )
        if table == "feedback":
            excluded.append(("id", forgotten.labels))
        conditions = [(column_index(table, name), ids) for name, ids in excluded if ids]
        with connect_to_files([(part, record.files, record.manifest)]) as reading:
            for rows in reading.exec_driver_sql(f'SELECT * FROM "{table}"').partitions(BATCH_ROWS):  # noqa: S608 - a table's name
                yield [tuple(row) for row in rows if not any(row[index] in ids for index, ids in conditions)]

    @property
    def _label(self) -> str:
        return f"{self.day:%Y-%m-%d}"

    @property
    def _whole(self) -> ArchivedRange:
        return ArchivedRange(self.day, self.until)

    def _read_files(self, record: ArchivedDay) -> Contents:
        """Read and verify a day's files. If they are damaged, raise DayChanged while the database has all rows."""
        try:
            return verify_files(record.files, record.manifest)
        except ArchiveError:
            if record.removed_before > self.day:
                raise
            raise DayChanged from None

    def _require_equal(self, connection: Connection, manifest: Manifest, contents: Contents) -> None:
        """Raise DayChanged if the database's rows of the day differ from rows that were written."""
        for table in SOURCES:
            stored = read_rows(connection, table, self.day, self.until, blank_at=manifest.blank_at)
            if sort_hashes([hash_rows(rows) for rows in stored]).tobytes() != contents[table].tobytes():
                raise DayChanged

    def _verify(self, record: ArchivedDay, contents: Contents) -> None:
        """Raise DayChanged if the database's rows differ from the files, which have just been read."""
        with self._database.read(snapshot=True) as connection:
            self._require_equal(connection, record.manifest, contents)
        with self._database.write() as connection:
            current = load_day(connection, self.day, lock=True)
            if current is None or current.manifest != record.manifest:
                raise DayBusy(_OTHER_PROCESS)
            update_day(connection, self.day, state="verified", verified_at=self._context.now(connection))

    def _remove(self, record: ArchivedDay, contents: Contents, stopping: Callable[[], bool]) -> None:
        """Remove the database's rows in small transactions, oldest first."""
        with connect_to_files([(self._whole, record.files, record.manifest)], load=True) as reading:
            summary = DaySummary.load(reading, self.day, record.dimensions)
        while not stopping():
            with self._removing() as connection:
                current = load_day(connection, self.day, lock=True)
                if current is None or current.manifest != record.manifest:
                    raise DayBusy(_OTHER_PROCESS)
                start = current.removed_before
                end = self._end_of_batch(connection, start)
                self._delete_rows(connection, start, end, record.manifest, contents)
                values: dict[str, Any] = {"removed_before": end}
                if end == self.until:
                    values |= {"state": "removed", "removed_at": self._context.now(connection)}
                    summary.write(connection)
                update_day(connection, self.day, **values)
            self._pause()
            if end == self.until:
                return

    @contextmanager
    def _removing(self) -> Iterator[Connection]:
        """Open a transaction that compares rows with the files and deletes them, in one snapshot: newer rows stay."""
        try:
            with self._database.write(snapshot=True) as connection:
                yield connection
        except TransactionConflict:
            raise DayBusy("its rows keep changing") from None

    def _end_of_batch(self, connection: Connection, start: datetime) -> datetime:
        """Return the end of the next batch: a whole minute, because counts are per minute."""
        inside = (exchange.c.started_at >= start, exchange.c.started_at < self.until)
        query = select(exchange.c.started_at).where(*inside).order_by(exchange.c.started_at)
        last: datetime | None = connection.execute(query.offset(BATCH_EXCHANGES).limit(1)).scalar()
        if last is None:
            return self.until
        return max(last.replace(second=0, microsecond=0), start + _ONE_MINUTE)

    def _delete_rows(
        self, connection: Connection, since: datetime, until: datetime, manifest: Manifest, contents: Contents
    ) -> None:
        """Delete the rows of a time range, all of which must be in ``contents``; none may be in use."""
        if since >= until:
            return
        inside = (exchange.c.started_at >= since, exchange.c.started_at < until)
        query = select(exchange.c.id, exchange.c.started_at).where(*inside).order_by(exchange.c.id)
        moments = {row.id: row.started_at for row in connection.execute(query.with_for_update())}
        locked, held = lock_tasks(connection, list(moments))
        if held or any(row["state"] in OPEN_STATES for row in locked):
            raise DayBusy("some of its exchanges are being scored")
        for table in SOURCES:
            for rows in read_rows(connection, table, since, until, blank_at=manifest.blank_at):
                if not contains_all(contents[table], hash_rows(rows)):
                    raise DayChanged
        delete_exchanges(connection, moments, archived=True)
        minutes = delete(tally).where(tally.c.minute >= since, tally.c.minute < until).returning(tally.c.minute)
        dirty_hours.mark_dirty(connection, connection.execute(minutes).scalars())

    def _has_late_rows(self, record: ArchivedDay) -> bool:
        """Return whether the database has rows of the removed part of the day."""
        with self._database.read() as connection:
            return any(
                connection.execute(
                    select(exists().where(moment >= self.day, moment < record.removed_before))
                ).scalar_one()
                for moment in (exchange.c.started_at, tally.c.minute)
            )

    def _finish_files(self) -> ArchivedDay:
        """Write the manifest after the transaction that it describes, and delete files that other writes left."""
        record = self._require()
        if not record.has_stale_files:
            return record
        write_manifest(self._location, record.manifest)
        names = [MANIFEST, *(file.name for file in record.manifest.files.values())]
        delete_stale_files(record.files, self._label, names)
        with self._database.write() as connection:
            current = load_day(connection, self.day, lock=True)
            if current is not None and current.manifest == record.manifest:
                update_day(connection, self.day, has_stale_files=False)
        return replace(record, has_stale_files=False)


def _with_hashes(batches: Iterable[list[Row]], hashes: list[NDArray[Any]]) -> Iterator[list[Row]]:
    """Yield the batches, and append the hashes of their rows to a list."""
    for rows in batches:
        hashes.append(hash_rows(rows))
        yield rows


def _sum_counts(batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Add up rows of the tally with the same key."""
    counts = Counter[Row]()
    for batch in batches:
        for *key, count in batch:
            counts[tuple(key)] += count
    if counts:
        yield [(*key, count) for key, count in sorted(counts.items())]
