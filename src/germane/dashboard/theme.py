"""Light or dark: as the system has it until the visitor chooses. A cookie remembers, also without the script."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane.dashboard.desk import Desk
from germane.dashboard.screen import screen

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
    root = str(request.scope.get("root_path", "")).rstrip("/")
    response = RedirectResponse(root + _own(request.query_params.get("back", "/")), status_code=303)
    response.set_cookie(COOKIE, chosen if chosen in THEMES else "auto", max_age=_YEAR, samesite="lax", httponly=False)
    return response


def _own(path: str) -> str:
    """Return a path of this application: whoever wrote the link may not send visitors elsewhere."""
    return f"/{path.lstrip('/')}" if path.startswith("/") and "\\" not in path and path.isprintable() else "/"


ROUTES = (screen("/theme", choose, name="theme"),)
