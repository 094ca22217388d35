"""The part of a store that tells how scores develop: all of it from the same sums, so that one window has one mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from germane.errors import UsageError
from germane.storage.counts.tally import Coverage, covered
from germane.storage.db.component import Part
from germane.storage.stats.control_variate import estimated
from germane.storage.stats.estimate import Estimate
from germane.storage.stats.models import Bucket, CoverageBucket, Overall, RouteMean, RouteSummary, ServiceSummary
from germane.storage.trends.query import Asked, Gathering, Group, Key, Outcomes, window

MINUTE: Final = 60
"""Seconds: counts are by the minute."""
_OF_ESTIMATE: Final = tuple(one.name for one in fields(Estimate))
_VALUES: Final = attrgetter(*_OF_ESTIMATE)
_OF_MEAN: Final = tuple(one.name for one in fields(RouteMean))
_NAMES: Final = ("service", "route", "scorer")


class Trends(Part):
    """Means over time and by group. A mean that is corrected by proxies says by which correlation."""

    def trend(
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
        """Return means over time, oldest first: one per bucket, fingerprint and group, none where there is no score.

        Args:
            scorer: Whose scores.
            bucket: Taken in whole seconds, at least one. Whole hours and days are fastest.
            since: The window is since <= started_at < until.
            until: Its end.
            route: Only this one.
            service: Only this one.
            by: What the scores are broken down by: ``route``, ``service``, ``model``, ``prompt_version`` or
                ``attributes.NAME``. Fast are those that the setting ``trend_by`` names.
            histograms: Whether percentiles are wanted.

        Raises:
            UsageError: there is nothing of the name ``by``, or an end of the window has no time zone.
        """
        asked = _asked(since, until, _seconds(bucket), by, scorer=scorer, route=route, service=service)
        names = (by,) if by in _NAMES[:2] else ()
        with self._database.read(snapshot=True) as connection:
            reading = Gathering(connection, asked)
            groups = reading.scores((*names, "fingerprint"), histograms=histograms)
            counts = {} if asked.dimension or _seconds(bucket) % MINUTE else reading.counts(names)
            proxies = reading.proxies(names) if counts and _has_proxies(groups) else {}
        asked_for = {"service": service or "", "route": route or "", "scorer": scorer}
        return _buckets(groups, counts, proxies, names, asked_for)

    def trends(
        self, *, scorer: str, bucket: timedelta, since: datetime, until: datetime, service: str | None = None
    ) -> tuple[list[Bucket], list[Bucket]]:
        """Return what :meth:`trend` does without percentiles, and the same by route: both are read at once.

        Arguments as of :meth:`trend`.
        """
        asked = _asked(since, until, _seconds(bucket), None, scorer=scorer, service=service)
        with self._database.read(snapshot=True) as connection:
            reading = Gathering(connection, asked)
            groups = reading.scores(("route", "fingerprint"), histograms=False)
            counts = {} if _seconds(bucket) % MINUTE else reading.counts(("route",))
            proxies = reading.proxies(("route",)) if counts and _has_proxies(groups) else {}
        asked_for = {"service": service or "", "route": "", "scorer": scorer}
        whole = _buckets(
            _grouped(groups, lambda key: (key[0], key[2])),
            _added(counts, lambda key: key[:1]),
            _added(proxies, lambda key: key[:1]),
            (),
            asked_for,
        )
        return whole, _buckets(groups, counts, proxies, ("route",), asked_for)

    def coverage_trend(
        self,
        *,
        scorer: str,
        bucket: timedelta,
        since: datetime,
        until: datetime,
        route: str | None = None,
        service: str | None = None,
    ) -> list[CoverageBucket]:
        """Return what became of exchanges over time, oldest first, also where nothing was scored.

        Arguments as of :meth:`trend`; the window begins with the minute of ``since``.

        Raises:
            UsageError: the bucket is not of whole minutes, by which is counted; or an end of the window has no zone.
        """
        if _seconds(bucket) % MINUTE:
            raise UsageError(f"bucket = {bucket} is not of whole minutes, by which is counted")
        asked = _asked(since, until, _seconds(bucket), None, scorer=scorer, route=route, service=service)
        with self._database.read(snapshot=True) as connection:
            counts = Gathering(connection, asked).counts(())
        names: dict[str, Any] = {"service": service or "", "route": route or "", "scorer": scorer}
        return [
            CoverageBucket(start=_moment(key[0]), **names, **covered(outcomes))
            for key, outcomes in sorted(counts.items())
        ]

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
        """Return one mean per service, route and fingerprint that has scores; arguments as of :meth:`trend`.

        With ``by`` one more for each label, which has no correction by proxies.
        """
        asked = _asked(since, until, None, by, scorer=scorer, route=route, service=service)
        return [mean for mean, _ in self._means(asked, histograms=histograms)]

    def summary(
        self, *, since: datetime | None = None, until: datetime | None = None, histograms: bool = True
    ) -> list[RouteSummary]:
        """Return mean, interval and coverage per service, route, scorer and fingerprint that has scores."""
        found = self._means(_asked(since, until, None, None), histograms=histograms)
        return [_summary(mean, coverage) for mean, coverage in found]

    def coverage(self, *, since: datetime | None = None, until: datetime | None = None) -> list[Coverage]:
        """Return what became of the exchanges per service, route and scorer, from the minute of ``since`` on."""
        with self._database.read(snapshot=True) as connection:
            counts = Gathering(connection, _asked(since, until, None, None)).counts(_NAMES)
        return [_coverage(key, outcomes) for key, outcomes in sorted(counts.items())]

    def overall(
        self,
        *,
        since: datetime,
        until: datetime,
        service: str | None = None,
        scorer: str | None = None,
    ) -> Overall:
        """Return what :meth:`summary` and :meth:`coverage` do, without percentiles, and the same of whole services.

        All of it is read at one moment. The mean of a service is that of all its scores, as in a :meth:`trend` that
        is not broken down.
        """
        asked = _asked(since, until, None, None, service=service, scorer=scorer)
        read = self._read(asked, histograms=False)
        return Overall(
            since=asked.since,
            until=asked.until,
            routes=[_summary(mean, coverage) for mean, coverage in _of_routes(read)],
            services=_of_services(read),
            coverage=[_coverage(key, outcomes) for key, outcomes in sorted(read.counts.items())],
        )

    def _means(self, asked: Asked, *, histograms: bool) -> list[tuple[RouteMean, Coverage]]:
        return _of_routes(self._read(asked, histograms=histograms))

    def _read(self, asked: Asked, *, histograms: bool) -> _Read:
        with self._database.read(snapshot=True) as connection:
            reading = Gathering(connection, asked)
            groups = reading.scores((*_NAMES, "fingerprint"), histograms=histograms)
            counts = reading.counts(_NAMES)
            proxies = reading.proxies(_NAMES[:2]) if not asked.dimension and _has_proxies(groups) else {}
        return _Read(groups, counts, proxies)


@dataclass(frozen=True, slots=True)
class _Read:
    """Sums of a window."""

    groups: Mapping[Key, Group]
    """By service, route, scorer and fingerprint, and the label where there is a dimension."""
    counts: Mapping[Key, Outcomes]
    """By service, route and scorer."""
    proxies: Mapping[Key, Mapping[str, float]]
    """By service and route."""


def _of_routes(read: _Read) -> list[tuple[RouteMean, Coverage]]:
    ordered = sorted(read.groups.items(), key=lambda item: (item[0][:3], item[1].latest, item[0][3:]))
    newest = {key[:3]: key[3] for key, _ in ordered}
    alone = _alone(read.groups, lambda key: key[:3])
    found = []
    for key, group in ordered:
        outcomes = read.counts.get(key[:3], {})
        usable = read.proxies.get(key[:2]) if alone[key[:3]] == 1 else None
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


def _of_services(read: _Read) -> list[ServiceSummary]:
    """Return the same of all routes of a service together: sums add up."""
    groups = _grouped(read.groups, lambda key: (key[0], *key[2:]))
    counts = _added(read.counts, lambda key: (key[0], key[2]))
    proxies = _added(read.proxies, lambda key: key[0])
    newest = {key[:2]: key[2] for key, _ in sorted(groups.items(), key=lambda item: item[1].latest)}
    alone = _alone(groups, lambda key: key[:2])
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
                **_estimated(group, proxies.get(service) if alone[key[:2]] == 1 else None, outcomes),
            )
        )
    return found


def _grouped(groups: Mapping[Key, Group], part: Callable[[Key], Key]) -> dict[Key, Group]:
    """Return the sums of groups that have a part of the key in common."""
    found: dict[Key, Group] = {}
    for key, group in groups.items():
        there = found.setdefault(part(key), Group(dict.fromkeys(group.sums, 0), group.latest))
        there.add(group.sums, group.latest)
    return found


def _added(found: Mapping[Key, Mapping[Any, Any]], part: Callable[[Key], Any]) -> dict[Any, dict[Any, Any]]:
    """Return sums of what has a part of the key in common."""
    total: dict[Any, dict[Any, Any]] = {}
    for key, values in found.items():
        sums = total.setdefault(part(key), {})
        for name, value in values.items():
            sums[name] = sums.get(name, 0) + value
    return total


def _asked(
    since: datetime | None, until: datetime | None, bucket: int | None, by: str | None, **equal: str | None
) -> Asked:
    first, last = window(since, until)
    given = {name: value for name, value in equal.items() if value is not None}
    dimension = "" if by is None or by in _NAMES[:2] else by
    return Asked(since=first, until=last, bucket=bucket, equal=given, dimension=dimension)


def _seconds(bucket: timedelta) -> int:
    return max(1, round(bucket.total_seconds()))


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _has_proxies(groups: Mapping[Key, Group]) -> bool:
    return any(group.sums["n_x"] for group in groups.values())


def _alone(groups: Mapping[Key, Group], part: Any) -> dict[Key, int]:
    """Return how many fingerprints there are of each bucket and group."""
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
    """Return the buckets: a key is the beginning, the group if its name is that of a column, fingerprint, label."""
    width = 1 + len(names)
    alone = _alone(groups, lambda key: key[:width])
    seen: dict[Any, set[str]] = {}
    found = []
    for key, group in sorted(groups.items(), key=lambda item: _in_time(item[0], item[1])):
        label, fingerprint = _label(key, names), key[width]
        known = seen.setdefault(label, set())
        begins = bool(known) and fingerprint not in known
        known.add(fingerprint)
        outcomes = counts.get(key[:width])
        usable = proxies.get(key[:width]) if alone[key[:width]] == 1 else None
        place = {**asked_for, **dict(zip(names, key[1:width], strict=True))}
        found.append(
            Bucket(
                start=_moment(key[0]),
                fingerprint=fingerprint,
                begins=begins,
                group=label,
                coverage=None if outcomes is None else Coverage(**place, **covered(outcomes)),
                **_estimated(group, usable, outcomes or {}),
            )
        )
    return sorted(found, key=lambda one: (one.start, one.group or "", one.fingerprint))


def _in_time(key: Key, group: Group) -> tuple[Any, ...]:
    return key[0], group.latest, key[1:]


def _label(key: Key, names: Sequence[str]) -> str | None:
    if names:
        return str(key[1])
    return str(key[2]) if len(key) > 2 else None


def _estimated(group: Group, proxies: Mapping[str, float] | None, outcomes: Outcomes) -> dict[str, Any]:
    found = estimated(group.sums, proxies, outcomes)
    return dict(zip(_OF_ESTIMATE, _VALUES(found), strict=True)) | {"histogram": group.histogram}


def _coverage(key: Key, outcomes: Outcomes) -> Coverage:
    return Coverage(**dict(zip(_NAMES, key, strict=True)), **covered(outcomes))
