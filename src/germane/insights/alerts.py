"""Alerts with their notifications, silences, charts and worst answers, and the baselines of drop rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

from markupsafe import Markup

from germane.alert import Alert, AlertEvent, Interval, ScoreLevel, Severity, Silence
from germane.baseline import POOLED_ROUTE
from germane.exchange import Exchange
from germane.insights.charts import ChartMarker, TrendChart, chart_points, trend_figure
from germane.insights.context import InsightContext, ViewParams
from germane.insights.formatting import (
    DASH,
    format_interval,
    format_number,
    format_percent,
    format_seconds,
    humanize,
)
from germane.insights.sentences import not_enough_data
from germane.score import Score
from germane.settings import AnyRule
from germane.storage import MIN_SAMPLES, BaselineVersion, NotificationRecord, TrackingStore

MAX_NOTIFICATIONS: Final = 1_000
"""Notifications that are searched."""
NOTIFIED_WITHIN: Final = timedelta(days=1)
"""Notifications of an alert are written at most this long after it resolved."""
RESOLVED_PER_PAGE: Final = 25
MAX_OPEN_ALERTS: Final = 100
"""Newest open alerts that are listed; only the number of older ones is shown."""
MAX_WORST_ANSWERS: Final = 10
CHART_BEFORE: Final = timedelta(days=3)
"""The shortest time before an alert that its chart shows."""
CHART_AFTER: Final = timedelta(hours=12)
"""The shortest time after its end."""
MAX_CHART_LENGTH: Final = timedelta(days=90)
MAX_MARKERS: Final = 12
SHARE_RULES: Final = frozenset({"low_score_rate", "noncommittal_rate", "scorer_error"})
"""Types of rules whose value is a share, not a mean."""
Tone = Literal["bad", "warn", "good", ""]
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
_RESOLVE_REASONS: Final[Mapping[str, str]] = {
    "recovered": "it recovered",
    "passed": "it passed before notifications were sent",
    "judge_changed": "the judge changed",
    "by_hand": "someone resolved it",
    "new_baseline": "this level was accepted as the new baseline",
    "rule_removed": "its rule was removed",
}
_CAUSES: Final[Mapping[str, str]] = {
    "answers_drifting": "answers drift away from their questions",
    "refusals_rising": "more answers are refusals",
    "retrieval_worse": "retrieval finds fewer relevant texts",
    "judge_broken": "the judge is broken, which says nothing about the answers",
    "no_data": "no scores arrive",
    "budget": "the budget is exhausted",
}
_BASELINE_REASONS: Final[Mapping[str, str]] = {
    "first": "first baseline of this judge",
    "judge_changed": "judge changed",
    "route_joined": "new routes",
    "accepted": "accepted by a person",
    "imported": "imported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationStatus:
    """One notification of an alert on one channel."""

    channel: str
    type: str
    state: str
    created_at: datetime
    """UTC."""
    settled_at: datetime | None
    attempts: int
    problem: str | None
    """Why it could not be delivered, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSummary:
    """One alert of a list."""

    alert: Alert
    notifications: Sequence[NotificationStatus] = ()
    """The newest one per channel, by channel name."""
    silence: Silence | None = None
    """The silence that suppresses it longest."""

    @property
    def tone(self) -> Tone:
        """``bad`` for critical alerts that fire, ``warn`` for other open ones, ``good`` for resolved ones."""
        if not self.alert.is_open:
            return "good"
        if self.alert.state != "firing":
            return "warn" if self.alert.state == "recovering" else ""
        return "bad" if self.alert.severity == "critical" else "warn"

    @property
    def value(self) -> str:
        """The value that its rule checked, with n and interval for a mean or share."""
        alert = self.alert
        if alert.current is not None:
            return format_level(alert.type, alert.current)
        if alert.value is None:
            return DASH
        n = alert.details.get("tried")
        return format_rule_value(alert.type, alert.value) + (f" (n={n})" if isinstance(n, int) else "")

    @property
    def reference(self) -> str:
        """The baseline or threshold that the value is compared with; empty without one."""
        alert = self.alert
        if alert.type == "drop":
            return "" if alert.baseline is None else f"baseline {format_level(alert.type, alert.baseline)}"
        return "" if alert.threshold is None else f"threshold {format_rule_value(alert.type, alert.threshold)}"

    @property
    def firing_time(self) -> timedelta | None:
        """How long it has been firing, or did; None if it never fired."""
        alert = self.alert
        return None if alert.fired_at is None else (alert.resolved_at or alert.evaluated_at) - alert.fired_at


def format_rule_value(rule_type: str, value: float) -> str:
    """Return a rule's value: a share, a duration or a mean, depending on its type."""
    if rule_type == "no_data":
        return format_seconds(value)
    return format_percent(value) if rule_type in SHARE_RULES else format_number(value)


