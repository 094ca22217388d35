"""Writing sampling decisions and their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, RowMapping, bindparam, func, select, update

from germane.exchange import Exchange
from germane.score import UnscoredReason
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import TallyChanges
from germane.storage.db.mappers import batched, bulk_insert, exchange_from_row, timestamp_encoder
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue.candidates import CANDIDATE

ALWAYS: Final = "always"


@dataclass(frozen=True, slots=True)
class SamplingDecision:
    """The sampling decision on one exchange."""

    exchange_id: str
    probability: float | None
    """Of being scored, in (0, 1], known before the draw. Of one that was not drawn, the same. Of a candidate None: it
    depends on the others of its interval."""
    sampling_reason: str
    """With ``candidate``, the tasks wait in the pool until the interval ends."""
    skip: Mapping[str, UnscoredReason] = field(default_factory=dict)
    """Scorers that skip the exchange, with the reason."""
    proxy: float | None = None
    """Proxy score: a free local score."""
    proxy_probability: float | None = None
    """Probability of getting a proxy score, in (0, 1]; None if the exchange is not eligible."""


def list_undecided(connection: Connection, limit: int) -> list[Exchange]:
    """Return exchanges without a sampling decision, oldest first."""
    query = select(exchange).where(exchange.c.sampling_reason.is_(None))
    query = query.order_by(exchange.c.started_at, exchange.c.id).limit(limit)
    return [exchange_from_row(row) for row in connection.execute(query).mappings()]


def assign_tasks(
    connection: Connection,
    process: str,
    decisions: Sequence[SamplingDecision],
    scorers: Mapping[str, str],
    now: datetime,
) -> int:
    """Write sampling decisions, tasks and tally. Existing decisions and tasks are left alone.

    Returns:
        The number of newly decided exchanges that a rule selected for scoring.
    """
    ordered = sorted(decisions, key=lambda decision: decision.exchange_id)  # all samplers lock rows in the same order
    return sum(
        _assign(connection, process, {decision.exchange_id: decision for decision in some}, scorers, now)
        for some in batched(ordered)
    )


def _assign(
    connection: Connection,
    process: str,
    decisions: Mapping[str, SamplingDecision],
    scorers: Mapping[str, str],
    now: datetime,
) -> int:
    exchanges = [row for row in _locked(connection, list(decisions)) if not _is_late(row, decisions[row["id"]])]
    decided = [decisions[row["id"]] for row in exchanges if row["sampling_reason"] is None]
    _decide(connection, decided)
    dirty_hours.mark_dirty(
        connection, [row["started_at"] for row in exchanges if decisions[row["id"]].proxy is not None]
    )
    there = _existing(connection, list(decisions), scorers)
    stamp, tally_changes, tasks = timestamp_encoder(connection.dialect.name), TallyChanges(), []
    for row in exchanges:
        ready, decision = stamp(min(row["started_at"], now)), decisions[row["id"]]
        for scorer, fingerprint in scorers.items():
            if (row["id"], scorer, fingerprint) not in there:
                reason = decision.skip.get(scorer)
                start = None if reason or decision.sampling_reason == CANDIDATE else ready
                tasks.append((row["id"], scorer, fingerprint, *_state(reason), stamp(now), start))
                _count(tally_changes, row, scorer, reason)
    bulk_insert(connection, scoring_task, _TASK, tasks)
    tally_changes.apply(connection, process)
    return sum(
        decision.sampling_reason == ALWAYS and not scorers.keys() <= decision.skip.keys() for decision in decided
    )


def _is_late(row: RowMapping, decision: SamplingDecision) -> bool:
    """Whether another decision was written in the meantime, with another probability.

    Tasks that wait for the end of a past interval would wait forever.
    """
    return row["sampling_reason"] not in {None, decision.sampling_reason}


_TASK = ("exchange_id", "scorer", "fingerprint", "state", "reason", "claims", "first_pending_at", "not_before")


def _state(reason: UnscoredReason | None) -> tuple[str, str | None, int]:
    return ("pending", None, 0) if reason is None else (reason.state, reason.value, 0)


def _count(tally_changes: TallyChanges, row: RowMapping, scorer: str, reason: UnscoredReason | None) -> None:
    names = (row["service"], row["route"], scorer)
    tally_changes.add(row["started_at"], names, "seen")
    tally_changes.add(row["started_at"], names, reason.state if reason else "pending", reason.value if reason else "")


def _locked(connection: Connection, ids: Sequence[str]) -> Sequence[RowMapping]:
    columns = (
        exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.sampling_reason
    )  # fmt: skip
    query = select(*columns).where(exchange.c.id.in_(ids)).order_by(exchange.c.id).with_for_update()
    return connection.execute(query).mappings().all()


def _existing(connection: Connection, ids: Sequence[str], scorers: Mapping[str, str]) -> set[tuple[str, str, str]]:
    columns = (scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)
    # By the whole key, so that PostgreSQL expects few rows and uses the index even without statistics.
    sought = (ids, list(scorers), list(scorers.values()))
    conditions = [column.in_(values) for column, values in zip(columns, sought, strict=True)]
    return {tuple(row) for row in connection.execute(select(*columns).where(*conditions))}


_DECIDE = (
    update(exchange)
    .where(exchange.c.id == bindparam("decided"))
    .values(
        sampling_probability=bindparam("probability"),
        sampling_reason=bindparam("why"),
        proxy=func.coalesce(bindparam("free_score"), exchange.c.proxy),
        proxy_probability=func.coalesce(bindparam("free_probability"), exchange.c.proxy_probability),
    )
)


def _decide(connection: Connection, decisions: Sequence[SamplingDecision]) -> None:
    rows = [
        {
            "decided": decision.exchange_id,
            "probability": decision.probability,
            "why": decision.sampling_reason,
            "free_score": decision.proxy,
            "free_probability": decision.proxy_probability,
        }
        for decision in decisions
    ]
    if rows:
        connection.execute(_DECIDE, rows)
