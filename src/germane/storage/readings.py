"""Trends and summaries: what people, pages and rules read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    case,
    func,
    literal_column,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from germane.exchange import Exchange
from germane.score import BANDS, LOW, LOWEST, Score
from germane.storage.estimate import Estimate, Sums, estimate
from germane.storage.rows import batched, exchange_of, score_of
from germane.storage.tables import exchange, score, scoring_task
from germane.storage.tally import Coverage, coverage

NONCOMMITTAL = "noncommittal"
"""The label of an answer that did not answer."""


@dataclass(frozen=True, slots=True)
class Scored:
    """An exchange and one score of it."""

    exchange: Exchange
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket(Estimate):
    """The scores of one fingerprint whose answers were given within one stretch of time."""

    start: datetime
    """UTC, a whole multiple of the stretch since 1970."""
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMean(Estimate):
    """The scores of one service, route and fingerprint."""

    service: str
    route: str
    scorer: str
    fingerprint: str
    newest: bool
    """Whether it is the fingerprint of the latest answer of this service, route and scorer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSummary(RouteMean):
    """A mean, beside what became of all exchanges of the same service, route and scorer."""

    coverage: Coverage


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


def worst(
    connection: Connection, since: datetime | None, until: datetime | None, limit: int, **equal: str | None
) -> list[Scored]:
    """Return scores with their exchanges, lowest first."""
    query = select(score).where(*_within(score.c, since, until, **equal))
    rows = connection.execute(query.order_by(score.c.value, score.c.id).limit(limit)).mappings().all()
    found = select(exchange).where(exchange.c.id.in_([row["exchange_id"] for row in rows]))
    by_id = {row["id"]: exchange_of(row) for row in connection.execute(found).mappings()}
    return [Scored(by_id[row["exchange_id"]], score_of(row)) for row in rows if row["exchange_id"] in by_id]


def trend(
    connection: Connection, scorer: str, stretch: timedelta, since: datetime, until: datetime, route: str | None
) -> list[Bucket]:
    """Return one bucket per stretch and fingerprint that has scores, oldest first: gaps stay gaps."""
    seconds = max(1, round(stretch.total_seconds()))
    moment = Epoch(score.c.started_at)
    # Written out, because PostgreSQL takes the same expression with two parameters for two expressions.
    start = (moment - moment % literal_column(str(seconds))).label("start")
    keys = (start, score.c.fingerprint)
    query = _estimates(*keys).where(*_within(score.c, since, until, scorer=scorer, route=route))
    rows = connection.execute(query.group_by(*keys)).all()
    buckets = [
        Bucket(start=datetime.fromtimestamp(row.start, UTC), fingerprint=row.fingerprint, **_estimated(row))
        for row in rows
    ]
    return sorted(buckets, key=lambda bucket: (bucket.start, bucket.fingerprint))


def means(
    connection: Connection, since: datetime | None, until: datetime | None, **equal: str | None
) -> list[RouteMean]:
    """Return one mean per service, route, scorer and fingerprint."""
    keys = (score.c.service, score.c.route, score.c.scorer, score.c.fingerprint)
    latest = func.max(score.c.started_at).label("latest")
    query = _estimates(*keys, latest).where(*_within(score.c, since, until, **equal)).group_by(*keys)
    rows = sorted(connection.execute(query).all(), key=lambda row: (row[:3], row.latest, row.fingerprint))
    newest = {tuple(row[:3]): row.fingerprint for row in rows}
    return [_route_mean(row, newest=newest[tuple(row[:3])] == row.fingerprint) for row in rows]


def _route_mean(row: Row[Any], *, newest: bool) -> RouteMean:
    names = {"service": row.service, "route": row.route, "scorer": row.scorer, "fingerprint": row.fingerprint}
    return RouteMean(**names, newest=newest, **_estimated(row))


def summary(connection: Connection, since: datetime | None, until: datetime | None) -> list[RouteSummary]:
    """Return the means of a window with their coverage."""
    covered = {(one.service, one.route, one.scorer): one for one in coverage(connection, since, until)}
    return [
        RouteSummary(
            **{name: getattr(mean, name) for name in _names(RouteMean)},
            coverage=covered.get((mean.service, mean.route, mean.scorer), _uncovered(mean)),
        )
        for mean in means(connection, since, until)
    ]


