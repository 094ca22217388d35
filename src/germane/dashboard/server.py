"""The web server of the dashboard."""

from __future__ import annotations

from germane.web_server import WebServer


class DashboardServer(WebServer):
    """Serves the dashboard, or its metrics, at one address."""
