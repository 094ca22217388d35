"""Sums over a window by bucket and group, read from up-to-date rollups and otherwise from rows.

The results are always the same as if they were computed only from rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Label, Select, func, literal_column, null, select

from germane.errors import UsageError
from germane.storage.counts import dirty_hours
from germane.storage.db.functions import EpochSeconds, Unindexed
from germane.storage.db.tables import exchange, rollup, rollup_count, rollup_proxy, score, tally
from germane.storage.stats.histogram import Histogram, pack_weights
from germane.storage.trends import dimensions
from germane.storage.trends.aggregates import (
    BIN,
    PROXIES,
    ROLLED_PROXIES,
    ROLLED_SCORES,
    SCORES,
    WEIGHT,
    labeled,
)
from germane.storage.trends.bucket_grid import BucketGrid
from germane.storage.trends.dimensions import ROUTE
from germane.storage.trends.time_ranges import BEGINNING, DAY, END, HOUR, TimeRange, WindowParts, split_window

Key = tuple[Any, ...]
"""The bucket's number if there are buckets, followed by the values of the group columns."""
Pieces = Sequence[tuple[WindowParts, int]]
"""Parts of a window between clock changes, each with the seconds to add to UTC to compute bucket numbers."""
Outcomes = dict[tuple[str, str], int]
"""Numbers of exchanges by (outcome, reason)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRequest:
    """The window, buckets and filters of a trend query."""

    since: datetime
    """UTC."""
    until: datetime
    """UTC."""
    bucket: BucketGrid | None = None
    """The buckets; None for the whole window as one bucket."""
    equal: Mapping[str, str] = field(default_factory=dict)
    """Required values of ``service``, ``route`` and ``scorer``."""
    dimension: str = ""
    """Dimension to break down by; empty for none."""


def resolve_window(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    """Return the start and end of a window in UTC. Open ends are replaced by times outside the range of all answers.

    Raises:
        UsageError: A time has no time zone.
    """
    return _end(since, "since", BEGINNING), _end(until, "until", END)


def _end(moment: datetime | None, name: str, default: datetime) -> datetime:
    if moment is None:
        return default
    if moment.tzinfo is None:
        raise UsageError(f"{name} = {moment} has no time zone")
    return max(BEGINNING, min(END, moment)).astimezone(UTC)


@dataclass(slots=True)
class Group:
    """Sums over the scores in one bucket and group."""

    sums: dict[str, float]
    latest: datetime
    packed_histograms: list[bytes] | None = None
    """Packed histograms to add up; None if not requested."""

    def add(self, sums: Mapping[str, float], latest: datetime) -> None:
        """Add the sums of another part of the window."""
        for name, value in sums.items():
            self.sums[name] += value
        self.latest = max(self.latest, latest)

    @property
    def histogram(self) -> Histogram | None:
        """The histogram of the scores; None if not requested."""
        return None if self.packed_histograms is None else Histogram.of(self.packed_histograms)


class TrendQuery:
    """Reads the sums for a request in one transaction, which must use snapshot isolation."""

    def __init__(self, connection: Connection, request: TrendRequest) -> None:
        self._connection = connection
        self._request = request

    def scores(self, names: Sequence[str], *, histograms: bool = True) -> dict[Key, Group]:
        """Return sums over scores by bucket, by the named columns, and by label if there is a dimension."""
        # For rollups that are read without summing, the histograms are read in the same query.
        none = null().label("histogram")
        columns = [*labeled(SCORES), func.max(score.c.started_at).label("latest"), none]
        added = [*labeled(ROLLED_SCORES), func.max(rollup.c.latest).label("latest"), none]
        as_is = [*(rollup.c[name] for name in SCORES), rollup.c.latest, rollup.c.histogram if histograms else none]
        source, label = self._rows()
        start = -len(SCORES) - 2  # index of the sums in a row: after the key, before the latest time and the histogram
        groups: dict[Key, Group] = {}
        for query in self._queries(
            self._label_pieces, names, (source, score.c.started_at, columns, None), (rollup, added, as_is), label
        ):
            for row in map(tuple, self._connection.execute(query)):
                key, latest, blob = row[:start], row[-2], row[-1]
                sums = dict(zip(SCORES, row[start:-2], strict=True))
                if key in groups:
                    groups[key].add(sums, latest)
                else:
                    groups[key] = Group(sums, latest, [] if histograms else None)
                if blob is not None:
                    groups[key].packed_histograms.append(blob)  # type: ignore[union-attr]  # histograms are requested
        if histograms:
            self._add_histograms(names, groups)
        return groups

    def proxies(self, names: Sequence[str]) -> dict[Key, dict[str, float]]:
        """Return sums over proxy scores by bucket and by the named columns, a subset of service and route."""
        totals: dict[Key, dict[str, float]] = {}
        known = exchange.c.proxy.is_not(None)
        for query in self._queries(
            self._window_pieces, names, (exchange, exchange.c.started_at, labeled(PROXIES), known),
            (rollup_proxy, labeled(ROLLED_PROXIES), [rollup_proxy.c[name] for name in PROXIES]),
        ):  # fmt: skip
            for row in map(tuple, self._connection.execute(query)):
                key, sums = row[: -len(PROXIES)], dict(zip(PROXIES, row[-len(PROXIES) :], strict=True))
                total = totals.setdefault(key, sums)
                if total is not sums:
                    for name, value in sums.items():
                        total[name] += value
        return totals

    def counts(self, names: Sequence[str]) -> dict[Key, Outcomes]:
        """Return outcome counts by bucket and by the named columns. ``since`` is rounded down to the minute."""
        counts: dict[Key, Outcomes] = {}
        pieces = self._split(self._request.since.replace(second=0, microsecond=0))
        known: dict[tuple[str, str], tuple[str, str]] = {}  # shared, because thousands of rows have few distinct values
        for query in self._queries(
            pieces, (*names, "outcome", "reason"),
            (tally, tally.c.minute, [func.sum(tally.c.count).label("total")], None),
            (rollup_count, [func.sum(rollup_count.c.count).label("total")], [rollup_count.c.count]),
        ):  # fmt: skip
            for row in map(tuple, self._connection.execute(query)):
                outcomes = counts.setdefault(row[:-3], {})
                outcome = known.setdefault(row[-3:-1], row[-3:-1])
                outcomes[outcome] = outcomes.get(outcome, 0) + int(row[-1])
        return counts

    @cached_property
    def _due(self) -> list[datetime]:
        return dirty_hours.dirty_between(self._connection, self._request.since, self._request.until)

    def _split(self, since: datetime) -> Pieces:
        """Split the window that starts at ``since`` into the parts to read."""
        until, grid = self._request.until, self._request.bucket
        if grid is None:
            return [(split_window(since, until, self._due), 0)]
        due = sorted({*self._due, *grid.split_hours(since, until)})
        return [
            (split_window(*part, due, [span for span in (DAY, HOUR) if self._can_use(span, shift)]), shift)
            for part, shift in grid.split(since, until)
        ]

    def _can_use(self, span: int, shift: int) -> bool:
        """Return whether each rollup of this length is within one bucket, apart from hours that are read from rows."""
        assert self._request.bucket is not None  # noqa: S101 - only called with buckets
        return self._request.bucket.length % span == 0 and (span == HOUR or shift % span == 0)

    @cached_property
    def _window_pieces(self) -> Pieces:
        return self._split(self._request.since)

    @cached_property
    def _label_pieces(self) -> Pieces:
        """The pieces of the window. If the rollups do not include the dimension, everything is read from rows."""
        dimension = self._request.dimension
        if not dimension or dimension in dimensions.rolled_dimensions(self._connection):
            return self._window_pieces
        since, until, grid = self._request.since, self._request.until, self._request.bucket
        parts = [((since, until), 0)] if grid is None else grid.split(since, until)
        return [(WindowParts((), [part]), shift) for part, shift in parts]

    def _rows(self) -> tuple[Any, ColumnElement[str] | None]:
        if not self._request.dimension:
            return score, None
        label = dimensions.label_expression(self._request.dimension, self._connection.dialect.name)
        return score.outerjoin(exchange, exchange.c.id == score.c.exchange_id), label

    def _add_histograms(self, names: Sequence[str], groups: dict[Key, Group]) -> None:
        """Add the histograms of rows, and of rollups that the database adds up, to the groups."""
        source, label = self._rows()
        more = [] if label is None else [label]
        for parts, shift in self._label_pieces:
            for run in parts.raw:
                keys = [*self._number(score.c.started_at, shift), *(score.c[name] for name in names), *more]
                query = select(*keys, BIN.label("bin"), WEIGHT.label("weight")).select_from(source)
                query = query.where(*_within(score.c.started_at, run), *self._equal(score)).group_by(
                    *_plain(keys), literal_column("bin")
                )
                weights: dict[Key, dict[int, float]] = {}
                for *key, number, weight in self._connection.execute(query):
                    weights.setdefault(tuple(key), {})[number] = weight
                for group_key, bins in weights.items():
                    groups[group_key].packed_histograms.append(pack_weights(bins))  # type: ignore[union-attr]  # set with the sums
            for span, run in parts.rolled:
                if self._is_bucket(span):
                    continue  # read with the sums
                columns = [rollup.c[name] for name in (*names, *(["label"] if more else []))]
                query = select(*self._number(rollup.c.start, shift), *columns, rollup.c.histogram)
                for *key, blob in self._connection.execute(query.where(*self._of_rollup(rollup, names, span, run))):
                    groups[tuple(key)].packed_histograms.append(blob)  # type: ignore[union-attr]  # set with the sums

    def _queries(
        self,
        pieces: Pieces,
        names: Sequence[str],
        raw: tuple[Any, Any, Sequence[Any], Any],
        rolled: tuple[Any, Sequence[Any], Sequence[Any]],
        label: ColumnElement[str] | None = None,
    ) -> Iterable[Select[Any]]:
        """Yield one query per part of the window, all with the same columns.

        Rollups that cover whole buckets are read without summing in SQL, because there is little to add up.
        """
        source, moment, columns, condition = raw
        table = moment.table
        table_of_rollup, added, as_is = rolled
        for parts, shift in pieces:
            for run in parts.raw:
                keys = [*(table.c[name] for name in names), *([] if label is None else [label])]
                keys = [*self._number(moment, shift), *keys]
                query = select(*keys, *columns).select_from(source).where(*_within(moment, run), *self._equal(table))
                query = query if condition is None else query.where(condition)
                yield query.group_by(*_plain(keys))
            for span, run in parts.rolled:
                more = [] if label is None else [table_of_rollup.c.label.label(dimensions.LABEL)]
                keys = [*(table_of_rollup.c[name] for name in names), *more]
                keys = [*self._number(table_of_rollup.c.start, shift), *keys]
                where = self._of_rollup(table_of_rollup, names, span, run)
                if self._is_bucket(span):
                    yield select(*keys, *as_is).where(*where)
                else:
                    yield select(*keys, *added).where(*where).group_by(*_plain(keys))

    def _is_bucket(self, span: int) -> bool:
        """Return whether a rollup of this length covers a whole bucket.

        Rollups by label are also split by route, so each covers only part of a bucket unless one route is selected.
        """
        are_parts = bool(self._request.dimension) and ROUTE not in self._request.equal
        return self._request.bucket is not None and span == self._request.bucket.length and not are_parts

    def _number(self, moment: Any, shift: int) -> list[ColumnElement[int]]:
        """Return a list with the column for the bucket number; empty if there are no buckets."""
        if self._request.bucket is None:
            return []
        # Use literals, because PostgreSQL treats equal expressions as different if they contain bound parameters.
        length, added = (literal_column(str(value), Integer) for value in (self._request.bucket.length, shift))
        seconds = EpochSeconds(moment) + added if shift else EpochSeconds(moment)
        return [(seconds // length * length).label("bucket")]

    def _equal(self, table: Any) -> list[Any]:
        # For exchanges, force the time index: SQLite would use the route index, which does not contain proxy scores.
        column = Unindexed if table is exchange else lambda name: name
        return [column(table.c[name]) == value for name, value in self._request.equal.items() if name in table.c]

    def _of_rollup(self, table: Any, names: Sequence[str], span: int, run: TimeRange) -> list[Any]:
        of_routes = ROUTE if ROUTE in names or ROUTE in self._request.equal else ""
        dimension = (self._request.dimension if table is rollup else "") or of_routes
        conditions = [table.c.span == span, table.c.dimension == dimension]
        return [*conditions, *_within(table.c.start, run), *self._equal(table)]


def _within(moment: Any, run: TimeRange) -> list[Any]:
    return [moment >= run[0], moment < run[1]]


def _plain(keys: Sequence[Any]) -> list[Any]:
    """Return the columns to group by. Labels replace expressions, because parameters differ between clauses."""
    return [literal_column(key.name) if isinstance(key, Label) else key for key in keys]
