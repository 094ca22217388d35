"""Staging of received spans until their trace is finished, and the exactly-once conversion of traces to exchanges.

A trace is finished once its local root has arrived and no more spans arrive for a while, or at its deadline. One
process at a time claims it, and stores its exchange and deletes its spans in one transaction. A trace that gets another
span after it was claimed is not finished by that claim. For a while, the keys of a finished trace's spans are kept, by
which repeated spans are recognized. A process stages and finishes only the spans of its own options, which determine
which texts are stored. Spans of a later request open the trace again: some instrumentations put all
requests of a process into one trace.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Update, bindparam, case, delete, func, literal, select, tuple_, update

from germane.exchange import Exchange
from germane.sanitize import clean_text
from germane.score import UnscoredReason
from germane.storage.archive.reader import find_days, in_window, open_archive
from germane.storage.counts import tally
from germane.storage.counts.watched import WatchKey, add_watched
from germane.storage.db import leases, mappers
from germane.storage.db.batches import PruneResult
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.engine import record_events
from germane.storage.db.tables import exchange, received_span, received_trace
from germane.storage.db.upsert import insert_into
from germane.storage.ingest.forwarding import OutgoingRequest, await_scores, expire_sent_spans, queue_requests
from germane.storage.ingest.unreadable_traces import add_unreadable
from germane.storage.workers import save_cursor
from germane.trace_outline import UnreadableTrace

MAX_TRACE_SPANS: Final = 2_000
"""Maximum number of staged spans and log records in one trace. Others are dropped, and the trace is unreadable."""
MAX_TRACE_SIZE: Final = 16 * 2**20
"""Maximum size of one trace's staged spans and log records in bytes."""
OVERDUE_AFTER: Final = timedelta(minutes=5)
CAPTURED_ELSEWHERE: Final = "answered_elsewhere"
"""The outcome of requests that are part of an exchange which another process has captured."""
KEY_BYTES: Final = 8
"""Size in bytes of the key of a span or log record that is kept after its trace is finished."""
_STORED_NEAR: Final = timedelta(minutes=1)
"""Maximum time between the start of an exchange and that of its span."""
_MAX_KEYS: Final = 10_000
"""Maximum number of remembered keys of one trace."""
_EXPIRED_PER_CALL: Final = 5_000


class ReceivedItem(NamedTuple):
    """A received span or log record."""

    trace_id: str
    """32 hexadecimal digits."""
    key: str
    """The span id; for a log record, ``log-`` and a hash of its content. Ends with 16 hexadecimal digits."""
    is_log: bool
    service: str
    scope: str
    payload: bytes
    """The OTLP protobuf message."""
    wait: float | None = None
    """If the span is a local root: seconds without new spans after which the trace is finished."""
    started: float = 0.0
    """Start of the span, or time of the log record, in seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingCounts:
    """Counts of spans and log records by outcome."""

    staged: int = 0
    repeated: int = 0
    """Already received, whether or not their trace is finished."""
    late: int = 0
    """New in a finished trace, but started before the end of its exchange, which no longer changes."""
    over_limit: int = 0
    """Dropped, because their trace is too large."""

    def __add__(self, other: StagingCounts) -> StagingCounts:
        return StagingCounts(**{name: getattr(self, name) + getattr(other, name) for name in StagingCounts.__slots__})


@dataclass(frozen=True, slots=True)
class ReceivedTrace:
    """A finished trace, claimed by one process."""

    trace_id: str
    items: tuple[ReceivedItem, ...]
    spans: int
    """Number of staged spans and log records. A change shows that more have arrived."""
    dropped: int
    """Number of spans and log records that are missing, because the trace is too large."""
    finished_keys: bytes = b""
    """Keys of the trace's spans that were finished before, :data:`KEY_BYTES` each, if the trace was opened again."""
    is_final: bool = True
    """Whether the trace has reached its deadline, so that it must not be postponed."""
    received_at: float = math.inf
    """Time at which the last spans arrived, in seconds since 1970; a later time if the trace was postponed."""

    @property
    def finished_spans(self) -> frozenset[str]:
        """Ids of the trace's spans that were processed earlier."""
        return frozenset(key.hex() for key in _split_keys(self.finished_keys))


class UncapturedTrace(NamedTuple):
    """A trace without an exchange, which counts as skipped."""

    service: str
    route: str
    started_at: datetime
    reason: UnscoredReason


