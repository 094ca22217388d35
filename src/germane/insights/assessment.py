"""The verdict on a service, with the data on which it is based."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from germane.alert import Alert
from germane.insights.context import InsightContext, ViewParams
from germane.insights.health import HealthSummary, load_health
from germane.insights.last_day import LastDay, load_last_day, load_situation, with_onsets
from germane.insights.situation import DAY, NOTIFIED_STATES, Situation
from germane.insights.verdict import Verdict, build_verdict
from germane.storage import Bucket, WindowSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Whether the answers of the selected service got worse."""

    verdict: Verdict
    last_day: LastDay
    situation: Situation
    health: HealthSummary
    alerts: Sequence[Alert]
    """All open alerts about which channels were notified, of all services."""
    bucket: timedelta
    """Length of the buckets."""
    buckets: Sequence[Bucket]
    """Buckets for the whole service in the view's window."""
    by_route: Mapping[str, Sequence[Bucket]]
    """Buckets of the view's window, by route."""
    window: WindowSummary
    """Summary of the service and scorer in the view's window."""


def load_assessment(context: InsightContext, view: ViewParams, now: datetime) -> Assessment:
    """Load the data about the service that the view selects, and return the verdict.

    Raises:
        StorageError: The database is unreachable, or its schema version does not match this code.
    """
    last_day = load_last_day(context, view, now)
    alerts = [alert for alert in context.store.alerts.list_open() if alert.state in NOTIFIED_STATES]
    health = load_health(context)
    bucket = view.bucket_for(0 if last_day.current is None else last_day.current.n, DAY)
    trend = context.store.trends.window_trend(
        scorer=last_day.scorer or "",
        service=last_day.service,
        bucket=bucket,
        timezone=view.zone or UTC,
        since=view.since,
        until=view.until,
    )
    by_route: dict[str, list[Bucket]] = {}
    for each in trend.by_route:
        by_route.setdefault(each.group or "", []).append(each)
    situation = load_situation(context, view, last_day, alerts, health)
    situation = with_onsets(context, last_day.service, situation)
    return Assessment(
        verdict=build_verdict(situation),
        last_day=last_day,
        situation=situation,
        health=health,
        alerts=alerts,
        bucket=bucket,
        buckets=trend.overall,
        by_route=by_route,
        window=trend.summary,
    )
