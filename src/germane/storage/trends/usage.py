"""Durations of handlers and costs of scores over time.

Rollups contain neither, so they are read from rows: only the newest rows of a window, so that a page stays fast however
many rows there are. The result states how far back it goes, and contains only whole buckets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, select

from germane.storage.archive.reader import latest, open_newest
from germane.storage.db.conditions import matching
from germane.storage.db.functions import EpochSeconds
from germane.storage.db.tables import exchange, score
from germane.storage.trends.bucket_grid import BucketGrid

MAX_EXCHANGES_READ: Final = 3_000
"""Number of exchanges whose durations are read, newest first."""
MAX_SCORES_READ: Final = 6_000
"""Number of scores, from all routes and scorers, to scan for costs, newest first."""
_MICROSECOND: Final = timedelta(microseconds=1)
BucketType = TypeVar("BucketType")
ChooseGrid = Callable[[datetime | None], BucketGrid]
"""Returns the buckets, given the start of what was read if the window was truncated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationBucket:
    """Durations of the handlers in one time bucket, in seconds."""

    start: datetime
    """UTC."""
    n: int
    """Number of exchanges, at least 1."""
    median: float
    p95: float
    """95th percentile (nearest rank)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBucket:
    """Costs of the scores of the answers in one time bucket."""

    start: datetime
    """UTC."""
    n: int
    """Number of scores with a known cost, at least 1."""
    usd: float
    """Sum of their costs in US dollars."""


@dataclass(frozen=True, slots=True)
class NewestBuckets(Generic[BucketType]):
    """The buckets of a window that have data, oldest first."""

    buckets: Sequence[BucketType]
    searched_back_to: datetime | None
    """Start of the part of the window that was read, if it was truncated; None if the whole window was read."""


def load_durations(
    connection: Connection, since: datetime, until: datetime, choose_grid: ChooseGrid, **equal: str | None
) -> NewestBuckets[DurationBucket]:
    """Return the durations per bucket.

    ``equal`` has the required values of ``service`` and ``route``; None matches all.
    """
    # With a route, both queries use the index on route and time.
    on_route, conditions = matching(exchange, route=equal["route"]), matching(exchange, **equal)
    columns = (exchange.c.started_at, exchange.c.duration)
    window = (since, until)
    pairs, unread, floor = _load_newest(connection, columns, window, conditions, MAX_EXCHANGES_READ, on_route)
    grid = choose_grid(floor)
    values = _values_by_bucket(pairs, unread, grid)
    buckets = []
    for number, durations in sorted(values.items()):
        durations.sort()
        median, p95 = (nearest_rank(durations, share) for share in (0.5, 0.95))
        buckets.append(DurationBucket(start=grid.start(number), n=len(durations), median=median, p95=p95))
    return NewestBuckets(buckets, floor)


def load_costs(
    connection: Connection, since: datetime, until: datetime, choose_grid: ChooseGrid, **equal: str | None
) -> NewestBuckets[CostBucket]:
    """Return the costs per bucket. The arguments are those of :func:`load_durations`; ``equal`` may name a scorer."""
    conditions = [*matching(score, **equal), score.c.cost.is_not(None)]
    columns = (score.c.started_at, score.c.cost)
    pairs, unread, floor = _load_newest(connection, columns, (since, until), conditions, MAX_SCORES_READ)
    grid = choose_grid(floor)
    return NewestBuckets(
        [
            CostBucket(start=grid.start(number), n=len(costs), usd=math.fsum(costs))
            for number, costs in sorted(_values_by_bucket(pairs, unread, grid).items())
        ],
        floor,
    )


def _load_newest(
    connection: Connection,
    columns: tuple[ColumnElement[Any], ColumnElement[Any]],
    window: tuple[datetime, datetime],
    conditions: Sequence[ColumnElement[bool]],
    bound: int,
    indexed: Sequence[ColumnElement[bool]] = (),
) -> tuple[list[tuple[int, float]], datetime | None, datetime | None]:
    """Return the newest values with their times, and, if ``bound`` truncated the window, the newest time that was not
    read and the start of what was read.
    """
    moment, (since, until) = columns[0], window
    pairs: list[tuple[int, float]] = []

    def load(source: Connection, since: datetime) -> datetime | None:
        times = select(moment).where(moment >= since, moment < until, *indexed).order_by(moment.desc())
        floor: datetime | None = source.execute(times.offset(bound).limit(1)).scalar()  # None if all rows are read
        # Given two lower bounds, SQLite would use the wider one.
        is_read = moment >= since if floor is None else moment > floor
        query = select(EpochSeconds(moment), columns[1]).where(is_read, moment < until, *conditions)
        pairs.extend(source.execute(query).all())
        return floor

    floor = load(connection, since)
    with open_newest(connection, floor or since, until, count=bound) as (archive, oldest):
        if archive is not None:
            floor = latest(floor, load(archive, floor or since))
    unread = latest(floor, None if oldest is None else oldest - _MICROSECOND)
    return pairs, unread, latest(floor, oldest)


def _values_by_bucket(
    pairs: Sequence[tuple[int, float]], unread: datetime | None, grid: BucketGrid
) -> dict[int, list[float]]:
    """Return the values by bucket number, without the bucket that was only partly read, and older ones."""
    values: dict[int, list[float]] = {}
    if moments := [seconds for seconds, _ in pairs]:
        first, end = (datetime.fromtimestamp(seconds, UTC) for seconds in (min(moments), max(moments) + 1))
        number = grid.numbering(first, end)
        for seconds, value in pairs:
            values.setdefault(number(seconds), []).append(value)
    return values if unread is None else {at: some for at, some in values.items() if at > grid.number(unread)}


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values: the smallest value that at least this share of the values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
