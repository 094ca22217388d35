"""Alert states, computed from open alerts and rule results without side effects.

::

    pending ──▶ firing ◀──▶ recovering ──▶ resolved

If a person resolves an alert whose rule still matches, a new alert fires at the next evaluation. Use a silence to stop
notifications. Code that keeps its own state for each alert, such as a detector, starts over if it is firing but no
alert is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from germane.alert import (
    SEVERITIES,
    Alert,
    AlertChange,
    AlertEvent,
    AlertEventType,
    AlertState,
    ResolveReason,
    Severity,
)
from germane.alerting.rule_result import ALERT_FIELDS, RuleResult

IdFactory = Callable[[], str]
REFRESH_INTERVAL: Final = timedelta(minutes=1)
"""Maximum age of an open alert's ``evaluated_at`` while its rule is being evaluated."""
PEAK_SEVERITY: Final = "peak"
"""Key in an alert's details for the highest severity that people were notified of. They are notified once of each
increase.
"""
RECOVERING_SINCE: Final = "recovering_since"
"""Key in an alert's details for the time at which the alert started to recover."""
_STATE_ORDER: Final = ("bad", "unclear", "good")


class AlertStateMachine:
    """Turns the results from one evaluation into changes to alerts.

    Args:
        now: Current time in UTC.
        new_id: Creates ids for alerts and events.
    """

    def __init__(self, now: datetime, new_id: IdFactory) -> None:
        self._now = now
        self._new_id = new_id

    def apply(
        self, alerts: Iterable[Alert], results: Iterable[RuleResult], *, has_rule: Callable[[Alert], bool]
    ) -> list[AlertChange]:
        """Return the changes that follow from the results of an evaluation. Alerts that do not change are omitted.

        Args:
            alerts: All open alerts.
            results: Results in any order. The worst result for each key counts. Alerts without a result do not change.
            has_rule: Returns whether an active rule evaluates an alert. Alerts without a rule resolve.
        """
        by_key: dict[str, RuleResult] = {}
        for result in sorted(results, key=lambda result: _STATE_ORDER.index(result.state)):
            by_key.setdefault(result.key, result)
        open_alerts = {alert.key: alert for alert in alerts}
        changes: list[AlertChange | None] = [
            self._start(result) for key, result in by_key.items() if key not in open_alerts and result.state == "bad"
        ]
        for key, alert in open_alerts.items():
            if not has_rule(alert):
                changes.append(self.resolve(alert, "rule_removed"))
            elif key in by_key and by_key[key].state == "bad":
                changes.append(self._worsen(alert, by_key[key]))
            elif key in by_key and by_key[key].state == "good":
                changes.append(self._improve(alert, by_key[key]))
        return [change for change in changes if change is not None]

    def acknowledge(self, alert: Alert, by: str | None) -> AlertChange:
        """Acknowledge an alert, which stops reminders. If no name is passed, the earlier name is kept."""
        by = by or alert.acknowledged_by
        after = replace(alert, acknowledged_at=self._now, acknowledged_by=by)
        return self._change(alert, after, "acknowledged", {"by": by})

    def resolve(self, alert: Alert, reason: ResolveReason, by: str | None = None) -> AlertChange:
        """Resolve an alert and notify everyone who was notified of it."""
        return self._resolve(alert, alert, reason, {"by": by} if by else {})

    def repeat(self, alert: Alert) -> AlertChange:
        """Notify people of an alert again."""
        return self._change(alert, alert, "repeated", notify=True)

    def _start(self, result: RuleResult) -> AlertChange:
        fires = result.pending <= 0
        alert = Alert(
            id=self._new_id(),
            key=result.key,
            rule=result.rule,
            type=result.type,
            labels=dict(result.labels),
            state="firing" if fires else "pending",
            severity=result.severity,
            starts_at=self._now,
            fired_at=self._now if fires else None,
            evaluated_at=self._now,
            details=dict(result.details),
            **{name: getattr(result, name) for name in ALERT_FIELDS},
        )
        return AlertChange(alert=alert, event=self._event(alert, "fired" if fires else "pending", None), notify=fires)

    def _worsen(self, alert: Alert, result: RuleResult) -> AlertChange | None:
        after = self._updated(alert, result)
        if alert.state == "pending":
            if self._now - alert.starts_at < timedelta(seconds=result.pending):
                return self._refresh(alert, after)
            return self._change(alert, replace(after, state="firing", fired_at=self._now), "fired", notify=True)
        if _rank(result.severity) > _rank(alert.severity):
            notify = _rank(result.severity) > _rank(peak_severity(alert))
            return self._change(alert, replace(after, state="firing"), "escalated", notify=notify)
        if alert.state == "recovering":
            return self._change(alert, replace(after, state="firing"), "relapsed")
        if after.severity == alert.severity:
            return self._refresh(alert, after)
        return self._change(alert, after, "eased")

    def _improve(self, alert: Alert, result: RuleResult) -> AlertChange | None:
        after = replace(self._updated(alert, result), severity=alert.severity, cause=alert.cause)
        if alert.state == "pending":
            return self._resolve(alert, after, "passed")
        if result.reason != "recovered":
            return self._resolve(alert, after, result.reason)
        if alert.state == "recovering":
            good_for = self._now - datetime.fromisoformat(alert.details[RECOVERING_SINCE])
            if good_for >= timedelta(seconds=result.keep_firing_for):
                return self._resolve(alert, after, "recovered")
            return self._refresh(alert, after)
        if result.keep_firing_for <= 0:
            return self._resolve(alert, after, "recovered")
        details = {**after.details, RECOVERING_SINCE: self._now.isoformat()}
        return self._change(alert, replace(after, state="recovering", details=details), "recovering")

    def _resolve(
        self, before: Alert, after: Alert, reason: ResolveReason, detail: Mapping[str, Any] | None = None
    ) -> AlertChange:
        after = replace(after, state="resolved", resolved_at=self._now, evaluated_at=self._now, resolve_reason=reason)
        detail = {"reason": reason, **(detail or {})}
        return self._change(before, after, "resolved", detail, notify=before.fired_at is not None)

    def _updated(self, alert: Alert, result: RuleResult) -> Alert:
        """Return the alert with current values. Onset and cause keep the values that people were notified of."""
        values = {name: getattr(result, name) for name in ALERT_FIELDS if getattr(result, name) is not None}
        values |= {name: getattr(alert, name) for name in ("onset", "cause") if getattr(alert, name) is not None}
        return replace(
            alert,
            severity=result.severity,
            evaluated_at=self._now,
            details={**alert.details, **result.details},
            **values,
        )

    def _refresh(self, before: Alert, after: Alert) -> AlertChange | None:
        """Return a change without an event, or None if nothing has changed and the alert is not due for a refresh."""
        is_same = replace(after, evaluated_at=before.evaluated_at) == before
        if is_same and self._now - before.evaluated_at < REFRESH_INTERVAL:
            return None
        return AlertChange(alert=after, before=before)

    def _change(
        self,
        before: Alert,
        after: Alert,
        event_type: AlertEventType,
        detail: Mapping[str, Any] | None = None,
        *,
        notify: bool = False,
    ) -> AlertChange:
        event = self._event(after, event_type, before.state, detail)
        return AlertChange(alert=after, before=before, event=event, notify=notify)

    def _event(
        self,
        alert: Alert,
        event_type: AlertEventType,
        before: AlertState | None,
        detail: Mapping[str, Any] | None = None,
    ) -> AlertEvent:
        return AlertEvent(
            id=self._new_id(),
            alert_id=alert.id,
            at=self._now,
            type=event_type,
            before=before,
            after=alert.state,
            detail={"severity": alert.severity, "value": alert.value, **(detail or {})},
        )


def peak_severity(alert: Alert) -> Severity:
    """Return the highest severity that people were notified of, or the current severity before any notification."""
    severity: Severity = alert.details.get(PEAK_SEVERITY, alert.severity)
    return severity


def is_worse_than_notified(alert: Alert) -> bool:
    """Return whether the severity is higher than the highest severity that people were notified of."""
    return _rank(alert.severity) > _rank(peak_severity(alert))


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)
