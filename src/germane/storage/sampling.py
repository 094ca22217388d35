"""Which captured exchanges are scored: the sampler's view of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from germane.exchange import Exchange
from germane.score import Reason
from germane.storage.rows import batched, exchange_of, insert, stamp_for
from germane.storage.tables import exchange, scoring_task
from germane.storage.tally import Deltas


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an exchange is scored, and how probable it was that it would be."""

    exchange_id: str
    probability: float
    """Of being scored, in (0, 1], known before the draw. Of one that was not drawn, the same."""
    sampling_reason: str
    skip: Mapping[str, Reason] = field(default_factory=dict)
    """Scorers that do not score it, and why."""


def unsampled(connection: Connection, limit: int) -> list[Exchange]:
    """Return exchanges that nobody has decided on, oldest first."""
    query = select(exchange).where(exchange.c.sampling_reason.is_(None))
    query = query.order_by(exchange.c.started_at, exchange.c.id).limit(limit)
    return [exchange_of(row) for row in connection.execute(query).mappings()]


def assign(
    connection: Connection,
    process: str,
    decisions: Sequence[Decision],
    scorers: Mapping[str, str],
    now: datetime,
) -> None:
    """Write the decisions: sampling, tasks and tally. What is there already stays as it is."""
    ordered = sorted(decisions, key=lambda decision: decision.exchange_id)  # all samplers lock rows in one order
    for some in batched(ordered):
        _assign(connection, process, {decision.exchange_id: decision for decision in some}, scorers, now)


def _assign(
    connection: Connection, process: str, decisions: Mapping[str, Decision], scorers: Mapping[str, str], now: datetime
) -> None:
    exchanges = _locked(connection, list(decisions))
    _decide(connection, [decisions[row["id"]] for row in exchanges if row["sampling_reason"] is None])
    there = _existing(connection, list(decisions), scorers)
    stamp, deltas, tasks = stamp_for(connection.dialect.name), Deltas(), []
    for row in exchanges:
        ready, skip = stamp(min(row["started_at"], now)), decisions[row["id"]].skip
        for scorer, fingerprint in scorers.items():
            if (row["id"], scorer, fingerprint) not in there:
                reason = skip.get(scorer)
                tasks.append((row["id"], scorer, fingerprint, *_state(reason), stamp(now), None if reason else ready))
                _count(deltas, row, scorer, reason)
    insert(connection, scoring_task, _TASK, tasks)
    deltas.write(connection, process)


_TASK = ("exchange_id", "scorer", "fingerprint", "state", "reason", "attempts", "first_pending_at", "not_before")


def _state(reason: Reason | None) -> tuple[str, str | None, int]:
    return ("pending", None, 0) if reason is None else (reason.state, reason.value, 0)


def _count(deltas: Deltas, row: RowMapping, scorer: str, reason: Reason | None) -> None:
    names = (row["service"], row["route"], scorer)
    deltas.count(row["started_at"], names, "seen")
    deltas.count(row["started_at"], names, reason.state if reason else "pending", reason.value if reason else "")


def _locked(connection: Connection, ids: Sequence[str]) -> Sequence[RowMapping]:
    columns = (
        exchange.c.id, exchange.c.service, exchange.c.route, exchange.c.started_at, exchange.c.sampling_reason
    )  # fmt: skip
    query = select(*columns).where(exchange.c.id.in_(ids)).order_by(exchange.c.id).with_for_update()
    return connection.execute(query).mappings().all()


def _existing(connection: Connection, ids: Sequence[str], scorers: Mapping[str, str]) -> set[tuple[str, str, str]]:
    columns = (scoring_task.c.exchange_id, scoring_task.c.scorer, scoring_task.c.fingerprint)
    # By the whole key, so that PostgreSQL expects few rows and uses its index also before it has statistics.
    sought = (ids, list(scorers), list(scorers.values()))
    conditions = [column.in_(values) for column, values in zip(columns, sought, strict=True)]
    return {tuple(row) for row in connection.execute(select(*columns).where(*conditions))}


_DECIDE = (
    update(exchange)
    .where(exchange.c.id == bindparam("decided"))
    .values(sampling_probability=bindparam("probability"), sampling_reason=bindparam("why"))
)


def _decide(connection: Connection, decisions: Sequence[Decision]) -> None:
    rows = [
        {"decided": decision.exchange_id, "probability": decision.probability, "why": decision.sampling_reason}
        for decision in decisions
    ]
    if rows:
        connection.execute(_DECIDE, rows)