@dataclass(frozen=True, slots=True)
class TraceOutcome:
    """The outcome of a claimed trace, or of one request in it: an exchange, a count, or neither."""

    trace: ReceivedTrace
    result: Exchange | UncapturedTrace | None
    counted: WatchKey | None = None
    """The key under which the trace counts as watched; None if it does not."""
    sample: UnreadableTrace | None = None
    """The trace without values, if it becomes part of the sample of unreadable traces."""
    fix: str = ""
    """What to do about an unreadable trace, in one sentence."""
    others: tuple[TraceOutcome, ...] = ()
    """The outcomes of further requests in the same trace."""
    is_called: bool = False
    """Whether another process called the first span of the request. If that process has captured an exchange around
    the request, such as that of an application that calls a gateway, the request belongs to it."""
    is_postponed: bool = False
    """Whether to wait until the deadline for spans that the trace lacks, instead of storing the result."""
    ended: float = 0.0
    """End of the exchange by the clock of the sender, in seconds since 1970."""

    @property
    def parts(self) -> tuple[TraceOutcome, ...]:
        """The outcomes of all requests in the trace."""
        return self, *self.others


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingSize:
    """The current number and size of staged traces."""

    traces: int
    """Number of unfinished traces."""
    size: int
    """Size of their spans and log records in bytes."""


