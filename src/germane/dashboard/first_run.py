"""The first screen of who begins: what to write, what to run, and whether it has arrived."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.beginning import beginning_of, has_begun
from germane.dashboard.desk import Desk
from germane.dashboard.rendering import render
from germane.dashboard.screen import screen


def start(request: Request, desk: Desk) -> Response:
    """Answer with the first steps."""
    found = beginning_of(desk)
    return render(request, desk, None, "start.html", framed=found.exists, found=found)


def is_first_run(request: Request, desk: Desk) -> bool:
    """Whether nothing was ever captured; once something was, the database is not asked again."""
    begun = request.app.state.begun = getattr(request.app.state, "begun", False) or has_begun(desk)
    return not begun


ROUTES = (screen("/start", start),)
