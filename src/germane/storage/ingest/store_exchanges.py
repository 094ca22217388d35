"""Storage of captured exchanges, externally computed scores, and counts of dropped exchanges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, RowMapping, delete, func, select

from germane import quality
from germane.annotation import EXTERNAL_FINGERPRINT, RecordedScore
from germane.errors import ContentRefused
from germane.exchange import Exchange
from germane.sanitize import clean_text
from germane.score import UnscoredReason
from germane.storage.counts import dirty_hours, tally
from germane.storage.counts.tally import TallyChanges
from germane.storage.counts.watched import WatchedTraces, WatchKey, add_watched
from germane.storage.db import mappers
from germane.storage.db.component import StoreComponent, StoreContext
from germane.storage.db.conditions import within
from germane.storage.db.engine import record_events
from germane.storage.db.functions import is_one_of
from germane.storage.db.tables import exchange, score, scoring_task, watched_trace
from germane.storage.db.upsert import insert_into
from germane.storage.queue.candidates import remove_from_pool
from germane.storage.queue.erase_text import keep_numbers
from germane.storage.sink_items import mark_for_sinks
from germane.storage.workers import register_workers

_ROWS_PER_STATEMENT: Final = 50
"""Maximum number of rows per statement, chosen to stay within the parameter limit of every SQLite version."""


class _RolledBack(Exception):
    """Ends a transaction without a commit."""


class ExchangeStore(StoreComponent):
    """Stores captured exchanges, recorded scores and drop counts."""

    def __init__(self, context: StoreContext) -> None:
        super().__init__(context)
        self._stamp = mappers.timestamp_encoder(context.database.dialect)

    def add(self, exchanges: Sequence[Exchange]) -> None:
        """Store exchanges. Exchanges with an existing id are ignored, so a batch can be retried.

        A worker that holds spans is registered with its first exchange. Otherwise, other workers could claim its tasks
        before its first heartbeat.

        Raises:
            ContentRefused: An exchange contains a value that no column accepts.
        """
        try:
            values = [mappers.EXCHANGES.encode(item, self._stamp) for item in exchanges]
        except (AttributeError, TypeError, ValueError) as error:
            raise ContentRefused(
                f"an exchange contains a value of an unsupported type ({type(error).__name__})"
            ) from error
        registered = self._context.registered_workers
        holders = {
            holder: item.service
            for item in exchanges
            if (holder := item.span_holder) is not None and holder not in registered
        }
        if values:
            with self._database.write() as connection:
                if holders:
                    register_workers(connection, holders, self._context.now(connection))
                mappers.bulk_insert(connection, exchange, mappers.EXCHANGES.columns, values)
                record_events(connection, Counter((item.route, "", "stored", "") for item in exchanges))
            registered.update(holders)

    def check_accepts_rows(self) -> None:
        """Raise ContentRefused if the database rejects any exchange, not only those with a certain content."""
        values = mappers.EXCHANGES.encode(Exchange.from_texts(""), self._stamp)
        with suppress(_RolledBack), self._database.write() as connection:
            mappers.bulk_insert(connection, exchange, mappers.EXCHANGES.columns, [values])
            raise _RolledBack

    def record_scores(self, scores: Sequence[RecordedScore]) -> list[RecordedScore]:
        """Store externally computed scores. Each score replaces the exchange's earlier score with the same name.

        Each score gets a finished task, like any other score, so that the tally adds up. An exchange with at least two
        recorded parts of ``answer_quality`` also gets that score, unless it was recorded too.

        Returns:
            The scores whose exchange is not in the database. These scores are not stored.
        """
        with self._write_values() as connection:
            latest = {
                (clean_text(item.exchange_id), clean_text(item.name)): item
                for item in sorted(scores, key=lambda item: item.recorded_at)
            }
            exchanges = lock_exchanges(connection, sorted({exchange_id for exchange_id, _ in latest}))
            # Sort the scores, so that all processes lock the rows in the same order.
            known = [(exchanges[key[0]], item) for key, item in sorted(latest.items()) if key[0] in exchanges]
            for start in range(0, len(known), _ROWS_PER_STATEMENT):
                batch = known[start : start + _ROWS_PER_STATEMENT]
                _record_scores(connection, self._context.process, batch)
                if overall := _combine_parts(connection, batch):
                    _record_scores(connection, self._context.process, overall)
        return [score for score in scores if clean_text(score.exchange_id) not in exchanges]

    def count_dropped(
        self,
        counts: Mapping[tuple[str, str], int],
        scorers: Iterable[str],
        reason: UnscoredReason = UnscoredReason.QUEUE_FULL,
        *,
        at: datetime | None = None,
    ) -> None:
        """Count exchanges that were captured but not stored.

        ``counts`` are by (service, route). ``at`` is a time in the minute for which to count them; it defaults to now.
        """
        with self._database.write() as connection:
            at = at or self._context.local_time()
            tally.count_dropped(connection, self._context.process, counts, scorers, reason, at)

    def count_watched(self, counts: Mapping[WatchKey, int]) -> None:
        """Count watched traces, recognized or unreadable."""
        with self._database.write() as connection:
            add_watched(connection, counts)

    def list_watched(self, *, since: datetime, until: datetime | None = None) -> list[WatchedTraces]:
        """Return the number of watched traces by service, scope and outcome, starting with the hour of ``since``.

        Hours that begin at ``until`` or later do not count.
        """
        columns = (watched_trace.c.service, watched_trace.c.scope, watched_trace.c.outcome)
        total = func.sum(watched_trace.c.count).label("count")
        start = dirty_hours.start_of_hour(since)
        query = select(*columns, total).where(*within(watched_trace.c.hour, start, until)).group_by(*columns)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(total.desc(), *columns)).mappings()
            return [WatchedTraces(**{**row, "count": int(row["count"])}) for row in rows]

    def declare_routes(self, service: str, routes: Iterable[str]) -> None:
        """Register routes that may not have exchanges yet. ``trends.coverage()`` without ``since`` lists them."""
        with self._database.write() as connection:
            dirty_hours.mark_dirty(connection, [tally.DECLARED_MINUTE])
            dirty_hours.write_pending(connection)  # before the tally, as at every commit
            names = [(clean_text(service), route) for route in sorted(set(map(clean_text, routes)))]
            tally.add_counts(connection, "", {(tally.DECLARED_MINUTE, *name, "", "seen", ""): 0 for name in names})


def lock_exchanges(connection: Connection, ids: Sequence[str]) -> dict[str, RowMapping]:
    """Lock exchanges against erasure and deletion, and return the stored ones by id."""
    columns = (exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.erased_at)
    query = select(*columns).where(is_one_of(exchange.c.id, ids, connection.dialect.name)).order_by(exchange.c.id)
    rows = connection.execute(query.with_for_update(read=True, key_share=True)).mappings()
    return {row["id"]: row for row in rows}


def _combine_parts(
    connection: Connection, recorded: Sequence[tuple[RowMapping, RecordedScore]]
) -> list[tuple[RowMapping, RecordedScore]]:
    """Return the overall quality of exchanges of which a part was recorded, from all of their recorded parts."""
    changed = {row["id"]: (row, item) for row, item in recorded if clean_text(item.name) in quality.PARTS}
    stored: dict[str, dict[str, RowMapping]] = {}
    query = select(score.c.exchange_id, score.c.scorer, score.c.value, score.c.details).where(
        score.c.exchange_id.in_(sorted(changed)),
        score.c.fingerprint == EXTERNAL_FINGERPRINT,
        score.c.scorer.in_((*quality.PARTS, quality.NAME)),
    )
    for found in connection.execute(query).mappings() if changed else ():
        stored.setdefault(found["exchange_id"], {})[found["scorer"]] = found
    overall: list[tuple[RowMapping, RecordedScore]] = []
    for exchange_id, scores in stored.items():
        own = scores.pop(quality.NAME, None)
        combined = quality.combine_parts({name: found["value"] for name, found in scores.items()})
        if combined is None or (own is not None and "parts" not in own["details"]):
            continue
        value, parts = combined
        row, item = changed[exchange_id]
        whole = replace(
            item,
            name=quality.NAME,
            value=value,
            label=quality.grade(value),
            explanation=", ".join(f"{name} {part:z.2f}" for name, part in parts.items()) + ".",
            details={"parts": {name: {"value": part} for name, part in parts.items()}},
        )
        overall.append((row, whole))
    return overall


def _record_scores(connection: Connection, process: str, known: Sequence[tuple[RowMapping, RecordedScore]]) -> None:
    """Write recorded scores with their tasks and counts. The exchanges must be locked."""
    tasks, scores = [], []
    for row, item in known:
        key = {"exchange_id": row["id"], "scorer": clean_text(item.name), "fingerprint": EXTERNAL_FINGERPRINT}
        tasks.append({**key, "state": "done", "claims": 0, "first_pending_at": item.recorded_at})
        values = {
            "service": row["service"],
            "route": row["route"],
            "started_at": row["started_at"],
            "sampling_probability": 1.0,  # germane's sampling did not select these exchanges
            "value": float(item.value),
            "label": clean_text(item.label),
            "explanation": clean_text(item.explanation) if row["erased_at"] is None else None,
            "details": dict(item.details) if row["erased_at"] is None else keep_numbers(item.details),
            "scored_at": item.recorded_at,
        }
        scores.append(key | values)
    added = insert_into(scoring_task, connection.dialect.name).values(tasks).on_conflict_do_nothing()
    key_columns = (scoring_task.c.exchange_id, scoring_task.c.scorer)
    new, tally_changes = {tuple(task) for task in connection.execute(added.returning(*key_columns))}, TallyChanges()
    _withdraw_tasks(connection, {(row["id"], clean_text(item.name)): row for row, item in known}, tally_changes)
    for row, item in known:
        if (row["id"], clean_text(item.name)) in new:
            names = (row["service"], row["route"], clean_text(item.name))
            tally_changes.add(row["started_at"], names, "seen")
            tally_changes.add(row["started_at"], names, "scored")
    upsert = insert_into(score, connection.dialect.name)
    upsert = upsert.on_conflict_do_update(
        index_elements=(score.c.exchange_id, score.c.scorer, score.c.fingerprint),
        set_={name: upsert.excluded[name] for name in ("value", "label", "explanation", "details", "scored_at")},
        where=score.c.scored_at <= upsert.excluded.scored_at,
    )
    connection.execute(upsert, scores)
    mark_for_sinks(connection, [row["id"] for row, _ in known])
    dirty_hours.mark_dirty(connection, [row["started_at"] for row, _ in known])  # even if the score already existed
    tally_changes.apply(connection, process)


def _withdraw_tasks(
    connection: Connection, exchanges: Mapping[tuple[str, str], RowMapping], tally_changes: TallyChanges
) -> None:
    """Delete germane's own unscored tasks that the recorded scores replace. A task that is being claimed is kept."""
    columns = (scoring_task.c[name] for name in ("id", "exchange_id", "scorer", "state", "reason"))
    found = select(*columns).where(
        scoring_task.c.exchange_id.in_(sorted({exchange_id for exchange_id, _ in exchanges})),
        scoring_task.c.scorer.in_(sorted({scorer for _, scorer in exchanges})),
        scoring_task.c.fingerprint != EXTERNAL_FINGERPRINT,
        scoring_task.c.state.in_(("pending", "failed", "skipped")),
        scoring_task.c.scored_as.is_(None),
    )
    found = found.order_by(scoring_task.c.id).with_for_update(skip_locked=True)
    tasks = [task for task in connection.execute(found) if (task.exchange_id, task.scorer) in exchanges]
    if not tasks:
        return
    connection.execute(delete(scoring_task).where(scoring_task.c.id.in_([task.id for task in tasks])))
    for task in tasks:
        row = exchanges[task.exchange_id, task.scorer]
        names = (row["service"], row["route"], task.scorer)
        tally_changes.add(row["started_at"], names, "seen", by=-1)
        tally_changes.add(row["started_at"], names, task.state, task.reason or "", by=-1)
    remove_from_pool(connection, sorted({task.exchange_id for task in tasks}))
