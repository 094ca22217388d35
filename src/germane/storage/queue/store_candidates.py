"""The candidate pool, from which exchanges are selected within a budget at the end of each interval.

Only the holder of the sampler's lease writes: each transaction locks the lease's row, and does nothing if another
process holds the lease. The same row stores the position that the holder has reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, select, update

from germane.score import UnscoredReason
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import following
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue import erase_text
from germane.storage.queue.candidates import CANDIDATE, IS_CANDIDATE, IS_WAITING, decide
from germane.storage.quota import budget_ledger
from germane.storage.workers import load_cursor, save_cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An exchange in the pool, with the properties that determine whether it is selected."""

    id: str
    service: str
    route: str
    started_at: datetime
    """UTC."""
    sampling_key: float
    """Random number in (0, 1] that decides whether the exchange is sampled."""
    capture_probability: float
    """Probability that the exchange was captured, in (0, 1]."""
    proxy: float | None


@dataclass(frozen=True, slots=True)
class SamplerStep:
    """A step of the sampler: the lease, its required owner, and the position after the step."""

    lease: str
    owner: str
    cursor: str


@dataclass(frozen=True, slots=True)
class SelectedCandidate:
    """A candidate that was selected for scoring."""

    exchange_id: str
    probability: float
    """Probability of being scored, in (0, 1]."""
    sampling_reason: str


_LIGHT: Final = tuple(exchange.c[name] for name in Candidate.__slots__)
_TASKS: Final = (
    select(exchange.c.service, exchange.c.route, scoring_task.c.scorer, exchange.c.started_at)
    .join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    .where(*IS_WAITING)
)


class CandidatePool(StoreComponent):
    """Reads and decides candidates. Methods that take a ``step`` write nothing if another process holds the lease."""

    def load_cursor(self, lease: str) -> str | None:
        """Return the position that the holder of a lease has reached, or None before its first step."""
        with self._database.read() as connection:
            return load_cursor(connection, lease)

    def save_cursor(self, step: SamplerStep) -> bool:
        """Save the position after a step. Return False if another process holds the lease."""
        with self._database.write() as connection:
            return save_cursor(connection, step.lease, step.owner, step.cursor)

    def list_candidates(self, limit: int, *, after: Candidate | None = None) -> list[Candidate]:
        """Return up to ``limit`` candidates, oldest first, starting after ``after`` or at the beginning."""
        position = None if after is None else (after.started_at, after.id)
        query = select(*_LIGHT).where(IS_CANDIDATE, *following(exchange.c.started_at, exchange.c.id, position))
        query = query.order_by(exchange.c.started_at, exchange.c.id).limit(limit)
        with self._database.read() as connection:
            return [Candidate(**row) for row in connection.execute(query).mappings()]

    def select_candidates(self, step: SamplerStep, candidates: Sequence[SelectedCandidate]) -> bool:
        """Make the tasks of candidates ready, and count those. Return False, and write nothing, without the lease."""
        selected = {candidate.exchange_id: candidate for candidate in candidates}
        with self._database.write() as connection:
            now = self._context.now(connection)
            if not save_cursor(connection, step.lease, step.owner, step.cursor):
                return False
            remaining = _locked(connection, list(selected))
            chosen = [selected[id_] for id_ in remaining]
            decide(connection, [(one.exchange_id, one.probability, one.sampling_reason, None, None) for one in chosen])
            for ids in batched(remaining):
                ready = update(scoring_task).where(scoring_task.c.exchange_id.in_(ids), *IS_WAITING)
                # A task's waiting time starts now, because time spent in the pool is not a delay.
                connection.execute(ready.values(due_at=now, first_pending_at=now))
            if remaining:
                budget_ledger.count_selected(connection, len(remaining), now)
        return True

    def skip_candidates(self, step: SamplerStep, passed: Mapping[str, float | None], reason: UnscoredReason) -> bool:
        """Skip candidates, given the probabilities by id. Return False, and write nothing, without the lease."""
        tally_changes = TallyChanges()
        with self._database.write() as connection:
            if not save_cursor(connection, step.lease, step.owner, step.cursor):
                return False
            remaining = _locked(connection, sorted(passed))
            decide(
                connection, [(exchange_id, passed[exchange_id], reason.value, None, None) for exchange_id in remaining]
            )
            for ids in batched(remaining):
                tasks = connection.execute(_TASKS.where(scoring_task.c.exchange_id.in_(ids)))
                for service, route, scorer, started_at in tasks:
                    tally_changes.add(started_at, (service, route, scorer), "pending", by=-1)
                    tally_changes.add(started_at, (service, route, scorer), reason.state, reason.value)
                skipped = update(scoring_task).where(scoring_task.c.exchange_id.in_(ids), *IS_WAITING)
                connection.execute(skipped.values(state=reason.state, reason=reason.value))
            tally_changes.apply(connection, self._context.process)
            if remaining and self._context.erase_after_scoring:
                erase_text.erase_closed_exchanges(connection, remaining, self._context.now(connection))
        return True

    def count_in_progress(self) -> int:
        """Return the number of exchanges with ready, postponed or running tasks, excluding candidates."""
        query = select(func.count(func.distinct(scoring_task.c.exchange_id)))
        with self._database.read() as connection:
            return int(connection.execute(query.where(scoring_task.c.due_at.is_not(None))).scalar_one())


def _locked(connection: Connection, ids: Sequence[str]) -> list[str]:
    """Lock exchanges, and return those that are still candidates. A rule or an erasure may have removed others."""
    remaining: list[str] = []
    for batch in batched(sorted(ids)):
        query = select(exchange.c.id, exchange.c.sampling_reason).where(exchange.c.id.in_(batch))
        rows = connection.execute(query.order_by(exchange.c.id).with_for_update())
        remaining += [row.id for row in rows if row.sampling_reason == CANDIDATE]
    return remaining
