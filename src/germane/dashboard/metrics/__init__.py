"""``/metrics``: gauges of the database for Prometheus, by the time of the answer."""

from __future__ import annotations

from germane.dashboard.metrics.page import ROUTES

__all__ = ["ROUTES"]
