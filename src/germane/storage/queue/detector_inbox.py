"""The queue of scores for the detectors, and past scores in order of arrival.

A queue and not a cursor over ids, because PostgreSQL commits ids out of order. Processed scores are deleted in the
transaction that writes the detector states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, RowMapping, Select, and_, func, or_, select

from germane.score import NONCOMMITTAL, Score
from germane.storage.db.mappers import TimestampEncoder, bulk_insert
from germane.storage.db.sanitize import clean_text
from germane.storage.db.tables import detector_input, exchange, score

UNBIASED_REASONS: Final = ("sampled", "uniform", "route_floor")
"""Sampling reasons that do not depend on how good an answer looked. Others would bias the detectors."""
MAX_SCORING_DELAY: Final = timedelta(days=2)
"""Maximum time from answer to score for past scores, which are searched by the time of the answer."""
FETCH_SIZE: Final = 5000
"""Rows per fetch."""
ExchangePredicate = Callable[[str], bool]
"""Selects exchanges by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorScore:
    """One score as detectors process it."""

    id: int
    """Id of the queue entry; for past scores, of the score."""
    service: str
    route: str
    scorer: str
    fingerprint: str
    exchange_id: str
    value: float
    is_zero: bool
    """Whether the answer is noncommittal or the score is at most 0."""
    arrived_at: datetime
    """UTC."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the exchange, if requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorScoreQuery:
    """Scores of one service, scorer and fingerprint that arrived since <= arrived_at < until."""

    service: str
    scorer: str
    fingerprint: str
    since: datetime
    until: datetime


_COLUMNS = (
    "service", "route", "scorer", "fingerprint", "exchange_id", "value", "is_zero", "arrived_at"
)  # fmt: skip


def insert_scores(
    connection: Connection, made: Iterable[tuple[RowMapping, Score]], now: datetime, stamp: TimestampEncoder
) -> None:
    """Queue new scores, given with the rows of their tasks, unless their sampling would bias the detectors."""
    rows = [_values(row, found, now, stamp) for row, found in made if row["sampling_reason"] in UNBIASED_REASONS]
    bulk_insert(connection, detector_input, _COLUMNS, rows)


def _values(row: RowMapping, found: Score, now: datetime, stamp: TimestampEncoder) -> tuple[Any, ...]:
    value = float(found.value or 0.0)
    return (
        row["service"],
        row["route"],
        clean_text(found.scorer),
        clean_text(found.fingerprint),
        row["exchange_id"],
        value,
        value <= 0 or found.label == NONCOMMITTAL,
        stamp(found.scored_at or now),
    )


def load_new_scores(connection: Connection, limit: int, *, attributes: bool) -> list[DetectorScore]:
    """Return up to ``limit`` unprocessed scores in order of arrival."""
    columns = [detector_input.c.id, *(detector_input.c[name] for name in _COLUMNS)]
    query = select(*columns, *([exchange.c.attributes] if attributes else []))
    if attributes:
        query = query.outerjoin_from(detector_input, exchange, exchange.c.id == detector_input.c.exchange_id)
    rows = connection.execute(
        query.where(detector_input.c.id > 0).order_by(detector_input.c.id).limit(limit)
    ).mappings()
    return [DetectorScore(**{**row, "attributes": row.get("attributes") or {}}) for row in rows]


def load_past_scores(
    connection: Connection, sought: DetectorScoreQuery, chosen: ExchangePredicate, *, attributes: bool
) -> list[DetectorScore]:
    """Return past scores of selected exchanges in order of arrival."""
    columns = (score.c.id, score.c.exchange_id, score.c.route, score.c.value, score.c.label, score.c.scored_at)
    query = _of(select(*columns, *([exchange.c.attributes] if attributes else [])), sought)
    rows = connection.execution_options(yield_per=FETCH_SIZE).execute(query)
    found = [_arrived(row, sought, attributes=attributes) for row in rows if chosen(row.exchange_id)]
    return sorted(found, key=lambda score: (score.arrived_at, score.id))


def count_past_scores(connection: Connection, sought: DetectorScoreQuery) -> int:
    """Return the number of past scores."""
    return int(connection.execute(_of(select(func.count()), sought)).scalar_one())


def first_score_times(connection: Connection, sought: DetectorScoreQuery) -> tuple[datetime, datetime] | None:
    """Return the earliest answer time and the earliest arrival time; None without scores."""
    first = select(func.min(score.c.started_at), func.min(score.c.scored_at))
    answered, arrived = connection.execute(_of(first, sought)).one()
    return None if arrived is None else (answered, arrived)


def most_common_release(connection: Connection, sought: DetectorScoreQuery) -> tuple[str | None, str | None]:
    """Return the most common model and prompt version of the application."""
    columns = (exchange.c.model, exchange.c.prompt_version)
    query = _of(select(*columns), sought).group_by(*columns).order_by(func.count().desc(), *columns).limit(1)
    row = connection.execute(query).first()
    return (None, None) if row is None else (row.model, row.prompt_version)


def _of(query: Select[Any], sought: DetectorScoreQuery) -> Select[Any]:
    arrived = and_(score.c.scored_at >= sought.since, score.c.scored_at < sought.until)
    # The index is by time of the answer, which is always before the score.
    began = and_(
        score.c.started_at >= sought.since - MAX_SCORING_DELAY, score.c.started_at < sought.until + timedelta(minutes=5)
    )
    names = (
        score.c.scorer == sought.scorer,
        score.c.service == sought.service,
        score.c.fingerprint == sought.fingerprint,
    )
    source = score.join(exchange, exchange.c.id == score.c.exchange_id)
    fair = or_(*(exchange.c.sampling_reason == reason for reason in UNBIASED_REASONS))
    return query.select_from(source).where(began, *names, arrived, fair)


def _arrived(row: Row[Any], sought: DetectorScoreQuery, *, attributes: bool) -> DetectorScore:
    return DetectorScore(
        id=row.id,
        service=sought.service,
        route=row.route,
        scorer=sought.scorer,
        fingerprint=sought.fingerprint,
        exchange_id=row.exchange_id,
        value=row.value,
        is_zero=row.value <= 0 or row.label == NONCOMMITTAL,
        arrived_at=row.scored_at,
        attributes=row.attributes if attributes else {},
    )
