"""Hourly rollups of archived rows, which are stored in the archive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection

from germane.statistics import sum_packed
from germane.storage.trends.bucket_grid import BucketGrid
from germane.storage.trends.dimensions import ROUTE
from germane.storage.trends.query import TrendQuery, TrendRequest
from germane.storage.trends.rollup import RollupRows, Row, bounded, over_routes
from germane.storage.trends.time_ranges import HOUR

_SCORE_NAMES = ("service", "route", "scorer", "fingerprint")


def compute_hours(connection: Connection, since: datetime, until: datetime, names: Sequence[str]) -> RollupRows:
    """Compute the rollups of all hours in a window from its rows.

    ``names`` are the dimensions by which to break down, in addition to the route.
    """
    grid = BucketGrid(HOUR)

    def query(dimension: str = "") -> TrendQuery:
        request = TrendRequest(since=since, until=until, bucket=grid, dimension=dimension)
        return TrendQuery(connection, request, rows_only=True)

    scores: list[Row] = []
    for dimension in ("", *names):
        hours: dict[int, list[Row]] = {}
        for (number, *key), group in query(dimension).scores(_SCORE_NAMES).items():
            # With a dimension, the key ends with the label.
            values = {**dict(zip(_SCORE_NAMES, key, strict=False)), "label": key[-1] if dimension else ""}
            blobs = group.packed_histograms or ()
            row = {"dimension": dimension or ROUTE, **values, **group.sums, "latest": group.latest}
            hours.setdefault(number, []).append({**row, "histogram": sum_packed(blobs)})
        if not dimension:
            scores += _with_totals(grid, hours)
        else:
            scores += [row for number, rows in hours.items() for row in _at(grid.start(number), bounded(rows))]
    counts: dict[int, list[Row]] = {}
    for (number, service, route, scorer), outcomes in query().counts(_SCORE_NAMES[:3]).items():
        row = {"dimension": ROUTE, "service": service, "route": route, "scorer": scorer}
        counts.setdefault(number, []).extend(
            {**row, "outcome": outcome, "reason": reason, "count": count}
            for (outcome, reason), count in outcomes.items()
        )
    proxies: dict[int, list[Row]] = {}
    for (number, service, route), sums in query().proxies(_SCORE_NAMES[:2]).items():
        proxies.setdefault(number, []).append({"dimension": ROUTE, "service": service, "route": route, **sums})
    return RollupRows((), scores, _with_totals(grid, counts), _with_totals(grid, proxies))


def _with_totals(grid: BucketGrid, hours: Mapping[int, Sequence[Row]]) -> list[Row]:
    """Return rows by route, and their sums over all routes."""
    return [row for number, rows in hours.items() for row in _at(grid.start(number), [*over_routes(rows), *rows])]


def _at(hour: datetime, rows: Iterable[Row]) -> list[Row]:
    return [{"span": HOUR, "start": hour, **row} for row in rows]
