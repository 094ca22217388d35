"""Sums over a window by bucket and group, read from up-to-date rollups and otherwise from rows.

The results are always the same as if they were computed only from rows. Sums over archived rows are added: those of
whole days are in the database, and the archive's files are read only where a bucket or the window begins or ends
within a day, and for breakdowns that the rollups of that day do not include.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Final, Self

from sqlalchemy import Connection, or_

from germane.errors import UsageError
from germane.statistics import Histogram, pack_weights
from germane.storage.archive.days import ONE_DAY
from germane.storage.archive.dialect import NAME as ARCHIVE
from germane.storage.archive.reader import (
    archived_extent,
    archived_ranges,
    find_days,
    in_window,
    open_archive,
    read_once,
)
from germane.storage.counts import dirty_hours
from germane.storage.db.mappers import batched
from germane.storage.db.tables import archived_day
from germane.storage.trends import dimensions
from germane.storage.trends.aggregates import PROXIES, SCORES
from germane.storage.trends.bucket_grid import BucketGrid
from germane.storage.trends.dimensions import ROUTE
from germane.storage.trends.statements import (
    HISTOGRAMS,
    OUTCOME_COUNTS,
    PROXY_SUMS,
    ROUTES,
    SCORE_SUMS,
    SCORE_SUMS_WITH_HISTOGRAMS,
    Grouping,
    Measure,
    compiled_sums,
    select_sums,
)
from germane.storage.trends.time_ranges import (
    ARCHIVED_DAY,
    BEGINNING,
    DAY,
    END,
    HOUR,
    TimeRange,
    WindowParts,
    down,
    split_window,
    up,
)

Key = tuple[Any, ...]
"""The bucket's number if there are buckets, followed by the values of the group columns."""
Pieces = Sequence[tuple[WindowParts, int]]
"""Parts of a window between clock changes, each with the seconds to add to UTC to compute bucket numbers."""
Sources = Sequence[tuple[Connection, Pieces]]
"""The database and, if the window reaches into it, the archive, each with the parts of the window to read from it."""
Outcomes = dict[tuple[str, str], int]
"""Numbers of exchanges by (outcome, reason)."""
MAX_DAYS_OF_ROWS: Final = 4
"""Maximum number of archived days to read from rows instead of hourly rollups."""
MAX_PARTS: Final = 8
"""Maximum number of parts of a window that one statement reads. SQLite allows 500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRequest:
    """The window, buckets and filters of a trend query."""

    since: datetime
    """UTC."""
    until: datetime
    """UTC."""
    bucket: BucketGrid | None = None
    """The buckets; None for the whole window as one bucket."""
    equal: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Required values of ``service``, ``route`` and ``scorer``. ``routes`` has several values of ``route``."""
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
        """Add the sums over another part of the window."""
        for name, value in sums.items():
            self.sums[name] += value
        self.latest = max(self.latest, latest)

    @property
    def histogram(self) -> Histogram | None:
        """The histogram of the scores; None if not requested."""
        return None if self.packed_histograms is None else Histogram.of(self.packed_histograms)


