"""The ``/metrics`` page."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from germane.dashboard.web.routing import page_route
from germane.insights import InsightContext
from germane.installation import install_command


def missing_extra() -> str:
    """Return the message that the ``prometheus`` extra is missing, with the command that installs it."""
    return f"Prometheus metrics require an extra: {install_command('prometheus')}"


def is_prometheus_installed() -> bool:
    """Return whether the packages of the ``prometheus`` extra are installed."""
    packages = ("prometheus_client", "opentelemetry.exporter.prometheus")
    try:
        return all(find_spec(name) is not None for name in packages)
    except ModuleNotFoundError:  # the parent package is missing
        return False


def metrics(request: Request, context: InsightContext) -> Response:  # noqa: ARG001 - a page handler
    """Return all metrics. An unreachable database is reported by a gauge, not by an error status."""
    if not is_prometheus_installed():
        return PlainTextResponse(f"{missing_extra()}\n", 501)
    from germane.dashboard.metrics.exposition import metrics_exposition

    accept, accept_encoding = request.headers.get("accept", ""), request.headers.get("accept-encoding", "")
    return metrics_exposition(request.app).encode(accept=accept, accept_encoding=accept_encoding)


ROUTES: Final = (page_route("/metrics", metrics),)
