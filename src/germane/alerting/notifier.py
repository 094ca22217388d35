"""Selection of the channels that are notified of each change.

Notifications do not affect whether an alert fires. Silences, acknowledgements and service-wide drops suppress
notifications, but do not change an alert's state. If an alert is still firing when the suppression ends, its
notification is sent at that time. A service-wide drop suppresses route alerts only in channels that are notified of the
drop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Protocol

from germane.alert import IMPROVEMENT, SEVERITIES, Alert, AlertChange, Notification, NotificationType
from germane.alerting.state_machine import PEAK_SEVERITY, IdFactory, is_worse_than_notified, peak_severity

ChannelFilter = Callable[[Alert], bool]
"""Whether a channel is notified of an alert."""
NOTIFIED_CHANNELS: Final = "channels"
"""Key in an alert's details: the channels that were notified of the alert, and are also notified when it resolves."""
SELECTED: Final = "selected"
"""Key in a drop's details: whether its rule is restricted to some routes or attributes."""
_TYPE_ORDER: Final[Sequence[NotificationType]] = ("firing", "escalated", "repeated", "resolved")


class QuietPeriod(Protocol):
    """A silence or a maintenance window."""

    def covers(self, alert: Alert, at: datetime) -> bool:
        """Return whether notifications about an alert are suppressed at a given time."""


@dataclass(frozen=True, slots=True)
class PendingNotification:
    """An alert to include in a notification, with the notification type."""

    type: NotificationType
    alert: Alert
    event_id: str
    channels: frozenset[str]


