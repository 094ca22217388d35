"""The time around an alert: means, what they are measured against, and when it began, fired and was over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from markupsafe import Markup

from germane.alert import Alert
from germane.dashboard.charts import ChartMark, Trend, points_of, trend_figure
from germane.dashboard.view import View
from germane.dashboard.words import plain
from germane.storage import Store

BEFORE: Final = timedelta(days=3)
"""At least so much is shown of the time before it."""
AFTER: Final = timedelta(hours=12)
"""And of that after its end."""
LONGEST: Final = timedelta(days=90)
MARKS: Final = 12
"""Deploys and the like that are shown."""


def chart_of(store: Store, alert: Alert, now: datetime, zone: ZoneInfo | None, root: str) -> Markup | None:
    """Return the trend of the scorer around an alert; None of what is about no scorer alone.

    Args:
        store: Where scores are.
        alert: The alert.
        now: UTC.
        zone: In which moments are written.
        root: Before every link.
    """
    if alert.scorer is None:
        return None
    since, until = window_of(alert, now)
    bucket = View(span="", since=since, until=until).bucket
    buckets = store.trend(
        scorer=alert.scorer,
        bucket=bucket,
        since=since,
        until=until,
        route=alert.route,
        service=alert.service or None,
        histograms=False,
    )
    baseline, name = _level(alert)
    return trend_figure(
        Trend(
            points=points_of(buckets),
            since=since,
            until=until,
            bucket=bucket,
            title=f"{plain(alert.scorer)} of {alert.route or alert.service}",
            name="around",
            zone=zone,
            baseline=baseline,
            baseline_name=name,
            marks=[*_own_marks(alert), *_deploys(store, alert, since, until)],
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
    return alert.baseline.mean, "baseline" if version is None else f"baseline, version {version},"


def _own_marks(alert: Alert) -> Iterator[ChartMark]:
    moments = {"began": alert.onset, "fired": alert.fired_at, "over": alert.resolved_at}
    for name, at in moments.items():
        if at is not None:
            yield ChartMark(at, name, "alert")


def _deploys(store: Store, alert: Alert, since: datetime, until: datetime) -> Iterator[ChartMark]:
    for mark in store.marks(since=since, until=until, service=alert.service or None, limit=MARKS):
        yield ChartMark(mark.at, mark.name, "deploy")