class ReceivedSpanStore(StoreComponent):
    """Stages received spans, and converts finished traces to exchanges."""

    def stage(
        self,
        items: Sequence[ReceivedItem],
        *,
        max_wait: float,
        options: str = "",
        requests: Sequence[OutgoingRequest] = (),
        target: str = "",
    ) -> StagingCounts:
        """Stage spans and log records, and queue requests to be forwarded, in one transaction.

        Items may be repeated, and in any order. A trace is finished ``max_wait`` seconds after its first span in any
        case, and only by processes with the same ``options``. The requests are forwarded to ``target``.
        """
        with self._database.write() as connection:
            now = self._context.now(connection)
            counts = _stage_items(connection, items, options, max_wait, now.timestamp())
            queue_requests(connection, target, requests, now)
            return counts

    def claim(
        self, owner: str, *, options: str = "", limit: int, max_size: int, lease: timedelta
    ) -> list[ReceivedTrace]:
        """Claim finished traces with these options: at most ``limit``, and at most ``max_size`` bytes unless a single
        trace is larger.

        If the traces are not completed before the lease ends, they can be claimed again.
        """
        with self._database.write() as connection:
            now = self._context.now(connection).timestamp()
            ready = connection.execute(_READY, {"by": options, "now": now, "limit": limit}).all()
            claimed, size = list[Any](), 0
            for row in ready:
                size += row.size
                if claimed and size > max_size:
                    break
                claimed.append(row)
            items: dict[str, list[ReceivedItem]] = {row.trace_id: [] for row in claimed}
            for ids in mappers.batched(list(items)):
                claim = leases.claim(received_trace, owner=owner, until=now + lease.total_seconds())
                columns = received_trace.c
                connection.execute(claim.where(columns.trace_id.in_(ids), columns.options == options))
                staged = connection.execute(_ITEMS.where(*_staged_as(options, ids)))
                for values in staged.mappings():
                    items[values["trace_id"]].append(ReceivedItem(**values))
        return [
            ReceivedTrace(
                row.trace_id,
                tuple(items[row.trace_id]),
                spans=row.spans,
                dropped=row.dropped,
                finished_keys=row.span_keys or b"",
                is_final=row.deadline <= now,
                received_at=row.due_at - row.wait,
            )
            for row in claimed
        ]

    def complete(
        self,
        owner: str,
        outcomes: Sequence[TraceOutcome],
        scorers: Iterable[str] = (),
        *,
        options: str = "",
        max_span_delay: float = 0.0,
    ) -> list[TraceOutcome]:
        """Store the exchanges of claimed traces, count the others, and delete their spans, in one transaction.

        Args:
            owner: The process that has claimed the traces.
            outcomes: The traces with their outcomes. An exchange whose id exists is ignored.
            scorers: Names of the scorers for which traces without an exchange count as skipped.
            options: The options with which they were claimed.
            max_span_delay: Seconds for which the spans of the exchanges wait for their scores before they are
                forwarded.

        Returns:
            The outcomes that were stored. This excludes postponed outcomes, and those of traces that have received new
            spans or that another process has claimed since.
        """
        columns, scorers = received_trace.c, tuple(scorers)
        with self._write_values() as connection:
            held = _lock_unchanged(connection, owner, outcomes)
            trace_ids = [outcome.trace.trace_id for outcome in held]
            for ids in mappers.batched([outcome.trace.trace_id for outcome in held if outcome.is_postponed]):
                leases.postpone(connection, received_trace, columns.trace_id.in_(ids), owner, columns.deadline)
            finished = [outcome for outcome in held if not outcome.is_postponed]
            finished = _without_inner_requests(connection, finished)
            now = self._context.now(connection)
            parts = [part for outcome in finished for part in outcome.parts]
            captured = [part.result for part in parts if isinstance(part.result, Exchange)]
            self._store_results(connection, parts, scorers)
            await_scores(connection, trace_ids, captured, max_span_delay, now)
            for ids in mappers.batched([outcome.trace.trace_id for outcome in finished]):
                connection.execute(delete(received_span).where(*_staged_as(options, ids)))
            if finished:
                values = [_finished_values(outcome, now.timestamp()) for outcome in finished]
                connection.execute(_FINISH, [{"by": options, **each} for each in values])
        return finished

    def find_stored(self, exchanges: Sequence[Exchange]) -> set[tuple[str, str]]:
        """Return trace id and span id of those exchanges that are stored or archived, however they were captured."""
        if not exchanges:
            return set()
        times = [item.started_at for item in exchanges]
        window = min(times) - _STORED_NEAR, max(times) + _STORED_NEAR  # trace ids have no index
        query = select(exchange.c.trace_id, exchange.c.span_id).where(*within(exchange.c.started_at, *window))
        query = query.where(exchange.c.trace_id.in_([item.trace_id for item in exchanges]))
        with self._database.read(snapshot=True) as connection:
            rows = list(connection.execute(query))
            if days := find_days(connection, *in_window(*window)):
                with open_archive(connection, days) as archive:
                    rows += archive.execute(query)
        return {(row.trace_id, row.span_id) for row in rows}

    def add(self, parts: Sequence[TraceOutcome], lease: str, owner: str, cursor: str) -> bool:
        """Store and count requests that were not staged, and save the cursor of a lease in the same transaction.

        Return False, and write nothing, if another owner holds the lease.
        """
        with self._write_values() as connection:
            is_held = save_cursor(connection, lease, owner, cursor)
            if is_held:
                self._store_results(connection, _without_inner_requests(connection, parts), ())
            return is_held

    def measure(self, options: str | None = None) -> StagingSize:
        """Return the number and size of the unfinished traces, or of those with these options."""
        columns = received_trace.c
        query = select(func.count(), func.coalesce(func.sum(columns.size), 0)).where(columns.due_at.is_not(None))
        with self._database.read() as connection:
            traces, size = connection.execute(query.where(*matching(received_trace, options=options))).one()
        return StagingSize(traces=traces, size=int(size))

    def count_overdue(self) -> dict[str, int]:
        """Return the number of traces that should have been finished :data:`OVERDUE_AFTER` ago, by their options."""
        options = received_trace.c.options
        query = select(options, func.count()).group_by(options).order_by(options)
        with self._database.read() as connection:
            is_overdue = overdue_since(self._context.now(connection) - OVERDUE_AFTER)
            return {row[0]: row[1] for row in connection.execute(query.where(is_overdue))}

    def expire(self, *, age: timedelta) -> int:
        """Delete the records of traces and forwarded spans that were finished longer than ``age`` ago. Return the
        number of deleted records.

        Spans that arrive later begin a new trace. It cannot lead to a second exchange with the same root span, because
        the exchange's id is derived from it.
        """
        with self._database.write() as connection:
            before, columns = self._context.now(connection) - age, received_trace.c
            old = select(columns.trace_id, columns.options).where(columns.finished_at < before.timestamp())
            old = old.limit(_EXPIRED_PER_CALL).with_for_update(skip_locked=True)
            expired = delete(received_trace).where(tuple_(columns.trace_id, columns.options).in_(old))
            return connection.execute(expired).rowcount + expire_sent_spans(connection, before)

    def _store_results(self, connection: Connection, outcomes: Sequence[TraceOutcome], scorers: Sequence[str]) -> None:
        captured = [outcome.result for outcome in outcomes if isinstance(outcome.result, Exchange)]
        mappers.EXCHANGES.insert(connection, captured)
        record_events(connection, Counter((item.route, "", "stored", "") for item in captured))
        add_watched(connection, Counter(outcome.counted for outcome in outcomes if outcome.counted is not None))
        samples = [outcome.sample for outcome in outcomes if outcome.sample is not None]
        if samples:
            add_unreadable(connection, samples, self._context.now(connection))
        for outcome in outcomes:
            result = outcome.result
            if isinstance(result, UncapturedTrace):
                counts = {(result.service, result.route): 1}
                process = self._context.process
                tally.count_dropped(connection, process, counts, scorers, result.reason, result.started_at)