class Notifier:
    """Decides which channels are notified after an evaluation.

    Args:
        channels: Filters by channel name. Each selects the alerts that its channel is notified of. For a resolved
            alert, the filter receives the highest severity that was notified.
        silences: Current and future silences, and maintenance windows.
        now: Current time in UTC.
        new_id: Creates notification ids.
    """

    def __init__(
        self, channels: Mapping[str, ChannelFilter], silences: Iterable[QuietPeriod], now: datetime, new_id: IdFactory
    ) -> None:
        self._channels = channels
        self._silences = tuple(silences)
        self._now = now
        self._new_id = new_id

    def notify(
        self, changes: Sequence[AlertChange], alerts: Iterable[Alert]
    ) -> tuple[list[AlertChange], list[Notification]]:
        """Return the changes, with notification times set, and the notifications.

        Args:
            changes: Changes from this evaluation, including reminders (see :meth:`due_for_repeat`).
            alerts: All alerts that are open after the changes.
        """
        open_alerts = list(alerts)
        written: list[AlertChange] = []
        by_service: dict[str, list[PendingNotification]] = {}
        for change in changes:
            pending = self._pending(change, open_alerts)
            if pending is None:
                written.append(replace(change, notify=False))
            else:
                written.append(replace(change, alert=pending.alert))
                by_service.setdefault(pending.alert.service, []).append(pending)
        # Send one notification per channel and service.
        notifications = []
        for group in by_service.values():
            group.sort(key=lambda item: (_TYPE_ORDER.index(item.type), -SEVERITIES.index(item.alert.severity)))
            for channel in self._channels:
                selected = [item for item in group if channel in item.channels]
                if not selected:
                    continue
                event_ids = tuple(item.event_id for item in selected)
                notifications.append(
                    Notification(
                        id=self._new_id(),
                        channel=channel,
                        idempotency_key=sha256("\n".join((channel, *sorted(event_ids))).encode()).hexdigest()[:32],
                        type=selected[0].type,
                        alerts=tuple(item.alert for item in selected),
                        event_ids=event_ids,
                        created_at=self._now,
                    )
                )
        return written, notifications

    def due_for_repeat(self, alerts: Iterable[Alert], repeat_interval: Callable[[Alert], float]) -> list[Alert]:
        """Return the alerts that are due for a reminder, or for a notification that was suppressed earlier.

        Args:
            alerts: All open alerts.
            repeat_interval: Returns the seconds between two reminders about an alert.
        """
        open_alerts, due = list(alerts), []
        for alert in open_alerts:
            if alert.state != "firing" or (alert.type == IMPROVEMENT and alert.notified_at is not None):
                continue
            notified_at, interval = alert.notified_at, timedelta(seconds=repeat_interval(alert))
            is_due = alert.acknowledged_at is None and (notified_at is None or self._now - notified_at >= interval)
            # An acknowledgement does not cover a higher severity.
            is_due = is_due or (notified_at is not None and is_worse_than_notified(alert))
            is_due = is_due or (alert.acknowledged_at is None and bool(self._unnotified(alert, open_alerts)))
            if is_due and not self._is_suppressed(alert, open_alerts):
                due.append(alert)
        return due

    def _is_suppressed(self, alert: Alert, alerts: Sequence[Alert]) -> bool:
        if self._is_silenced(alert):
            return True
        return is_inhibited(alert, self._audible(alerts)) and not self._recipients(alert, alerts)

    def _recipients(self, alert: Alert, alerts: Sequence[Alert]) -> frozenset[str]:
        """Return the channels that accept an alert and are not notified of another alert that covers it."""
        audible = self._audible(alerts)
        return frozenset(
            name
            for name, accepts in self._channels.items()
            if accepts(alert) and not is_inhibited(alert, filter(accepts, audible))
        )

    def _unnotified(self, alert: Alert, alerts: Sequence[Alert]) -> frozenset[str]:
        """Return the recipients that were not notified earlier, because a drop that has since ended covered the
        alert."""
        return frozenset(name for name in self._recipients(alert, alerts) if not was_notified(alert, name))

    def _audible(self, alerts: Sequence[Alert]) -> list[Alert]:
        return [alert for alert in alerts if not self._is_silenced(alert)]

    def _is_silenced(self, alert: Alert) -> bool:
        return any(silence.covers(alert, self._now) for silence in self._silences)

    def _pending(self, change: AlertChange, alerts: Sequence[Alert]) -> PendingNotification | None:
        alert, event = change.alert, change.event
        if event is None or not change.notify:
            return None
        if alert.type == IMPROVEMENT and (event.type == "resolved" or alert.notified_at is not None):
            return None  # an improvement is proposed only once
        if event.type == "resolved":  # resolutions are sent even if the alert is silenced by now
            if alert.notified_at is None:
                return None
            at_peak = replace(alert, severity=peak_severity(alert))
            channels = frozenset(
                name for name, accepts in self._channels.items() if accepts(at_peak) and was_notified(alert, name)
            )
            return PendingNotification("resolved", replace(alert, notified_at=self._now), event.id, channels)
        if self._is_suppressed(alert, alerts):
            return None
        # The type depends on what people were last notified of, not on the event itself.
        channels = self._recipients(alert, alerts)
        notification_type: NotificationType
        if alert.notified_at is None:
            notification_type = "firing"
        elif is_worse_than_notified(alert):
            notification_type = "escalated"
        elif unnotified := self._unnotified(alert, alerts):  # for these channels, it is the first notification
            notification_type, channels = "firing", unnotified
        else:
            notification_type = "repeated"
        peak = max(peak_severity(alert), alert.severity, key=SEVERITIES.index)
        notified_channels = sorted(channels.union(alert.details.get(NOTIFIED_CHANNELS, ())))
        details = {**alert.details, PEAK_SEVERITY: peak, NOTIFIED_CHANNELS: notified_channels}
        notified = replace(alert, notified_at=self._now, details=details)
        return PendingNotification(notification_type, notified, event.id, channels)


def was_notified(alert: Alert, channel: str) -> bool:
    """Return whether a channel was notified of an alert. For alerts from earlier versions, return True."""
    return channel in alert.details.get(NOTIFIED_CHANNELS, (channel,))


def is_inhibited(alert: Alert, alerts: Iterable[Alert]) -> bool:
    """Return whether another firing alert for the same service and scorer already covers an alert.

    A service-wide drop covers alerts for its routes that are not more severe, except for new routes, which have no
    baseline and thus cannot drop. A drop in answers that a rule selects by route or attribute covers no other alert. An
    alert about a failing scorer covers alerts about missing scores.
    """
    names = (alert.service, alert.scorer)
    others = [other for other in alerts if other.state == "firing" and (other.service, other.scorer) == names]
    if alert.route is not None:
        rank = SEVERITIES.index(alert.severity)
        drops = [other for other in others if other.type == "drop" and other.route is None]
        drops = [drop for drop in drops if not drop.details.get(SELECTED)]
        return not alert.details.get("new_route") and any(rank <= SEVERITIES.index(drop.severity) for drop in drops)
    return alert.type == "no_data" and any(other.type == "scorer_error" for other in others)
