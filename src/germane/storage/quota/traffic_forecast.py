"""How much there is to score, some of it as a sample, and what scores took so far."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, func, literal_column, select

from germane.exchange import Exchange
from germane.storage.db.mappers import exchange_of
from germane.storage.db.tables import exchange, score, tally
from germane.storage.trends.aggregates import Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The exchanges of a window."""

    exchanges: int
    first: datetime | None
    """UTC; when the oldest of them began, None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the scores of one scorer took, on average of those whose judge's server told."""

    scorer: str
    scores: int
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class HourCount:
    """What was seen in one hour."""

    start: datetime
    """UTC."""
    seen: int
    """Exchanges, each once for every scorer; at least 1."""


def traffic(connection: Connection, since: datetime) -> Traffic:
    """Return how many exchanges began since then."""
    query = select(func.count(), func.min(exchange.c.started_at)).where(exchange.c.started_at >= since)
    count, first = connection.execute(query).one()
    return Traffic(exchanges=count, first=first)


def sample(connection: Connection, since: datetime, limit: int) -> list[Exchange]:
    """Return up to ``limit`` exchanges since then, those of the lowest draws: a uniform sample, always the same.

    Those whose text was erased are left out: nothing can be told from them of how long texts are.
    """
    query = select(exchange.c.id).where(exchange.c.started_at >= since, exchange.c.erased_at.is_(None))
    ids = list(connection.execute(query.order_by(exchange.c.draw).limit(limit)).scalars())
    found = connection.execute(select(exchange).where(exchange.c.id.in_(ids))).mappings()
    return sorted(map(exchange_of, found), key=lambda one: (one.started_at, one.id))


def usage(connection: Connection, since: datetime) -> list[Usage]:
    """Return what scores took of answers given since then, by scorer."""
    means = func.avg(score.c.input_tokens), func.avg(score.c.output_tokens)
    query = select(score.c.scorer, func.count(), *means).where(
        score.c.started_at >= since, score.c.input_tokens > 0, score.c.output_tokens.is_not(None)
    )
    rows = connection.execute(query.group_by(score.c.scorer).order_by(score.c.scorer)).all()
    return [
        Usage(scorer=name, scores=count, input_tokens=float(read), output_tokens=float(written))
        for name, count, read, written in rows
    ]


def by_hour(connection: Connection, since: datetime, until: datetime) -> list[HourCount]:
    """Return what was seen in since <= minute < until, by the hour, oldest first; empty hours are left out."""
    moment = Epoch(tally.c.minute)
    hour = (moment - moment % literal_column("3600")).label("hour")
    seen = func.sum(tally.c.count).label("seen")
    query = select(hour, seen).where(tally.c.minute >= since, tally.c.minute < until, tally.c.outcome == "seen")
    rows = connection.execute(query.group_by(hour).having(seen > 0).order_by(hour))
    return [HourCount(datetime.fromtimestamp(row.hour, UTC), int(row.seen)) for row in rows]
