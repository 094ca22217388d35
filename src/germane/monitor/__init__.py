"""What runs in the background: sampling, scoring, watching, alerting."""

from __future__ import annotations

from germane.monitor.alerts import Alert
from germane.monitor.channels import Callback, Channel, Webhook
from germane.monitor.monitor import Monitor
from germane.monitor.pace import own_pace, shared_pace

__all__ = ["Alert", "Callback", "Channel", "Monitor", "Webhook", "own_pace", "shared_pace"]
