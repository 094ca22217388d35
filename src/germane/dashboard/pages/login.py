"""Signing in with the token, and out again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane.dashboard.auth.login_throttle import Attempts
from germane.dashboard.auth.middleware import address_of, check_attempts
from germane.dashboard.auth.signing import LIFETIME, Seals
from germane.dashboard.web.cookies import ADMISSION, cookie
from germane.dashboard.web.forms import form
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import is_local, root_of, screen
from germane.insights.context import Desk

_SEE_OTHER: Final = 303


def login(request: Request, desk: Desk) -> Response:
    """Ask for the token, or look at the one that was given."""
    seals: Seals = request.app.state.seals
    if not seals.asks:
        return RedirectResponse(f"{root_of(request.scope)}/", _SEE_OTHER)
    return _enter(request, desk, seals) if request.method == "POST" else _ask(request, desk, seals)


def logout(request: Request, desk: Desk) -> Response:  # noqa: ARG001 - as all screens
    """Have the browser forget that it may enter."""
    answer = RedirectResponse(f"{root_of(request.scope)}/login", _SEE_OTHER)
    answer.headers.append("Set-Cookie", cookie(request.scope, ADMISSION, "", timedelta()))
    return answer


def _ask(request: Request, desk: Desk, seals: Seals, *, status: int = 200, problem: str = "") -> Response:
    onward = request.query_params.get("next", "") if status == 200 else form(request).get("next", "")
    entered = seals.admits(request.cookies.get(ADMISSION, ""), desk.now())
    told = {"onward": onward if is_local(onward) else "", "problem": problem, "entered": entered}
    return render(request, desk, None, "login.html", status=status, framed=False, **told)


def _enter(request: Request, desk: Desk, seals: Seals) -> Response:
    attempts: Attempts = request.app.state.attempts
    address = address_of(request)
    check_attempts(attempts, address)
    if not seals.fits(form(request).get("token", "").strip()):
        attempts.note(address)
        return _ask(request, desk, seals, status=401, problem="That is not the token.")
    onward = form(request).get("next", "")
    answer = RedirectResponse(f"{root_of(request.scope)}{onward if is_local(onward) else '/'}", _SEE_OTHER)
    answer.headers.append("Set-Cookie", cookie(request.scope, ADMISSION, seals.admission(desk.now()), LIFETIME))
    return answer


ROUTES = (screen("/login", login, methods=("GET", "POST")), screen("/logout", logout, methods=("POST",)))
