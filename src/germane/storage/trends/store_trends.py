"""Trends, summaries and comparisons of scores, and markers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from sqlalchemy import select

from germane.annotation import Marker
from germane.errors import UsageError
from germane.score import MIN_SAMPLES
from germane.statistics import Comparisons, TimeWindow, WeightedSums, estimate_group
from germane.storage.counts.tally import Coverage, coverage_counts
from germane.storage.db.component import StoreComponent
from germane.storage.db.conditions import matching, within
from germane.storage.db.mappers import RecordMapper
from germane.storage.db.tables import marker
from germane.storage.trends import attribute_means, comparisons, usage
from germane.storage.trends.bucket_grid import BucketGrid
from germane.storage.trends.dimensions import rolled_dimensions
from germane.storage.trends.query import Group, Key, TrendQuery, TrendRequest, resolve_window
from germane.storage.trends.statements import ROUTES
from germane.storage.trends.summaries import (
    Bucket,
    CoverageBucket,
    RecentMean,
    RouteMean,
    RouteSummary,
    WindowSummary,
    WindowSums,
    build_buckets,
    coverage_of,
    merge_buckets,
)
from germane.storage.trends.usage import CostBucket, DurationBucket, NewestBuckets

MINUTE: Final = 60
"""Time resolution of counts, in seconds."""
_NAMES: Final = ("service", "route", "scorer")
_MARKERS: Final = RecordMapper(marker, Marker)


class TrendReader(StoreComponent):
    """Reads means over time and by group: ``germane.Store(url).trends``.

    Windows are ``since <= started_at < until``. All methods use the same sums, so they return the same mean for the
    same window. If a mean is corrected with proxy scores, its ``correlation`` is set.
    """

    def over_time(
        self,
        *,
        scorer: str,
        bucket: timedelta,
        since: datetime,
        until: datetime,
        route: str | None = None,
        service: str | None = None,
        by: str | None = None,
        histograms: bool = True,
        coverage: bool = True,
        timezone: tzinfo = UTC,
        min_samples: int = 1,
        is_open: bool = True,
    ) -> list[Bucket]:
        """Return means over time, oldest first: one per bucket, fingerprint and group that has scores.

        Args:
            scorer: Name of the scorer.
            bucket: Length of a bucket, rounded to seconds. Whole hours and days are fastest.
            since: Start of the window.
            until: End of the window.
            route: Only answers on this route.
            service: Only answers from this service.
            by: Break down by ``route``, ``service``, ``model``, ``prompt_version`` or ``attributes.NAME``. Dimensions
                in the ``breakdowns`` setting are fast.
            histograms: Whether to read histograms, which percentiles require.
            coverage: Whether to read coverage, which the correction of means with proxy scores requires.
            timezone: Buckets of whole days start at midnight in this timezone, and buckets of whole weeks on Monday.
            min_samples: Merge neighboring buckets until each has this many scores.
            is_open: Whether the last merged bucket may have fewer scores. If not, they join the bucket before.

        Raises:
            UsageError: The dimension ``by`` is unknown, or an end of the window has no time zone.
        """
        grid = BucketGrid(_seconds(bucket), timezone)
        request = _request(since, until, grid, by, scorer=scorer, route=route, service=service)
        names = (by,) if by in _NAMES[:2] else ()
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            groups = reading.scores((*names, "fingerprint"), histograms=histograms)
            has_counts = coverage and not (request.dimension or grid.length % MINUTE)
            counts = reading.counts(names) if has_counts else {}
            proxies = reading.proxies(names) if counts and _has_proxies(groups) else {}
        place = {"service": service or "", "route": route or "", "scorer": scorer}
        if min_samples == 1:
            return build_buckets(groups, counts, proxies, names, place, grid)
        sums = WindowSums(groups, counts, proxies)
        return merge_buckets(sums, (since, until), place, grid, min_samples=min_samples, is_open=is_open)

    def coverage_over_time(
        self,
        *,
        scorer: str,
        bucket: timedelta,
        since: datetime,
        until: datetime,
        route: str | None = None,
        service: str | None = None,
        timezone: tzinfo = UTC,
    ) -> list[CoverageBucket]:
        """Return coverage over time, oldest first, including buckets without scores.

        The arguments are the same as for :meth:`over_time`. ``since`` is rounded down to the minute.

        Raises:
            UsageError: The bucket is not a multiple of one minute, or an end of the window has no time zone.
        """
        if _seconds(bucket) % MINUTE:
            raise UsageError(f"bucket must be a multiple of one minute, not {bucket}")
        grid = BucketGrid(_seconds(bucket), timezone)
        request = _request(since, until, grid, None, scorer=scorer, route=route, service=service)
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            counts = reading.counts(())
        names: dict[str, Any] = {"service": service or "", "route": route or "", "scorer": scorer}
        return [
            CoverageBucket(start=grid.start(key[0]), **names, **coverage_counts(outcomes))
            for key, outcomes in sorted(counts.items())
        ]

    def summary(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        service: str | None = None,
        histograms: bool = True,
    ) -> list[RouteSummary]:
        """Return the mean, interval and coverage for each service, route, scorer and fingerprint with scores."""
        return self._read(_request(since, until, None, None, service=service), histograms=histograms).route_summaries()

    def coverage(self, *, since: datetime | None = None, until: datetime | None = None) -> list[Coverage]:
        """Return the coverage of each service, route and scorer. ``since`` is rounded down to the minute."""
        request = _request(since, until, None, None)
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            counts = reading.counts(_NAMES)
        return [coverage_of(key, outcomes) for key, outcomes in sorted(counts.items())]

    def compare(
        self,
        *,
        since: datetime | Marker,
        until: datetime | None = None,
        before: TimeWindow | None = None,
        service: str | None = None,
        route: str | None = None,
        scorer: str | None = None,
        min_drop: float = 0.0,
    ) -> Comparisons:
        """Compare the answers since a given time with those in an earlier window.

        Args:
            since: Start of the later window: a time or a marker.
            until: End of the later window. Defaults to now.
            before: Start and end of the earlier window. Defaults to the window of the same length that ends at
                ``since``.
            service: Only answers from this service.
            route: Only answers on this route. If given, whole services are not compared.
            scorer: Only scores from this scorer.
            min_drop: Report only drops that are significantly larger than this, from 0 to 2.

        Raises:
            UsageError: A time has no time zone, a window is empty, or ``min_drop`` is out of range.
        """
        start = since.at if isinstance(since, Marker) else since
        later = comparisons.checked_window((start, until or self._context.read_clock()))
        earlier = comparisons.checked_window(before or (start - (later[1] - later[0]), start))
        if not 0 <= min_drop <= 2:
            raise UsageError(f"min_drop must be from 0 to 2, not {min_drop}")
        names = {"service": service, "route": route, "scorer": scorer}

        def summarize(window: TimeWindow) -> list[RouteSummary]:
            summaries = self.summary(since=window[0], until=window[1], histograms=False)
            return [
                one for one in summaries if all(value in {None, getattr(one, name)} for name, value in names.items())
            ]

        return comparisons.compare_summaries(
            summarize(earlier), summarize(later), (earlier, later), min_drop=min_drop, whole=route is None
        )

    def list_markers(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        service: str | None = None,
        name: str | None = None,
        limit: int | None = 100,
    ) -> list[Marker]:
        """Return markers with ``since <= at < until``, newest first.

        Args:
            since: Start of the window.
            until: End of the window.
            service: Only markers for this service.
            name: Only markers with this name.
            limit: Maximum number of markers to return; None for all.
        """
        query = select(marker).order_by(marker.c.at.desc(), marker.c.id.desc()).limit(limit)
        query = query.where(*within(marker.c.at, since, until), *matching(marker, service=service, name=name))
        with self._database.read() as connection:
            return [_MARKERS.decode(row) for row in connection.execute(query).mappings()]

    def _read(self, request: TrendRequest, *, histograms: bool, coverage: bool = True) -> WindowSums:
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            groups = reading.scores((*_NAMES, "fingerprint"), histograms=histograms)
            is_corrected = not request.dimension and _has_proxies(groups)
            counts = reading.counts(_NAMES) if coverage or is_corrected else {}
            proxies = reading.proxies(_NAMES[:2]) if is_corrected else {}
        return WindowSums(groups, counts, proxies)


class TrendStore(TrendReader):
    """Extends :class:`TrendReader` with queries for alert rules and dashboard pages, and with writing markers."""

    def routes_over_time(
        self,
        *,
        scorer: str,
        bucket: timedelta,
        since: datetime,
        until: datetime,
        routes: Collection[str],
        timezone: tzinfo = UTC,
    ) -> list[Bucket]:
        """Return the results of :meth:`over_time` for the routes with these names, in each service that has them.

        Histograms are not read.
        """
        grid, names = BucketGrid(_seconds(bucket), timezone), ("service", "route")
        request = _request(since, until, grid, None, scorer=scorer)
        request = replace(request, equal={**request.equal, ROUTES: sorted(routes)})
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            groups = reading.scores((*names, "fingerprint"), histograms=False)
            counts = {} if grid.length % MINUTE else reading.counts(names)
            proxies = reading.proxies(names) if counts and _has_proxies(groups) else {}
        return build_buckets(groups, counts, proxies, names, {"service": "", "route": "", "scorer": scorer}, grid)

    def steps_by_scorer(
        self,
        *,
        bucket: timedelta,
        since: datetime,
        until: datetime,
        min_samples: Callable[[str], int],
        is_open: bool,
        scorer: str | None = None,
        route: str | None = None,
        service: str | None = None,
        timezone: tzinfo = UTC,
    ) -> dict[str, list[Bucket]]:
        """Return the results of :meth:`over_time` for each scorer that has scores, from the same few queries.

        ``min_samples`` returns the minimum number of scores for a scorer. Histograms are not read.
        """
        grid = BucketGrid(_seconds(bucket), timezone)
        request = _request(since, until, grid, None, scorer=scorer, route=route, service=service)
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            groups = reading.scores(("scorer", "fingerprint"), histograms=False)
            counts = {} if grid.length % MINUTE else reading.counts(("scorer",))
            proxies = reading.proxies(()) if counts and _has_proxies(groups) else {}
        steps = {}
        for scorer in sorted({key[1] for key in groups}):
            own = {(number, judge): group for (number, name, judge), group in groups.items() if name == scorer}
            seen = {(number,): outcomes for (number, name), outcomes in counts.items() if name == scorer}
            sums = WindowSums(own, seen, proxies if seen and _has_proxies(own) else {})
            place = {"service": service or "", "route": route or "", "scorer": scorer}
            least = min_samples(scorer)
            steps[scorer] = merge_buckets(sums, (since, until), place, grid, min_samples=least, is_open=is_open)
        return steps

    def recent_means(self, *, scorer: str, since: datetime, until: datetime) -> list[RecentMean]:
        """Return the means of each route over periods that end at ``until``, of whole hours up to the whole window.

        The shortest period of a route is the first one with at least 20 scores, and each longer one has at least half
        as many more. Means are not corrected with proxy scores.
        """
        grid = BucketGrid(3600)
        request = _request(since, until, grid, None, scorer=scorer)
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            groups = reading.scores((*_NAMES[:2], "fingerprint"), histograms=False)
        means: list[RecentMean] = []
        totals: dict[Key, tuple[Group, float]] = {}
        for (number, *place), group in sorted(groups.items(), key=lambda item: -item[0][0]):
            total, needed = totals.get(tuple(place), (Group(dict.fromkeys(group.sums, 0), group.latest), MIN_SAMPLES))
            total.add(group.sums, group.latest)
            if total.sums["n"] >= needed:
                needed = 1.5 * total.sums["n"]
                service, route, fingerprint = place
                estimate = estimate_group(total.sums, None, {}, scorer, fingerprint)
                start = max(since, grid.start(number))
                means.append(RecentMean(service, route, fingerprint, start, estimate))
            totals[tuple(place)] = total, needed
        return means

    def means(
        self,
        *,
        scorer: str,
        since: datetime | None,
        until: datetime | None = None,
        route: str | None = None,
        service: str | None = None,
        by: str | None = None,
        histograms: bool = True,
    ) -> list[RouteMean]:
        """Return one mean for each service, route and fingerprint that has scores.

        The arguments are the same as for :meth:`over_time`. If ``by`` is given, the means are also grouped by the
        labels of that dimension and are not corrected with proxy scores.
        """
        request = _request(since, until, None, by, scorer=scorer, route=route, service=service)
        return [mean for mean, _ in self._read(request, histograms=histograms, coverage=False).route_means()]

    def score_sums(
        self, *, scorer: str, fingerprint: str, since: datetime, until: datetime
    ) -> dict[tuple[str, str], WeightedSums]:
        """Return the sums over the scores with one fingerprint, by service and route."""
        groups = self._read(_request(since, until, None, None, scorer=scorer), histograms=False).groups
        return {
            (service, route): WeightedSums.from_mapping(group.sums)
            for (service, route, _, judge), group in groups.items()
            if judge == fingerprint
        }

    def summary_by_label(
        self, *, by: str, scorer: str, since: datetime, until: datetime, service: str | None = None
    ) -> list[RouteSummary]:
        """Return the results of :meth:`summary` for one scorer, by the labels of a dimension and without histograms.

        Each summary has its ``label``, which is empty for answers without a value, and the coverage of all answers on
        its route. Means are not corrected with proxy scores. ``by`` is ``model``, ``prompt_version`` or
        ``attributes.NAME``.

        Raises:
            UsageError: The dimension is unknown.
        """
        request = _request(since, until, None, by, scorer=scorer, service=service)
        return self._read(request, histograms=False).route_summaries()

    def counts_by_label(
        self, *, by: str, scorer: str, service: str, bucket: timedelta, since: datetime, until: datetime
    ) -> dict[str, dict[datetime, int]]:
        """Return the numbers of scores by the labels of a dimension, and by the start of each bucket that has scores.

        Raises:
            UsageError: The dimension is unknown.
        """
        grid = BucketGrid(_seconds(bucket))
        request = _request(since, until, grid, by, scorer=scorer, service=service)
        with self._database.read(snapshot=True) as connection, TrendQuery(connection, request) as reading:
            groups = reading.scores((), histograms=False)
        counts: dict[str, dict[datetime, int]] = {}
        for (number, label), group in groups.items():
            counts.setdefault(label, {})[grid.start(number)] = int(group.sums["n"])
        return counts

    def list_rolled_dimensions(self) -> tuple[str, ...]:
        """Return the dimensions of the rollups. Breakdowns by another dimension read every score in the window."""
        with self._database.read() as connection:
            return rolled_dimensions(connection)

    def durations_over_time(
        self,
        *,
        bucket: timedelta | Callable[[datetime | None], timedelta],
        since: datetime,
        until: datetime,
        route: str | None = None,
        service: str | None = None,
        timezone: tzinfo = UTC,
    ) -> NewestBuckets[DurationBucket]:
        """Return the handlers' durations over time: the newest 3,000 exchanges in the window, in whole buckets.

        The arguments are the same as for :meth:`over_time`, but ``bucket`` may also be a function that returns the
        length, given the start of what was read if the window was truncated.
        """
        window, choose = resolve_window(since, until), _chooser(bucket, timezone)
        with self._database.read(snapshot=True) as connection:
            return usage.load_durations(connection, *window, choose, route=route, service=service)

    def costs_over_time(
        self,
        *,
        bucket: timedelta | Callable[[datetime | None], timedelta],
        since: datetime,
        until: datetime,
        scorer: str | None = None,
        route: str | None = None,
        service: str | None = None,
        timezone: tzinfo = UTC,
    ) -> NewestBuckets[CostBucket]:
        """Return the costs of scores over time, by answer time.

        Covers the newest 6,000 scores in the window, in whole buckets. The arguments are the same as for
        :meth:`durations_over_time`.
        """
        window, choose = resolve_window(since, until), _chooser(bucket, timezone)
        with self._database.read(snapshot=True) as connection:
            return usage.load_costs(connection, *window, choose, scorer=scorer, route=route, service=service)

    def means_with_attributes(
        self,
        attributes: Mapping[str, str],
        *,
        scorer: str,
        since: datetime | None,
        until: datetime | None = None,
        route: str | None = None,
        service: str | None = None,
    ) -> list[RouteMean]:
        """Return one mean per service, route and fingerprint, over answers whose attributes match all patterns.

        Reads every score in the window.
        """
        with self._database.read(snapshot=True) as connection:
            equal = {"scorer": scorer, "route": route, "service": service}
            groups = attribute_means.sum_scores(connection, attributes, since, until, **equal)
        return [mean for mean, _ in WindowSums(groups, {}, {}).route_means()]

    def window_summary(
        self,
        *,
        since: datetime,
        until: datetime,
        service: str | None = None,
        route: str | None = None,
        scorer: str | None = None,
        histograms: bool = False,
    ) -> WindowSummary:
        """Return the results of :meth:`summary` and of :meth:`coverage`, from one snapshot.

        The means and the coverage are also summarized by service. A service's mean is the mean of all its scores, as
        in :meth:`over_time` without a breakdown.
        """
        request = _request(since, until, None, None, service=service, route=route, scorer=scorer)
        return self._read(request, histograms=histograms).summarize(request.since, request.until)

    def add_markers(self, markers: Sequence[Marker]) -> None:
        """Store markers. Markers with an existing id are ignored."""
        with self._write_values() as connection:
            _MARKERS.insert(connection, markers)


def _request(
    since: datetime | None, until: datetime | None, bucket: BucketGrid | None, by: str | None, **equal: str | None
) -> TrendRequest:
    first, last = resolve_window(since, until)
    given = {name: value for name, value in equal.items() if value is not None}
    dimension = "" if by is None or by in _NAMES[:2] else by
    return TrendRequest(since=first, until=last, bucket=bucket, equal=given, dimension=dimension)


def _chooser(
    bucket: timedelta | Callable[[datetime | None], timedelta], timezone: tzinfo
) -> Callable[[datetime | None], BucketGrid]:
    choose = bucket if callable(bucket) else lambda _: bucket
    return lambda start: BucketGrid(_seconds(choose(start)), timezone)


def _seconds(bucket: timedelta) -> int:
    return max(1, round(bucket.total_seconds()))


def _has_proxies(groups: Mapping[Key, Group]) -> bool:
    return any(group.sums["n_with_x"] for group in groups.values())
