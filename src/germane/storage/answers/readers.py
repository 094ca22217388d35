"""Exchanges, their scores and counts: what people and pages read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from germane.exchange import Exchange
from germane.score import Score
from germane.storage.answers.lowest_scores import Chosen, lowest
from germane.storage.db.mappers import batched, exchange_of, score_of
from germane.storage.db.tables import exchange, score, scoring_task


@dataclass(frozen=True, slots=True)
class Scored:
    """An exchange and one score of it."""

    exchange: Exchange
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much there is of everything."""

    captured: int = 0
    """Exchanges."""
    unsampled: int = 0
    """Exchanges that the sampler has not looked at."""
    pending: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    failed_reasons: Mapping[str, int] = field(default_factory=dict)
    skipped_reasons: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    """Scores."""
    oldest_pending_at: datetime | None = None
    """UTC; of tasks pending or running."""


def exchanges(
    connection: Connection, since: datetime | None, until: datetime | None, route: str | None, limit: int
) -> list[Exchange]:
    """Return exchanges, newest first."""
    query = select(exchange).where(*_within(exchange.c, since, until, route=route))
    query = query.order_by(exchange.c.started_at.desc(), exchange.c.id.desc()).limit(limit)
    return [exchange_of(row) for row in connection.execute(query).mappings()]


def exchanges_of(connection: Connection, ids: Sequence[str]) -> dict[str, Exchange]:
    """Return exchanges by their ids."""
    found: dict[str, Exchange] = {}
    for some in batched(ids):
        for row in connection.execute(select(exchange).where(exchange.c.id.in_(some))).mappings():
            found[row["id"]] = exchange_of(row)
    return found


def scores_of(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Score]]:
    """Return the scores of exchanges, by exchange."""
    found: dict[str, list[Score]] = {}
    for some in batched(exchange_ids):
        for row in connection.execute(select(score).where(score.c.exchange_id.in_(some))).mappings():
            found.setdefault(row["exchange_id"], []).append(score_of(row))
    return found


def worst(connection: Connection, chosen: Chosen, limit: int) -> list[Scored]:
    """Return scores with their exchanges, lowest first, of equal ones the newest first."""
    rows = lowest(connection, chosen, limit)
    by_id = exchanges_of(connection, [row["exchange_id"] for row in rows])
    return [Scored(by_id[row["exchange_id"]], score_of(row)) for row in rows if row["exchange_id"] in by_id]


def counts(connection: Connection, at_most: int | None) -> Counts:
    """Return how much there is of everything, of what is there to stay no more than ``at_most`` of each kind."""
    waiting = select(func.min(scoring_task.c.first_pending_at)).where(scoring_task.c.not_before.is_not(None))
    undecided = select(func.count()).select_from(exchange).where(exchange.c.sampling_reason.is_(None))
    reasons = {state: _reasons(connection, state, at_most if state in _CLOSED else None) for state in _STATES}
    return Counts(
        captured=_number(connection, exchange.c.started_at, at_most),
        unsampled=int(connection.execute(undecided).scalar_one()),
        **{state: sum(found.values()) for state, found in reasons.items()},
        failed_reasons=_named(reasons["failed"]),
        skipped_reasons=_named(reasons["skipped"]),
        rows=_number(connection, score.c.started_at, at_most),
        oldest_pending_at=connection.execute(waiting).scalar_one(),
    )


_CLOSED = ("done", "failed", "skipped")
_STATES = ("pending", "running", *_CLOSED)


def _reasons(connection: Connection, state: str, at_most: int | None) -> dict[str | None, int]:
    columns = (scoring_task.c.state, scoring_task.c.reason)
    reason: ColumnElement[Any] = columns[1]
    query = select(reason, func.count()).where(columns[0] == state)
    if at_most is not None:
        first = select(*columns).where(columns[0] == state).order_by(*columns).limit(at_most).subquery("first")
        reason = first.c.reason
        query = select(reason, func.count())
    return {name: int(count) for name, count in connection.execute(query.group_by(reason))}


def _named(reasons: Mapping[str | None, int]) -> dict[str, int]:
    return {reason: count for reason, count in reasons.items() if reason is not None}


def _number(connection: Connection, column: Any, at_most: int | None) -> int:
    first = select(column).order_by(column).limit(at_most).subquery("first")
    return int(
        connection.execute(select(func.count()).select_from(column.table if at_most is None else first)).scalar_one()
    )


def _within(columns: Any, since: datetime | None, until: datetime | None, **equal: str | None) -> list[Any]:
    """Return conditions: since <= started_at < until, and the columns that are named."""
    conditions: list[Any] = [columns[name] == value for name, value in equal.items() if value is not None]
    if since is not None:
        conditions.append(columns.started_at >= since)
    if until is not None:
        conditions.append(columns.started_at < until)
    return conditions
