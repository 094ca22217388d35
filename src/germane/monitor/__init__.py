"""What runs in the background: sampling, scoring, watching, alerting."""

from __future__ import annotations

from germane.alert import Alert
from germane.alerting.channels import Callback, Channel
from germane.monitor.loop.backoff import Backoff
from germane.monitor.quota.limiter import own_pace, shared_pace
from germane.monitor.scoring.circuit_breaker import Admission, Pause, retry_after
from germane.monitor.service import Monitor
from germane.monitor.supervisor import Status

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
