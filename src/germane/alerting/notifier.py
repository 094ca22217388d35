"""Whom to tell what of changes: pure functions over what changed, what is open, and what speaks against it.

Whether an alert fires has nothing to do with whether people hear of it: silences, acknowledgement and a drop of the
whole service keep quiet, and change no state. What was kept quiet and still fires is told once nothing speaks against
it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from germane.alert import SEVERITIES, Alert, Change, Notification, Severity, Silence, Telling
from germane.alerting.state_machine import PEAK, MakeId, is_worse_than_told, peak_of

Takes = Callable[[Alert], bool]
"""Whether a channel is told of an alert."""
_RANK: Final[Sequence[Telling]] = ("firing", "escalated", "repeated", "resolved")


@dataclass(frozen=True, slots=True)
class Told:
    """One alert of which people are told, and why."""

    what: Telling
    alert: Alert
    event_id: str


class Teller:
    """One look: which channel is told what.

    Args:
        channels: by name, which alerts each is told of. Of an alert that is over it is asked with the highest severity
            that it had.
        silences: those that last or are still to come.
        now: UTC.
        new_id: makes ids of notifications.
    """

    def __init__(
        self, channels: Mapping[str, Takes], silences: Iterable[Silence], now: datetime, new_id: MakeId
    ) -> None:
        self._channels = channels
        self._silences = tuple(silences)
        self._now = now
        self._new_id = new_id

    def tell(self, changes: Sequence[Change], alerts: Iterable[Alert]) -> tuple[list[Change], list[Notification]]:
        """Return the changes, with the time of those that are told, and what each channel is told.

        Args:
            changes: of this look, with those that are due: see :meth:`due`.
            alerts: all that are open after it.
        """
        open_alerts = list(alerts)
        told = [one for change in changes if (one := self._told(change, open_alerts)) is not None]
        by_event = {one.event_id: one.alert for one in told}
        written = [_with_time(change, by_event) for change in changes]
        return written, [one for group in _by_service(told) for one in self._notifications(group)]

    def due(self, alerts: Iterable[Alert], repeat_every: Callable[[Alert], float]) -> list[Alert]:
        """Return the alerts of which people are to be told again, or now that nothing speaks against it any more.

        Args:
            alerts: all that are open.
            repeat_every: seconds, by alert.
        """
        open_alerts = list(alerts)
        return [
            alert
            for alert in open_alerts
            if self._is_due(alert, repeat_every(alert)) and not self._is_quiet(alert, open_alerts)
        ]

    def _is_due(self, alert: Alert, repeat_every: float) -> bool:
        if alert.state != "firing":
            return False
        if alert.notified_at is not None and is_worse_than_told(alert):
            return True  # whoever has acknowledged it knows of less
        if alert.acknowledged_at is not None:
            return False
        return alert.notified_at is None or self._now - alert.notified_at >= timedelta(seconds=repeat_every)

    def _is_quiet(self, alert: Alert, alerts: Sequence[Alert]) -> bool:
        heard = [other for other in alerts if not self._is_silenced(other)]
        return self._is_silenced(alert) or is_inhibited(alert, heard)

    def _is_silenced(self, alert: Alert) -> bool:
        return any(silence.covers(alert, self._now) for silence in self._silences)

    def _told(self, change: Change, alerts: Sequence[Alert]) -> Told | None:
        alert, event = change.alert, change.event
        if event is None or not change.notify:
            return None
        if event.what == "resolved":  # whoever heard of its beginning hears of its end, whatever has come since
            over = replace(alert, notified_at=self._now)
            return None if alert.notified_at is None else Told("resolved", over, event.id)
        if self._is_quiet(alert, alerts):
            return None
        peak = max(peak_of(alert), alert.severity, key=SEVERITIES.index)
        told = replace(alert, notified_at=self._now, details={**alert.details, PEAK: peak})
        return Told(_telling(alert), told, event.id)

    def _notifications(self, group: Sequence[Told]) -> Iterable[Notification]:
        for channel, takes in self._channels.items():
            taken = [one for one in group if takes(replace(one.alert, severity=_severity(one)))]
            if taken:
                yield self._notification(channel, taken)

    def _notification(self, channel: str, told: Sequence[Told]) -> Notification:
        told = sorted(told, key=lambda one: (_RANK.index(one.what), -SEVERITIES.index(one.alert.severity)))
        event_ids = tuple(one.event_id for one in told)
        return Notification(
            id=self._new_id(),
            channel=channel,
            idempotency_key=sha256("\n".join((channel, *sorted(event_ids))).encode()).hexdigest()[:32],
            what=told[0].what,
            alerts=tuple(one.alert for one in told),
            event_ids=event_ids,
            created_at=self._now,
        )


def is_inhibited(alert: Alert, alerts: Iterable[Alert]) -> bool:
    """Whether another alert of the same service and scorer, of which people hear, tells of it already.

    That is a drop of the whole service for those of its routes, and a scorer that fails for scores that do not come.
    """
    names = (alert.service, alert.scorer)
    others = [other for other in alerts if other.is_open and other.fired_at and (other.service, other.scorer) == names]
    if alert.route is not None:
        return any(other.kind == "drop" and other.route is None for other in others)
    return alert.kind == "no_data" and any(other.kind == "scorer_error" for other in others)


def _telling(alert: Alert) -> Telling:
    """Return what people are told of one that lasts, by what they know: whenever it happened, it is news to them."""
    if alert.notified_at is None:
        return "firing"
    return "escalated" if is_worse_than_told(alert) else "repeated"


def _severity(told: Told) -> Severity:
    return peak_of(told.alert) if told.what == "resolved" else told.alert.severity


def _with_time(change: Change, told: Mapping[str, Alert]) -> Change:
    if change.event is None or change.event.id not in told:
        return replace(change, notify=False)
    return replace(change, alert=told[change.event.id])


def _by_service(told: Iterable[Told]) -> list[list[Told]]:
    groups: dict[str, list[Told]] = {}
    for one in told:
        groups.setdefault(one.alert.service, []).append(one)
    return list(groups.values())
