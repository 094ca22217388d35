"""The first screen: is it worse, where, and since when."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.desk import Desk
from germane.dashboard.rendering import render
from germane.dashboard.screen import screen
from germane.dashboard.view import view_of


def overview(request: Request, desk: Desk) -> Response:
    """Answer with the verdict, the trend, the routes and the worst answers."""
    view = view_of(request, desk.now())
    return render(request, desk, view, "overview.html", alerts=desk.store.open_alerts())


ROUTES = (screen("/", overview),)
