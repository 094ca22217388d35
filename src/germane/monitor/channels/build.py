"""Channels from their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from germane.alert import Alert
from germane.monitor.channels.alertmanager import Alertmanager
from germane.monitor.channels.channel import Channel
from germane.monitor.channels.email import Email
from germane.monitor.channels.pagerduty import PagerDuty
from germane.monitor.channels.slack import Slack
from germane.monitor.channels.webhook import Webhook
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
