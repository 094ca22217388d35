"""Export and import of exchanges, drop counts and alerting data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Table, exists, select

from germane.annotation import Marker
from germane.storage.archive.reader import find_ids, open_exchanges, open_oldest, open_window
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import DECLARED_MINUTE, TallyChanges
from germane.storage.db.batches import RowCursor
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import following, matching, within
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import batched, bulk_insert, score_key, timestamp_encoder
from germane.storage.db.sanitize import to_json
from germane.storage.db.tables import (
    alert,
    alert_event,
    baseline,
    exchange,
    feedback,
    label_draw,
    saved_view,
    score,
    scoring_task,
    silence,
    tally,
)
from germane.storage.db.types import Json, UtcDateTime
from germane.storage.db.upsert import insert_into
from germane.storage.ingest.store_exchanges import lock_exchanges
from germane.storage.queue.erase_text import OPEN_STATES, keep_numbers
from germane.storage.transfer.export import StoredRecord, StoredRow, select_stored
from germane.storage.transfer.import_batch import ImportBatch, ImportResult
from germane.storage.transfer.record import (
    ALERTING_PARTS,
    COLUMNS,
    NAMES,
    NEVER_STORED,
    TABLES,
    AlertingRow,
    DroppedCount,
    ExchangeRecord,
    ExportedItem,
    Row,
    dump_line,
)
from germane.storage.trends.store_trends import TrendReader, TrendStore

TaskKey = tuple[str, str, str]
"""Exchange id, scorer and fingerprint."""
NewTask = tuple[ExchangeRecord, Row]
"""An exchange record, and one of its tasks that the database did not have."""
StoredExchanges = Mapping[str, RowMapping]
"""Exchanges by id, as stored in the database. They take precedence over the values in a file."""

_BASELINE_KEY: Final = ("service", "scorer", "fingerprint", "scope")
_ORDER: Final = {
    "task": (scoring_task.c.scorer, scoring_task.c.fingerprint),
    "score": (score.c.scorer, score.c.fingerprint),
    "feedback": (feedback.c.created_at, feedback.c.id),
    "draw": (label_draw.c.wave,),
    "baseline": tuple(baseline.c[name] for name in (*_BASELINE_KEY, "version")),
    "alert": (alert.c.starts_at, alert.c.id),
    "alert_event": (alert_event.c.at, alert_event.c.id),
    "silence": (silence.c.starts_at, silence.c.id),
    "saved_view": (saved_view.c.name,),
}
"""The order of rows in a file. It depends only on their content, so that exporting a restored database gives the same
file.
"""
_STARTED_AT: Final = NAMES["exchange"].index("started_at")
_LABEL_ID: Final = NAMES["feedback"].index("id")
_CREATED_AT: Final = NAMES["feedback"].index("created_at")
_MICROSECOND: Final = timedelta(microseconds=1)
_STATE: Final = NAMES["task"].index("state")
_TASK_KEY: Final = (scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSelection:
    """Selects the exchanges to export, with ``since <= started_at < until``."""

    since: datetime | None = None
    until: datetime | None = None
    route: str | None = None
    scorer: str | None = None
    """Only exchanges with a task for this scorer, and only this scorer's tasks and scores."""


