"""Where alerts go: a module for each channel."""

from __future__ import annotations

from germane.monitor.channels.alertmanager import Alertmanager
from germane.monitor.channels.build import build, channel_for, takers
from germane.monitor.channels.callback import Callback
from germane.monitor.channels.channel import Channel, Forgetful, NotDelivered
from germane.monitor.channels.email import Email
from germane.monitor.channels.log import Log
from germane.monitor.channels.message import Message, Quote
from germane.monitor.channels.pagerduty import PagerDuty
from germane.monitor.channels.slack import Slack
from germane.monitor.channels.webhook import Webhook

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
