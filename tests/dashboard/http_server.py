"""A dashboard over an empty database with one extra page that shows and accepts a form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.testclient import TestClient

from germane.dashboard import create_app
from germane.dashboard.web.forms import csrf, form
from germane.dashboard.web.routing import page_route
from germane.insights.context import InsightContext
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.testing import Clock

TOKEN = "correct-horse-battery-staple"
NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
PAGE = {"Accept": "text/html"}


def create_dashboard(store: TrackingStore, answer: Callable[..., Response] | None = None, **given: Any) -> Starlette:
    """Return a dashboard with the page ``/written``, which collects posted forms in ``app.state.written``."""
    app = create_app(load_settings(database="sqlite://"), store=store, **{"now": Clock(NOW), **given})
    app.state.written = []

    def written(request: Request, context: InsightContext) -> Response:
        if request.method == "POST":
            request.app.state.written.append(form(request))
        return HTMLResponse(f"<form>{csrf(request)}</form>")

    app.router.routes.insert(0, page_route("/written", answer or written, methods=("GET", "POST"), name="written"))
    return app


def client_for(app: Starlette, host: str = "127.0.0.1", client: str = "127.0.0.1", scheme: str = "http") -> TestClient:
    """Return a client at the address ``client`` that requests pages from ``host`` and does not follow redirects."""
    return TestClient(app, f"{scheme}://{host}", client=(client, 50_000), follow_redirects=False)