class TransferStore(StoreComponent):
    """Copies exchanges with their tasks, scores and labels, and the alerting data, from one database to another."""

    def load_stored(
        self, chosen: ExportSelection, *, after: StoredRecord | None = None, limit: int = 500
    ) -> list[StoredRecord]:
        """Return the next page ordered by (started_at, id), starting after ``after`` or at the beginning."""
        position = None
        if after is not None:
            position = RowCursor(*_position(after))
        since = chosen.since if position is None else position.at
        with self._database.read(snapshot=True) as connection:
            page = _load_page(connection, chosen, position, limit)
            until = chosen.until
            if len(page) == limit:  # later answers are not on this page
                last_at = datetime.fromisoformat(page[-1].exchange[_STARTED_AT])
                until = min(last_at + _MICROSECOND, until or last_at + _MICROSECOND)
            is_filtered = chosen.route is not None or chosen.scorer is not None
            with open_oldest(connection, since, until, count=None if is_filtered else limit) as archive:
                if archive is not None:
                    archived = _load_page(archive, chosen, position, limit)
                    _add_late_labels(connection, archived)
                    page = sorted([*page, *archived], key=_position)[:limit]
            _add_parts(connection, "draw", page, chosen.scorer)  # even of archived answers
        return page

    def load_other_lines(self, chosen: ExportSelection) -> list[str]:
        """Return the lines of an export that follow those of exchanges: counts, markers and alerting data."""
        markers = TrendReader(self._context).list_markers(since=chosen.since, until=chosen.until, limit=None)
        return [
            *map(dump_line, self.load_dropped(chosen)),
            *map(dump_line, sorted(markers, key=lambda marker: (marker.at, marker.id))),
            *map(dump_line, self.load_alerting(chosen)),
        ]

    def open_import(self) -> ImportBatch:
        """Return a batch that writes the lines of an export file."""
        return ImportBatch(self.restore)

    def restore(self, items: Sequence[ExportedItem]) -> ImportResult:
        """Write the items of an export that the database does not have, in one transaction per kind."""
        restored = self.restore_records([item for item in items if isinstance(item, ExchangeRecord)])
        self.restore_dropped([item for item in items if isinstance(item, DroppedCount)])
        TrendStore(self._context).add_markers([item for item in items if isinstance(item, Marker)])
        self.restore_alerting([item for item in items if isinstance(item, AlertingRow)])
        return restored

    def load_dropped(self, chosen: ExportSelection) -> list[DroppedCount]:
        """Return the counts of exchanges that were captured but not stored, by minute and process."""
        query = select(*(tally.c[name] for name in DroppedCount.__slots__))
        first = (chosen.since or DECLARED_MINUTE).replace(second=0, microsecond=0)
        query = query.where(tally.c.outcome == "skipped", tally.c.reason.in_(NEVER_STORED))
        query = query.where(*within(tally.c.minute, first, chosen.until))
        query = query.where(*matching(tally, route=chosen.route, scorer=chosen.scorer))
        query = query.order_by(*(tally.c[name] for name in DroppedCount.__slots__))
        with self._database.read(snapshot=True) as connection:
            rows = [DroppedCount(**row) for row in connection.execute(query).mappings()]
            with open_window(connection, first, chosen.until) as archive:
                archived = [] if archive is None else archive.execute(query).mappings().all()
        return [*(DroppedCount(**row) for row in archived), *rows]

    def load_alerting(self, chosen: ExportSelection) -> list[AlertingRow]:
        """Return all baselines, and the alerts (with their events), silences and saved views from the window.

        Returns an empty list if a route or a scorer is selected.
        """
        if chosen.route is not None or chosen.scorer is not None:
            return []
        rows: list[AlertingRow] = []
        alerts = select(alert.c.id).where(*within(alert.c.starts_at, chosen.since, chosen.until))
        conditions: dict[str, Sequence[ColumnElement[bool]]] = {
            "alert": within(alert.c.starts_at, chosen.since, chosen.until),
            "alert_event": [alert_event.c.alert_id.in_(alerts)],
            "silence": within(silence.c.starts_at, chosen.since, chosen.until),
            "saved_view": within(saved_view.c.created_at, chosen.since, chosen.until),
        }
        with self._database.read(snapshot=True) as connection:
            for part in ALERTING_PARTS:
                query = select(*COLUMNS[part]).where(*conditions.get(part, ())).order_by(*_ORDER[part])
                rows += [AlertingRow(part, dict(row)) for row in connection.execute(query).mappings()]
        return rows

    def restore_records(self, records: Sequence[ExchangeRecord]) -> ImportResult:
        """Write records from another database. Existing rows are not changed. Each new task is counted in the tally.

        Exchanges in the archive exist, too. Of their records, only the labels that the archive lacks are written.
        """
        # Sort the records, so that all processes lock rows in the same order.
        records = sorted(records, key=lambda record: str(record.exchange["id"]))
        archived, archived_labels = self._find_archived(records)
        labels = [
            {**label, "exchange_id": record.exchange["id"]}
            for record in records
            for label in record.feedback
            if label["id"] not in archived_labels
        ]
        draws = [{**draw, "exchange_id": record.exchange["id"]} for record in records for draw in record.draws]
        records = [record for record in records if record.exchange["id"] not in archived]
        ids = sorted({record.exchange["id"] for record in records})
        with self._write_values() as connection:
            old = lock_exchanges(connection, ids)  # before the insert
            _insert(connection, exchange, [record.exchange for record in records])
            stored = lock_exchanges(connection, ids)
            present = [record for record in records if record.exchange["id"] in stored]
            new_tasks = _restore_tasks(connection, present, stored, list(old))
            scores: list[Row] = []
            tally_changes = TallyChanges()
            for record, task in new_tasks:
                row = stored[record.exchange["id"]]
                scores += _scores_of(task, record, row)
                names = (row["service"], row["route"], task["scorer"])
                tally_changes.add(row["started_at"], names, "seen")
                if task["state"] == "done":
                    tally_changes.add(row["started_at"], names, "scored")
                else:  # the reason of a pending task is that of its last attempt, which the tally does not count
                    reason = "" if task["state"] == "pending" else task["reason"]
                    tally_changes.add(row["started_at"], names, task["state"], reason)
            _insert(connection, score, scores)
            _insert(connection, feedback, labels)
            _insert(connection, label_draw, draws)
            tally_changes.apply(connection, self._context.process)
            # An exchange without tasks may still have a proxy score.
            dirty_hours.mark_dirty(connection, [row["started_at"] for row in stored.values()])
        return ImportResult(len(ids) - len(old), len(new_tasks))

    def _find_archived(self, records: Sequence[ExchangeRecord]) -> tuple[set[str], set[str]]:
        """Return the ids of the exchanges and of the labels that are in the archive."""
        moments = {str(record.exchange["id"]): record.exchange["started_at"] for record in records}
        label_ids = [label["id"] for record in records for label in record.feedback]
        exchanges, labels = set[str](), set[str]()
        with self._database.read(snapshot=True) as connection, open_exchanges(connection, moments) as sources:
            for source, ids in sources:
                if source is not connection:
                    exchanges |= find_ids(source, ids)
                    labels |= find_ids(source, label_ids, feedback)
        return exchanges, labels

    def restore_dropped(self, counts: Sequence[DroppedCount]) -> None:
        """Write counts of exchanges that were not stored. Counts that were already restored are not changed."""
        with self._write_values() as connection:
            statement = insert_into(tally, connection.dialect.name).on_conflict_do_nothing().returning(tally.c.count)
            for item in counts:
                row = {name: getattr(item, name) for name in item.__slots__}
                if connection.execute(statement.values({**row, "outcome": "skipped"})).first() is not None:
                    tally_changes = TallyChanges()
                    tally_changes.add(item.minute, (item.service, item.route, item.scorer), "seen", by=item.count)
                    tally_changes.apply(connection, item.process)

    def restore_alerting(self, rows: Sequence[AlertingRow]) -> None:
        """Write baselines, alerts with their events, silences and saved views. Existing rows are not changed.

        If the database already has any version of a baseline, no version of that baseline is written. An alert is not
        written while another alert with the same key is open.
        """
        by_part: dict[str, list[Row]] = {part: [] for part in ALERTING_PARTS}
        for row in rows:
            by_part[row.part].append(row.values)
        with self._write_values() as connection:
            columns = [baseline.c[name] for name in _BASELINE_KEY]
            known = {tuple(row) for row in connection.execute(select(*columns).distinct())} if rows else set()
            new = [row for row in by_part["baseline"] if tuple(row[name] for name in _BASELINE_KEY) not in known]
            _insert(connection, baseline, new)
            _insert(connection, alert, by_part["alert"])
            _insert(connection, silence, by_part["silence"])
            _insert(connection, saved_view, by_part["saved_view"])
            alert_ids = {row["alert_id"] for row in by_part["alert_event"]}
            stored = {
                id_
                for ids in batched(sorted(alert_ids))
                for id_ in connection.execute(select(alert.c.id).where(alert.c.id.in_(ids))).scalars()
            }
            _insert(connection, alert_event, [row for row in by_part["alert_event"] if row["alert_id"] in stored])


