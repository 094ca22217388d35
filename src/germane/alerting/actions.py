"""What persons do with alerts: find one, say that they know, close it, silence it, or take it for normal.

What follows is told as everything else is. The command line and the pages act by the same functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

from germane.alert import Alert, Change, Silence
from germane.alerting.channels import takers
from germane.alerting.drop import accept as accept_baseline
from germane.alerting.messages import sentence
from germane.alerting.notifier import Teller
from germane.alerting.state_machine import Lifecycle
from germane.errors import UsageError
from germane.sanitize import harmless
from germane.settings import Settings
from germane.storage import Advance, BaselineVersion, Store

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


def accept(store: Store, named: str) -> Alert:
    """Take what a drop led to for normal: a new baseline, and the alert is over at the next look.

    Returns:
        The alert as it was.

    Raises:
        UsageError: there is no such alert, it goes by no baseline, it is over, or somebody else was faster.
    """
    alert = find(store, named)
    if alert.kind != "drop":
        raise UsageError(f"{alert.rule} goes by no baseline: change its settings instead")
    version = baseline_of(store, alert)
    if not alert.is_open or version is None:
        raise UsageError(f"alert {alert.id} is over, or its baseline is no longer in force")
    accept_baseline(store, version, alert.onset or alert.starts_at, store.now())
    return alert


def baseline_of(store: Store, alert: Alert) -> BaselineVersion | None:
    """Return the baseline in force that a drop was found by; None where there is none any more.

    Rules about attributes have baselines of their own: what another one takes for normal stays.
    """
    names = (alert.rule, alert.service, alert.scorer)
    ids = {one.baseline_id for one in store.detectors() if (one.rule, one.service, one.scorer) == names}
    return next((one for one in store.baselines() if one.status == "active" and one.id in ids), None)


def silence(
    store: Store,
    matchers: Mapping[str, str],
    *,
    until: datetime | timedelta,
    since: datetime | None = None,
    by: str | None = None,
    comment: str | None = None,
) -> Silence:
    """Have nobody told of alerts that match, of all if nothing is named. They fire and end as ever.

    Args:
        store: Where it is kept.
        matchers: Patterns such as ``docs-*`` by label, or for ``rule``.
        until: When people are told again; or how long nobody is.
        since: From when on; by default from now on.
        by: Who says so.
        comment: Why.

    Raises:
        UsageError: it would be over before it begins.
    """
    now = store.now()
    since = now if since is None else max(since, now)
    until = since + until if isinstance(until, timedelta) else until
    if until <= since:
        raise UsageError(f"a silence until {until:%Y-%m-%d %H:%M} would be over before it begins")
    made = Silence(
        id=_new_id(), matchers=dict(matchers), starts_at=since, ends_at=until, created_by=by, comment=comment
    )
    store.add_silence(made)
    return made


def matchers_of(alert: Alert) -> dict[str, str]:
    """Return the patterns that this alert alone fits: its rule, and all its labels as they are written."""
    return {name: _SPECIAL.sub(r"[\1]", value) for name, value in {"rule": alert.rule, **alert.labels}.items()}


_SPECIAL = re.compile(r"([*?[])")


def unsilence(store: Store, named: str) -> Silence:
    """End a silence now, by its id or the beginning of it.

    Raises:
        UsageError: there is none that lasts or is to come, or more than one.
    """
    found = [one for one in store.silences() if named and one.id.startswith(named)]
    if len(found) != 1:
        few = "no" if not found else "more than one"
        raise UsageError(f"there is {few} silence whose id begins with {harmless(named, 40)!r}: see germane alerts")
    store.end_silence(found[0].id)
    return found[0]


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
