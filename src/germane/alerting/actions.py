"""Actions that people take on alerts: acknowledge, silence, resolve, and accept a level as the new baseline.

The command line and the dashboard use the same functions. These changes trigger notifications like any other change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from germane import sanitize
from germane.alert import IMPROVEMENT, Alert, AlertChange, Silence
from germane.alerting.channels.factory import channel_filters
from germane.alerting.drop.baselines import accept_baseline, accept_new_route
from germane.alerting.drop.scope import is_new_route
from germane.alerting.notifier import ChannelFilter, Notifier
from germane.alerting.state_machine import AlertStateMachine
from germane.alerting.wording import alert_message
from germane.errors import UsageError
from germane.settings import Settings
from germane.storage import AlertTransaction, BaselineVersion, TrackingStore

MAX_RESOLVED_SEARCHED: Final = 500
"""Maximum number of resolved alerts to search for an id prefix."""
MAX_NOTIFICATIONS_SEARCHED: Final = 1000
"""Maximum number of notifications to search for the channels that were notified of an alert."""
_GLOB_CHARACTERS: Final = re.compile(r"([*?[])")


def find_alert(store: TrackingStore, alert_id: str) -> Alert:
    """Return the alert whose id is ``alert_id``, or the only alert whose id starts with it.

    Raises:
        UsageError: No alert or more than one alert matches.
    """
    alert = store.alerts.get(alert_id)
    if alert is not None:
        return alert
    candidates = [*store.alerts.list_open(), *store.alerts.search(limit=MAX_RESOLVED_SEARCHED)]
    by_id = {candidate.id: candidate for candidate in candidates}
    matches = [candidate for id_, candidate in by_id.items() if alert_id and id_.startswith(alert_id)]
    if len(matches) != 1:
        count = "no alert has" if not matches else "more than one alert has"
        raise UsageError(f"{count} an id that starts with {alert_id!r:.50}; list all alerts with germane alerts --all")
    return matches[0]


def acknowledge_alert(store: TrackingStore, alert_id: str, by: str | None) -> Alert:
    """Acknowledge an alert and stop reminders until it resolves.

    Raises:
        UsageError: The alert does not exist or is resolved.
    """
    return _change_alert(store, alert_id, {}, lambda machine, alert: machine.acknowledge(alert, by))


def resolve_alert(store: TrackingStore, settings: Settings, alert_id: str, by: str | None) -> Alert:
    """Resolve an alert and notify the channels that were notified of it.

    If the alert's rule still matches, a new alert fires. After a change of the judge, new baselines are measured.

    Raises:
        UsageError: The alert does not exist or is already resolved.
    """
    alert = find_alert(store, alert_id)
    records = store.notifications.search(since=alert.fired_at or alert.starts_at, limit=MAX_NOTIFICATIONS_SEARCHED)
    notified = {
        record.notification.channel
        for record in records
        if alert.id in {notified_alert.id for notified_alert in record.notification.alerts}
    }
    channels = channel_filters(settings, notified)
    if alert.type == "judge_drift" and alert.is_open and alert.scorer is not None:
        store.anchors.restart(alert.scorer)
    return _change_alert(store, alert.id, channels, lambda machine, current: machine.resolve(current, "by_hand", by))


def accept_alert_baseline(store: TrackingStore, alert_id: str, by: str | None = None) -> Alert:
    """Accept the level after a drop or an improvement as the new baseline. The next evaluation then resolves the alert.

    If the alert is about a new route with bad answers, only this route is added to the baseline.

    Returns:
        The alert, which is still open.

    Raises:
        UsageError: The alert does not exist, has no baseline, or is resolved.
    """
    alert = find_alert(store, alert_id)
    if alert.type not in {"drop", IMPROVEMENT}:
        raise UsageError(f"rule {alert.rule} has no baseline; change its threshold in the settings instead")
    version = active_baseline_for(store, alert)
    if not alert.is_open or version is None:
        raise UsageError(f"alert {alert.id} is resolved, or its baseline is no longer active")
    since = alert.onset or alert.starts_at
    if alert.route is not None and version.baseline is not None and is_new_route(version.baseline, alert.route):
        accept_new_route(store, version, alert.route, since, store.now(), by=by)
    else:
        accept_baseline(store, version, since, store.now(), by=by)
    return alert


def active_baseline_for(store: TrackingStore, alert: Alert) -> BaselineVersion | None:
    """Return the active baseline that an alert's drop was detected against, or None if it is no longer active.

    Rules with attributes have their own baselines, which must be accepted separately.
    """
    names = (alert.rule, alert.service, alert.scorer)
    states = store.detectors.list_states()
    ids = {state.baseline_id for state in states if (state.rule, state.service, state.scorer) == names}
    versions = store.baselines.list_versions()
    return next((version for version in versions if version.status == "active" and version.id in ids), None)


def silence_alerts(
    store: TrackingStore,
    matchers: Mapping[str, str],
    *,
    until: datetime | timedelta,
    since: datetime | None = None,
    by: str | None = None,
    comment: str | None = None,
) -> Silence:
    """Silence matching alerts. They still fire and resolve, but send no notifications.

    Args:
        store: The store to which the silence is written.
        matchers: Patterns such as ``docs-*``, by label name or ``rule``. An empty mapping matches all alerts.
        until: End of the silence, or its duration.
        since: Start of the silence. Defaults to now.
        by: Name of the person who creates the silence.
        comment: Reason for the silence.

    Raises:
        UsageError: The silence would end before it starts.
    """
    now = store.now()
    since = now if since is None else max(since, now)
    until = since + until if isinstance(until, timedelta) else until
    if until <= since:
        raise UsageError(f"a silence must end after it starts, not at {until:%Y-%m-%d %H:%M}")
    silence = Silence(
        id=_new_id(), matchers=dict(matchers), starts_at=since, ends_at=until, created_by=by, comment=comment
    )
    store.alerts.add_silence(silence)
    return silence


def matchers_for(alert: Alert) -> dict[str, str]:
    """Return matchers that match only this alert.

    They contain its rule and all its labels, with glob characters escaped.
    """
    return {name: _GLOB_CHARACTERS.sub(r"[\1]", text) for name, text in {"rule": alert.rule, **alert.labels}.items()}


def end_silence(store: TrackingStore, silence_id: str) -> Silence:
    """End a silence now, given its id or a unique prefix of the id.

    Raises:
        UsageError: No current or future silence matches, or more than one matches.
    """
    silences = store.alerts.list_silences()
    matches = [silence for silence in silences if silence_id and silence.id.startswith(silence_id)]
    if len(matches) != 1:
        count = "no silence has" if not matches else "more than one silence has"
        raise UsageError(
            f"{count} an id that starts with {sanitize.line(silence_id, 40)!r}; list silences with germane alerts"
        )
    store.alerts.end_silence(matches[0].id)
    return matches[0]


def _change_alert(
    store: TrackingStore,
    alert_id: str,
    channels: Mapping[str, ChannelFilter],
    change_of: Callable[[AlertStateMachine, Alert], AlertChange],
) -> Alert:
    """Change an open alert, and retry if another process changes it at the same time."""
    now = store.now()
    while True:
        alert = find_alert(store, alert_id)
        if not alert.is_open:
            raise UsageError(f"alert {alert.id} is already resolved")
        change = change_of(AlertStateMachine(now, _new_id), alert)
        change = replace(change, alert=replace(change.alert, message=alert_message(change.alert)))
        changes, notifications = Notifier(channels, (), now, _new_id).notify([change], ())
        if store.alerts.commit(AlertTransaction(changes=changes, notifications=notifications)):
            return changes[0].alert


def _new_id() -> str:
    return uuid4().hex
