"""Construction of channels, filters and message formats from the settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final, assert_never
from uuid import uuid4

from germane.alert import Alert, Notification, alert_key
from germane.alerting.channels.alertmanager import Alertmanager
from germane.alerting.channels.channel import Channel, ChannelMessage, MessageFormat
from germane.alerting.channels.discord import Discord
from germane.alerting.channels.email import Email
from germane.alerting.channels.pagerduty import PagerDuty
from germane.alerting.channels.slack import Slack
from germane.alerting.channels.teams import Teams
from germane.alerting.channels.webhook import Webhook
from germane.alerting.notifier import ChannelFilter
from germane.settings import (
    AlertmanagerSettings,
    AnyChannel,
    DiscordSettings,
    EmailSettings,
    PagerDutySettings,
    Settings,
    SlackSettings,
    TeamsSettings,
    WebhookSettings,
    parse_timezone,
)

TEST_RULE: Final = "test"


def build_channels(settings: Settings) -> dict[str, Channel]:
    """Return the configured channels by name."""
    return {
        name: build_channel(channel, poll_interval=settings.poll_interval)
        for name, channel in settings.channels.items()
    }


def build_channel(settings: AnyChannel, *, poll_interval: float) -> Channel:
    """Build a channel from its settings."""
    match settings:
        case WebhookSettings():
            return Webhook(settings)
        case SlackSettings():
            return Slack(settings)
        case PagerDutySettings():
            return PagerDuty(settings)
        case TeamsSettings():
            return Teams(settings)
        case DiscordSettings():
            return Discord(settings)
        case AlertmanagerSettings():
            return Alertmanager(settings, resend_interval=poll_interval)
        case EmailSettings():
            return Email(settings)
        case _:
            assert_never(settings)


def channel_filters(settings: Settings, names: Iterable[str]) -> dict[str, ChannelFilter]:
    """Return the filters by channel name. Channels that are not configured receive all alerts."""
    return {name: settings.channels[name].matches if name in settings.channels else lambda _: True for name in names}


def message_formats(settings: Settings, names: Iterable[str]) -> dict[str, MessageFormat]:
    """Return the message formats by channel name."""
    rules = {rule.name: rule for rule in settings.active_rules}
    general = MessageFormat(
        alert_url_template=settings.alert_url, exchange_url_template=settings.exchange_url, rules=rules
    )
    return {
        name: replace(general, template=channel.template, timezone=parse_timezone(channel.timezone))
        if (channel := settings.channels.get(name))
        else general
        for name in names
    }


def build_test_message(
    channel: str,
    service: str,
    now: datetime,
    test_id: str,
    *,
    resolved: bool,
    format: MessageFormat,  # noqa: A002 - the field's name
) -> ChannelMessage:
    """Return a message with a test alert that is firing or resolved.

    Args:
        channel: Name of the channel.
        service: Name of the service.
        now: The current time, UTC.
        test_id: Identifies the test, so that its resolution does not resolve another test alert.
        resolved: Whether the alert is resolved.
        format: The channel's message format.
    """
    labels = {"service": service, "channel": channel, "test": test_id}
    alert = Alert(
        id=f"test-{test_id}",
        key=alert_key(TEST_RULE, labels),
        rule=TEST_RULE,
        type=TEST_RULE,
        labels=labels,
        state="resolved" if resolved else "firing",
        message=f"This is a test of channel {channel}. No action is needed.",
        starts_at=now,
        fired_at=now,
        resolved_at=now if resolved else None,
        evaluated_at=now,
        resolve_reason="by_hand" if resolved else None,
    )
    notification = Notification(
        id=uuid4().hex,
        channel=channel,
        idempotency_key=uuid4().hex,
        type="resolved" if resolved else "firing",
        alerts=(alert,),
        event_ids=(),
        created_at=now,
    )
    return ChannelMessage(notification=notification, format=format)
