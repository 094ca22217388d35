"""The alert list: alerts with their notifications and silences, and the baselines of drop rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from germane.alert import IMPROVEMENT, Alert, ScoreLevel, Severity, Silence
from germane.insights.context import InsightContext
from germane.insights.formatting import (
    DASH,
    format_interval,
    format_number,
    format_percent,
    format_seconds,
)
from germane.insights.situation import NOTIFIED_STATES
from germane.insights.wording import not_enough_data
from germane.settings import SHARE_RULES, AnyRule
from germane.storage import BaselineVersion, NotificationRecord, TrackingStore

MAX_NOTIFICATIONS: Final = 1_000
"""Maximum number of notifications that are searched."""
NOTIFIED_WITHIN: Final = timedelta(days=1)
"""Maximum time between the resolution of an alert and its last notification."""
RESOLVED_PER_PAGE: Final = 25
MAX_OPEN_ALERTS: Final = 100
"""Maximum number of open alerts that are listed, newest first. Older alerts are only counted."""
PERCENT_RULES: Final = SHARE_RULES | {"scorer_error"}
"""Types of rules whose values are shown as percentages."""
Tone = Literal["bad", "warn", "good", ""]
_BASELINE_REASONS: Final[Mapping[str, str]] = {
    "first": "first baseline for this judge",
    "judge_changed": "judge changed",
    "route_joined": "new routes",
    "traffic_changed": "traffic changed",
    "extended": "more days",
    "improvement": "improved level",
    "accepted": "accepted by a user",
    "imported": "imported",
    "provisional": "provisional, until learning is complete",
    "carried_over": "judge changed, shifted by the difference on the anchors",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSummary:
    """One alert in a list."""

    alert: Alert
    notifications: Sequence[NotificationRecord] = ()
    """The newest notification on each channel, sorted by channel name."""
    silence: Silence | None = None
    """The matching silence that ends last, if any."""

    @property
    def tone(self) -> Tone:
        """Color of the alert.

        ``bad`` for critical firing alerts, ``warn`` for other firing alerts and for recovering alerts, ``good`` for
        resolved alerts, and empty for pending alerts.
        """
        if not self.alert.is_open:
            return "good"
        if self.alert.state != "firing":
            return "warn" if self.alert.state == "recovering" else ""
        return "bad" if self.alert.severity == "critical" else "warn"

    @property
    def value(self) -> str:
        """The value that the rule checked, with n and, for a mean or share, the interval."""
        alert = self.alert
        if alert.current is not None:
            return format_level(alert.type, alert.current)
        if alert.value is None:
            return DASH
        n = alert.details.get("tried")
        return format_rule_value(alert.type, alert.value) + (f" (n={n})" if isinstance(n, int) else "")

    @property
    def reference(self) -> str:
        """The baseline or threshold that the value is compared with, or an empty string if there is none."""
        alert = self.alert
        if alert.type in {"drop", IMPROVEMENT}:
            return "" if alert.baseline is None else f"baseline {format_level(alert.type, alert.baseline)}"
        return "" if alert.threshold is None else f"threshold {format_rule_value(alert.type, alert.threshold)}"

    @property
    def firing_time(self) -> timedelta | None:
        """Time from firing until the alert resolved or was last evaluated; None if it never fired."""
        alert = self.alert
        return None if alert.fired_at is None else (alert.resolved_at or alert.evaluated_at) - alert.fired_at


def format_rule_value(rule_type: str, value: float) -> str:
    """Format a value that a rule checks: a share, a duration or a mean, depending on the rule's type."""
    if rule_type == "no_data":
        return format_seconds(value)
    return format_percent(value) if rule_type in PERCENT_RULES else format_number(value)


def format_level(rule_type: str, level: ScoreLevel, *, min_samples: int = 0) -> str:
    """Format a level with enough scores, such as "0.52 (95% interval 0.48-0.56, n=40)"."""
    if level.n < min_samples:
        return not_enough_data(level)
    interval = ""
    if level.interval is not None:
        ends = format_interval(level.interval)
        if rule_type in PERCENT_RULES:
            ends = f"{format_percent(level.interval[0])} to {format_percent(level.interval[1])}"
        interval = f"95% interval {ends}, "
    return f"{format_rule_value(rule_type, level.mean)} ({interval}n={level.n:,})"


