"""Buckets and summaries for a window, computed from the window's sums."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from germane.annotation import EXTERNAL_FINGERPRINT
from germane.statistics import Estimate, estimate_group
from germane.storage.counts.tally import Coverage, coverage_counts
from germane.storage.trends.bucket_grid import BucketGrid
from germane.storage.trends.query import Group, Key, Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket(Estimate):
    """The estimate for the scores with one fingerprint in one time bucket."""

    start: datetime
    """UTC."""
    end: datetime | None = None
    """End of merged buckets; None if the bucket has the requested length."""
    fingerprint: str
    judge_changed: bool = False
    """Whether the judge changed in this bucket, that is, whether it is the first bucket of a fingerprint that replaced
    another."""
    group: str | None = None
    """The scores' route, service or label; None without a breakdown."""
    service: str | None = None
    """The scores' service, in a breakdown by service and route."""
    coverage: Coverage | None = None
    """Coverage of all exchanges in the bucket, across fingerprints; None in a breakdown by label, and for buckets whose
    length is not a multiple of one minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMean(Estimate):
    """The estimate for one service, route, scorer and fingerprint."""

    service: str
    route: str
    scorer: str
    fingerprint: str
    newest: bool
    """Whether the latest score of this service, route and scorer has this fingerprint."""
    latest: datetime
    """Time of the latest scored answer; UTC."""
    label: str | None = None
    """Label in the requested dimension; None without a breakdown."""


@dataclass(frozen=True, slots=True)
class RecentMean:
    """The estimate for one service, route and fingerprint since a time."""

    service: str
    route: str
    fingerprint: str
    since: datetime
    """UTC."""
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSummary(RouteMean):
    """The estimate for one service, route, scorer and fingerprint, with the coverage."""

    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSummary(Estimate):
    """The estimate for one service, scorer and fingerprint across all routes, with the coverage."""

    service: str
    scorer: str
    fingerprint: str
    newest: bool
    """Whether the latest score of this service and scorer has this fingerprint."""
    latest: datetime
    """Time of the latest scored answer; UTC."""
    coverage: Coverage
    """Coverage across all routes; its ``route`` is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSummary:
    """Means and coverage for one window, read from a single snapshot."""

    since: datetime
    """UTC. The window is ``since <= started_at < until``."""
    until: datetime
    routes: Sequence[RouteSummary]
    services: Sequence[ServiceSummary]
    coverage: Sequence[Coverage]
    """Coverage by service, route and scorer, including combinations without scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageBucket(Coverage):
    """Coverage in one time bucket."""

    start: datetime
    """UTC."""


_OF_ESTIMATE: Final = tuple(field.name for field in fields(Estimate))
_VALUES: Final = attrgetter(*_OF_ESTIMATE)
_OF_MEAN: Final = tuple(field.name for field in fields(RouteMean))
_NAMES: Final = ("service", "route", "scorer")


@dataclass(frozen=True, slots=True)
class WindowSums:
    """Sums over a window."""

    groups: Mapping[Key, Group]
    """Sums over scores by service, route, scorer and fingerprint, and by label if there is a dimension."""
    counts: Mapping[Key, Outcomes]
    """Outcome counts by service, route and scorer."""
    proxies: Mapping[Key, Mapping[str, float]]
    """Sums over proxy scores by service and route."""

    def summarize(self, since: datetime, until: datetime) -> WindowSummary:
        """Return the means and the coverage for the window."""
        return WindowSummary(
            since=since,
            until=until,
            routes=self.route_summaries(),
            services=self.service_summaries(),
            coverage=self.coverage(),
        )

    def coverage(self) -> list[Coverage]:
        """Return the coverage of each service, route and scorer."""
        return [coverage_of(key, outcomes) for key, outcomes in sorted(self.counts.items())]

    def route_means(self) -> list[tuple[RouteMean, Coverage]]:
        """Return the means by service, route, scorer and fingerprint, and by label if there is a dimension.

        Each mean comes with the coverage of its service, route and scorer.
        """
        ordered = sorted(self.groups.items(), key=lambda item: (item[0][:3], item[1].latest, item[0][3:]))
        newest = newest_fingerprints((key[:3], key[3], group.latest) for key, group in ordered)
        fingerprints = Counter(key[:3] for key in self.groups)
        means = []
        for key, group in ordered:
            outcomes = self.counts.get(key[:3], {})
            usable = self.proxies.get(key[:2]) if fingerprints[key[:3]] == 1 else None
            mean = RouteMean(
                **dict(zip((*_NAMES, "fingerprint", "label"), key, strict=False)),
                newest=newest[key[:3]] == key[3],
                latest=group.latest,
                **_estimated(group, usable, outcomes, key[2], key[3]),
            )
            means.append((mean, coverage_of(key[:3], outcomes)))
        return means

    def route_summaries(self) -> list[RouteSummary]:
        """Return the means by service, route, scorer and fingerprint, with their coverage."""
        return [
            RouteSummary(**{name: getattr(mean, name) for name in _OF_MEAN}, coverage=coverage)
            for mean, coverage in self.route_means()
        ]

    def service_summaries(self) -> list[ServiceSummary]:
        """Return the means by service, scorer and fingerprint, computed from the sums over their routes."""
        groups = merge_groups(self.groups, lambda key: (key[0], *key[2:]))
        counts = sum_by(self.counts, lambda key: (key[0], key[2]))
        proxies = sum_by(self.proxies, lambda key: key[0])
        newest = newest_fingerprints((key[:2], key[2], group.latest) for key, group in groups.items())
        fingerprints = Counter(key[:2] for key in groups)
        summaries = []
        for key, group in sorted(groups.items(), key=lambda item: (item[0][:2], item[1].latest, item[0][2])):
            service, scorer, fingerprint = key
            outcomes = counts.get(key[:2], {})
            usable = proxies.get(service) if fingerprints[key[:2]] == 1 else None
            summaries.append(
                ServiceSummary(
                    service=service,
                    scorer=scorer,
                    fingerprint=fingerprint,
                    newest=newest[key[:2]] == fingerprint,
                    latest=group.latest,
                    coverage=coverage_of((service, "", scorer), outcomes),
                    **_estimated(group, usable, outcomes, scorer, fingerprint),
                )
            )
        return summaries


def newest_fingerprints(scores: Iterable[tuple[Key, str, datetime]]) -> dict[Key, str]:
    """Return the fingerprint of each group's newest scores.

    Externally computed scores count as the newest only in groups without other scores, because they do not come from a
    judge that replaces the group's judge. Each score comes with its group, fingerprint and time, in any order.
    """
    ordered = sorted(scores, key=lambda item: (item[1] != EXTERNAL_FINGERPRINT, item[2], item[1]))
    return {group: fingerprint for group, fingerprint, _ in ordered}


def build_buckets(
    groups: Mapping[Key, Group],
    counts: Mapping[Key, Outcomes],
    proxies: Mapping[Key, Mapping[str, float]],
    names: Sequence[str],
    defaults: Mapping[str, str],
    grid: BucketGrid,
) -> list[Bucket]:
    """Build the buckets, sorted by start, group and fingerprint.

    Args:
        groups: Sums by key: the bucket's number, the group columns, the fingerprint, and the label, if any.
        counts: Outcome counts by bucket number and group columns.
        proxies: Sums over proxy scores by bucket number and group columns.
        names: Names of the group columns.
        defaults: Service, route and scorer of the request.
        grid: The bucket grid.
    """
    width = 1 + len(names)
    fingerprint_counts = Counter(key[:width] for key in groups)
    judges: dict[Key, set[str]] = {}
    buckets = []
    for key, group in sorted(groups.items(), key=lambda item: (item[0][0], item[1].latest, item[0][1:])):
        columns, fingerprint, labels = key[1:width], key[width], key[width + 1 :]
        label = next(map(str, (columns or labels)[-1:]), None)
        known, judge_changed = judges.setdefault(columns or labels, set()), False
        if fingerprint != EXTERNAL_FINGERPRINT:  # external scores do not replace a judge
            judge_changed = bool(known) and fingerprint not in known
            known.add(fingerprint)
        outcomes = counts.get(key[:width])
        usable = proxies.get(key[:width]) if fingerprint_counts[key[:width]] == 1 else None
        place = {**defaults, **dict(zip(names, columns, strict=True))}
        buckets.append(
            Bucket(
                start=grid.start(key[0]),
                fingerprint=fingerprint,
                judge_changed=judge_changed,
                group=label,
                service=columns[0] if len(columns) > 1 else None,
                coverage=None if outcomes is None else Coverage(**place, **coverage_counts(outcomes)),
                **_estimated(group, usable, outcomes or {}, place["scorer"], fingerprint),
            )
        )
    return sorted(
        buckets, key=lambda bucket: (bucket.start, bucket.service or "", bucket.group or "", bucket.fingerprint)
    )


def merge_buckets(
    sums: WindowSums,
    window: tuple[datetime, datetime],
    place: Mapping[str, str],
    grid: BucketGrid,
    *,
    min_samples: int,
    is_open: bool,
) -> list[Bucket]:
    """Build buckets like :func:`build_buckets`, after merging neighboring ones until each has ``min_samples`` scores.

    The keys of the sums over scores are the bucket's number, the fingerprint, and the label, if any.
    """
    runs = Runs(sums.groups, min_samples, is_open=is_open)
    merged = merge_groups(sums.groups, runs.key), runs.merge(sums.counts), runs.merge(sums.proxies)
    buckets = []
    for one in build_buckets(*merged, (), place, grid):
        label = () if one.group is None else (one.group,)
        end = grid.start(runs.last[grid.number(one.start), one.fingerprint, *label] + grid.length)
        buckets.append(replace(one, start=max(window[0], one.start), end=min(window[1], end)))
    return buckets


def merge_groups(groups: Mapping[Key, Group], part: Callable[[Key], Key]) -> dict[Key, Group]:
    """Merge the groups whose keys have the same result of ``part``, by adding up their sums."""
    merged: dict[Key, Group] = {}
    for key, group in groups.items():
        total = merged.setdefault(part(key), Group(dict.fromkeys(group.sums, 0), group.latest))
        total.add(group.sums, group.latest)
    return merged


def sum_by(groups: Mapping[Key, Mapping[Any, Any]], part: Callable[[Key], Any]) -> dict[Any, dict[Any, Any]]:
    """Add up the values of all keys that have the same result of ``part``."""
    total: dict[Any, dict[Any, Any]] = {}
    for key, values in groups.items():
        sums = total.setdefault(part(key), {})
        for name, value in values.items():
            sums[name] = sums.get(name, 0) + value
    return total


def coverage_of(key: Key, outcomes: Outcomes) -> Coverage:
    """Convert outcome counts to the coverage of a service, route and scorer."""
    return Coverage(**dict(zip(_NAMES, key, strict=True)), **coverage_counts(outcomes))


def _estimated(
    group: Group, proxies: Mapping[str, float] | None, outcomes: Outcomes, scorer: str, fingerprint: str
) -> dict[str, Any]:
    estimate = estimate_group(group.sums, proxies, outcomes, scorer, fingerprint)
    return dict(zip(_OF_ESTIMATE, _VALUES(estimate), strict=True)) | {"histogram": group.histogram}


class Runs:
    """Runs of neighboring buckets with at least ``min_samples`` scores, for each fingerprint and label.

    Scores that are left over at the end are added to the last run. With ``is_open``, those in the newest bucket form
    a run of their own, which later scores will fill.
    """

    def __init__(self, groups: Mapping[Key, Group], min_samples: int, *, is_open: bool) -> None:
        self._starts: dict[Key, list[int]] = {}
        self.last: dict[Key, int] = {}
        """The number of each run's last bucket with scores, by key of the run."""
        sizes: Counter[Key] = Counter()
        newest = max((key[0] for key in groups), default=0)
        for (number, *rest), group in sorted(groups.items()):
            series = tuple(rest)
            starts = self._starts.setdefault(series, [])
            if not starts or sizes[series] >= min_samples:
                starts.append(number)
                sizes[series] = 0
            sizes[series] += int(group.sums["n"])
            self.last[starts[-1], *series] = number
        for series, starts in self._starts.items():
            last = self.last[starts[-1], *series]
            if sizes[series] < min_samples and len(starts) > 1 and not (is_open and last == newest):
                starts.pop()
                self.last[starts[-1], *series] = last
        self._all_starts = sorted({start for starts in self._starts.values() for start in starts})

    def key(self, key: Key) -> Key:
        """Return the key of the run that a group belongs to: the number of its first bucket, and the series."""
        return (_at_or_before(self._starts[key[1:]], key[0]), *key[1:])

    def merge(self, values: Mapping[Key, Mapping[Any, Any]]) -> dict[Key, Counter[Any]]:
        """Add up values by bucket, such as outcome counts, over the runs."""
        merged: dict[Key, Counter[Any]] = {}
        for (number,), each in values.items() if self._all_starts else ():
            merged.setdefault((_at_or_before(self._all_starts, number),), Counter()).update(each)
        return merged


def _at_or_before(starts: Sequence[int], number: int) -> int:
    return starts[max(0, bisect_right(starts, number) - 1)]
