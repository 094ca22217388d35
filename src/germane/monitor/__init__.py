"""What runs in the background: sampling, scoring, watching, alerting."""

from __future__ import annotations

from germane.alert import Alert
from germane.monitor.background import Status
from germane.monitor.backoff import Backoff
from germane.monitor.channels import Callback, Channel
from germane.monitor.monitor import Monitor
from germane.monitor.pace import own_pace, shared_pace
from germane.monitor.pause import Admission, Pause, retry_after

__all__ = [
    "Admission",
    "Alert",
    "Backoff",
    "Callback",
    "Channel",
    "Monitor",
    "Pause",
    "Status",
    "own_pace",
    "retry_after",
    "shared_pace",
]
