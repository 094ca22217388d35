"""Channels that deliver alerts. Each channel type has its own module."""

from __future__ import annotations

from germane.alerting.channels.alertmanager import Alertmanager
from germane.alerting.channels.channel import (
    Channel,
    ChannelMessage,
    ExchangeQuote,
    MessageFormat,
    ResendingChannel,
)
from germane.alerting.channels.discord import Discord
from germane.alerting.channels.email import Email
from germane.alerting.channels.factory import (
    build_channel,
    build_channels,
    build_test_message,
    channel_filters,
    message_formats,
)
from germane.alerting.channels.in_process import Callback, Log
from germane.alerting.channels.pagerduty import PagerDuty
from germane.alerting.channels.slack import Slack
from germane.alerting.channels.teams import Teams
from germane.alerting.channels.webhook import Webhook

__all__ = [
    "Alertmanager",
    "Callback",
    "Channel",
    "ChannelMessage",
    "Discord",
    "Email",
    "ExchangeQuote",
    "Log",
    "MessageFormat",
    "PagerDuty",
    "ResendingChannel",
    "Slack",
    "Teams",
    "Webhook",
    "build_channel",
    "build_channels",
    "build_test_message",
    "channel_filters",
    "message_formats",
]
