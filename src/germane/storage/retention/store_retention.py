"""Retention: pruning by age and size, and deletion of one user's data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, PrimaryKeyConstraint, RowMapping, UniqueConstraint, func, select, text
from sqlalchemy.sql.expression import ColumnElement, FromClause

from germane.errors import UsageError
from germane.storage.answers.label_draws import forget_person
from germane.storage.db.batches import BATCH_SIZE, PruneBatch, PruneResult, RowCursor
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import batched
from germane.storage.db.tables import metadata
from germane.storage.ingest.forwarding import delete_old_requests
from germane.storage.ingest.received_spans import delete_overdue
from germane.storage.ingest.unreadable_traces import MAX_AGE, delete_unreadable
from germane.storage.queue import feedback
from germane.storage.retention import expire, forget
from germane.storage.retention.forget import DataSubject, forget_archived
from germane.storage.trends.time_ranges import END

BatchStep = Callable[[Connection, str, datetime, RowCursor | None, datetime], PruneBatch]
"""Called with the connection, the process id, ``before``, the position of the previous batch, and the current time."""
OrphanStep = Callable[[Connection, datetime], PruneResult]

MIN_AGE: Final = timedelta(hours=1)
"""Exchanges younger than this are kept even if the database is too large."""
_STEPS_PER_SIZE_CHECK: Final = {"sqlite": 1, "postgresql": 5}
"""Number of transactions between two size measurements. On PostgreSQL, a measurement reads a few thousand pages."""
SAMPLED_PAGES: Final = 2000
"""Number of a table's pages to read in order to estimate the size of its content."""
_ROW_OVERHEAD: Final = 28
"""Bytes that PostgreSQL adds to each row."""
_INDEX_ENTRY_OVERHEAD: Final = 20
"""Bytes that PostgreSQL adds to each index entry."""
_INDEX_BLOAT: Final = 1.4
"""Size of an index relative to the size of its entries."""
_EXCHANGE_STEPS: Final[tuple[OrphanStep, ...]] = (
    expire.delete_feedback,
    expire.delete_scores,
    expire.delete_counts,
    expire.delete_markers,
)
"""Steps that delete rows that belong to exchanges. With an archive, they are skipped."""
_ORPHAN_STEPS: Final[tuple[OrphanStep, ...]] = (
    expire.delete_traces,
    expire.delete_budget_days,
    expire.delete_anchors,
    expire.delete_alerts,
    expire.delete_notifications,
    expire.delete_silences,
)


@dataclass(slots=True)
class _Walk:
    """The progress of a step that processes exchanges in batches, from oldest to newest."""

    step: BatchStep
    before: datetime = END
    after: RowCursor | None = None
    ended: bool = False


