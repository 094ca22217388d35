"""The ``/metrics`` page with database gauges for Prometheus. Time windows refer to answer times, not scoring times.

The Prometheus client is an optional dependency and is imported on first use.
"""

from __future__ import annotations

from germane.dashboard.metrics.page import ROUTES, is_prometheus_installed, missing_extra

__all__ = ["ROUTES", "is_prometheus_installed", "missing_extra"]
