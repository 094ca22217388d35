"""Traffic counts, sample exchanges and average usage, from which cost is forecast."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, func, literal_column, select

from germane.exchange import Exchange
from germane.storage.db.functions import EpochSeconds
from germane.storage.db.mappers import exchange_from_row
from germane.storage.db.tables import exchange, score, tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The exchanges of a window."""

    exchanges: int
    first: datetime | None
    """Start of the oldest exchange, in UTC; None without exchanges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerUsage:
    """Average tokens per score of one scorer, over the scores whose judge reported them."""

    scorer: str
    scores: int
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class HourCount:
    """The exchanges of one hour."""

    start: datetime
    """UTC."""
    seen: int
    """Exchanges, counted once per scorer; at least 1."""


def count_traffic(connection: Connection, since: datetime) -> Traffic:
    """Return the number of exchanges since a time."""
    query = select(func.count(), func.min(exchange.c.started_at)).where(exchange.c.started_at >= since)
    count, first = connection.execute(query).one()
    return Traffic(exchanges=count, first=first)


def sample_exchanges(connection: Connection, since: datetime, limit: int) -> list[Exchange]:
    """Return up to ``limit`` exchanges since a time with the lowest sampling keys: a reproducible uniform sample.

    Exchanges without text are left out: the sample shows how long texts are.
    """
    query = select(exchange.c.id).where(exchange.c.started_at >= since, exchange.c.erased_at.is_(None))
    ids = list(connection.execute(query.order_by(exchange.c.sampling_key).limit(limit)).scalars())
    rows = connection.execute(select(exchange).where(exchange.c.id.in_(ids))).mappings()
    return sorted(map(exchange_from_row, rows), key=lambda sampled: (sampled.started_at, sampled.id))


def average_usage(connection: Connection, since: datetime) -> list[ScorerUsage]:
    """Return the average tokens of scores of exchanges since a time, by scorer."""
    means = func.avg(score.c.input_tokens), func.avg(score.c.output_tokens)
    query = select(score.c.scorer, func.count(), *means).where(
        score.c.started_at >= since, score.c.input_tokens > 0, score.c.output_tokens.is_not(None)
    )
    rows = connection.execute(query.group_by(score.c.scorer).order_by(score.c.scorer)).all()
    return [
        ScorerUsage(scorer=name, scores=count, input_tokens=float(read), output_tokens=float(written))
        for name, count, read, written in rows
    ]


def count_by_hour(connection: Connection, since: datetime, until: datetime) -> list[HourCount]:
    """Return the exchanges of since <= minute < until by hour, oldest first. Hours without exchanges are omitted."""
    moment = EpochSeconds(tally.c.minute)
    hour = (moment - moment % literal_column("3600")).label("hour")
    seen = func.sum(tally.c.count).label("seen")
    query = select(hour, seen).where(tally.c.minute >= since, tally.c.minute < until, tally.c.outcome == "seen")
    rows = connection.execute(query.group_by(hour).having(seen > 0).order_by(hour))
    return [HourCount(datetime.fromtimestamp(row.hour, UTC), int(row.seen)) for row in rows]
