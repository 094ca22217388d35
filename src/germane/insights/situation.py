"""The data that a verdict is based on, and the building blocks for its sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from typing import Final

from germane.alert import Alert
from germane.alerting import Onset
from germane.annotation import Marker
from germane.insights.charts import ChartMarker
from germane.insights.context import ViewParams
from germane.insights.formatting import humanize, quote_segment, shorten
from germane.statistics import SIGNIFICANCE_LEVEL, Comparison, Comparisons, Estimate, mark_significant_drops
from germane.storage import Bucket, Coverage, RouteSummary, ServiceSummary

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(hours=24)
"""Length of the current window. "Now" means the last 24 hours."""
FLEET_LEVEL: Final = 0.001
"""Nominal probability, over the routes of all services, of a drop or rise of the last day if there is none.

It is low because a page that is opened many times a day would otherwise report changes that are only chance.
"""
DEFAULT_MIN_DROP: Final = 0.05
"""Minimum change in a mean that is reported, unless the drop rule sets another value."""
MIN_COMPARED_PERIOD: Final = timedelta(hours=1)
"""Minimum length of the periods before and after an onset that are compared."""
NOTIFIED_STATES: Final = frozenset({"firing", "recovering"})
"""States of alerts about which channels were notified. Pending alerts may end without a notification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPeriod:
    """The period that the last day is compared with."""

    since: datetime
    """Start of the period, in UTC."""
    until: datetime
    baseline: int | None = None
    """Version of the baseline that was learned from this period, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The data that a verdict is based on: the last 24 hours for one service and scorer, or for one of its routes."""

    scorer: str | None
    """The selected scorer, or None if nothing has been scored yet."""
    now: datetime
    service: str | None = None
    """The service, or None if there are no answers."""
    is_named: bool = False
    """Whether sentences name the service, because there are others."""
    route: str | None = None
    """The route that the verdict is about, or None for the whole service."""
    zone: tzinfo | None = None
    """Time zone for dates in the verdict."""
    current: ServiceSummary | RouteSummary | None = None
    """Summary of the scores with the newest fingerprint, or None if there are no scores."""
    reference: Estimate | None = None
    """Summary of the same service and fingerprint in the reference period."""
    reference_period: ComparisonPeriod | None = None
    comparisons: Comparisons | None = None
    """Comparisons of routes scored with the newest fingerprint, and of routes last scored with an earlier one."""
    spans: Mapping[str, timedelta] = field(default_factory=dict)
    """Length of the period that the later mean of a route covers, if it is not a day."""
    min_drop: float = DEFAULT_MIN_DROP
    """Smaller changes in a mean are ignored."""
    onset: Onset | None = None
    """The estimated onset of the service's largest drop."""
    explained: Alert | None = None
    """The alert about that drop, or one as it would be, with the evidence about its cause that is known now."""
    alerts: Sequence[Alert] = ()
    """The service's open alerts about which channels were notified."""
    coverage: Sequence[Coverage] = ()
    """Outcomes of the service's answers in the last day, for every scorer."""
    answered_at: datetime | None = None
    """Time of the newest answer, or None if there are no answers."""
    scored_at: datetime | None = None
    """Time of the newest scored answer."""
    retry_reason: str | None = None
    """Why tasks are waiting for a retry."""
    has_judge: bool = True
    """Whether the settings and the extras of this process select any scorer."""
    has_worker: bool = True

    @property
    def routes(self) -> list[Comparison]:
        """Route comparisons, based on the scores with the newest fingerprint."""
        if self.comparisons is None or self.current is None:
            return []
        return [line for line in self.comparisons.routes if line.fingerprint == self.current.fingerprint]

    @property
    def whole(self) -> Comparison | None:
        """The comparison of the whole service, with routes weighted as in the reference period.

        If only one route can be compared, this is that route's comparison.
        """
        if self.comparisons is None or self.current is None:
            return None
        newest = [line for line in self.comparisons.services if line.fingerprint == self.current.fingerprint]
        compared = [line for line in self.routes if line.is_comparable]
        return newest[0] if newest else compared[0] if len(compared) == 1 else None

    @property
    def change(self) -> Comparison | None:
        """The change in the mean, or None if there is nothing to compare with."""
        whole = self.whole
        return None if whole is None or not whole.is_comparable else whole

    def for_route(self, route: str, current: RouteSummary | None, reference: Estimate | None) -> Situation:
        """Return this situation restricted to one route. Findings come from the tests across all routes.

        ``reference`` is of the same route and fingerprint in the reference period.
        """
        comparisons = self.comparisons
        if comparisons is not None:
            lines = [line for line in comparisons.routes if line.route == route]
            comparisons = replace(comparisons, routes=lines, services=())
        return replace(
            self,
            route=route,
            current=current,
            reference=reference,
            comparisons=comparisons,
            alerts=[alert for alert in self.alerts if route in affected_routes(alert) or not affected_routes(alert)],
            coverage=[counts for counts in self.coverage if counts.route == route],
        )


