"""Channels from their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final
from uuid import uuid4

from germane.alert import Alert, Notification, key_of
from germane.alerting.channels.alertmanager import Alertmanager
from germane.alerting.channels.channel import Channel
from germane.alerting.channels.email import Email
from germane.alerting.channels.message import Message
from germane.alerting.channels.pagerduty import PagerDuty
from germane.alerting.channels.slack import Slack
from germane.alerting.channels.webhook import Webhook
from germane.settings import Settings
from germane.settings import channels as settings


def build(given: Settings) -> dict[str, Channel]:
    """Return the channels of the settings, by name."""
    return {name: channel_for(one, tick=given.tick) for name, one in given.channels.items()}


def channel_for(given: settings.AnyChannel, *, tick: float) -> Channel:
    """Return the channel of one entry."""
    match given:
        case settings.Webhook():
            return Webhook(given)
        case settings.Slack():
            return Slack(given)
        case settings.PagerDuty():
            return PagerDuty(given)
        case settings.Alertmanager():
            return Alertmanager(given, every=tick)
        case settings.Email():
            return Email(given)


def takers(given: Settings, names: Iterable[str]) -> dict[str, Callable[[Alert], bool]]:
    """Return, by channel, whether it is told of an alert; those that are not configured are told of each."""
    return {name: given.channels[name].takes if name in given.channels else _any for name in names}


def _any(_: Alert) -> bool:
    return True


RULE: Final = "test"


def trial_message(channel: str, service: str, now: datetime, *, over: bool, link: str | None) -> Message:
    """Return a test alert that fires, or the end of the last one.

    Args:
        channel: Its name.
        service: Whose test it is.
        now: UTC.
        over: Whether it is the end.
        link: As in a message.
    """
    labels = {"service": service, "channel": channel}
    alert = Alert(
        id=f"test-{channel}",
        key=key_of(RULE, labels),
        rule=RULE,
        kind=RULE,
        labels=labels,
        state="resolved" if over else "firing",
        message=f"This is a test of the channel {channel}. Nothing is wrong.",
        starts_at=now,
        fired_at=now,
        resolved_at=now if over else None,
        evaluated_at=now,
        resolve_reason="by_hand" if over else None,
    )
    notification = Notification(
        id=uuid4().hex,
        channel=channel,
        idempotency_key=uuid4().hex,
        what="resolved" if over else "firing",
        alerts=(alert,),
        event_ids=(),
        created_at=now,
    )
    return Message(notification=notification, link=link)
