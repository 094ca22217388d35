"""Queries for exchanges, scores and row counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from germane.exchange import Exchange
from germane.score import Score
from germane.storage.answers.lowest_scores import ScoreFilter, find_lowest
from germane.storage.db.mappers import batched, exchange_from_row, score_from_row
from germane.storage.db.tables import exchange, score, scoring_task


@dataclass(frozen=True, slots=True)
class ScoredExchange:
    """An exchange with one of its scores."""

    exchange: Exchange
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Row counts of the database."""

    captured: int = 0
    """Exchanges."""
    undecided: int = 0
    """Exchanges without a sampling decision."""
    pending: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    failed_reasons: Mapping[str, int] = field(default_factory=dict)
    skipped_reasons: Mapping[str, int] = field(default_factory=dict)
    scores: int = 0
    """Scores."""
    oldest_pending_at: datetime | None = None
    """Time since which the oldest pending or running task has been ready; UTC."""


def list_exchanges(
    connection: Connection, since: datetime | None, until: datetime | None, route: str | None, limit: int
) -> list[Exchange]:
    """Return exchanges of a window, newest first."""
    query = select(exchange).where(*_within(exchange.c, since, until, route=route))
    query = query.order_by(exchange.c.started_at.desc(), exchange.c.id.desc()).limit(limit)
    return [exchange_from_row(row) for row in connection.execute(query).mappings()]


def load_exchanges(connection: Connection, ids: Sequence[str]) -> dict[str, Exchange]:
    """Return exchanges by id."""
    found: dict[str, Exchange] = {}
    for some in batched(ids):
        for row in connection.execute(select(exchange).where(exchange.c.id.in_(some))).mappings():
            found[row["id"]] = exchange_from_row(row)
    return found


def load_scores(connection: Connection, exchange_ids: Sequence[str]) -> dict[str, list[Score]]:
    """Return scores by exchange id."""
    found: dict[str, list[Score]] = {}
    for some in batched(exchange_ids):
        for row in connection.execute(select(score).where(score.c.exchange_id.in_(some))).mappings():
            found.setdefault(row["exchange_id"], []).append(score_from_row(row))
    return found


def load_lowest_scores(connection: Connection, chosen: ScoreFilter, limit: int) -> list[ScoredExchange]:
    """Return scores with their exchanges, lowest first; equal scores newest first."""
    rows = find_lowest(connection, chosen, limit)
    by_id = load_exchanges(connection, [row["exchange_id"] for row in rows])
    return [
        ScoredExchange(by_id[row["exchange_id"]], score_from_row(row)) for row in rows if row["exchange_id"] in by_id
    ]


def count_rows(connection: Connection, at_most: int | None) -> RowCounts:
    """Return row counts; exchanges, scores and closed tasks are counted up to ``at_most``."""
    waiting = select(func.min(scoring_task.c.first_pending_at)).where(scoring_task.c.not_before.is_not(None))
    undecided = select(func.count()).select_from(exchange).where(exchange.c.sampling_reason.is_(None))
    reasons = {state: _reasons(connection, state, at_most if state in _CLOSED else None) for state in _STATES}
    return RowCounts(
        captured=_number(connection, exchange.c.started_at, at_most),
        undecided=int(connection.execute(undecided).scalar_one()),
        **{state: sum(found.values()) for state, found in reasons.items()},
        failed_reasons=_named(reasons["failed"]),
        skipped_reasons=_named(reasons["skipped"]),
        scores=_number(connection, score.c.started_at, at_most),
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
    """Return the conditions since <= started_at < until, and equality of the named columns."""
    conditions: list[Any] = [columns[name] == value for name, value in equal.items() if value is not None]
    if since is not None:
        conditions.append(columns.started_at >= since)
    if until is not None:
        conditions.append(columns.started_at < until)
    return conditions