def _load_page(
    connection: Connection, chosen: ExportSelection, position: RowCursor | None, limit: int
) -> list[StoredRecord]:
    """Return the next page of the database or the archive."""
    dialect = connection.dialect.name
    exchanges = _fetch(connection, _select_page(select_stored("exchange", dialect), chosen, position, limit))
    records = [StoredRecord(row, {}) for row in exchanges]
    for part in ("task", "score", "feedback"):
        _add_parts(connection, part, records, chosen.scorer)
    return records


def _add_parts(connection: Connection, part: str, records: Sequence[StoredRecord], scorer: str | None = None) -> None:
    """Add the rows of a part to records. Labels are added whatever the scorer."""
    table, dialect = TABLES[part], connection.dialect.name
    of = {record.id: record.parts for record in records}
    query = select_stored(part, dialect).where(is_one_of(table.c.exchange_id, list(of), dialect))
    if part != "feedback":
        query = query.where(*matching(table, scorer=scorer))
    rows = _fetch(connection, query.order_by(table.c.exchange_id, *_ORDER[part]))
    for row in map(_released, rows) if part == "task" else rows:
        of[row[-1]].setdefault(part, []).append(row)


def _fetch(connection: Connection, query: Select[Any]) -> list[StoredRow]:
    """Return the rows as the driver's tuples, because the export needs none of what SQLAlchemy's rows can do."""
    return list(connection.execute(query).cursor.fetchall())


def _position(record: StoredRecord) -> tuple[datetime, str]:
    return datetime.fromisoformat(record.exchange[_STARTED_AT]), record.id