def find_rises(lines: Iterable[Comparison], level: float = SIGNIFICANCE_LEVEL) -> list[Comparison]:
    """Return the significant rises. They are tested like drops, with the two windows swapped."""
    tested = list(lines)
    marked = mark_significant_drops(map(_swap, tested), 0.0, level)
    return [line for line, swapped in zip(tested, marked, strict=True) if swapped.finding == "dropped"]


def _swap(line: Comparison) -> Comparison:
    difference = None if line.difference is None else -line.difference
    interval = None if line.interval is None else (-line.interval[1], -line.interval[0])
    return replace(line, before=line.after, after=line.before, difference=difference, interval=interval)


def alert_began_at(alert: Alert) -> datetime:
    """Return the estimated onset of an alert, or its start if the onset is unknown."""
    return alert.onset or alert.starts_at


def affected_routes(alert: Alert) -> list[str]:
    """Return the route of an alert, or the route that carries a service-wide drop, if there is evidence for one."""
    if alert.route is not None:
        return [alert.route]
    return [shift.name for shift in alert.shifts if shift.dimension == "route" and shift.supported]


def alert_concerns_route(alert: Alert, service: str | None, route: str) -> bool:
    """Return whether an alert is about the route, or about its service as a whole."""
    routes = affected_routes(alert)
    return service in {None, alert.service} and (route in routes or not routes)


def chart_markers(
    alerts: Iterable[Alert], markers: Iterable[Marker], *, route: str | None = None, view: ViewParams | None = None
) -> tuple[ChartMarker, ...]:
    """Return the markers for a chart, oldest first.

    Labels omit the name of the chart's own ``route``, and links keep the ``view``. A marker links to the comparison of
    the time since the marker with the time before it.
    """
    flags = []
    for alert in alerts:
        names = [shorten(name, 60) for name in affected_routes(alert)[:1] if name != route]
        label = " on ".join([f"alert: {shorten(humanize(alert.rule), 60).lower()}", *names])
        path = f"/alerts/{quote_segment(alert.id)}"
        flags.append(ChartMarker(alert_began_at(alert), label, "alert", path if view is None else view.link(path)))
    for marker in markers:
        path = "" if view is None else marker_comparison_path(marker, view, route)
        flags.append(ChartMarker(marker.at, shorten(marker.name, 60), "deploy", path))
    return tuple(sorted(flags, key=lambda flag: flag.at))


def marker_comparison_path(marker: Marker, view: ViewParams, route: str | None = None) -> str:
    """Return the URL of the comparison of the answers since a marker with the period of equal length before it."""
    return view.link("/compare", window=None, bucket=None, until=None, since=marker.at.isoformat(), route=route)


def first_scored(buckets: Iterable[Bucket], period: ComparisonPeriod | None = None) -> datetime | None:
    """Return the start of the first bucket with scores or of the reference period, or None without either."""
    starts = [bucket.start for bucket in buckets] + ([] if period is None else [period.since])
    return min(starts, default=None)


def onset_comparison_path(
    view: ViewParams, onset: datetime, until: datetime, *, first: datetime | None, **selected: str | None
) -> str | None:
    """Return the URL of the comparison of the time after an onset with a period of equal length before it.

    ``first`` is the time of the first score, which bounds both periods. ``until`` is the end of the drop, or now.

    Returns:
        The URL, or None if the scores do not begin at least an hour before the onset.
    """
    length = timedelta() if first is None else min(until - onset, onset - first)
    if length < MIN_COMPARED_PERIOD:
        return None
    period = {"since": onset, "until": onset + length, "old_since": onset - length, "old_until": onset}
    times = {name: moment.isoformat() for name, moment in period.items()}
    return view.link("/compare", window=None, bucket=None, **times, **selected)