class TrendQuery:
    """Reads the sums for a request in one transaction, which must use snapshot isolation. Use it as a context manager.

    All methods may raise :class:`~germane.errors.ArchiveError` if the window reaches into an archive that cannot be
    read.
    """

    def __init__(self, connection: Connection, request: TrendRequest, *, rows_only: bool = False) -> None:
        self._connection = connection
        self._request = request
        self._rows_only = rows_only
        """Whether to read only rows of this connection: neither rollups nor the archive."""
        self._open = ExitStack()
        self._archives: dict[frozenset[datetime], Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def scores(self, names: Sequence[str], *, histograms: bool = True) -> dict[Key, Group]:
        """Return sums over scores by bucket, by the named columns, and by label if there is a dimension."""
        # For rollups that are read without summing, the histograms are read in the same query.
        measure = SCORE_SUMS_WITH_HISTOGRAMS if histograms else SCORE_SUMS
        start = -len(SCORES) - 2  # index of the sums in a row: after the key, before the latest time and the histogram
        groups: dict[Key, Group] = {}
        for connection, pieces in self._label_sources:
            for row in self._read(connection, pieces, names, measure, self._request.dimension):
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
        for connection, pieces in self._sources(self._request.since):
            for row in self._read(connection, pieces, names, PROXY_SUMS):
                key, sums = row[: -len(PROXIES)], dict(zip(PROXIES, row[-len(PROXIES) :], strict=True))
                total = totals.setdefault(key, sums)
                if total is not sums:
                    for name, value in sums.items():
                        total[name] += value
        return totals

    def counts(self, names: Sequence[str]) -> dict[Key, Outcomes]:
        """Return outcome counts by bucket and by the named columns. ``since`` is rounded down to the minute."""
        counts: dict[Key, Outcomes] = {}
        known: dict[tuple[str, str], tuple[str, str]] = {}  # shared, because thousands of rows have few distinct values
        for connection, pieces in self._sources(self._request.since.replace(second=0, microsecond=0)):
            for row in self._read(connection, pieces, (*names, "outcome", "reason"), OUTCOME_COUNTS):
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
    def _label_sources(self) -> Sources:
        """The sources of scores. If the rollups do not include the dimension, everything is read from rows."""
        dimension = self._request.dimension
        if self._rows_only or not dimension or dimension in dimensions.rolled_dimensions(self._connection):
            return self._sources(self._request.since, dimension)
        parts = self._grid_parts(self._request.since)
        pieces: Pieces = [(WindowParts((), [part]), shift) for part, shift in parts]
        return self._sources(self._request.since, dimension, pieces)

    def _grid_parts(self, since: datetime) -> list[tuple[TimeRange, int]]:
        until, grid = self._request.until, self._request.bucket
        return [((since, until), 0)] if grid is None else list(grid.split(since, until))

    def _sources(self, since: datetime, dimension: str = "", pieces: Pieces | None = None) -> Sources:
        """Return the parts of the window that starts at ``since`` to read from the database and from the archive.

        Rollups must be broken down by ``dimension``, if it is not empty. ``pieces`` are the parts to read from the
        database, apart from the rollups of archived days.
        """
        if self._rows_only:
            return [(self._connection, [(WindowParts((), [part]), shift) for part, shift in self._grid_parts(since)])]
        pieces = self._split(since) if pieces is None else pieces
        if (extent := archived_extent(self._connection, since, self._request.until)) is None:
            return [(self._connection, pieces)]
        first, last, missing = extent
        # The database has a rollup of each archived day. Days that cannot be read from it are read from their files.
        lacking = self._find_days_without(dimension, since) if dimension else set()
        in_files = frozenset(lacking.union(self._find_split_days(since, first, last)))
        rollups: list[tuple[WindowParts, int]] = []
        for (start, end), shift in self._grid_parts(since):
            whole_days = max(up(start, DAY), first), min(down(end, DAY), last + ONE_DAY)
            if whole_days[0] < whole_days[1]:
                rollups.append((WindowParts([(ARCHIVED_DAY, whole_days)], (), in_files | missing), shift))
        database: Sources = [(self._connection, [*pieces, *rollups])]
        if not in_files:
            return database
        if in_files not in self._archives:
            self._archives[in_files] = self._open.enter_context(open_archive(self._connection, in_files))
        # Planning a query takes longer than adding up the rows of a few days, so these are read in one query.
        hourly = len(in_files) > MAX_DAYS_OF_ROWS and not lacking
        return [*database, (self._archives[in_files], self._split_files(since, hourly=hourly))]

    def _find_days_without(self, dimension: str, since: datetime) -> set[datetime]:
        """Return the archived days whose rollups do not include a dimension."""
        until = self._request.until
        with_dimension = {part.day for part in archived_ranges(self._connection, since, until, dimension)}
        return {part.day for part in archived_ranges(self._connection, since, until)} - with_dimension

    def _find_split_days(self, since: datetime, first: datetime, last: datetime) -> list[datetime]:
        """Return the archived days that are not removed, not completely in the window, or in two buckets."""
        grid, until = self._request.bucket, self._request.until
        window = in_window(since, until)
        if grid is not None and grid.length < DAY:
            return find_days(self._connection, *window)
        moments = {moment for part, _ in self._grid_parts(since) for moment in part}
        if grid is not None and (grid.is_local or grid.length % DAY):
            moments.update(grid.starts(max(since, first), min(until, last + ONE_DAY)))
        split = {day for moment in moments if (day := down(moment, DAY)) != moment}
        is_partial = archived_day.c.state != "removed"
        return find_days(self._connection, *window, or_(is_partial, archived_day.c.day.in_(sorted(split))))

    def _split_files(self, since: datetime, *, hourly: bool) -> Pieces:
        """Split the window into the parts to read from the archive's hourly rollups and from its rows."""
        grid = self._request.bucket
        due = set() if grid is None else set(grid.split_hours(since, self._request.until))
        if hourly:  # the removed part of a day may end within an hour
            days = archived_ranges(self._connection, since, self._request.until)
            due.update(down(part.until, HOUR) for part in days if not part.is_whole)
        hours = sorted(due)
        return [
            (
                split_window(*part, hours, [HOUR] if hourly and (grid is None or self._can_use(HOUR, shift)) else ()),
                shift,
            )
            for part, shift in self._grid_parts(since)
        ]

    def _add_histograms(self, names: Sequence[str], groups: dict[Key, Group]) -> None:
        """Add the histograms of rows, and of rollups that the database adds up, to the groups."""
        for connection, pieces in self._label_sources:
            for parts, shift in pieces:
                grouping = self._grouping(names, shift, self._request.dimension)
                weights: dict[Key, dict[int, float]] = {}
                for *key, number, weight in self._sums(connection, HISTOGRAMS, grouping, replace(parts, rolled=())):
                    bins = weights.setdefault(tuple(key), {})
                    bins[number] = bins.get(number, 0.0) + weight
                for group_key, bins in weights.items():
                    groups[group_key].packed_histograms.append(pack_weights(bins))  # type: ignore[union-attr]  # set with the sums
                # Histograms of rollups that cover a bucket are read with the sums.
                rolled = [(span, run) for span, run in parts.rolled if not self._is_bucket(span)]
                for *key, blob in self._sums(connection, HISTOGRAMS, grouping, replace(parts, raw=(), rolled=rolled)):
                    groups[tuple(key)].packed_histograms.append(blob)  # type: ignore[union-attr]  # set with the sums

    def _read(
        self, connection: Connection, pieces: Pieces, names: Sequence[str], measure: Measure, dimension: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the sums over all parts of the window, all with the same columns."""
        for parts, shift in pieces:
            yield from self._sums(connection, measure, self._grouping(names, shift, dimension), parts)

    def _grouping(self, names: Sequence[str], shift: int, dimension: str) -> Grouping:
        bucket = None if self._request.bucket is None else (self._request.bucket.length, shift)
        return Grouping(tuple(names), tuple(self._request.equal), bucket, dimension)

    def _sums(
        self, connection: Connection, measure: Measure, grouping: Grouping, parts: WindowParts
    ) -> Iterator[tuple[Any, ...]]:
        """Yield sums over the parts of a window. SQL does not add up rollups of whole buckets, which are few."""
        raw = [(0, run) for run in parts.raw]  # the length 0 stands for rows; in a statement, they precede rollups
        # A database can only use its index for a single range, so each range is a part of a statement. In the archive,
        # all ranges of rows are read together.
        together, others = (raw, parts.rolled) if connection.dialect.name == ARCHIVE else ((), [*raw, *parts.rolled])
        is_shared = connection is not self._connection and measure.rolled_sums and not grouping.dimension
        for ranges in filter(None, [together, *batched(others, MAX_PARTS)]):
            execute = partial(self._execute, connection, measure, ranges, parts.excluded)
            if not is_shared or any(self._is_bucket(span) for span, _ in ranges):
                yield from execute(grouping)
            else:  # the queries of a page add up about the same rows of the archive, so these sums are read once
                refined = grouping.refine(measure)
                key = measure, refined, *ranges, *sorted(parts.excluded), *map(self._request.equal.get, refined.equal)
                table = measure.rollup if ranges[0][0] else measure.moment.table
                sums = read_once(connection, table.name, key, partial(execute, refined))
                yield from grouping.regroup(sums, refined, self._request.equal.get(ROUTES))

    def _execute(
        self, connection: Connection, measure: Measure, ranges: Any, excluded: Collection[datetime], grouping: Grouping
    ) -> list[tuple[Any, ...]]:
        row_ranges = sum(not span for span, _ in ranges)
        rollups = tuple(bool(measure.rolled_sums) and not self._is_bucket(span) for span, _ in ranges if span)
        # Statements for any number of ranges would fill the memory, so they are not kept.
        is_kept = row_ranges <= MAX_PARTS
        build = select_sums if is_kept else select_sums.__wrapped__
        dialect = connection.dialect.name
        rows = (row_ranges,) if dialect == ARCHIVE and row_ranges else (1,) * row_ranges
        statement = build(measure, grouping, dialect, rows, rollups, has_excluded=bool(excluded and rollups))
        parameters = {**self._request.equal, "dimension": grouping.rolled_by, "excluded": sorted(excluded)}
        for number, (span, (since, until)) in enumerate(ranges):
            parameters |= {f"span_{number}": span, f"since_{number}": since, f"until_{number}": until}
        options = {"compiled_cache": compiled_sums(connection.engine) if is_kept else None}
        return [tuple(row) for row in connection.execute(statement, parameters, execution_options=options)]

    def _is_bucket(self, span: int) -> bool:
        """Return whether a rollup covers a whole bucket. Those by label are also split by route."""
        are_parts = bool(self._request.dimension) and ROUTE not in self._request.equal
        return self._request.bucket is not None and abs(span) == self._request.bucket.length and not are_parts