def summarize_alerts(
    store: TrackingStore, alerts: Sequence[Alert], silences: Iterable[Silence], now: datetime
) -> list[AlertSummary]:
    """Return summaries of alerts, in the same order. All notifications are loaded in one query."""
    latest: dict[str, dict[str, NotificationRecord]] = {}
    if alerts:
        since = min(alert.starts_at for alert in alerts)
        until = max((alert.resolved_at or now) for alert in alerts) + NOTIFIED_WITHIN
        for posted in store.notifications.search(since=since, until=until, limit=MAX_NOTIFICATIONS):
            for alert in posted.notification.alerts:
                latest.setdefault(alert.id, {}).setdefault(posted.notification.channel, posted)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSummary:
    """One version of a baseline."""

    version: BaselineVersion
    in_use: bool
    """Whether a detector compares scores with this baseline now."""

    @property
    def reason(self) -> str:
        """Why this version was created."""
        return _BASELINE_REASONS.get(self.version.reason, self.version.reason)

    @property
    def scope(self) -> str:
        """Attribute patterns of the exchanges that the baseline covers, or an empty string for all exchanges."""
        patterns: dict[str, str] = json.loads(self.version.key.scope) if self.version.key.scope else {}
        return ", ".join(f"{name}={pattern}" for name, pattern in patterns.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineList:
    """Active and learning baselines."""

    active: Sequence[BaselineSummary]
    """Baselines that a detector uses, sorted by service and scorer."""
    retired: Sequence[BaselineSummary]
    """Active baselines that no detector uses, such as those for earlier judges."""
    learning: Sequence[BaselineSummary]


def load_baselines(store: TrackingStore) -> BaselineList:
    """Load active baselines, and baselines that are being learned for current judges."""
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
    """A filter for the alert list."""

    state: Literal["open", "resolved"] | None = None
    rule: str | None = None
    severity: Severity | None = None
    service: str | None = None
    after: tuple[datetime, str] | None = None
    """Start time and id of the last alert on the previous page."""

    def matches(self, alert: Alert) -> bool:
        """Return whether an alert matches the filter, regardless of its state."""
        pairs = ((alert.rule, self.rule), (alert.severity, self.severity), (alert.service, self.service))
        return all(wanted in {None, value} for value, wanted in pairs)

    @property
    def query(self) -> Mapping[str, str | None]:
        """The URL parameters of the filter, without the parameters of the view."""
        return {"state": self.state, "rule": self.rule, "severity": self.severity}

    def __bool__(self) -> bool:
        return any((self.state, self.rule, self.severity, self.service))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertList:
    """The content of the alert list."""

    filter: AlertFilter
    open: Sequence[AlertSummary]
    """Open alerts, newest first, up to 100."""
    open_hidden: int
    """Number of older open alerts that are not listed."""
    resolved: Sequence[AlertSummary]
    """One page of resolved alerts, newest first."""
    next_page: str | None
    """The position after the last resolved alert, or None on the last page."""
    silences: Sequence[Silence]
    """Active and scheduled silences."""
    baselines: BaselineList
    rules: Sequence[AnyRule]
    """Active rules in this process's settings."""
    disabled_rules: Sequence[AnyRule]

    @property
    def firing(self) -> int:
        """Number of listed alerts that have fired and are not resolved."""
        return sum(summary.alert.fired_at is not None for summary in self.open)


def load_alert_list(context: InsightContext, wanted: AlertFilter) -> AlertList:
    """Load the alerts that match the filter, with their notifications, silences and baselines."""
    store, settings, now = context.store, context.settings, context.store.now()
    silences = store.alerts.list_silences()
    open_alerts, resolved = list[Alert](), list[Alert]()
    if wanted.state != "resolved":
        open_alerts = [alert for alert in store.alerts.list_open() if wanted.matches(alert)]
        # Pending alerts may end without a notification: they are listed below all others.
        open_alerts.sort(key=lambda alert: alert.state in NOTIFIED_STATES)
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