def _lock_unchanged(connection: Connection, owner: str, outcomes: Iterable[TraceOutcome]) -> list[TraceOutcome]:
    """Lock the traces that the process still holds, and return the outcomes of those without new spans."""
    by_trace, held = {outcome.trace.trace_id: outcome for outcome in outcomes}, list[TraceOutcome]()
    for ids in mappers.batched(sorted(by_trace)):
        query = select(received_trace.c.trace_id, received_trace.c.spans).where(received_trace.c.trace_id.in_(ids))
        rows = connection.execute(leases.lock_held(query, received_trace, owner))
        held += [by_trace[row.trace_id] for row in rows if row.spans == by_trace[row.trace_id].trace.spans]
    return held


def _without_inner_requests(connection: Connection, outcomes: Sequence[TraceOutcome]) -> list[TraceOutcome]:
    """Remove the exchanges of requests that are part of an exchange which another process has captured."""
    called = [part.result for outcome in outcomes for part in outcome.parts if part.is_called]
    trace_ids = sorted({item.trace_id for item in called if isinstance(item, Exchange)})
    outer: dict[str, list[Any]] = {}
    columns = exchange.c
    for ids in mappers.batched(trace_ids):
        query = select(columns.trace_id, columns.span_id, columns.started_at, columns.duration)
        for row in connection.execute(query.where(columns.trace_id.in_(ids))):
            outer.setdefault(row.trace_id, []).append(row)
    if not outer:
        return list(outcomes)

    def without(part: TraceOutcome) -> TraceOutcome:
        result = part.result
        if not part.is_called or not isinstance(result, Exchange) or part.counted is None:
            return part
        for row in outer.get(result.trace_id, ()):
            ended_at = row.started_at + timedelta(seconds=row.duration)
            # The process that has captured the outer exchange may have the sender's clock, or that of this receiver.
            starts = result.started_at, datetime.fromtimestamp(part.ended - result.duration, UTC)
            if row.span_id != result.span_id and any(row.started_at <= each <= ended_at for each in starts):
                return replace(part, result=None, counted=part.counted._replace(outcome=CAPTURED_ELSEWHERE))
        return part

    return [replace(without(outcome), others=tuple(map(without, outcome.others))) for outcome in outcomes]


def overdue_since(moment: datetime) -> ColumnElement[bool]:
    """Return the SQL condition that a trace should have been finished before a time."""
    return received_trace.c.due_at < moment.timestamp()


def delete_overdue(connection: Connection, before: datetime) -> PruneResult:
    """Delete traces that no receiver has finished since ``before``, a batch per call."""
    query = select(received_trace.c.trace_id, received_trace.c.options).where(overdue_since(before))
    rows = connection.execute(query.limit(_EXPIRED_PER_CALL).with_for_update(skip_locked=True)).all()
    delete_unfinished(connection, rows)
    return PruneResult(traces=len(rows))


def delete_unfinished(connection: Connection, traces: Iterable[Sequence[str]]) -> None:
    """Delete traces with their spans, given pairs of trace id and options."""
    if keys := [{"of": trace_id, "by": options} for trace_id, options in traces]:
        connection.execute(_DELETE_SPANS, keys)
        connection.execute(_DELETE_TRACE, keys)


