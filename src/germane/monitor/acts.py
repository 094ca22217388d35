"""What persons do with alerts: find one, say that they know, close it. What follows is told as everything else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from germane.alert import Alert, Change
from germane.errors import UsageError
from germane.monitor.channels import takers
from germane.monitor.lifecycle import Lifecycle
from germane.monitor.telling import Teller
from germane.monitor.wording import sentence
from germane.settings import Settings
from germane.storage import Advance, Store

NEWEST = 500
"""Alerts that are over among which one is looked for by the beginning of its id."""
TOLD = 1000
"""Notifications that are looked at for who was told of an alert."""


def find(store: Store, named: str) -> Alert:
    """Return the alert of an id, or of the beginning of one.

    Raises:
        UsageError: there is none, or more than one.
    """
    alert = store.alert(named)
    if alert is not None:
        return alert
    known = {one.id: one for one in (*store.open_alerts(), *store.alerts(limit=NEWEST))}
    found = [one for id_, one in known.items() if named and id_.startswith(named)]
    if len(found) != 1:
        few = "no" if not found else "more than one"
        raise UsageError(f"there is {few} alert whose id begins with {named!r:.50}: see germane alerts --all")
    return found[0]


def acknowledge(store: Store, named: str, by: str | None) -> Alert:
    """Say that somebody knows of an alert: it is not told again while it lasts.

    Raises:
        UsageError: there is no such alert, or it is over.
    """
    return _act(store, named, lambda lifecycle, alert: lifecycle.acknowledge(alert, by), {})


def resolve(store: Store, settings: Settings, named: str, by: str | None) -> Alert:
    """Close an alert; whoever was told of it is told. Where its rule still finds it bad, it fires anew.

    Raises:
        UsageError: there is no such alert, or it is over.
    """
    alert = find(store, named)
    posted = store.notifications(since=alert.fired_at or alert.starts_at, limit=TOLD)
    told = {one.notification.channel for one in posted if alert.id in {each.id for each in one.notification.alerts}}
    return _act(store, alert.id, lambda lifecycle, one: lifecycle.resolve(one, "by_hand", by), takers(settings, told))


def _act(
    store: Store,
    named: str,
    act: Callable[[Lifecycle, Alert], Change],
    channels: dict[str, Callable[[Alert], bool]],
) -> Alert:
    now = store.now()
    while True:
        alert = find(store, named)
        if not alert.is_open:
            raise UsageError(f"alert {alert.id} is over")
        change = act(Lifecycle(now, _new_id), alert)
        change = replace(change, alert=replace(change.alert, message=sentence(change.alert)))
        changes, notifications = Teller(channels, (), now, _new_id).tell([change], ())
        if store.advance(Advance(changes=changes, notifications=notifications)):
            return changes[0].alert


def _new_id() -> str:
    return uuid4().hex
