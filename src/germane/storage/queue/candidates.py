"""The candidate pool, from which exchanges are selected within a budget at the end of each interval.

Only the holder of the sampler's lease writes: each transaction locks the lease's row, and does nothing if another
process holds the lease. The same row stores the position that the holder has reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, exists, func, literal_column, select, tuple_, update

from germane.score import UnscoredReason
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.functions import is_one_of
from germane.storage.db.mappers import batched
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.quota import budget_ledger
from germane.storage.workers import save_cursor

CANDIDATE = "candidate"


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


# A literal, because SQLite does not use a partial index with a bound parameter.
_WAITS = exchange.c.sampling_reason == literal_column(f"'{CANDIDATE}'")
_LIGHT = tuple(exchange.c[name] for name in Candidate.__slots__)


def list_candidates(connection: Connection, limit: int, after: Candidate | None) -> list[Candidate]:
    """Return up to ``limit`` candidates, oldest first, starting after ``after`` or at the beginning."""
    query = select(*_LIGHT).where(_WAITS)
    if after is not None:
        query = query.where(
            exchange.c.started_at >= after.started_at,
            tuple_(exchange.c.started_at, exchange.c.id) > tuple_(after.started_at, after.id),
        )
    rows = connection.execute(query.order_by(exchange.c.started_at, exchange.c.id).limit(limit))
    return [Candidate(**row) for row in rows.mappings()]


def count_in_progress(connection: Connection) -> int:
    """Return the number of exchanges with ready, postponed or running tasks."""
    query = select(func.count(func.distinct(scoring_task.c.exchange_id)))
    return int(connection.execute(query.where(scoring_task.c.due_at.is_not(None))).scalar_one())


def select_candidates(
    connection: Connection, step: SamplerStep, candidates: Sequence[SelectedCandidate], now: datetime
) -> bool:
    """Make selected candidates ready, count them, and save the step's position.

    Return False if another process holds the lease.
    """
    if not save_cursor(connection, step.lease, step.owner, step.cursor):
        return False
    selected = {candidate.exchange_id: candidate for candidate in candidates}
    remaining = _locked(connection, list(selected))
    _decide(
        connection,
        {
            exchange_id: (selected[exchange_id].probability, selected[exchange_id].sampling_reason)
            for exchange_id in remaining
        },
    )
    for ids in batched(remaining):
        waiting = scoring_task.c.exchange_id.in_(ids), *_WAITING
        # A task's waiting time starts now, because time spent in the pool is not a delay.
        connection.execute(update(scoring_task).where(*waiting).values(due_at=now, first_pending_at=now))
    if remaining:
        budget_ledger.count_selected(connection, len(remaining), now)
    return True


def skip_candidates(
    connection: Connection, process: str, step: SamplerStep, passed: Mapping[str, float | None], reason: UnscoredReason
) -> Sequence[str] | None:
    """Skip the tasks of candidates that were not selected.

    Args:
        connection: A transaction that writes.
        process: Id of this process in the tally.
        step: The sampler's step.
        passed: Maps each exchange id to its probability of selection.
        reason: Reason for skipping the tasks.

    Returns:
        Ids of the exchanges that were still candidates, or None if another process holds the lease.
    """
    if not save_cursor(connection, step.lease, step.owner, step.cursor):
        return None
    remaining, tally_changes = _locked(connection, sorted(passed)), TallyChanges()
    _decide(connection, {exchange_id: (passed[exchange_id], reason.value) for exchange_id in remaining})
    for ids in batched(remaining):
        tasks = connection.execute(_TASKS.where(scoring_task.c.exchange_id.in_(ids)))
        for service, route, scorer, started_at in tasks:
            tally_changes.add(started_at, (service, route, scorer), "pending", by=-1)
            tally_changes.add(started_at, (service, route, scorer), reason.state, reason.value)
        waiting = scoring_task.c.exchange_id.in_(ids), *_WAITING
        connection.execute(update(scoring_task).where(*waiting).values(state=reason.state, reason=reason.value))
    tally_changes.apply(connection, process)
    return remaining


def remove_from_pool(connection: Connection, ids: Sequence[str]) -> None:
    """Remove exchanges without a waiting task from the candidate pool. The caller must have locked them."""
    if ids:
        connection.execute(_REMOVE.where(is_one_of(exchange.c.id, ids, connection.dialect.name)))


# Only candidates have pending tasks without a due time.
_WAITING = (scoring_task.c.state == "pending", scoring_task.c.due_at.is_(None))
_TASKS = (
    select(exchange.c.service, exchange.c.route, scoring_task.c.scorer, exchange.c.started_at)
    .join(exchange, exchange.c.id == scoring_task.c.exchange_id)
    .where(*_WAITING)
)
_REMOVE = (
    update(exchange)
    .where(_WAITS, ~exists().where(scoring_task.c.exchange_id == exchange.c.id, *_WAITING))
    .values(sampling_reason=UnscoredReason.NOT_SAMPLED.value)
)
_DECIDE = (
    update(exchange)
    .where(exchange.c.id == bindparam("decided"))
    .values(sampling_probability=bindparam("probability"), sampling_reason=bindparam("why"))
)


def _locked(connection: Connection, ids: Sequence[str]) -> list[str]:
    """Lock exchanges, and return those that are still candidates. A rule or an erasure may have removed others."""
    remaining: list[str] = []
    for batch in batched(sorted(ids)):
        query = select(exchange.c.id, exchange.c.sampling_reason).where(exchange.c.id.in_(batch))
        rows = connection.execute(query.order_by(exchange.c.id).with_for_update())
        remaining += [row.id for row in rows if row.sampling_reason == CANDIDATE]
    return remaining


def _decide(connection: Connection, decided: Mapping[str, tuple[float | None, str]]) -> None:
    rows = [{"decided": id_, "probability": probability, "why": why} for id_, (probability, why) in decided.items()]
    if rows:
        connection.execute(_DECIDE, rows)