def _stage_items(
    connection: Connection, items: Sequence[ReceivedItem], options: str, max_wait: float, now: float
) -> StagingCounts:
    """Stage spans and log records in a transaction that writes. Times are in seconds since 1970."""
    by_trace: dict[str, list[ReceivedItem]] = {}
    for item in items:
        by_trace.setdefault(item.trace_id, []).append(item)
    if not by_trace:
        return StagingCounts()
    rows = []
    for trace_id in sorted(by_trace):  # so that all processes lock the rows of the traces in the same order
        members = by_trace[trace_id]
        wait = min((item.wait for item in members if item.wait is not None), default=max_wait)
        due_at, deadline = now + min(wait, max_wait), now + max_wait
        row: dict[str, Any] = {"trace_id": trace_id, "options": options, "spans": len(members), "size": _size(members)}
        rows.append(row | {"due_at": due_at, "deadline": deadline, "wait": wait, "dropped": 0})
    traces = {row.trace_id: row for row in connection.execute(_upsert(connection.dialect.name, max_wait), rows)}
    batch = _StagedBatch(options)
    for trace_id, members in by_trace.items():
        trace = traces[trace_id]
        known = set(_split_keys(trace.span_keys or b""))  # empty if the trace has never been finished
        by_key = {item.key: item for item in members if _key_bytes(item.key) not in known} if known else {}
        new = list(by_key.values())
        if trace.due_at is None:
            batch.add_to_finished(trace, members, new, max_wait, now)
        elif trace.spans > MAX_TRACE_SPANS or trace.size > MAX_TRACE_SIZE:
            batch.over_limit += len(members)
            batch.corrections[trace_id] = Counter(spans=-len(members), size=-_size(members), dropped=len(members))
        elif known and len(new) < len(members):  # a reopened trace, and spans from before its end
            batch.repeated += len(members) - len(new)
            batch.accepted += new
            batch.corrections[trace_id] = Counter(spans=len(new) - len(members), size=_size(new) - _size(members))
        else:
            batch.accepted += members
    batch.write(connection)
    staged = len(items) - batch.repeated - batch.late - batch.over_limit
    return StagingCounts(staged=staged, repeated=batch.repeated, late=batch.late, over_limit=batch.over_limit)


@dataclass(slots=True)
class _StagedBatch:
    """What to write for a batch, after the counts of all its items were added to the rows of their traces."""

    options: str
    accepted: list[ReceivedItem] = field(default_factory=list)
    """The items to insert, unless they are staged already."""
    reopened: list[dict[str, Any]] = field(default_factory=list)
    """The values of finished traces that are opened again."""
    corrections: dict[str, Counter[str]] = field(default_factory=dict)
    """Changes to the counts of traces, some of whose items are not staged."""
    repeated: int = 0
    late: int = 0
    over_limit: int = 0

    def add_to_finished(
        self, trace: Any, members: Sequence[ReceivedItem], new: Sequence[ReceivedItem], max_wait: float, now: float
    ) -> None:
        """Open a finished trace again if some of its new items belong to a later request."""
        later = [item for item in new if item.started > trace.deadline]
        self.late += len(new) - len(later)
        self.repeated += len(members) - len(new)
        if later:
            self.accepted += later
            due, until = now + min(trace.wait, max_wait), now + max_wait
            counts = {"number": len(later), "bytes": _size(later)}
            self.reopened.append({"of": trace.trace_id, "due": due, "until": until, **counts})

    def write(self, connection: Connection) -> None:
        """Insert the accepted items, and correct the rows of their traces."""
        if self.reopened:
            connection.execute(_REOPEN, [{"by": self.options, **values} for values in self.reopened])
        if self.accepted:
            rows = [
                {
                    "trace_id": item.trace_id,
                    "options": self.options,
                    "key": item.key,
                    "is_log": item.is_log,
                    "service": clean_text(item.service),
                    "scope": clean_text(item.scope),
                    "payload": item.payload,
                }
                for item in self.accepted
            ]
            inserted = connection.execute(_insert_spans(connection.dialect.name), rows)
            stored = {(row.trace_id, row.key) for row in inserted}
            self.repeated += len(rows) - len(stored)
            for item in self.accepted if len(stored) < len(rows) else ():
                span = (item.trace_id, item.key)
                if span in stored:
                    stored.remove(span)  # the same span may be repeated within the batch
                    continue
                self.corrections.setdefault(item.trace_id, Counter()).subtract({"spans": 1, "size": len(item.payload)})
        if self.corrections:
            corrections = [
                {"of": trace_id, "by": self.options, **{name: changes[name] for name in ("spans", "size", "dropped")}}
                for trace_id, changes in sorted(self.corrections.items())
            ]
            connection.execute(_CORRECT, corrections)