class RetentionStore(StoreComponent):
    """Removes old data in short transactions. If a call is interrupted, the next call continues the work."""

    def prune(
        self,
        *,
        texts_before: datetime | None = None,
        before: datetime | None = None,
        max_size: int | None = None,
        dry_run: bool = False,
        stopping: Callable[[], bool] = lambda: False,
    ) -> PruneResult:
        """Erase old text, and delete old exchanges, counts, markers and alerts.

        Pending tasks whose text is erased or deleted are skipped with the reason ``expired``. Exchanges that are being
        scored are kept until the next call.

        With an archive, exchanges, counts, labels and markers are not deleted here, but by :class:`ArchiveStore`, once
        their day is verified in the archive.

        Args:
            texts_before: Erase the question, answer, contexts, history and error of exchanges that started before this
                time, the text in their scores, and the comments in their labels. Delete received traces that were due
                to be finished before this time, and requests that have waited since to be forwarded. A time in the
                future means now.
            before: Delete exchanges that started before this time, and older counts, markers and alerts.
            max_size: Maximum size in bytes, see :meth:`measure_size`. If it is exceeded, the oldest texts are erased,
                and then the oldest exchanges are deleted, except exchanges from the last hour.
            dry_run: Change nothing, and return the numbers of rows that would be removed because of their age.
            stopping: Called between transactions. If it returns True, the call ends early.

        Raises:
            UsageError: A time has no time zone.
        """
        now = self._context.read_clock()
        before, texts_before = _at_most(before, now), _at_most(texts_before, now)
        is_archived = self._context.archive is not None
        if dry_run:
            with self._database.read() as connection:
                return expire.count_expired_rows(connection, texts_before, None if is_archived else before)
        total = PruneResult()
        if before is not None:
            if not is_archived:
                total += self._walk(_Walk(expire.delete_batch, before), stopping)
            for step in _ORPHAN_STEPS if is_archived else (*_EXCHANGE_STEPS, *_ORPHAN_STEPS):
                total += self._repeat(step, before, stopping)
        if texts_before is not None:
            total += self._walk(_Walk(expire.erase_batch, texts_before), stopping)
            total += self._repeat(expire.erase_comments, texts_before, stopping)
            total += self._repeat(delete_overdue, texts_before, stopping)
            total += self._repeat(delete_old_requests, texts_before, stopping)
        if self._context.erase_after_scoring:
            total += self._walk(_Walk(expire.erase_scored_batch, self._context.read_clock()), stopping)
        if max_size is not None:
            steps = [expire.erase_batch] if is_archived else [expire.erase_batch, expire.delete_batch]
            total += self._shrink(max_size, steps, stopping)
        with self._database.write() as connection:
            delete_unreadable(connection, now - MAX_AGE)
        unmatched_since = self._context.read_clock() - feedback.LABEL_TIMEOUT
        self._walk(_Walk(feedback.abandon_unmatched, unmatched_since), stopping)
        return total + self._repeat(expire.delete_workers, self._context.read_clock(), stopping)

    def forget(
        self,
        *,
        user: str | None = None,
        session: str | None = None,
        attribute: tuple[str, str] | None = None,
        dry_run: bool = False,
    ) -> PruneResult:
        """Delete the exchanges of one user, session or attribute value with their tasks, scores and labels.

        Received spans that name the user, session or attribute value are deleted with the rest of their traces, also
        from requests that wait to be forwarded. Exchanges that are being scored are deleted too. With ``user``, the
        labels that the user gave are also deleted.
        Counts are kept, because they do not identify anyone.

        Args:
            user: Delete this user's exchanges and labels.
            session: Delete this session's exchanges.
            attribute: Delete the exchanges with this attribute, given as name and value. Write numbers and booleans as
                in JSON, such as ``true``.
            dry_run: Change nothing, and return the numbers of rows that would be deleted.

        Raises:
            UsageError: None or several of user, session and attribute are given.
            ArchiveError: The archive cannot be read or rewritten. The database's exchanges are deleted nevertheless.
        """
        from germane.storage.retention.forget_received import forget_received  # imports protobuf

        subject = DataSubject(user=user, session=session, attribute=attribute)
        total = forget_received(self._context, subject, dry_run=dry_run)
        for rows in forget.find_exchanges(self._database, subject):
            for batch in batched(rows, BATCH_SIZE):
                total += self._forget_exchanges(batch, user, dry_run=dry_run)
        if user is not None and dry_run:
            with self._database.read() as connection:
                total += forget.count_labels(connection, user)
        elif user is not None:
            total += self._walk(_Walk(partial(forget.forget_labels_batch, user)))
            with self._database.write() as connection:
                forget_person(connection, user)
        return total + forget_archived(self._context, subject, dry_run=dry_run)

    def _forget_exchanges(self, rows: Sequence[RowMapping], user: str | None, *, dry_run: bool) -> PruneResult:
        if dry_run:
            with self._database.read() as connection:
                return forget.count_batch(connection, user, rows)
        total = PruneResult()
        while rows:
            with self._database.write() as connection:
                removed, rows = forget.forget_batch(connection, self._context.process, rows)
            self._database.let_others_write()
            total += removed
        return total

    def measure_size(self, limit: int | None = None) -> int:
        """Return the size of the rows in bytes, including indexes and excluding free space in the files.

        On PostgreSQL, free space is subtracted only if the files are larger than ``limit``. It is estimated from a
        sample of the pages.
        """
        with self._database.read() as connection:
            return database_size(connection, limit)

    def vacuum(self) -> None:
        """Vacuum the database, so that its files no longer contain erased text.

        On SQLite, the file shrinks and the write-ahead log is truncated; writers have to wait. On PostgreSQL, space is
        freed for reuse.
        """
        with self._database.autocommit() as connection:
            if connection.dialect.name == "sqlite":
                connection.execute(text("VACUUM"))
                # The write-ahead log contains erased text until it is truncated.
                connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
                return
            for table in metadata.sorted_tables:
                connection.execute(text(f"VACUUM (ANALYZE) {table.name}"))

    def _shrink(self, max_size: int, steps: Sequence[BatchStep], stopping: Callable[[], bool]) -> PruneResult:
        """Apply the steps one after another, each from the oldest exchange on, until the database is small enough."""
        total, before = PruneResult(), self._context.read_clock() - MIN_AGE
        for step in steps:
            walk = _Walk(step, before)
            while not walk.ended and not stopping() and self.measure_size(max_size) > max_size:
                total += self._walk(walk, stopping, _STEPS_PER_SIZE_CHECK[self._database.dialect])
        return total

    def _walk(
        self, walk: _Walk, stopping: Callable[[], bool] = lambda: False, max_steps: int | None = None
    ) -> PruneResult:
        total, steps = PruneResult(), 0
        while not walk.ended and not stopping() and steps != max_steps:
            with self._database.write() as connection:
                now = self._context.now(connection)
                batch = walk.step(connection, self._context.process, walk.before, walk.after, now)
            self._database.let_others_write()
            total, steps, walk.after = total + batch.removed, steps + 1, batch.last
            walk.ended = batch.last is None
        return total

    def _repeat(self, step: OrphanStep, before: datetime, stopping: Callable[[], bool]) -> PruneResult:
        """Repeat a step, each time in its own transaction, until it removes nothing."""
        total = PruneResult()
        while not stopping():
            with self._database.write() as connection:
                removed = step(connection, before)
            self._database.let_others_write()
            total += removed
            if not removed:
                break
        return total


