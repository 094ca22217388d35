"""``/metrics``: gauges of the database for Prometheus, by answer time."""

from __future__ import annotations

from germane.dashboard.metrics.exposition import ROUTES, DatabaseCollector, metrics_exposition

__all__ = ["ROUTES", "DatabaseCollector", "metrics_exposition"]
