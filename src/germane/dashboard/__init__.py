"""The dashboard: an ASGI application with server-rendered pages and Prometheus metrics."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Modules are loaded on first use, because germane serve checks its options before it imports the pages.
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value