def format_level(rule_type: str, level: ScoreLevel) -> str:
    """Return "0.52 (95 % interval 0.48-0.56, n=40)"."""
    interval = "" if level.interval is None else f"95 % interval {_format_ends(rule_type, level.interval)}, "
    return f"{format_rule_value(rule_type, level.mean)} ({interval}n={level.n:,})"


def _format_ends(rule_type: str, interval: Interval) -> str:
    if rule_type in SHARE_RULES:
        return f"{format_percent(interval[0])} to {format_percent(interval[1])}"
    return format_interval(interval)


def summarize_alerts(
    store: TrackingStore, alerts: Sequence[Alert], silences: Iterable[Silence], now: datetime
) -> list[AlertSummary]:
    """Return alerts with notifications and silences, in the same order. Notifications take one query."""
    latest: dict[str, dict[str, NotificationStatus]] = {}
    if alerts:
        since = min(alert.starts_at for alert in alerts)
        until = max((alert.resolved_at or now) for alert in alerts) + NOTIFIED_WITHIN
        for posted in store.notifications.search(since=since, until=until, limit=MAX_NOTIFICATIONS):
            for alert in posted.notification.alerts:
                latest.setdefault(alert.id, {}).setdefault(posted.notification.channel, _notification_status(posted))
    silences, summaries = list(silences), []
    for alert in alerts:
        covering = [silence for silence in silences if alert.is_open and silence.covers(alert, now)]
        channels = latest.get(alert.id, {})
        summaries.append(
            AlertSummary(
                alert=alert,
                notifications=[channels[name] for name in sorted(channels)],
                silence=max(covering, key=lambda silence: silence.ends_at, default=None),
            )
        )
    return summaries


