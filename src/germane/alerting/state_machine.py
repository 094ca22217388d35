"""How alerts begin, go on and end: pure functions over what is open and what the rules say now.

::

    pending ──▶ firing ◀──▶ recovering ──▶ resolved

An alert that was resolved by hand and is still bad begins anew at the next look: a silence is what keeps quiet. Whoever
keeps a state of its own per alert, as the detector does, begins anew where it fires and no alert is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from germane.alert import SEVERITIES, Alert, AlertState, Change, Event, ResolveReason, Severity, What
from germane.alerting.rule_result import NUMBERS, Verdict

MakeId = Callable[[], str]
STALE: Final = timedelta(minutes=1)
"""An alert says at least that often when its rule last looked."""
PEAK: Final = "peak"
"""In an alert's details: the highest severity that people were told of. They are told of a rise once."""
RECOVERING_SINCE: Final = "recovering_since"
_FOUND: Final = ("onset", "cause")
"""What stays as people were told."""
_WORST: Final = ("bad", "unclear", "good")


class Lifecycle:
    """One look: what the verdicts make of the alerts that are open.

    Args:
        now: UTC.
        new_id: makes ids of alerts and events.
    """

    def __init__(self, now: datetime, new_id: MakeId) -> None:
        self._now = now
        self._new_id = new_id

    def step(
        self, alerts: Iterable[Alert], verdicts: Iterable[Verdict], *, watched: Callable[[Alert], bool]
    ) -> list[Change]:
        """Return what changes; an alert of which nothing new is known is not among it.

        Args:
            alerts: all that are open.
            verdicts: of this look, in any order; an alert without one stays as it is.
            watched: whether there is still a rule that looks at an alert; without one it is over.
        """
        by_key = _worst_by_key(verdicts)
        before = {alert.key: alert for alert in alerts}
        changes = [self._begin(verdict) for key, verdict in by_key.items() if key not in before]
        for key, alert in before.items():
            changes.append(self._go_on(alert, by_key.get(key), watched=watched(alert)))
        return [change for change in changes if change is not None]

    def acknowledge(self, alert: Alert, by: str | None) -> Change:
        """Return the alert with somebody who knows of it: it is not repeated any more. Nobody unsays who knew."""
        by = by or alert.acknowledged_by
        known = replace(alert, acknowledged_at=self._now, acknowledged_by=by)
        return self._change(alert, known, "acknowledged", {"by": by})

    def resolve(self, alert: Alert, reason: ResolveReason, by: str | None = None) -> Change:
        """Return the alert as over; whoever was told that it fires is told."""
        return self._end(alert, alert, reason, {"by": by} if by else {})

    def repeat(self, alert: Alert) -> Change:
        """Return the alert as one of which people are told again."""
        return self._change(alert, alert, "repeated", notify=True)

    def _begin(self, verdict: Verdict) -> Change | None:
        if verdict.state != "bad":
            return None
        fires = verdict.pending <= 0
        alert = Alert(
            id=self._new_id(),
            key=verdict.key,
            rule=verdict.rule,
            kind=verdict.kind,
            labels=dict(verdict.labels),
            state="firing" if fires else "pending",
            severity=verdict.severity,
            starts_at=self._now,
            fired_at=self._now if fires else None,
            evaluated_at=self._now,
            details=dict(verdict.details),
            **_numbers(verdict),
        )
        return Change(alert=alert, event=self._event(alert, "fired" if fires else "pending", None), notify=fires)

    def _go_on(self, alert: Alert, verdict: Verdict | None, *, watched: bool) -> Change | None:
        if not watched:
            return self._end(alert, alert, "rule_removed")
        if verdict is None or verdict.state == "unclear":
            return None
        return self._worsen(alert, verdict) if verdict.state == "bad" else self._mend(alert, verdict)

    def _worsen(self, alert: Alert, verdict: Verdict) -> Change | None:
        now = self._refreshed(alert, verdict)
        if alert.state == "pending":
            if self._now - alert.starts_at < timedelta(seconds=verdict.pending):
                return self._fresh(alert, now)
            return self._change(alert, replace(now, state="firing", fired_at=self._now), "fired", notify=True)
        if _rank(verdict.severity) > _rank(alert.severity):
            news = _rank(verdict.severity) > _rank(peak_of(alert))
            return self._change(alert, replace(now, state="firing"), "escalated", notify=news)
        if alert.state == "recovering":
            return self._change(alert, replace(now, state="firing"), "relapsed")
        return self._fresh(alert, now) if now.severity == alert.severity else self._change(alert, now, "eased")

    def _mend(self, alert: Alert, verdict: Verdict) -> Change | None:
        now = replace(self._refreshed(alert, verdict), severity=alert.severity, cause=alert.cause)
        if alert.state == "pending":
            return self._end(alert, now, "passed")
        if verdict.reason != "recovered":
            return self._end(alert, now, verdict.reason)
        if alert.state == "recovering":
            good_for = self._now - datetime.fromisoformat(alert.details[RECOVERING_SINCE])
            over = good_for >= timedelta(seconds=verdict.keep_firing)
            return self._end(alert, now, "recovered") if over else self._fresh(alert, now)
        if verdict.keep_firing <= 0:
            return self._end(alert, now, "recovered")
        details = {**now.details, RECOVERING_SINCE: self._now.isoformat()}
        return self._change(alert, replace(now, state="recovering", details=details), "recovering")

    def _end(self, alert: Alert, now: Alert, reason: ResolveReason, detail: Mapping[str, Any] | None = None) -> Change:
        over = replace(now, state="resolved", resolved_at=self._now, evaluated_at=self._now, resolve_reason=reason)
        told = {"reason": reason, **(detail or {})}
        return self._change(alert, over, "resolved", told, notify=alert.fired_at is not None)

    def _refreshed(self, alert: Alert, verdict: Verdict) -> Alert:
        """Return the alert with the numbers of now. What was found when it began, and no verdict has, stays."""
        numbers = {name: value for name, value in _numbers(verdict).items() if value is not None}
        found = {name: getattr(alert, name) for name in _FOUND if getattr(alert, name) is not None}
        return replace(
            alert,
            severity=verdict.severity,
            evaluated_at=self._now,
            details={**alert.details, **verdict.details},
            **numbers | found,
        )

    def _fresh(self, alert: Alert, now: Alert) -> Change | None:
        same = replace(now, evaluated_at=alert.evaluated_at) == alert
        return None if same and self._now - alert.evaluated_at < STALE else Change(alert=now, before=alert)

    def _change(
        self, before: Alert, after: Alert, what: What, detail: Mapping[str, Any] | None = None, *, notify: bool = False
    ) -> Change:
        event = self._event(after, what, before.state, detail)
        return Change(alert=after, before=before, event=event, notify=notify)

    def _event(
        self, alert: Alert, what: What, before: AlertState | None, detail: Mapping[str, Any] | None = None
    ) -> Event:
        told = {"severity": alert.severity, "value": alert.value, **(detail or {})}
        return Event(
            id=self._new_id(), alert_id=alert.id, at=self._now, what=what, before=before, after=alert.state, detail=told
        )


def peak_of(alert: Alert) -> Severity:
    """Return the highest severity of an alert that people were told of; what it has where they were told nothing."""
    found: Severity = alert.details.get(PEAK, alert.severity)
    return found


def is_worse_than_told(alert: Alert) -> bool:
    """Whether people were told of a lower severity than it has."""
    return _rank(alert.severity) > _rank(peak_of(alert))


def _worst_by_key(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for verdict in sorted(verdicts, key=lambda verdict: _WORST.index(verdict.state)):
        found.setdefault(verdict.key, verdict)
    return found


def _numbers(verdict: Verdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in NUMBERS}


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)