def _at_most(moment: datetime | None, now: datetime) -> datetime | None:
    """Return the earlier of two times, in UTC. A time in the future would delete today's budget row."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise UsageError(f"{moment} has no time zone")
    return min(moment.astimezone(UTC), now)


def database_size(connection: Connection, limit: int | None = None) -> int:
    """Return the size of the rows in bytes, including indexes.

    PostgreSQL reuses the space of deleted rows instead of shrinking its files. If the files are larger than ``limit``,
    the size of their content is estimated from a sample of pages, so that deleted rows do not count.
    """
    if connection.dialect.name == "sqlite":
        pages, free, page_size = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page_size
    # A table that is missing, which the integrity check reports, has no size.
    sizes = {name: func.pg_total_relation_size(func.to_regclass(name)) for name in metadata.tables}
    found = connection.execute(select(*(func.coalesce(size, 0) for size in sizes.values()))).one()
    files = dict(zip(sizes, found, strict=True))
    if limit is None or sum(files.values()) <= limit:
        return sum(files.values())
    from germane.storage.db.models import metadata as models  # imports the ORM; with the indexes, whose entries count

    total = 0
    for table in models.sorted_tables:
        # Estimate the size in bytes of the rows, in which long values are compressed (TOAST), and of the index entries.
        table_pages = connection.execute(select(func.pg_relation_size(table.name))).scalar_one() / 8192
        percentage = min(100.0, 100.0 * SAMPLED_PAGES / max(1.0, table_pages))
        sampled: FromClause = table.tablesample(func.system(percentage))
        keys: list[Iterable[ColumnElement[Any]]] = [index.columns for index in table.indexes]
        keys += [key.columns for key in table.constraints if isinstance(key, (PrimaryKeyConstraint, UniqueConstraint))]
        entries = [_INDEX_BLOAT * (_INDEX_ENTRY_OVERHEAD + _column_bytes(sampled, columns)) for columns in keys]
        row_bytes = sum(entries, start=_ROW_OVERHEAD + _column_bytes(sampled, table.columns))
        content = float(connection.execute(select(func.sum(row_bytes))).scalar_one() or 0)
        total += min(files[table.name], round(content * 100 / percentage))
    return total


def _column_bytes(sampled: FromClause, columns: Iterable[ColumnElement[Any]]) -> ColumnElement[Any]:
    widths = [func.coalesce(func.pg_column_size(sampled.c[str(column.key)]), 0) for column in columns]
    return sum(widths[1:], start=widths[0])
