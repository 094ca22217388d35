"""Light or dark: as the system has it until the visitor chooses. A cookie remembers, also without the script."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane.dashboard.web.urls import is_local, root_of, screen
from germane.insights.context import Desk

COOKIE: Final = "germane_theme"
THEMES: Final = ("auto", "light", "dark")
_YEAR: Final = 365 * 86_400


def of(request: Request) -> str:
    """Return the visitor's choice: auto, light or dark."""
    chosen = request.cookies.get(COOKIE, "")
    return chosen if chosen in THEMES else "auto"


def choose(request: Request, _: Desk) -> Response:
    """Remember a choice, and go back to where the visitor was."""
    chosen = request.query_params.get("to", "")
    root, back = root_of(request.scope), request.query_params.get("back", "")
    response = RedirectResponse(root + (back if is_local(back) else "/"), status_code=303)
    # The script reads it, and links from elsewhere open in the theme that was chosen.
    place: dict[str, Any] = {"path": quote(root) or "/", "secure": request.scope["scheme"] == "https"}
    response.set_cookie(COOKIE, chosen if chosen in THEMES else "auto", max_age=_YEAR, samesite="lax", **place)
    return response


ROUTES = (screen("/theme", choose, name="theme"),)
