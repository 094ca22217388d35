"""Deletion of the exchanges of one user, session or tenant, also from the archive."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Numeric,
    RowMapping,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
)

from germane.errors import ArchiveError, UsageError
from germane.sanitize import clean_text
from germane.storage.archive.days import ArchivedDay, load_days
from germane.storage.archive.dialect import NAME as ARCHIVE
from germane.storage.archive.reader import ArchivedRange, connect_to_files
from germane.storage.db.batches import BATCH_SIZE, PruneBatch, PruneResult, RowCursor
from germane.storage.db.component import StoreContext
from germane.storage.db.conditions import count_rows, following
from germane.storage.db.engine import Database
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, feedback, label_draw, score, scoring_task
from germane.storage.queue.erase_text import OPEN_STATES, lock_tasks
from germane.storage.retention.archive_lease import hold_archive
from germane.storage.retention.archiving import DayArchiver, DayBusy, ForgottenRows
from germane.storage.retention.expire import delete_exchanges, expire_tasks
from germane.storage.trends.time_ranges import DAY, END, down

_BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)
SEARCHED: Final = 10_000
"""Number of exchanges that one transaction searches."""
_AFTER: Final = select(exchange.c.started_at).where(exchange.c.started_at > bindparam("after"))
_LAST: Final = _AFTER.order_by(exchange.c.started_at).offset(bindparam("others")).limit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSubject:
    """The user, session or attribute value whose exchanges are deleted. Exactly one of the three is set.

    Raises:
        UsageError: None or several of the three are given, or the value is empty.
    """

    user: str | None = None
    session: str | None = None
    attribute: tuple[str, str] | None = None
    """Name and value of the attribute. Numbers and booleans are written as in JSON."""

    def __post_init__(self) -> None:
        given = [value for value in (self.user, self.session, self.attribute) if value is not None]
        if len(given) != 1 or "" in {self.user, self.session, *(self.attribute or ())[:1]}:
            raise UsageError("pass exactly one of user, session and attribute, with a non-empty value")

    def condition(self, dialect: str) -> ColumnElement[bool]:
        """Return the SQL condition that selects the exchanges."""
        if self.user is not None:
            return exchange.c.user == clean_text(self.user)
        if self.session is not None:
            return exchange.c.session == clean_text(self.session)
        name, value = (clean_text(part) for part in self.attribute or ("", ""))
        # Numbers are compared as numbers, because the databases format them differently.
        number: Decimal | None = None
        with suppress(ValueError):  # otherwise, the value is not a JSON number
            parsed = json.loads(value, parse_float=Decimal, parse_int=Decimal, parse_constant=str)
            number = parsed if isinstance(parsed, Decimal) else None
        if dialect != "sqlite":
            stored = func.jsonb_extract_path(exchange.c.attributes, name)
            text = func.jsonb_extract_path_text(exchange.c.attributes, name)
            if number is None:
                return text == value
            if dialect == ARCHIVE:  # its numeric type has few digits, so compare whole numbers as text
                is_fraction = func.json_type(stored) == "DOUBLE"
                return or_(text == value, and_(is_fraction, cast(text, Float) == float(number)))
            return case((func.jsonb_typeof(stored) == "number", cast(text, Numeric) == number), else_=text == value)
        # Compare all pairs instead of using a JSON path, because a name may contain any character.
        pairs = func.json_each(exchange.c.attributes).table_valued("key", "value", "type")
        is_boolean = pairs.c.type.in_(["true", "false"])
        is_equal = case((is_boolean, pairs.c.type), else_=cast(pairs.c.value, Text)) == value
        if number is not None:
            is_equal = or_(is_equal, and_(pairs.c.type == "real", cast(pairs.c.value, Float) == float(number)))
        return exists(select(1).select_from(pairs).where(pairs.c.key == name, is_equal))


def find_exchanges(database: Database, subject: DataSubject) -> Iterator[Sequence[RowMapping]]:
    """Yield a data subject's exchanges, from old to new, in groups of at most the number searched per transaction.

    They can be anywhere, so all exchanges are read, but in transactions that only read, for which no writer waits.
    """
    at, until = exchange.c.started_at, _BEGINNING
    columns = (exchange.c.id, exchange.c.service, exchange.c.route, at, exchange.c.trace_id)
    while until < END:
        after = until
        with database.read() as connection:
            until = connection.execute(_LAST, {"after": after, "others": SEARCHED - 1}).scalar() or END
            query = select(*columns).where(at > after, at <= until, subject.condition(connection.dialect.name))
            rows = connection.execute(query).mappings().all()
        yield rows


def forget_batch(
    connection: Connection, process: str, rows: Sequence[RowMapping]
) -> tuple[PruneResult, Sequence[RowMapping]]:
    """Delete some of a data subject's exchanges, including exchanges that are being scored.

    Also return the exchanges of which another transaction has locked a task: they are still there, so call this again.
    """
    # Block sampling and erasure. Tasks are locked later to avoid a deadlock: scoring may hold the lock of a task while
    # it waits for an exchange.
    ids = is_one_of(exchange.c.id, [row["id"] for row in rows], connection.dialect.name)
    query = select(exchange.c.id).where(ids).order_by(exchange.c.id)
    locked = set(connection.execute(query.with_for_update()).scalars())
    exchanges = {row["id"]: row for row in rows if row["id"] in locked}
    free, others = lock_tasks(connection, list(exchanges), open_only=True)
    held = {exchange_id for exchange_id, _ in others}
    tasks = [(exchanges[row["exchange_id"]], row) for row in free if row["exchange_id"] not in held]
    expire_tasks(connection, process, tasks)
    moments = {exchange_id: exchanges[exchange_id]["started_at"] for exchange_id in sorted(exchanges.keys() - held)}
    removed = delete_exchanges(connection, moments) + PruneResult(expired=len(tasks))
    return removed, [exchanges[exchange_id] for exchange_id in sorted(held)]


def forget_labels_batch(
    user: str, connection: Connection, _process: str, _before: datetime, after: RowCursor | None, _now: datetime
) -> PruneBatch:
    """Delete the next batch of labels that a user gave, oldest first."""
    at, id_ = feedback.c.created_at, feedback.c.id
    query = select(at, id_).where(feedback.c.user == clean_text(user), *following(at, id_, after))
    rows = connection.execute(query.order_by(at, id_).limit(BATCH_SIZE)).mappings().all()
    ids = is_one_of(id_, [row["id"] for row in rows], connection.dialect.name)
    deleted = connection.execute(delete(feedback).where(ids)).rowcount
    return PruneBatch(PruneResult(feedback=deleted), RowCursor.after_batch(rows, "created_at"))


def count_batch(connection: Connection, user: str | None, rows: Sequence[RowMapping]) -> PruneResult:
    """Return the numbers of rows that :func:`forget_batch` would delete, without the labels that the user gave."""
    ids, dialect = [row["id"] for row in rows], connection.dialect.name
    of = {table: is_one_of(table.c.exchange_id, ids, dialect) for table in (score, feedback, scoring_task)}
    by_others = [] if user is None else [feedback.c.user.is_distinct_from(clean_text(user))]
    return PruneResult(
        exchanges=len(ids),
        scores=count_rows(connection, score, of[score]),
        feedback=count_rows(connection, feedback, of[feedback], *by_others),
        expired=count_rows(connection, scoring_task, of[scoring_task], scoring_task.c.state.in_(OPEN_STATES)),
    )


def count_labels(connection: Connection, user: str) -> PruneResult:
    """Return the number of labels that :func:`forget_labels_batch` would delete."""
    given = (feedback.c.created_at > _BEGINNING, feedback.c.user == clean_text(user))  # through the index on times
    return PruneResult(feedback=count_rows(connection, feedback, *given))


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
