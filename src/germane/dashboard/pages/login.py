"""The pages for signing in with the token and for signing out."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane.dashboard.auth.limits import LoginThrottle
from germane.dashboard.auth.middleware import check_throttle, client_address
from germane.dashboard.auth.signing import SESSION_COOKIE, SESSION_LIFETIME, Signer
from germane.dashboard.web.forms import form
from germane.dashboard.web.parameters import Parameter
from germane.dashboard.web.preferences import set_cookie_header
from germane.dashboard.web.routing import is_local_path, page_route, root_of
from germane.dashboard.web.templates import render
from germane.insights import InsightContext


def login(request: Request, context: InsightContext) -> Response:
    """Show the login form, or check the submitted token and start a session."""
    signer: Signer = request.app.state.signer
    root = root_of(request.scope)
    if not signer.requires_token:
        return RedirectResponse(f"{root}/", 303)
    if request.method != "POST":
        return _login_page(request, context, request.query_params.get("next", ""))
    throttle: LoginThrottle = request.app.state.login_throttle
    address, next_path = client_address(request), form(request).get("next", "")
    # The correct token is never throttled. Otherwise, anyone could lock everyone out by guessing.
    if not signer.is_token(form(request).get("token", "").strip()):
        check_throttle(throttle, address)
        throttle.record_failure(address)
        return _login_page(request, context, next_path, status_code=401, problem="The token is invalid.")
    response = RedirectResponse(f"{root}{next_path if is_local_path(next_path) else '/'}", 303)
    session = signer.create_session(context.now())
    header = set_cookie_header(request.scope, SESSION_COOKIE, session, SESSION_LIFETIME)
    response.headers.append("Set-Cookie", header)
    return response


def _login_page(
    request: Request, context: InsightContext, next_path: str, *, status_code: int = 200, problem: str = ""
) -> Response:
    signer: Signer = request.app.state.signer
    return render(
        request,
        context,
        None,
        "login.html",
        status_code=status_code,
        with_status=False,
        next_path=next_path if is_local_path(next_path) else "",
        problem=problem,
        is_signed_in=signer.is_valid_session(request.cookies.get(SESSION_COOKIE, ""), context.now()),
    )


def logout(request: Request, context: InsightContext) -> Response:  # noqa: ARG001 - a page handler
    """Delete the session cookie, and redirect to the login page."""
    response = RedirectResponse(f"{root_of(request.scope)}/login", 303)
    response.headers.append("Set-Cookie", set_cookie_header(request.scope, SESSION_COOKIE, "", timedelta()))
    return response


ROUTES: Final = (
    page_route("/login", login, methods=("GET", "POST"), parameters=(Parameter("next"),)),
    page_route("/logout", logout, methods=("POST",)),
)
