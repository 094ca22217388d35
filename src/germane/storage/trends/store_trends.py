"""Trends, summaries and comparisons of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from germane.annotation import Marker
from germane.errors import UsageError
from germane.storage.counts.tally import Coverage, coverage_counts
from germane.storage.db.component import StoreComponent
from germane.storage.stats.control_variate import estimate_group
from germane.storage.stats.estimate import Estimate
from germane.storage.stats.models import Bucket, CoverageBucket, RouteMean, RouteSummary, ServiceSummary, WindowSummary
from germane.storage.stats.two_sample import Comparisons, TimeWindow
from germane.storage.trends import attribute_means, comparisons, markers
from germane.storage.trends.query import Group, Key, Outcomes, TrendQuery, TrendRequest, resolve_window

MINUTE: Final = 60
"""Resolution of counts in seconds."""
_OF_ESTIMATE: Final = tuple(field.name for field in fields(Estimate))
_VALUES: Final = attrgetter(*_OF_ESTIMATE)
_OF_MEAN: Final = tuple(field.name for field in fields(RouteMean))
_NAMES: Final = ("service", "route", "scorer")


class TrendReader(StoreComponent):
    """Means over time and by group. ``germane.Store(url).trends``.

    A window is since <= started_at < until. All methods compute from the same sums, so one window has one mean. Where
    proxy scores correct a mean, ``correlation`` is set.
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
    ) -> list[Bucket]:
        """Return means over time, oldest first: one per bucket, fingerprint and group that has scores.

        Args:
            scorer: Name of the scorer.
            bucket: Length of a bucket, rounded to seconds. Whole hours and days are fastest.
            since: Start of the window.
            until: End of the window.
            route: Only answers of this route.
            service: Only answers of this service.
            by: Break down by ``route``, ``service``, ``model``, ``prompt_version`` or ``attributes.NAME``. Fast for
                the dimensions in the setting ``breakdowns``.
            histograms: Whether to read histograms, which percentiles need.

        Raises:
            UsageError: The dimension ``by`` is unknown, or an end of the window has no time zone.
        """
        asked = _request(since, until, _seconds(bucket), by, scorer=scorer, route=route, service=service)
        names = (by,) if by in _NAMES[:2] else ()
        with self._database.read(snapshot=True) as connection:
            reading = TrendQuery(connection, asked)
            groups = reading.scores((*names, "fingerprint"), histograms=histograms)
            counts = {} if asked.dimension or _seconds(bucket) % MINUTE else reading.counts(names)
            proxies = reading.proxies(names) if counts and _has_proxies(groups) else {}
        asked_for = {"service": service or "", "route": route or "", "scorer": scorer}
        return _buckets(groups, counts, proxies, names, asked_for)

    def coverage_over_time(
        self,
        *,
        scorer: str,
        bucket: timedelta,
        since: datetime,
        until: datetime,
        route: str | None = None,
        service: str | None = None,
    ) -> list[CoverageBucket]:
        """Return the coverage over time, oldest first, including buckets without scores.

        Arguments as for :meth:`over_time`. The window starts at the full minute of ``since``.

        Raises:
            UsageError: The bucket is not a multiple of one minute, or an end of the window has no time zone.
        """
        if _seconds(bucket) % MINUTE:
            raise UsageError(f"bucket = {bucket} is not a multiple of one minute")
        asked = _request(since, until, _seconds(bucket), None, scorer=scorer, route=route, service=service)
        with self._database.read(snapshot=True) as connection:
            counts = TrendQuery(connection, asked).counts(())
        names: dict[str, Any] = {"service": service or "", "route": route or "", "scorer": scorer}
        return [
            CoverageBucket(start=_moment(key[0]), **names, **coverage_counts(outcomes))
            for key, outcomes in sorted(counts.items())
        ]

    def summary(
        self, *, since: datetime | None = None, until: datetime | None = None, histograms: bool = True
    ) -> list[RouteSummary]:
        """Return mean, interval and coverage per service, route, scorer and fingerprint that has scores."""
        found = self._means(_request(since, until, None, None), histograms=histograms)
        return [_summary(mean, coverage) for mean, coverage in found]

    def coverage(self, *, since: datetime | None = None, until: datetime | None = None) -> list[Coverage]:
        """Return the coverage per service, route and scorer. The window starts at the full minute of ``since``."""
        with self._database.read(snapshot=True) as connection:
            counts = TrendQuery(connection, _request(since, until, None, None)).counts(_NAMES)
        return [_coverage(key, outcomes) for key, outcomes in sorted(counts.items())]

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
        """Compare the answers since a time with those of an earlier window.

        Args:
            since: Start of the later window: a time or a marker.
            until: End of the later window; by default now.
            before: Start and end of the earlier window; by default the window of the same length that ends at
                ``since``.
            service: Only answers of this service.
            route: Only answers of this route. Services are not compared as a whole then.
            scorer: Only scores of this scorer.
            min_drop: Only report drops that are significantly larger than this, from 0 to 2.

        Raises:
            UsageError: A time has no time zone, a window is empty, or ``min_drop`` is out of range.
        """
        start = since.at if isinstance(since, Marker) else since
        later = comparisons.checked_window((start, until or self._context.read_clock()))
        earlier = comparisons.checked_window(before or (start - (later[1] - later[0]), start))
        if not 0 <= min_drop <= 2:
            raise UsageError(f"min_drop = {min_drop} is not between 0 and 2")
        names = {"service": service, "route": route, "scorer": scorer}
        summaries = [
            [
                summary
                for summary in self.summary(since=window[0], until=window[1], histograms=False)
                if all(value in {None, getattr(summary, name)} for name, value in names.items())
            ]
            for window in (earlier, later)
        ]
        return comparisons.compare_summaries(
            summaries[0], summaries[1], (earlier, later), min_drop=min_drop, whole=route is None
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
        """Return markers of since <= at < until, newest first.

        Args:
            since: Start of the window.
            until: End of the window.
            service: Only markers of this service.
            name: Only markers with this name.
            limit: Maximum number of markers; None for all.
        """
        with self._database.read() as connection:
            return markers.list_markers(connection, since, until, limit, service=service, name=name)

    def _means(self, asked: TrendRequest, *, histograms: bool) -> list[tuple[RouteMean, Coverage]]:
        return _route_means(self._read(asked, histograms=histograms))

    def _read(self, asked: TrendRequest, *, histograms: bool) -> _Read:
        with self._database.read(snapshot=True) as connection:
            reading = TrendQuery(connection, asked)
            groups = reading.scores((*_NAMES, "fingerprint"), histograms=histograms)
            counts = reading.counts(_NAMES)
            proxies = reading.proxies(_NAMES[:2]) if not asked.dimension and _has_proxies(groups) else {}
        return _Read(groups, counts, proxies)


class TrendStore(TrendReader):
    """Adds means for alert rules and pages, and writing markers."""

    def overall_and_by_route(
        self, *, scorer: str, bucket: timedelta, since: datetime, until: datetime, service: str | None = None
    ) -> tuple[list[Bucket], list[Bucket]]:
        """Return :meth:`over_time` without histograms, overall and by route, from one snapshot."""
        asked = _request(since, until, _seconds(bucket), None, scorer=scorer, service=service)
        with self._database.read(snapshot=True) as connection:
            reading = TrendQuery(connection, asked)
            groups = reading.scores(("route", "fingerprint"), histograms=False)
            counts = {} if _seconds(bucket) % MINUTE else reading.counts(("route",))
            proxies = reading.proxies(("route",)) if counts and _has_proxies(groups) else {}
        asked_for = {"service": service or "", "route": "", "scorer": scorer}
        whole = _buckets(
            _merge_groups(groups, lambda key: (key[0], key[2])),
            _sum_by(counts, lambda key: key[:1]),
            _sum_by(proxies, lambda key: key[:1]),
            (),
            asked_for,
        )
        return whole, _buckets(groups, counts, proxies, ("route",), asked_for)

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
        """Return one mean per service, route and fingerprint that has scores; arguments as for :meth:`over_time`.

        With a dimension ``by``, one mean per label in addition. These are not corrected by proxy scores.
        """
        asked = _request(since, until, None, by, scorer=scorer, route=route, service=service)
        return [mean for mean, _ in self._means(asked, histograms=histograms)]

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
        """Return one mean per service, route and fingerprint of the answers whose attributes match all patterns.

        Reads every score of the window.
        """
        with self._database.read() as connection:
            equal = {"scorer": scorer, "route": route, "service": service}
            return attribute_means.means_with(connection, attributes, since, until, **equal)

    def window_summary(
        self,
        *,
        since: datetime,
        until: datetime,
        service: str | None = None,
        scorer: str | None = None,
    ) -> WindowSummary:
        """Return :meth:`summary` without histograms, :meth:`coverage`, and both per service, from one snapshot.

        The mean of a service is the mean of all its scores, as in :meth:`over_time` without a breakdown.
        """
        asked = _request(since, until, None, None, service=service, scorer=scorer)
        read = self._read(asked, histograms=False)
        return WindowSummary(
            since=asked.since,
            until=asked.until,
            routes=[_summary(mean, coverage) for mean, coverage in _route_means(read)],
            services=_service_summaries(read),
            coverage=[_coverage(key, outcomes) for key, outcomes in sorted(read.counts.items())],
        )

    def add_markers(self, given: Sequence[Marker]) -> None:
        """Write markers. Markers whose id exists already are ignored."""
        with self._write_values() as connection:
            markers.insert_markers(connection, given)


@dataclass(frozen=True, slots=True)
class _Read:
    """Sums over a window."""

    groups: Mapping[Key, Group]
    """By service, route, scorer, fingerprint, and label if there is a dimension."""
    counts: Mapping[Key, Outcomes]
    """By service, route and scorer."""
    proxies: Mapping[Key, Mapping[str, float]]
    """By service and route."""


def _route_means(read: _Read) -> list[tuple[RouteMean, Coverage]]:
    ordered = sorted(read.groups.items(), key=lambda item: (item[0][:3], item[1].latest, item[0][3:]))
    newest = {key[:3]: key[3] for key, _ in ordered}
    fingerprints = _count_fingerprints(read.groups, lambda key: key[:3])
    found = []
    for key, group in ordered:
        outcomes = read.counts.get(key[:3], {})
        usable = read.proxies.get(key[:2]) if fingerprints[key[:3]] == 1 else None
        mean = RouteMean(
            **dict(zip((*_NAMES, "fingerprint", "label"), key, strict=False)),
            newest=newest[key[:3]] == key[3],
            latest=group.latest,
            **_estimated(group, usable, outcomes),
        )
        found.append((mean, _coverage(key[:3], outcomes)))
    return found


def _summary(mean: RouteMean, coverage: Coverage) -> RouteSummary:
    return RouteSummary(**{name: getattr(mean, name) for name in _OF_MEAN}, coverage=coverage)


def _service_summaries(read: _Read) -> list[ServiceSummary]:
    """Return the summaries of services from the sums of their routes."""
    groups = _merge_groups(read.groups, lambda key: (key[0], *key[2:]))
    counts = _sum_by(read.counts, lambda key: (key[0], key[2]))
    proxies = _sum_by(read.proxies, lambda key: key[0])
    newest = {key[:2]: key[2] for key, _ in sorted(groups.items(), key=lambda item: item[1].latest)}
    fingerprints = _count_fingerprints(groups, lambda key: key[:2])
    found = []
    for key, group in sorted(groups.items(), key=lambda item: (item[0][:2], item[1].latest, item[0][2])):
        service, scorer, fingerprint = key
        outcomes = counts.get(key[:2], {})
        found.append(
            ServiceSummary(
                service=service,
                scorer=scorer,
                fingerprint=fingerprint,
                newest=newest[key[:2]] == fingerprint,
                latest=group.latest,
                coverage=_coverage((service, "", scorer), outcomes),
                **_estimated(group, proxies.get(service) if fingerprints[key[:2]] == 1 else None, outcomes),
            )
        )
    return found


def _merge_groups(groups: Mapping[Key, Group], part: Callable[[Key], Key]) -> dict[Key, Group]:
    """Sum up groups with the same part of the key."""
    found: dict[Key, Group] = {}
    for key, group in groups.items():
        there = found.setdefault(part(key), Group(dict.fromkeys(group.sums, 0), group.latest))
        there.add(group.sums, group.latest)
    return found


def _sum_by(found: Mapping[Key, Mapping[Any, Any]], part: Callable[[Key], Any]) -> dict[Any, dict[Any, Any]]:
    """Sum up values with the same part of the key."""
    total: dict[Any, dict[Any, Any]] = {}
    for key, values in found.items():
        sums = total.setdefault(part(key), {})
        for name, value in values.items():
            sums[name] = sums.get(name, 0) + value
    return total


def _request(
    since: datetime | None, until: datetime | None, bucket: int | None, by: str | None, **equal: str | None
) -> TrendRequest:
    first, last = resolve_window(since, until)
    given = {name: value for name, value in equal.items() if value is not None}
    dimension = "" if by is None or by in _NAMES[:2] else by
    return TrendRequest(since=first, until=last, bucket=bucket, equal=given, dimension=dimension)


def _seconds(bucket: timedelta) -> int:
    return max(1, round(bucket.total_seconds()))


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _has_proxies(groups: Mapping[Key, Group]) -> bool:
    return any(group.sums["n_with_x"] for group in groups.values())


def _count_fingerprints(groups: Mapping[Key, Group], part: Any) -> dict[Key, int]:
    """Return the number of fingerprints per bucket and group."""
    found: dict[Key, int] = {}
    for key in groups:
        found[part(key)] = found.get(part(key), 0) + 1
    return found


def _buckets(
    groups: Mapping[Key, Group],
    counts: Mapping[Key, Outcomes],
    proxies: Mapping[Key, Mapping[str, float]],
    names: Sequence[str],
    asked_for: Mapping[str, str],
) -> list[Bucket]:
    """Return the buckets; a key is start, group if it is a column, fingerprint, label."""
    width = 1 + len(names)
    fingerprints = _count_fingerprints(groups, lambda key: key[:width])
    seen: dict[Any, set[str]] = {}
    found = []
    for key, group in sorted(groups.items(), key=lambda item: _in_time(item[0], item[1])):
        label, fingerprint = _label(key, names), key[width]
        known = seen.setdefault(label, set())
        begins = bool(known) and fingerprint not in known
        known.add(fingerprint)
        outcomes = counts.get(key[:width])
        usable = proxies.get(key[:width]) if fingerprints[key[:width]] == 1 else None
        place = {**asked_for, **dict(zip(names, key[1:width], strict=True))}
        found.append(
            Bucket(
                start=_moment(key[0]),
                fingerprint=fingerprint,
                judge_changed=begins,
                group=label,
                coverage=None if outcomes is None else Coverage(**place, **coverage_counts(outcomes)),
                **_estimated(group, usable, outcomes or {}),
            )
        )
    return sorted(found, key=lambda bucket: (bucket.start, bucket.group or "", bucket.fingerprint))


def _in_time(key: Key, group: Group) -> tuple[Any, ...]:
    return key[0], group.latest, key[1:]


def _label(key: Key, names: Sequence[str]) -> str | None:
    if names:
        return str(key[1])
    return str(key[2]) if len(key) > 2 else None


def _estimated(group: Group, proxies: Mapping[str, float] | None, outcomes: Outcomes) -> dict[str, Any]:
    found = estimate_group(group.sums, proxies, outcomes)
    return dict(zip(_OF_ESTIMATE, _VALUES(found), strict=True)) | {"histogram": group.histogram}


def _coverage(key: Key, outcomes: Outcomes) -> Coverage:
    return Coverage(**dict(zip(_NAMES, key, strict=True)), **coverage_counts(outcomes))