def _notification_status(posted: NotificationRecord) -> NotificationStatus:
    return NotificationStatus(
        channel=posted.notification.channel,
        type=posted.notification.type,
        state=posted.status,
        created_at=posted.notification.created_at,
        settled_at=posted.settled_at,
        attempts=posted.notification.attempt,
        problem=posted.error,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSummary:
    """One version of a baseline."""

    version: BaselineVersion
    in_use: bool
    """Whether the detector compares with it now."""

    @property
    def reason(self) -> str:
        """Why this version exists."""
        return _BASELINE_REASONS.get(self.version.reason, self.version.reason)

    @property
    def scope(self) -> str:
        """The exchanges it covers; empty for all."""
        patterns: dict[str, str] = json.loads(self.version.key.scope) if self.version.key.scope else {}
        return ", ".join(f"{name}={pattern}" for name, pattern in patterns.items())

    @property
    def routes(self) -> int:
        """The number of routes with a level of their own."""
        return 0 if self.version.baseline is None else len(self.version.baseline.routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineList:
    """Active and learning baselines."""

    active: Sequence[BaselineSummary]
    """Those that the detector uses, by service and scorer."""
    retired: Sequence[BaselineSummary]
    """Those of judges that no longer score."""
    learning: Sequence[BaselineSummary]


def load_baselines(store: TrackingStore) -> BaselineList:
    """Load active baselines, and those that are being learned from the judges that score now."""
    used = {detector.baseline_id for detector in store.detectors.list_states()}
    versions = [version for version in store.baselines.list_versions() if version.status == "active"]
    summaries = [BaselineSummary(version=version, in_use=version.id in used) for version in versions]
    return BaselineList(
        active=[summary for summary in summaries if summary.in_use],
        retired=[summary for summary in summaries if not summary.in_use],
        learning=[BaselineSummary(version=version, in_use=False) for version in store.baselines.list_learning()],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter:
    """A filter of the alert list."""

    state: Literal["open", "resolved"] | None = None
    rule: str | None = None
    severity: Severity | None = None
    service: str | None = None
    after: tuple[datetime, str] | None = None
    """Start time and id of the last alert of the previous page."""

    def matches(self, alert: Alert) -> bool:
        """Whether an alert matches, regardless of its state."""
        pairs = ((alert.rule, self.rule), (alert.severity, self.severity), (alert.service, self.service))
        return all(wanted in {None, value} for value, wanted in pairs)

    @property
    def query(self) -> Mapping[str, str | None]:
        """The URL parameters in addition to those of the view."""
        return {"state": self.state, "rule": self.rule, "severity": self.severity}

    def __bool__(self) -> bool:
        return any((self.state, self.rule, self.severity, self.service))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertList:
    """Everything that the alert list shows."""

    filter: AlertFilter
    open: Sequence[AlertSummary]
    """Newest first; at most a hundred."""
    open_hidden: int
    """The number of older open alerts."""
    resolved: Sequence[AlertSummary]
    """One page, newest first."""
    next_page: str | None
    """The position after the last resolved alert; None on the last page."""
    silences: Sequence[Silence]
    """Active and scheduled ones."""
    baselines: BaselineList
    rules: Sequence[AnyRule]
    """Active rules of this process's settings."""
    disabled_rules: Sequence[AnyRule]

    @property
    def firing(self) -> int:
        """The number of listed alerts that fired and are not resolved."""
        return sum(summary.alert.fired_at is not None for summary in self.open)


def load_alert_list(context: InsightContext, wanted: AlertFilter) -> AlertList:
    """Load the alert list."""
    store, settings, now = context.store, context.settings, context.store.now()
    silences = store.alerts.list_silences()
    open_alerts, resolved = list[Alert](), list[Alert]()
    if wanted.state != "resolved":
        open_alerts = [alert for alert in store.alerts.list_open() if wanted.matches(alert)]
    if wanted.state != "open":
        resolved = store.alerts.search(
            state="resolved",
            rule=wanted.rule,
            severity=wanted.severity,
            service=wanted.service,
            after=wanted.after,
            limit=RESOLVED_PER_PAGE + 1,
        )
    shown = [*open_alerts[: -MAX_OPEN_ALERTS - 1 : -1], *resolved[:RESOLVED_PER_PAGE]]
    summaries = summarize_alerts(store, shown, silences, now)
    last = resolved[RESOLVED_PER_PAGE - 1] if len(resolved) > RESOLVED_PER_PAGE else None
    return AlertList(
        filter=wanted,
        open=[summary for summary in summaries if summary.alert.is_open],
        open_hidden=max(0, len(open_alerts) - MAX_OPEN_ALERTS),
        resolved=[summary for summary in summaries if not summary.alert.is_open],
        next_page=None if last is None else f"{last.starts_at.isoformat()}~{last.id}",
        silences=silences,
        baselines=load_baselines(store),
        rules=list(settings.active_rules),
        disabled_rules=[rule for rule in settings.rules if rule not in settings.active_rules],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One event of an alert."""

    event: AlertEvent
    words: str
    detail: str
    """More about it; empty if nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributor:
    """A route, attribute or scorer that contributes to a drop."""

    dimension: str
    name: str
    before: str
    since: str
    change: float | None
    """None with too few scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChart:
    """A trend around an alert."""

    subject: str
    """A route, or all routes of a service."""
    figure: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDetail:
    """Everything that the page of one alert shows."""

    summary: AlertSummary
    notifications: Sequence[NotificationStatus]
    """Newest first."""
    timeline: Sequence[TimelineEntry]
    """Oldest first."""
    worst: Sequence[tuple[Exchange, Score | None]]
    """Worst first."""
    worst_deleted: int
    """The number of the worst answers that are no longer stored."""
    contributors: Sequence[Contributor]
    """Largest first."""
    can_accept: bool
    """Whether it can be accepted as the new baseline: an open drop whose baseline is active."""
    charts: Sequence[AlertChart]
    """The alert's scorer, and the route that contributes most; empty if the alert has no scorer."""

    @property
    def alert(self) -> Alert:
        """The alert itself."""
        return self.summary.alert

    @property
    def cause(self) -> str | None:
        """The likely cause, in words."""
        return None if self.alert.cause is None else _CAUSES.get(self.alert.cause, self.alert.cause)

    @property
    def resolve_reason(self) -> str | None:
        """Why it is resolved, in words."""
        reason = self.alert.resolve_reason
        return None if reason is None else _RESOLVE_REASONS.get(reason, reason)

    @property
    def release_changes(self) -> Sequence[tuple[str, str, str]]:
        """What changed in the application since the baseline was learned: name, before, now."""
        changes: Mapping[str, Any] = self.alert.details.get("release") or {}
        return [(name, str(pair[0] or "unknown"), str(pair[1])) for name, pair in changes.items()]


def load_alert_detail(context: InsightContext, alert: Alert, view: ViewParams, root: str) -> AlertDetail:
    """Load everything about an alert."""
    store, now = context.store, context.store.now()
    (summary,) = summarize_alerts(store, [alert], store.alerts.list_silences(), now)
    until = (alert.resolved_at or now) + NOTIFIED_WITHIN
    posted = store.notifications.search(since=alert.starts_at, until=until, limit=MAX_NOTIFICATIONS)
    ids = alert.exchange_ids[:MAX_WORST_ANSWERS]
    exchanges, scores = store.answers.get_exchanges(ids), store.answers.get_scores(ids)
    worst = [(exchanges[id_], _score_of_alert(scores.get(id_, ()), alert)) for id_ in ids if id_ in exchanges]
    return AlertDetail(
        summary=summary,
        notifications=[
            _notification_status(one) for one in posted if alert.id in {each.id for each in one.notification.alerts}
        ],
        timeline=[_timeline_entry(event, alert) for event in store.alerts.list_events(alert.id)],
        worst=worst,
        worst_deleted=len(ids) - len(worst),
        contributors=[
            Contributor(
                dimension=shift.dimension,
                name=shift.name,
                before=_format_contribution(shift.before),
                since=_format_contribution(shift.since),
                change=shift.since.mean - shift.before.mean
                if min(shift.before.n, shift.since.n) >= MIN_SAMPLES
                else None,
            )
            for shift in alert.shifts
        ],
        can_accept=can_accept_baseline(context, alert),
        charts=list(_load_charts(store, alert, now, view.zone, root)),
    )


def can_accept_baseline(context: InsightContext, alert: Alert) -> bool:
    """Whether an alert can be accepted as the new baseline: an open drop whose baseline is still active."""
    from germane import alerting

    return alert.type == "drop" and alert.is_open and alerting.active_baseline_for(context.store, alert) is not None


def _format_contribution(level: ScoreLevel) -> str:
    return format_level("drop", level) if level.n >= MIN_SAMPLES else not_enough_data(level)


def _score_of_alert(scores: Sequence[Score], alert: Alert) -> Score | None:
    """Return the score by the alert's fingerprint, or the newest one of its scorer."""
    of_scorer = [score for score in scores if score.scorer == alert.scorer]
    same = [score for score in of_scorer if score.fingerprint == alert.fingerprint]
    return next(reversed(same or of_scorer), None)


def _timeline_entry(event: AlertEvent, alert: Alert) -> TimelineEntry:
    detail, words = event.detail, []
    if detail.get("by"):
        words.append(f"by {detail['by']}")
    if detail.get("reason"):
        words.append(_RESOLVE_REASONS.get(str(detail["reason"]), str(detail["reason"])))
    if isinstance(detail.get("value"), (int, float)):
        words.append(f"at {format_rule_value(alert.type, detail['value'])}")
    if event.type in {"fired", "escalated"} and detail.get("severity"):
        words.append(str(detail["severity"]))
    return TimelineEntry(event=event, words=_EVENTS.get(event.type, event.type), detail=", ".join(words))


def chart_window(alert: Alert, now: datetime) -> tuple[datetime, datetime]:
    """Return the window of an alert's charts: as long before its onset as it lasted, and some time after its end."""
    first, last = alert.onset or alert.starts_at, alert.resolved_at or now
    until = min(now, last + max(CHART_AFTER, (last - first) / 4))
    since = first - max(CHART_BEFORE, last - first)
    return max(since, until - MAX_CHART_LENGTH), until


def _load_charts(
    store: TrackingStore, alert: Alert, now: datetime, zone: ZoneInfo | None, root: str
) -> Iterator[AlertChart]:
    """Yield the trend of the alert's scorer, and of the route that contributes most to a drop."""
    if alert.scorer is None:
        return
    level, level_name = None, ""
    if alert.type == "mean_threshold":
        level, level_name = alert.threshold, "threshold"
    elif alert.type == "drop" and alert.baseline is not None:
        version = (alert.details.get("baseline") or {}).get("version")
        level, level_name = alert.baseline.mean, "baseline" if version is None else f"baseline {version}"
    subjects = [(alert.route, level, level_name, "around")]
    largest = next((shift for shift in alert.shifts if shift.dimension == "route" and shift.name != POOLED_ROUTE), None)
    if alert.route is None and largest is not None:
        subjects.append((largest.name, largest.before.mean, "baseline", "where"))
    since, until = chart_window(alert, now)
    bucket = ViewParams(window="", since=since, until=until).bucket
    moments = {"onset": alert.onset, "fired": alert.fired_at, "resolved": alert.resolved_at}
    flags = [ChartMarker(at, name, "alert") for name, at in moments.items() if at is not None]
    markers = store.trends.list_markers(since=since, until=until, service=alert.service or None, limit=MAX_MARKERS)
    flags += [ChartMarker(marker.at, marker.name, "deploy") for marker in markers]
    for route, baseline, baseline_name, name in subjects:
        buckets = store.trends.over_time(
            scorer=alert.scorer,
            bucket=bucket,
            since=since,
            until=until,
            route=route,
            service=alert.service or None,
            histograms=False,
        )
        chart = TrendChart(
            points=chart_points(buckets),
            since=since,
            until=until,
            bucket=bucket,
            title=f"{humanize(alert.scorer)} of {route or alert.service}",
            name=name,
            zone=zone,
            baseline=baseline,
            baseline_name=baseline_name,
            markers=flags,
            root=root,
        )
        yield AlertChart(subject=route or f"all routes of {alert.service}", figure=trend_figure(chart))
