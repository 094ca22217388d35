"""Deletion of one user's, session's or tenant's data from the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, select

from germane.errors import ArchiveError
from germane.sanitize import clean_text
from germane.storage.archive.days import ArchivedDay, load_days
from germane.storage.archive.reader import ArchivedRange, connect_to_files
from germane.storage.db.batches import PruneResult
from germane.storage.db.component import StoreContext
from germane.storage.db.conditions import count_rows
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, feedback, label_draw, score, scoring_task
from germane.storage.retention.archive_lease import hold_archive
from germane.storage.retention.archiving import DayArchiver, DayBusy, ForgottenRows
from germane.storage.retention.forget import DataSubject
from germane.storage.trends.time_ranges import DAY, down


def forget_archived(context: StoreContext, subject: DataSubject, *, dry_run: bool) -> PruneResult:
    """Delete a data subject's exchanges, and the labels that a user gave, by writing their days again without them.

    The archived copy of a day that is still in the database is deleted if it contains them, and archived again later.
    Rows that arrived in the database after their exchange was archived, such as late labels, are deleted too.

    Returns:
        The numbers of deleted rows that were not deleted with the database's exchanges.

    Raises:
        ArchiveError: The archive cannot be read or written, or another process is using a day. Call again.
    """
    total = PruneResult()
    while True:  # days may be archived in the meantime, so a search that finds nothing is the last one
        with context.database.read(snapshot=True) as connection:
            records = {record.day: record for record in load_days(connection)}
        matches, counted = _find_matches(records, subject)
        ids = sorted(id_ for match in matches.values() for id_ in match.exchanges)
        total += counted + _delete_late_rows(context, subject, ids, dry_run=dry_run)
        if dry_run or not matches:
            return total
        with hold_archive(context):  # for all days, so that no other process changes one in between
            for day, match in sorted(matches.items()):
                record = records[day]
                # The archiver reads the record again under its lease.
                archiver = DayArchiver(context, record.files, day, has_text=record.manifest.has_text)
                try:
                    archiver.forget(match)
                except DayBusy as busy:
                    raise ArchiveError(
                        f"{day:%Y-%m-%d} could not be rewritten, because {busy}: run the command again"
                    ) from None


def _find_matches(
    records: Mapping[datetime, ArchivedDay], subject: DataSubject
) -> tuple[dict[datetime, ForgottenRows], PruneResult]:
    """Return the matching rows of all files by day, and count those in the removed parts of days."""
    matches: dict[datetime, ForgottenRows] = {}
    if not records:
        return matches, PruneResult()
    archived: set[str] = set()
    scores = labels = 0
    # Read the files' rows that the database still has, too, because their removal may have begun.
    files = [(ArchivedRange(one.day, one.until), one.files, one.manifest) for one in records.values()]
    with connect_to_files(files) as reading:
        query = select(exchange.c.id, exchange.c.started_at).where(subject.condition(reading.dialect.name))
        for row in reading.execute(query):
            day = down(row.started_at, DAY)
            matches.setdefault(day, ForgottenRows()).exchanges.add(row.id)
            if row.started_at < records[day].removed_before:
                archived.add(row.id)
        for batch in batched(sorted(archived)):
            scores += count_rows(reading, score, score.c.exchange_id.in_(batch))
        ids = sorted(id_ for match in matches.values() for id_ in match.exchanges)
        query = select(feedback.c.id, exchange.c.started_at)
        query = query.join(exchange, exchange.c.id == feedback.c.exchange_id)
        conditions: list[ColumnElement[bool]] = [exchange.c.id.in_(batch) for batch in batched(ids)]
        conditions += [] if subject.user is None else [feedback.c.user == clean_text(subject.user)]
        for condition in conditions:
            for row in reading.execute(query.where(condition)):
                day = down(row.started_at, DAY)
                match = matches.setdefault(day, ForgottenRows())
                labels += row.id not in match.labels and row.started_at < records[day].removed_before
                match.labels.add(row.id)
    return matches, PruneResult(exchanges=len(archived), scores=scores, feedback=labels)


def _delete_late_rows(
    context: StoreContext, subject: DataSubject, exchange_ids: Sequence[str], *, dry_run: bool
) -> PruneResult:
    """Delete the database's rows of archived exchanges. With ``dry_run``, only count the labels."""
    labels = 0
    for ids in batched(exchange_ids):
        if dry_run:
            late = [feedback.c.exchange_id.in_(ids), ~exists().where(exchange.c.id == feedback.c.exchange_id)]
            if subject.user is not None:  # the user's own labels have been counted
                late.append(feedback.c.user.is_distinct_from(clean_text(subject.user)))
            with context.database.read() as connection:
                labels += count_rows(connection, feedback, *late)
            continue
        with context.database.write() as connection:
            labels += connection.execute(delete(feedback).where(feedback.c.exchange_id.in_(ids))).rowcount
            for table in (score, scoring_task, label_draw):
                connection.execute(delete(table).where(table.c.exchange_id.in_(ids)))
    return PruneResult(feedback=labels)
