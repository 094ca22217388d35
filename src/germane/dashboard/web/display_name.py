"""Who says so: a name that people give themselves, kept by their browser, and shown beside what they did."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane.dashboard.web.cookies import cookie
from germane.dashboard.web.forms import form
from germane.dashboard.web.urls import root_of

COOKIE: Final = "germane_name"
FIELD: Final = "by"
LONGEST: Final = 80
"""Characters of a name."""
KEPT: Final = timedelta(days=365)
SEE_OTHER: Final = 303


def name_of(request: Request) -> str:
    """Return the name that was given the last time; empty where none was."""
    return unquote(request.cookies.get(COOKIE, ""), errors="replace")[:LONGEST]


def given_name(request: Request) -> str | None:
    """Return the name in the form that was sent; None where it is empty."""
    return form(request).get(FIELD, "").strip()[:LONGEST] or None


def back_to(request: Request, path: str) -> Response:
    """Answer a form: go to a page of ours, and remember the name that was given."""
    answer = RedirectResponse(root_of(request.scope) + path, SEE_OTHER)
    name = given_name(request)
    if name is not None:
        answer.headers.append("Set-Cookie", cookie(request.scope, COOKIE, quote(name, safe=""), KEPT))
    return answer
