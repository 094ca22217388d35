"""Background work in one process: sampling, scoring, alert evaluation, delivery and maintenance."""

from __future__ import annotations

from germane.alert import Alert
from germane.alerting import Callback
from germane.monitor.quota.limiter import local_rate_limiter, rate_limits, shared_rate_limiter
from germane.monitor.quota.reservations import check_judge_price
from germane.monitor.sampling.eligibility import EligibilityChecker
from germane.monitor.scoring.failures import Admission, CircuitBreaker, retry_after
from germane.monitor.service import Monitor
from germane.monitor.supervisor import MonitorConfig

__all__ = [
    "Admission",
    "Alert",
    "Callback",
    "CircuitBreaker",
    "EligibilityChecker",
    "Monitor",
    "MonitorConfig",
    "check_judge_price",
    "local_rate_limiter",
    "rate_limits",
    "retry_after",
    "shared_rate_limiter",
]
