"""Where alerts go: a module for each channel."""

from __future__ import annotations

from germane.alerting.channels.alertmanager import Alertmanager
from germane.alerting.channels.callback import Callback
from germane.alerting.channels.channel import Channel, Forgetful, NotDelivered
from germane.alerting.channels.email import Email
from germane.alerting.channels.factory import build, channel_for, takers
from germane.alerting.channels.log import Log
from germane.alerting.channels.message import Message, Quote
from germane.alerting.channels.pagerduty import PagerDuty
from germane.alerting.channels.slack import Slack
from germane.alerting.channels.webhook import Webhook

__all__ = [
    "Alertmanager",
    "Callback",
    "Channel",
    "Email",
    "Forgetful",
    "Log",
    "Message",
    "NotDelivered",
    "PagerDuty",
    "Quote",
    "Slack",
    "Webhook",
    "build",
    "channel_for",
    "takers",
]
