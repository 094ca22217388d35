"""The dashboard: an ASGI application with server-rendered pages and Prometheus metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from germane.lazy import lazy_exports

if TYPE_CHECKING:
    from germane.dashboard.app import create_app, create_metrics_app
    from germane.dashboard.auth.hosts import ANY_HOST, is_loopback, parse_host
    from germane.dashboard.metrics import is_prometheus_installed, missing_extra
    from germane.dashboard.metrics.exposition import DatabaseCollector, metrics_exposition
    from germane.dashboard.server import DashboardServer

__all__ = [
    "ANY_HOST",
    "DashboardServer",
    "DatabaseCollector",
    "create_app",
    "create_metrics_app",
    "is_loopback",
    "is_prometheus_installed",
    "metrics_exposition",
    "missing_extra",
    "parse_host",
]

_MODULES: Final = {
    "app": ("create_app", "create_metrics_app"),
    "auth.hosts": ("ANY_HOST", "is_loopback", "parse_host"),
    "metrics": ("missing_extra", "is_prometheus_installed"),
    "metrics.exposition": ("DatabaseCollector", "metrics_exposition"),
    "server": ("DashboardServer",),
}

__getattr__ = lazy_exports(__name__, _MODULES)