def _uncovered(mean: RouteMean) -> Coverage:
    return Coverage(service=mean.service, route=mean.route, scorer=mean.scorer)


def _names(kind: type) -> Iterable[str]:
    return kind.__dataclass_fields__  # type: ignore[attr-defined, no-any-return]  # a dataclass, which type does not say


def counts(connection: Connection) -> Counts:
    """Return how much there is of everything."""
    states = select(scoring_task.c.state, scoring_task.c.reason, func.count().label("n"))
    rows = connection.execute(states.group_by(scoring_task.c.state, scoring_task.c.reason)).all()
    by_state = {state: sum(row.n for row in rows if row.state == state) for state in _STATES}
    waiting = select(func.min(scoring_task.c.first_pending_at)).where(scoring_task.c.not_before.is_not(None))
    undecided = select(func.count()).select_from(exchange).where(exchange.c.sampling_reason.is_(None))
    return Counts(
        captured=_number(connection, select(func.count(exchange.c.started_at))),
        unsampled=_number(connection, undecided),
        **by_state,
        failed_reasons={row.reason: row.n for row in rows if row.state == "failed"},
        skipped_reasons={row.reason: row.n for row in rows if row.state == "skipped"},
        rows=_number(connection, select(func.count(score.c.value))),
        oldest_pending_at=connection.execute(waiting).scalar_one(),
    )


_STATES = ("pending", "running", "done", "failed", "skipped")


def _number(connection: Connection, query: Select[Any]) -> int:
    return int(connection.execute(query).scalar_one())


def _within(columns: Any, since: datetime | None, until: datetime | None, **equal: str | None) -> list[Any]:
    """Return conditions: since <= started_at < until, and the columns that are named."""
    conditions: list[Any] = [columns[name] == value for name, value in equal.items() if value is not None]
    if since is not None:
        conditions.append(columns.started_at >= since)
    if until is not None:
        conditions.append(columns.started_at < until)
    return conditions


class Epoch(GenericFunction[int]):
    """Whole seconds since 1970."""

    type = BigInteger()
    inherit_cache = True
    name = "germane_epoch"


@compiles(Epoch, "sqlite")
def _epoch_on_sqlite(element: Epoch, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(strftime('%s', {compiler.process(element.clauses, **options)}) AS INTEGER)"


@compiles(Epoch, "postgresql")
def _epoch_on_postgresql(element: Epoch, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(floor(EXTRACT(EPOCH FROM {compiler.process(element.clauses, **options)})) AS BIGINT)"


def _sums() -> dict[str, ColumnElement[Any]]:
    w, y = func.coalesce(1.0 / func.nullif(score.c.sampling_probability, 0), 1.0), score.c.value
    zero = y == 0
    # As Score.is_low says it: the band that a label names is the calibrated one.
    low = case((score.c.label == LOWEST, True), (score.c.label.in_([name for _, name in BANDS]), False), else_=y < LOW)
    return {
        "n": func.count(),
        "n_zero": func.sum(case((zero, 1), else_=0)),
        "w": func.sum(w),
        "w_zero": func.sum(case((zero, w), else_=0.0)),
        "ww": func.sum(w * w),
        "ww_zero": func.sum(case((zero, w * w), else_=0.0)),
        "wy": func.sum(w * y),
        "wyy": func.sum(w * y * y),
        "wwy": func.sum(w * w * y),
        "wwyy": func.sum(w * w * y * y),
        "w_low": func.sum(case((low, w), else_=0.0)),
        "w_noncommittal": func.sum(case((score.c.label == NONCOMMITTAL, w), else_=0.0)),
    }


_SUMS = _sums()


def _estimates(*keys: ColumnElement[Any]) -> Select[Any]:
    return select(*keys, *(column.label(name) for name, column in _SUMS.items()))


def _estimated(row: Row[Any]) -> dict[str, Any]:
    found = estimate(Sums(**{name: getattr(row, name) for name in _SUMS}))
    return {name: getattr(found, name) for name in _names(Estimate)}
