"""Scores on their way to the detector, and those that it has seen: in the order of arrival.

The way is a queue and not a cursor over ids, which PostgreSQL commits out of order: what was seen is deleted in the
transaction that keeps what was made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, RowMapping, Select, and_, func, or_, select

from germane.score import Score
from germane.storage.db.mappers import Stamp, insert
from germane.storage.db.sanitize import clean
from germane.storage.db.tables import arrival, exchange, score
from germane.storage.trends.aggregates import NONCOMMITTAL

FAIR: Final = ("drawn", "uniform", "route_floor")
"""Sampling reasons that had nothing to do with how good an answer looked: any other would bend what is seen."""
LATEST: Final = timedelta(days=2)
"""A score that was made longer after its answer is not looked for in the past: answers are found by when they began."""
AT_ONCE: Final = 5000
"""Rows that are read at a time."""
Chosen = Callable[[str], bool]
"""Says of an exchange's id whether its scores are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One score as the detector takes it."""

    id: int
    """On its way: that of the queue. Of the past: the score's."""
    service: str
    route: str
    scorer: str
    fingerprint: str
    exchange_id: str
    value: float
    zero: bool
    """Noncommittal, or not above 0."""
    arrived_at: datetime
    """UTC."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Of the exchange, where they were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Scores of one service, scorer and fingerprint that arrived since <= arrived_at < until."""

    service: str
    scorer: str
    fingerprint: str
    since: datetime
    until: datetime


_COLUMNS = (
    "service", "route", "scorer", "fingerprint", "exchange_id", "value", "zero", "arrived_at"
)  # fmt: skip


def add(connection: Connection, made: Iterable[tuple[RowMapping, Score]], now: datetime, stamp: Stamp) -> None:
    """Put scores on their way to the detector, each given with the row of its task; those fairly drawn alone."""
    rows = [_values(row, found, now, stamp) for row, found in made if row["sampling_reason"] in FAIR]
    insert(connection, arrival, _COLUMNS, rows)


def _values(row: RowMapping, found: Score, now: datetime, stamp: Stamp) -> tuple[Any, ...]:
    value = float(found.value or 0.0)
    return (
        row["service"],
        row["route"],
        clean(found.scorer),
        clean(found.fingerprint),
        row["exchange_id"],
        value,
        value <= 0 or found.label == NONCOMMITTAL,
        stamp(found.scored_at or now),
    )


def waiting(connection: Connection, limit: int, *, attributes: bool) -> list[Arrival]:
    """Return up to ``limit`` scores that nobody has seen, in the order of arrival."""
    columns = [arrival.c.id, *(arrival.c[name] for name in _COLUMNS)]
    query = select(*columns, *([exchange.c.attributes] if attributes else []))
    if attributes:
        query = query.outerjoin_from(arrival, exchange, exchange.c.id == arrival.c.exchange_id)
    rows = connection.execute(query.where(arrival.c.id > 0).order_by(arrival.c.id).limit(limit)).mappings()
    return [Arrival(**{**row, "attributes": row.get("attributes") or {}}) for row in rows]


def past(connection: Connection, sought: Past, chosen: Chosen, *, attributes: bool) -> list[Arrival]:
    """Return the scores of the past that arrived within a time, of exchanges that are chosen, in that order."""
    columns = (score.c.id, score.c.exchange_id, score.c.route, score.c.value, score.c.label, score.c.scored_at)
    query = _of(select(*columns, *([exchange.c.attributes] if attributes else [])), sought)
    rows = connection.execution_options(yield_per=AT_ONCE).execute(query)
    found = [_arrived(row, sought, attributes=attributes) for row in rows if chosen(row.exchange_id)]
    return sorted(found, key=lambda one: (one.arrived_at, one.id))


def count_past(connection: Connection, sought: Past) -> int:
    """Return how many of them there are."""
    return int(connection.execute(_of(select(func.count()), sought)).scalar_one())


def earliest(connection: Connection, sought: Past) -> tuple[datetime, datetime] | None:
    """Return when the first of their answers was asked for, and when the first of them arrived; None without any."""
    first = select(func.min(score.c.started_at), func.min(score.c.scored_at))
    answered, arrived = connection.execute(_of(first, sought)).one()
    return None if arrived is None else (answered, arrived)


def release_of(connection: Connection, sought: Past) -> tuple[str | None, str | None]:
    """Return model and prompt version of the application, as most of those answers had them."""
    columns = (exchange.c.model, exchange.c.prompt_version)
    query = _of(select(*columns), sought).group_by(*columns).order_by(func.count().desc(), *columns).limit(1)
    row = connection.execute(query).first()
    return (None, None) if row is None else (row.model, row.prompt_version)


def _of(query: Select[Any], sought: Past) -> Select[Any]:
    arrived = and_(score.c.scored_at >= sought.since, score.c.scored_at < sought.until)
    # A score never comes before its answer; when the answers began is what the index goes by.
    began = and_(score.c.started_at >= sought.since - LATEST, score.c.started_at < sought.until + timedelta(minutes=5))
    names = (
        score.c.scorer == sought.scorer,
        score.c.service == sought.service,
        score.c.fingerprint == sought.fingerprint,
    )
    source = score.join(exchange, exchange.c.id == score.c.exchange_id)
    fair = or_(*(exchange.c.sampling_reason == reason for reason in FAIR))
    return query.select_from(source).where(began, *names, arrived, fair)


def _arrived(row: Row[Any], sought: Past, *, attributes: bool) -> Arrival:
    return Arrival(
        id=row.id,
        service=sought.service,
        route=row.route,
        scorer=sought.scorer,
        fingerprint=sought.fingerprint,
        exchange_id=row.exchange_id,
        value=row.value,
        zero=row.value <= 0 or row.label == NONCOMMITTAL,
        arrived_at=row.scored_at,
        attributes=row.attributes if attributes else {},
    )