def _add_late_labels(connection: Connection, archived: Sequence[StoredRecord]) -> None:
    """Add the labels that were given after archiving, which are in the database, to archived records."""

    def by_time(label: StoredRow) -> tuple[datetime, str]:
        return datetime.fromisoformat(label[_CREATED_AT]), label[_LABEL_ID]

    _add_parts(connection, "feedback", archived)
    for record in archived:
        if labels := record.parts.get("feedback"):
            record.parts["feedback"] = sorted({label[_LABEL_ID]: label for label in labels}.values(), key=by_time)


def _select_page(query: Select[Any], chosen: ExportSelection, after: RowCursor | None, limit: int) -> Select[Any]:
    """Return the query for the next page of exchanges, ordered by (started_at, id)."""
    # The position replaces `since`, because an index search has one lower bound.
    since = chosen.since if after is None else None
    query = query.where(*within(exchange.c.started_at, since, chosen.until), *matching(exchange, route=chosen.route))
    query = query.where(*following(exchange.c.started_at, exchange.c.id, after))
    if chosen.scorer is not None:
        has_task = exists().where(scoring_task.c.exchange_id == exchange.c.id, scoring_task.c.scorer == chosen.scorer)
        query = query.where(has_task)
    return query.order_by(exchange.c.started_at, exchange.c.id).limit(limit)


def _released(row: StoredRow) -> StoredRow:
    """Return a task for export: without a lease, and as done if it is queued for rescoring."""
    if row[_STATE] not in OPEN_STATES:
        return row
    task = dict(zip(NAMES["task"], row, strict=False))
    if task["scored_as"]:
        task |= {"state": "done", "reason": None, "error": None, "due_at": None}
    elif task["state"] == "running":
        claims = max(0, task["claims"] - 1)
        task |= {"state": "pending", "due_at": task["first_pending_at"], "claims": claims}
    return (*task.values(), row[-1])


def _scores_of(task: Row, record: ExchangeRecord, stored: RowMapping) -> list[Row]:
    """Return a task's scores with the columns of the stored exchange, and without texts if that is erased."""
    if task["state"] != "done":
        return []
    shared = {"exchange_id": stored["id"], **{name: stored[name] for name in ("service", "route", "started_at")}}
    own = [row for row in record.scores if (row["scorer"], row["fingerprint"]) == score_key(task)]
    if stored["erased_at"] is None:
        return [{**row, **shared} for row in own]
    return [{**row, **shared, "explanation": None, "details": keep_numbers(row["details"])} for row in own]


def _insert(
    connection: Connection, table: Table, rows: Sequence[Row], *, returning: tuple[str, ...] = ()
) -> Sequence[Any]:
    """Insert rows, which must all have the same columns, and ignore rows that already exist. See ``bulk_insert``."""
    if not rows:
        return []
    columns = [column for column in table.columns if column.name in rows[0]]
    names = tuple(column.name for column in columns)
    stamp, encoded = timestamp_encoder(connection.dialect.name), list[Iterable[Any]]()
    for column, values in zip(columns, zip(*map(itemgetter(*names), rows), strict=True), strict=True):
        if isinstance(column.type, Json):
            encoded.append(map(to_json, values))
        elif isinstance(column.type, UtcDateTime):
            encoded.append([value and stamp(value) for value in values])
        else:
            encoded.append(values)
    return bulk_insert(connection, table, names, list(zip(*encoded, strict=True)), returning=returning)


def _restore_tasks(
    connection: Connection, records: Sequence[ExchangeRecord], stored: StoredExchanges, old: Sequence[str]
) -> list[NewTask]:
    """Write and return the tasks that are not in the database. An insert that ignored conflicts could deadlock.

    Only ``old`` exchanges, which were stored before, can have tasks. A database that has no statistics yet reads the
    whole table to find none.
    """
    known: set[TaskKey] = set()
    if old:
        is_old = is_one_of(scoring_task.c.exchange_id, old, connection.dialect.name)
        known = {(row[0], row[1], row[2]) for row in connection.execute(select(*_TASK_KEY).where(is_old))}
    new: dict[TaskKey, NewTask] = {}
    for record in records:
        for task in record.tasks:
            key = (record.exchange["id"], task["scorer"], task["fingerprint"])
            if key not in known:
                new.setdefault(key, (record, task))
    rows = []
    for key, (_, task) in sorted(new.items(), key=itemgetter(0)):
        erased = {} if stored[key[0]]["erased_at"] is None else {"error": None}
        rows.append({**task, **erased, "exchange_id": key[0]})
    written = _insert(connection, scoring_task, rows, returning=tuple(column.name for column in _TASK_KEY))
    if connection.dialect.name == "sqlite":  # no other transaction can have written any of them
        return list(new.values())
    return [new[row] for row in map(tuple, written)]