def _size(items: Iterable[ReceivedItem]) -> int:
    return sum(len(item.payload) for item in items)


def _finished_values(outcome: TraceOutcome, now: float) -> dict[str, Any]:
    trace = outcome.trace
    keys = trace.finished_keys + b"".join(_key_bytes(item.key) for item in trace.items)
    ends = [
        max(part.ended, part.result.started_at.timestamp() + part.result.duration)
        for part in outcome.parts
        if isinstance(part.result, Exchange)
    ]
    # Without an exchange, spans that are missing may still come. They must not repeat an earlier exchange.
    answered_until = max(ends, default=now if trace.finished_keys else 0.0)
    return {"of": trace.trace_id, "now": now, "keys": keys[-_MAX_KEYS * KEY_BYTES :], "until": answered_until}


def _key_bytes(key: str) -> bytes:
    return bytes.fromhex(key[-2 * KEY_BYTES :])


def _split_keys(keys: bytes) -> list[bytes]:
    return [keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)]


@lru_cache
def _upsert(dialect: str, max_wait: float) -> Any:
    """Return the statement that adds a batch's spans to the rows of their traces. Finished traces keep their rows."""
    trace, statement = received_trace.c, insert_into(received_trace, dialect)
    new = statement.excluded
    is_open = trace.due_at.is_not(None)
    wait = case((new.wait < trace.wait, new.wait), else_=trace.wait)
    due_at = new.deadline - literal(max_wait) + wait
    return statement.on_conflict_do_update(
        index_elements=[trace.trace_id, trace.options],
        set_={
            "wait": wait,
            "due_at": case((~is_open, None), (due_at < trace.deadline, due_at), else_=trace.deadline),
            "spans": case((is_open, trace.spans + new.spans), else_=trace.spans),
            "size": case((is_open, trace.size + new.size), else_=trace.size),
            "lease_owner": None,
        },
    ).returning(trace.trace_id, trace.due_at, trace.deadline, trace.wait, trace.spans, trace.size, trace.span_keys)


@lru_cache
def _insert_spans(dialect: str) -> Any:
    statement = insert_into(received_span, dialect)
    return statement.on_conflict_do_nothing().returning(received_span.c.trace_id, received_span.c.key)


def _staged_as(options: str, trace_ids: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
    """Return the SQL conditions that select the spans of traces that were staged with some options."""
    return received_span.c.trace_id.in_(trace_ids), received_span.c.options == options


_ITEMS: Final = select(*(column for column in received_span.c if column.name != "options"))
_ONE_TRACE: Final = (received_trace.c.trace_id == bindparam("of"), received_trace.c.options == bindparam("by"))
_DELETE_TRACE: Final = delete(received_trace).where(*_ONE_TRACE)
_DELETE_SPANS: Final = delete(received_span).where(
    received_span.c.trace_id == bindparam("of"), received_span.c.options == bindparam("by")
)
_CORRECT: Final[Update] = (
    update(received_trace)
    .where(*_ONE_TRACE)
    .values(
        spans=received_trace.c.spans + bindparam("spans"),
        size=received_trace.c.size + bindparam("size"),
        dropped=received_trace.c.dropped + bindparam("dropped"),
    )
)
_REOPEN: Final[Update] = (
    update(received_trace)
    .where(*_ONE_TRACE)
    .values(
        due_at=bindparam("due"),
        deadline=bindparam("until"),
        spans=bindparam("number"),
        size=bindparam("bytes"),
        dropped=0,
        lease_owner=None,
        finished_at=None,
    )
)
_READY: Final = leases.select_due(
    received_trace,
    *(
        received_trace.c[name]
        for name in ("trace_id", "due_at", "deadline", "wait", "spans", "size", "dropped", "span_keys")
    ),
).where(received_trace.c.options == bindparam("by"))
_FINISH: Final[Update] = (
    update(received_trace)
    .where(*_ONE_TRACE)
    .values(**leases.FINISHED, finished_at=bindparam("now"), deadline=bindparam("until"), span_keys=bindparam("keys"))
)
