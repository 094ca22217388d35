"""The sampler's access to exchanges and feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from sqlalchemy import Connection, RowMapping, select

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import Outcome, TallyChanges
from germane.storage.db import tables
from germane.storage.db.component import StoreComponent
from germane.storage.db.mappers import EXCHANGES, batched, bulk_insert, timestamp_encoder
from germane.storage.db.tables import exchange, scoring_task, worker
from germane.storage.queue import erase_text, feedback
from germane.storage.queue.candidates import CANDIDATE, decide, remove_from_pool
from germane.storage.queue.feedback import LabeledExchange
from germane.storage.quota import budget_ledger
from germane.storage.workers import HEARTBEAT_TIMEOUT, lock_lease

ALWAYS: Final = "always"
_TASK: Final = ("exchange_id", "scorer", "fingerprint", "state", "reason", "claims", "first_pending_at", "due_at")


@dataclass(frozen=True, slots=True)
class SamplingDecision:
    """The sampling decision for one exchange."""

    exchange_id: str
    probability: float | None
    """Probability of being scored, in (0, 1], regardless of the outcome. None for a candidate, because its probability
    depends on the other candidates in the interval."""
    sampling_reason: str
    """Reason for the decision. With ``candidate``, the tasks wait in the pool until the interval ends."""
    skip: Mapping[str, UnscoredReason] = field(default_factory=dict)
    """For each scorer that skips the exchange, the reason by scorer name."""
    proxy: float | None = None
    """Proxy score, computed locally without an LLM."""
    proxy_probability: float | None = None
    """Probability of getting a proxy score, in (0, 1]; None if the exchange is not eligible."""


class SamplingStore(StoreComponent):
    """Reads exchanges and labels to decide on, and writes sampling decisions.

    With a budget, only one process at a time samples: the holder of the sampler's lease. Methods that take a
    ``holder`` write nothing if another process has acquired the lease in the meantime.
    """

    def list_undecided(self, limit: int) -> list[Exchange]:
        """Return up to ``limit`` exchanges without a sampling decision, oldest first."""
        query = select(exchange).where(exchange.c.sampling_reason.is_(None))
        query = query.order_by(exchange.c.started_at, exchange.c.id).limit(limit)
        with self._database.read() as connection:
            return [EXCHANGES.decode(row) for row in connection.execute(query).mappings()]

    def assign_tasks(
        self,
        decisions: Sequence[SamplingDecision],
        scorers: Mapping[str, str],
        *,
        holder: tuple[str, str] | None = None,
        max_span_delay: timedelta = timedelta(0),
    ) -> bool:
        """Write sampling decisions and the resulting tasks. Existing decisions and tasks are not changed.

        While a running process holds an exchange's span until the scores arrive, only that process may claim the
        exchange's tasks. Fingerprints are by scorer name. With a ``holder``, the name and the required owner of the
        budget's lease, exchanges that a rule selects count as selected.

        Returns:
            False if another process holds the lease. In that case, nothing is written.
        """
        with self._database.write() as connection:
            if holder is not None and not lock_lease(connection, *holder):
                return False
            now = self._context.now(connection)
            # Sort the decisions, so that all samplers lock rows in the same order.
            ordered = sorted(decisions, key=lambda decision: decision.exchange_id)
            selected = sum(
                _assign_tasks(connection, self._context.process, some, scorers, now, max_span_delay)
                for some in batched(ordered)
            )
            if self._context.erase_after_scoring:
                erase_text.erase_closed_exchanges(connection, [decision.exchange_id for decision in decisions], now)
            if holder is not None and selected:
                budget_ledger.count_selected(connection, selected, now)
        return True

    def list_pending_feedback(self, limit: int) -> list[LabeledExchange]:
        """Return up to ``limit`` labels that :meth:`apply_feedback` has not processed, oldest first.

        A label is listed once its exchange is stored and has a sampling decision.
        """
        conditions = (tables.feedback.c.considered_at.is_(None), exchange.c.sampling_reason.is_not(None))
        order = (tables.feedback.c.created_at, tables.feedback.c.id)
        with self._database.read() as connection:
            return feedback.select_labels(connection, *conditions, order=order, limit=limit)

    def apply_feedback(
        self,
        feedback_ids: Sequence[str],
        scored: Sequence[str],
        scorers: Mapping[str, str],
        *,
        holder: tuple[str, str] | None = None,
    ) -> int | None:
        """Mark labels as processed, and queue the exchanges that sampling or the budget had skipped.

        Uses two transactions. If the second one fails, the labels remain pending.

        Args:
            feedback_ids: Ids of the labels to mark as processed.
            scored: Ids of exchanges to score regardless of the sampling decision. Erased exchanges are ignored. With
                ``erase_after_scoring``, exchanges with a final decision are ignored too, because their text may have
                been erased.
            scorers: Fingerprints by scorer name. Tasks with other fingerprints are not changed.
            holder: With a budget, the lease name and its required owner. If given, newly queued exchanges count as
                selected.

        Returns:
            The number of newly ready tasks, or None if another process holds the lease. In that case, the labels are
            not marked as processed.
        """
        with self._database.write() as connection:
            if holder is not None and not lock_lease(connection, *holder):
                return None
            feedback.force_sampling(connection, scored, drawn=not self._context.erase_after_scoring)
        with self._database.write() as connection:
            if holder is not None and not lock_lease(connection, *holder):
                return None
            now = self._context.now(connection)
            ready = feedback.queue_skipped_tasks(connection, self._context.process, scored, scorers, now)
            feedback.mark_processed(connection, feedback_ids, now)
            if holder is not None and ready:
                budget_ledger.count_selected(connection, len(ready), now)
            return ready.total()


def _assign_tasks(
    connection: Connection,
    process: str,
    decisions: Sequence[SamplingDecision],
    scorers: Mapping[str, str],
    now: datetime,
    max_span_delay: timedelta,
) -> int:
    """Write decisions, tasks and counts. Return the number of newly decided exchanges that a rule selected."""
    by_id = {decision.exchange_id: decision for decision in decisions}
    exchanges = _lock_exchanges(connection, by_id)
    new = [by_id[row["id"]] for row in exchanges if row["sampling_reason"] is None]
    names = ("exchange_id", "probability", "sampling_reason", "proxy", "proxy_probability")
    decide(connection, map(attrgetter(*names), new))
    dirty_hours.mark_dirty(connection, [row["started_at"] for row in exchanges if by_id[row["id"]].proxy is not None])
    existing = _find_tasks(connection, list(by_id), scorers)
    ready_times = _ready_times(connection, exchanges, now, max_span_delay)
    stamp, tally_changes, tasks = timestamp_encoder(connection.dialect.name), TallyChanges(), []
    for row in exchanges:
        ready, decision = stamp(ready_times[row["id"]]), by_id[row["id"]]
        for scorer, fingerprint in scorers.items():
            # An externally computed score replaces germane's own.
            if not existing.isdisjoint({(row["id"], scorer, fingerprint), (row["id"], scorer, EXTERNAL_FINGERPRINT)}):
                continue
            skip = decision.skip.get(scorer)
            state: Outcome = skip.state if skip else "pending"
            reason = skip.value if skip else None
            due_at = None if skip or decision.sampling_reason == CANDIDATE else ready  # candidates wait for the sampler
            tasks.append((row["id"], scorer, fingerprint, state, reason, 0, stamp(now), due_at))
            key = (row["service"], row["route"], scorer)
            tally_changes.add(row["started_at"], key, "seen")
            tally_changes.add(row["started_at"], key, state, reason or "")
    bulk_insert(connection, scoring_task, _TASK, tasks)
    remove_from_pool(connection, sorted({key[0] for key in existing if key[2] == EXTERNAL_FINGERPRINT}))
    tally_changes.apply(connection, process)
    return sum(decision.sampling_reason == ALWAYS and not scorers.keys() <= decision.skip.keys() for decision in new)


def _lock_exchanges(connection: Connection, by_id: Mapping[str, SamplingDecision]) -> list[RowMapping]:
    """Lock the exchanges whose decision is still to be written or the same. Tasks of others would wait forever."""
    names = ("id", "service", "route", "started_at", "duration", "sampling_reason", "span_holder")
    query = select(*(exchange.c[name] for name in names)).where(exchange.c.id.in_(list(by_id)))
    rows = connection.execute(query.order_by(exchange.c.id).with_for_update()).mappings()
    return [row for row in rows if row["sampling_reason"] in {None, by_id[row["id"]].sampling_reason}]


def _find_tasks(connection: Connection, ids: Sequence[str], scorers: Mapping[str, str]) -> set[tuple[str, ...]]:
    """Return exchange id, scorer and fingerprint of the tasks that exist already."""
    columns = (scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)
    # Filter by the whole key, so that PostgreSQL expects few rows and uses the index even without statistics.
    key_values = (ids, list(scorers), [*scorers.values(), EXTERNAL_FINGERPRINT])
    is_known = [column.in_(parts) for column, parts in zip(columns, key_values, strict=True)]
    return {tuple(row) for row in connection.execute(select(*columns).where(*is_known))}


def _ready_times(
    connection: Connection, exchanges: Sequence[RowMapping], now: datetime, max_span_delay: timedelta
) -> dict[str, datetime]:
    """Return when each exchange may be scored by any process, which is after the export of a span that is held."""
    holders, running = sorted({row["span_holder"] for row in exchanges} - {None}), set[str]()
    if holders:
        is_running = worker.c.id.in_(holders) & (worker.c.seen_at >= now - HEARTBEAT_TIMEOUT)
        running = set(connection.execute(select(worker.c.id).where(is_running)).scalars())
    times = {}
    for row in exchanges:
        times[row["id"]] = min(row["started_at"], now)
        if row["span_holder"] in running:
            span_exported_at = row["started_at"] + timedelta(seconds=row["duration"]) + max_span_delay
            if now < span_exported_at:
                times[row["id"]] = min(span_exported_at, now + max_span_delay)
    return times
