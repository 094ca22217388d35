"""The grid of all routes over time: one cell per hour or day, compared with the usual level of its route."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from germane.insights.context import ViewParams
from germane.insights.formatting import format_number, format_signed, link_window
from germane.insights.situation import DAY, HOUR
from germane.storage import Bucket, BucketGrid

MAX_ROWS: Final = 40
MAX_COLUMNS: Final = 31
MAX_CELLS: Final = 380
"""Maximum number of cells, which keeps the page small."""
STEPS: Final = (0.05, 0.15, 0.3)
"""Differences at which the color of a cell changes. Smaller differences have no color."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """The answers of a route in one hour or day."""

    since: datetime
    until: datetime
    mean: float
    n: int
    is_few: bool
    """Whether there are fewer than 20 scores."""
    difference: float | None
    """The mean minus the usual level of the route, or None if the level is unknown."""

    @property
    def query(self) -> str:
        """The part of the URL that selects the answers."""
        return link_window(self.since, self.until)

    @property
    def style(self) -> str:
        """The classes: ``d`` for lower or ``u`` for higher with the size of the difference, and ``f`` for few."""
        step = sum(abs(self.difference or 0.0) >= limit for limit in STEPS)
        side = f"{'d' if (self.difference or 0.0) < 0 else 'u'}{step}" if step else "e"
        return f"{side} f" if self.is_few else side

    @property
    def text(self) -> str:
        """The difference with its sign, or the mean if there is no usual level, without the zero before the point."""
        shown = format_number(self.mean) if self.difference is None else format_signed(self.difference)
        return shown.replace("0.", ".", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """One route in the grid."""

    service: str
    route: str
    dropped: bool
    cells: Sequence[GridCell | None]
    """One cell per column; None without scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The grid of the routes with the largest drops."""

    columns: Sequence[datetime]
    """Start of each column, in the visitor's time zone."""
    length: timedelta
    """Length of a column."""
    rows: Sequence[GridRow]
    hidden: int
    """Number of routes without a row."""

    @property
    def is_hourly(self) -> bool:
        """Whether each column is an hour."""
        return self.length == HOUR

    @property
    def unit(self) -> str:
        """The length of a column in words."""
        days = self.length // DAY
        return "hour" if self.is_hourly else "day" if days == 1 else f"{days} days"


def grid_length(view: ViewParams) -> timedelta:
    """Return the length of a column: an hour, a day, or as many whole days as the window requires."""
    length = view.until - view.since
    return HOUR if length <= MAX_COLUMNS * HOUR else DAY * max(1, math.ceil(length / DAY / MAX_COLUMNS))


def grid_rows(view: ViewParams) -> int:
    """Return the maximum number of rows."""
    return min(MAX_ROWS, int(MAX_CELLS / max(1.0, (view.until - view.since) / grid_length(view))))


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRoute:
    """A route with its scores, from which a row is drawn."""

    service: str
    route: str
    dropped: bool
    level: float | None
    """The usual level: the baseline's mean, or the mean of the preceding days."""
    fingerprint: str | None
    """Fingerprint of the scores that are compared with the level."""
    buckets: Sequence[Bucket]


def build_grid(view: ViewParams, routes: Iterable[GridRoute], hidden: int) -> Grid:
    """Build the grid. Buckets have the length :func:`grid_length`; those of other fingerprints are not compared."""
    length, zone = grid_length(view), view.zone or UTC
    columns = list(BucketGrid(int(length.total_seconds()), zone).starts(view.since, view.until))
    rows = []
    for route in routes:
        by_start: dict[datetime, Bucket] = {}
        for bucket in route.buckets:
            if bucket.start not in by_start or bucket.fingerprint == route.fingerprint:
                by_start[bucket.start] = bucket
        cells: list[GridCell | None] = []
        for start, end in zip(columns, [*columns[1:], view.until], strict=True):
            found = by_start.get(start)
            if found is None:
                cells.append(None)
                continue
            level = route.level if found.fingerprint == route.fingerprint else None
            difference = None if level is None else found.mean - level
            cells.append(
                GridCell(max(start, view.since), end, found.mean, found.n, not found.has_min_samples, difference)
            )
        rows.append(GridRow(service=route.service, route=route.route, dropped=route.dropped, cells=cells))
    return Grid(columns=[start.astimezone(zone) for start in columns], length=length, rows=rows, hidden=hidden)
