"""Which captured exchanges are scored: the sampler's view of the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, RowMapping, bindparam, func, select, update

from germane.exchange import Exchange
from germane.score import Reason
from germane.storage.counts import dirty_hours
from germane.storage.counts.tally import Deltas
from germane.storage.db.mappers import batched, exchange_of, insert, stamp_for
from germane.storage.db.tables import exchange, scoring_task
from germane.storage.queue.candidates import CANDIDATE

ALWAYS: Final = "always"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an exchange is scored, and how probable it was that it would be."""

    exchange_id: str
    probability: float | None
    """Of being scored, in (0, 1], known before the draw. Of one that was not drawn, the same. Of a candidate None: it
    depends on the others of its interval."""
    sampling_reason: str
    """``candidate``: its tasks wait, not to be claimed, until the interval ends."""
    skip: Mapping[str, Reason] = field(default_factory=dict)
    """Scorers that do not score it, and why."""
    proxy: float | None = None
    """Free local score."""
    proxy_probability: float | None = None
    """Of being given a proxy, in (0, 1]; None of what has no part in it."""


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
) -> int:
    """Write the decisions: sampling, tasks and tally. What is there already stays as it is.

    Returns:
        How many exchanges are to be scored because a rule asks for it, that were not decided on before.
    """
    ordered = sorted(decisions, key=lambda decision: decision.exchange_id)  # all samplers lock rows in one order
    return sum(
        _assign(connection, process, {decision.exchange_id: decision for decision in some}, scorers, now)
        for some in batched(ordered)
    )


def _assign(
    connection: Connection, process: str, decisions: Mapping[str, Decision], scorers: Mapping[str, str], now: datetime
) -> int:
    exchanges = [row for row in _locked(connection, list(decisions)) if not _is_late(row, decisions[row["id"]])]
    decided = [decisions[row["id"]] for row in exchanges if row["sampling_reason"] is None]
    _decide(connection, decided)
    dirty_hours.note(connection, [row["started_at"] for row in exchanges if decisions[row["id"]].proxy is not None])
    there = _existing(connection, list(decisions), scorers)
    stamp, deltas, tasks = stamp_for(connection.dialect.name), Deltas(), []
    for row in exchanges:
        ready, decision = stamp(min(row["started_at"], now)), decisions[row["id"]]
        for scorer, fingerprint in scorers.items():
            if (row["id"], scorer, fingerprint) not in there:
                reason = decision.skip.get(scorer)
                start = None if reason or decision.sampling_reason == CANDIDATE else ready
                tasks.append((row["id"], scorer, fingerprint, *_state(reason), stamp(now), start))
                _count(deltas, row, scorer, reason)
    insert(connection, scoring_task, _TASK, tasks)
    deltas.write(connection, process)
    return sum(one.sampling_reason == ALWAYS and not scorers.keys() <= one.skip.keys() for one in decided)


def _is_late(row: RowMapping, decision: Decision) -> bool:
    """Whether the exchange was decided on otherwise by now: its probability is not that of these tasks.

    Tasks that wait for the end of an interval which is over would wait for ever.
    """
    return row["sampling_reason"] not in {None, decision.sampling_reason}


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
    .values(
        sampling_probability=bindparam("probability"),
        sampling_reason=bindparam("why"),
        proxy=func.coalesce(bindparam("free_score"), exchange.c.proxy),
        proxy_probability=func.coalesce(bindparam("free_probability"), exchange.c.proxy_probability),
    )
)


def _decide(connection: Connection, decisions: Sequence[Decision]) -> None:
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
