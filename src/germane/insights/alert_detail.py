"""The page for one alert: its notifications, timeline, worst answers and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup

from germane import alerting
from germane.alert import IMPROVEMENT, Alert, AlertEvent
from germane.alerting import CAUSES, RESOLVE_REASONS
from germane.baseline import POOLED_ROUTE
from germane.exchange import Exchange
from germane.insights.alerts import (
    MAX_NOTIFICATIONS,
    NOTIFIED_WITHIN,
    AlertSummary,
    format_rule_value,
    summarize_alerts,
)
from germane.insights.cause_shares import CauseShare, load_cause_shares
from germane.insights.charts import ChartMarker, Split
from germane.insights.context import InsightContext, ViewParams, load_buckets
from germane.insights.formatting import format_alert, humanize
from germane.insights.onset import explain_alert
from germane.insights.score_chart import draw_score_chart
from germane.insights.situation import chart_markers, first_scored, onset_comparison_path
from germane.score import Score
from germane.storage import NotificationRecord, TrackingStore

MAX_WORST_ANSWERS: Final = 10
CHART_BEFORE: Final = timedelta(days=3)
"""Minimum length of the period before the onset in an alert's charts."""
CHART_AFTER: Final = timedelta(hours=12)
"""Minimum length of the period after the end in an alert's charts."""
MAX_CHART_LENGTH: Final = timedelta(days=90)
MAX_MARKERS: Final = 12
_EVENTS: Final[Mapping[str, str]] = {
    "pending": "pending",
    "fired": "fired",
    "escalated": "escalated to critical",
    "eased": "lowered to warning",
    "recovering": "started to recover",
    "relapsed": "relapsed",
    "resolved": "resolved",
    "repeated": "sent again",
    "acknowledged": "acknowledged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One event in an alert's history."""

    event: AlertEvent
    words: str
    detail: str
    """Additional information, or an empty string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChart:
    """A trend chart around the time of an alert."""

    subject: str
    """The route, or "all routes of" followed by the service."""
    figure: Markup
    route: str | None
    first: datetime | None
    """Start of the first bucket with scores, or None without scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDetail:
    """The content of an alert's page."""

    summary: AlertSummary
    text: str
    """The alert's message, with markers that were added after it fired."""
    notifications: Sequence[NotificationRecord]
    """Newest first."""
    timeline: Sequence[TimelineEntry]
    """Oldest first."""
    worst: Sequence[tuple[Exchange, Score | None]]
    """Worst first."""
    worst_deleted: int
    """Number of worst answers that are no longer stored."""
    can_accept: bool
    """Whether the current level can be accepted as the new baseline. See :func:`can_accept_baseline`."""
    charts: Sequence[AlertChart]
    """Charts for the alert's scope and for the route that contributes most. Empty if the alert has no scorer."""

    onset_comparison: str | None = None
    """Path of the comparison of the time before and after the onset, on the route that contributes most."""
    cause_shares: Sequence[CauseShare] = ()
    """Shares of answers with symptoms of a cause, on the route that contributes most. Empty without an onset."""

    @property
    def compared_route(self) -> str | None:
        """The alert's route, or the route that contributes most, or None."""
        return self.charts[-1].route if self.charts else self.alert.route

    @property
    def alert(self) -> Alert:
        """The alert itself."""
        return self.summary.alert

    @property
    def cause(self) -> str | None:
        """The likely cause, in words, unless it only repeats what the alert is about."""
        cause = alerting.alert_facts(self.alert).cause
        return cause and CAUSES[cause]

    @property
    def resolve_reason(self) -> str | None:
        """Why the alert was resolved, in words."""
        return self.alert.resolve_reason and RESOLVE_REASONS[self.alert.resolve_reason]

    @property
    def release_changes(self) -> Sequence[tuple[str, str, str]]:
        """Changes in the application since the baseline was learned, as tuples of name, old value and new value."""
        changes: Mapping[str, Any] = self.alert.details.get("release") or {}
        times = self.alert.details.get("release_times") or ()
        return [(name, str(pair[0] or "unknown"), str(pair[1])) for name, pair in changes.items() if name in times]


def load_alert_detail(context: InsightContext, alert: Alert, view: ViewParams, root: str) -> AlertDetail:
    """Load the content of an alert's page."""
    store, now, alert = context.store, context.store.now(), _explained(context, alert)
    (summary,) = summarize_alerts(store, [alert], store.alerts.list_silences(), now)
    until = (alert.resolved_at or now) + NOTIFIED_WITHIN
    posted = store.notifications.search(since=alert.starts_at, until=until, limit=MAX_NOTIFICATIONS)
    ids = alert.exchange_ids[:MAX_WORST_ANSWERS]
    exchanges, scores = store.answers.get_exchanges(ids), store.answers.get_scores(ids)
    worst: list[tuple[Exchange, Score | None]] = []
    for id_ in filter(exchanges.__contains__, ids):
        # Use the score with the alert's fingerprint, or else the newest score from its scorer.
        of_scorer = [score for score in scores.get(id_, ()) if score.scorer == alert.scorer]
        same = [score for score in of_scorer if score.fingerprint == alert.fingerprint]
        worst.append((exchanges[id_], next(reversed(same or of_scorer), None)))
    charts = list(_load_charts(store, alert, now, view, root))
    onset_comparison, cause_shares = None, list[CauseShare]()
    if charts and alert.onset is not None and alert.scorer is not None and alert.type != IMPROVEMENT:
        end, affected = alert.resolved_at or now, charts[-1]
        selected: dict[str, Any] = {"route": affected.route, "scorer": alert.scorer, "service": alert.service or None}
        onset_comparison = onset_comparison_path(view, alert.onset, end, first=affected.first, **selected)
        if not alert.labels.keys() - {"service", "route", "scorer"}:  # shares by attribute are not available
            cause_shares = load_cause_shares(store, alert.onset, end, **selected)
    return AlertDetail(
        summary=summary,
        text=format_alert(alert, view),
        notifications=[
            record for record in posted if alert.id in {notified.id for notified in record.notification.alerts}
        ],
        timeline=[_timeline_entry(event, alert) for event in store.alerts.list_events(alert.id)],
        worst=worst,
        worst_deleted=len(ids) - len(worst),
        can_accept=can_accept_baseline(context, alert),
        charts=charts,
        onset_comparison=onset_comparison,
        cause_shares=cause_shares,
    )


def _explained(context: InsightContext, alert: Alert) -> Alert:
    """Return an open alert with the current evidence about its cause, and the changes around its onset."""
    # Messages that were worded by an earlier version are kept.
    if not alert.is_open or alert.message != alerting.alert_message(alert):
        return alert
    explained = explain_alert(context, alert)
    return replace(explained, message=alerting.alert_message(explained))


def can_accept_baseline(context: InsightContext, alert: Alert) -> bool:
    """Return whether an alert's current level can be accepted as the new baseline.

    This is the case for an open drop or improvement whose baseline is active.
    """
    return (
        alert.type in {"drop", IMPROVEMENT}
        and alert.is_open
        and alerting.active_baseline_for(context.store, alert) is not None
    )


def _timeline_entry(event: AlertEvent, alert: Alert) -> TimelineEntry:
    detail, words = event.detail, []
    if detail.get("by"):
        words.append(f"by {detail['by']}")
    if detail.get("reason"):
        words.append(RESOLVE_REASONS[detail["reason"]])
    if isinstance(detail.get("value"), (int, float)):
        words.append(f"at {format_rule_value(alert.type, detail['value'])}")
    if event.type in {"fired", "escalated"} and detail.get("severity"):
        words.append(str(detail["severity"]))
    return TimelineEntry(event=event, words=_EVENTS.get(event.type, event.type), detail=", ".join(words))


def chart_window(alert: Alert, now: datetime) -> tuple[datetime, datetime]:
    """Return the window of an alert's charts: the alert, the same duration before its onset, and a margin."""
    first, last = alert.onset or alert.starts_at, alert.resolved_at or now
    until = min(now, last + max(CHART_AFTER, (last - first) / 4))
    since = first - max(CHART_BEFORE, last - first)
    return max(since, until - MAX_CHART_LENGTH), until


def _reference_line(alert: Alert) -> tuple[float | None, str]:
    """Return the level that the alert's value is compared with, and its name."""
    if alert.type == "mean_threshold":
        return alert.threshold, "threshold"
    if alert.type not in {"drop", IMPROVEMENT} or alert.baseline is None:
        return None, ""
    version = (alert.details.get("baseline") or {}).get("version")
    return alert.baseline.mean, "baseline" if version is None else f"baseline {version}"


def _load_charts(
    store: TrackingStore, alert: Alert, now: datetime, view: ViewParams, root: str
) -> Iterator[AlertChart]:
    """Yield the trend for the alert's scope, then for the route that contributes most to a service-wide drop."""
    if alert.scorer is None:
        return
    subjects = [(alert.route, *_reference_line(alert), "around")]
    largest = next((shift for shift in alert.shifts if shift.dimension == "route" and shift.name != POOLED_ROUTE), None)
    if alert.route is None and largest is not None:
        subjects.append((largest.name, largest.before.mean, "baseline", "where"))
    since, until = chart_window(alert, now)
    shown = ViewParams(window="", since=since, until=until, zone=view.zone)
    times = {"onset": alert.onset, "fired": alert.fired_at, "resolved": alert.resolved_at}
    moments = [ChartMarker(at, name, "alert") for name, at in times.items() if at is not None]
    query = {name: value for name, value in (("scorer", alert.scorer), ("service", alert.service)) if value}
    markers = store.trends.list_markers(since=since, until=until, service=alert.service or None, limit=MAX_MARKERS)
    split = None
    if alert.onset is not None:
        split = Split(at=alert.onset, interval=alert.onset_interval, is_worse=alert.type != IMPROVEMENT)
    for route, baseline, baseline_name, name in subjects:
        # The view's window applies to other pages.
        flags = chart_markers([], markers, route=route, view=replace(view, query=query))
        place: dict[str, Any] = {"scorer": alert.scorer, "service": alert.service or None, "route": route}
        figure = draw_score_chart(
            store,
            shown,
            place,
            split=split,
            title=f"{humanize(alert.scorer)} for {route or alert.service or 'all services'}",
            name=name,
            baseline=baseline,
            baseline_name=baseline_name,
            markers=sorted([*moments, *flags], key=lambda flag: flag.at),
            root=root,
        )
        first = first_scored(load_buckets(store, shown, **place))
        subject = route or f"all routes of {alert.service or 'all services'}"
        yield AlertChart(subject=subject, figure=figure, route=route, first=first)
