"""The time around an alert: means, what they are measured against, and when it began, fired and was over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup

from germane.alert import Alert
from germane.baseline import OTHER
from germane.insights.charts import ChartMark, Trend, points_of, trend_figure
from germane.insights.text import plain
from germane.insights.window import View
from germane.storage import Store

BEFORE: Final = timedelta(days=3)
"""At least so much is shown of the time before it."""
AFTER: Final = timedelta(hours=12)
"""And of that after its end."""
LONGEST: Final = timedelta(days=90)
MARKS: Final = 12
"""Deploys and the like that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChart:
    """A trend, and of what."""

    of: str
    """A route, or in words all of a service."""
    figure: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What a chart is of."""

    route: str | None
    level: float | None
    """Of the dashed line."""
    level_name: str
    name: str
    """Its id on the page."""


def charts_of(store: Store, alert: Alert, now: datetime, zone: ZoneInfo | None, root: str) -> list[ShownChart]:
    """Return the trend of the scorer around an alert, and of the route where most of a drop sits.

    Args:
        store: Where scores are.
        alert: The alert; of one that is about no scorer alone there is no chart.
        now: UTC.
        zone: In which moments are written.
        root: Before every link.
    """
    since, until = window_of(alert, now)
    marks = [*_own_marks(alert), *_deploys(store, alert, since, until)]
    found = []
    for place in _places(alert):
        figure = _figure(store, alert, place, (since, until), zone, root, marks)
        found.append(ShownChart(of=place.route or f"all routes of {alert.service}", figure=figure))
    return found


def _places(alert: Alert) -> Iterator[_Place]:
    if alert.scorer is None:
        return
    level, name = _level(alert)
    yield _Place(route=alert.route, level=level, level_name=name, name="around")
    largest = next((one for one in alert.shifts if one.kind == "route" and one.name != OTHER), None)
    if alert.route is None and largest is not None:
        yield _Place(route=largest.name, level=largest.before.mean, level_name="baseline", name="where")


def _figure(
    store: Store,
    alert: Alert,
    place: _Place,
    window: tuple[datetime, datetime],
    zone: ZoneInfo | None,
    root: str,
    marks: Sequence[ChartMark],
) -> Markup:
    since, until = window
    bucket = View(span="", since=since, until=until).bucket
    buckets = store.trend(
        scorer=alert.scorer or "",
        bucket=bucket,
        since=since,
        until=until,
        route=place.route,
        service=alert.service or None,
        histograms=False,
    )
    return trend_figure(
        Trend(
            points=points_of(buckets),
            since=since,
            until=until,
            bucket=bucket,
            title=f"{plain(alert.scorer or '')} of {place.route or alert.service}",
            name=place.name,
            zone=zone,
            baseline=place.level,
            baseline_name=place.level_name,
            marks=marks,
            root=root,
        )
    )


def window_of(alert: Alert, now: datetime) -> tuple[datetime, datetime]:
    """Return the time that is shown: as long before it began as it lasted, and a while after it was over."""
    first, last = alert.onset or alert.starts_at, alert.resolved_at or now
    until = min(now, last + max(AFTER, (last - first) / 4))
    since = first - max(BEFORE, last - first)
    return max(since, until - LONGEST), until


def _level(alert: Alert) -> tuple[float | None, str]:
    """Return the level of the dashed line, and its name."""
    if alert.kind == "floor":
        return alert.threshold, "threshold"
    if alert.kind != "drop" or alert.baseline is None:
        return None, ""
    version = (alert.details.get("baseline") or {}).get("version")
    return alert.baseline.mean, "baseline" if version is None else f"baseline {version}"


def _own_marks(alert: Alert) -> Iterator[ChartMark]:
    moments = {"began": alert.onset, "fired": alert.fired_at, "over": alert.resolved_at}
    for name, at in moments.items():
        if at is not None:
            yield ChartMark(at, name, "alert")


def _deploys(store: Store, alert: Alert, since: datetime, until: datetime) -> Iterator[ChartMark]:
    for mark in store.marks(since=since, until=until, service=alert.service or None, limit=MARKS):
        yield ChartMark(mark.at, mark.name, "deploy")
