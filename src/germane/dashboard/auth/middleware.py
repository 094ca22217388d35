"""Access control for every request, applied before a page handles it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from pydantic import SecretStr
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from germane.dashboard.auth.hosts import (
    ANY_HOST,
    is_allowed_host,
    is_cross_site,
    is_from_this_machine,
    parse_host,
)
from germane.dashboard.auth.limits import ConcurrencyLimit, LoginThrottle
from germane.dashboard.auth.signing import (
    SESSION_COOKIE,
    SESSION_LIFETIME,
    VISITOR_COOKIE,
    Signer,
)
from germane.dashboard.web.error_pages import accepts_html, error_response
from germane.dashboard.web.forms import CSRF_FIELD, LoginSession, attach_session, read_form, without_body
from germane.dashboard.web.preferences import set_cookie_header
from germane.dashboard.web.routing import address_of, http_error, is_local_path, path_of, root_of
from germane.insights import InsightContext

MAX_QUERY_LENGTH: Final = 4_096
"""Maximum size of a query string in bytes."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_HEALTH_PATH: Final = "/healthz"
_LOGIN_PATHS: Final = frozenset({"/login", "/logout"})
_VISITOR_ID: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")
_BEARER: Final = {"WWW-Authenticate": "Bearer"}
_LOCAL_HOSTS: Final = "Use http://localhost or http://127.0.0.1. Other names need a token and --allowed-host."
_ALLOW_HOST: Final = "Add it with germane serve --allowed-host NAME, or to the allowed_hosts setting."
_SET_TOKEN: Final = "Set a token with the dashboard_token setting or create_app(token=...)."  # noqa: S105 - a hint
_READ_ONLY: Final = "Use a dashboard that was started without --read-only, or the command line."


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """Access rules for the dashboard."""

    token: SecretStr | None = None
    """The token that visitors must present. Without a token, only requests from this machine are accepted."""
    hosts: Collection[str] = ()
    """Host names to accept in addition to localhost and IP addresses; ``*`` for any."""
    trusted: bool = False
    """Whether the application that mounts the dashboard controls access itself."""


class AccessMiddleware:
    """Middleware that checks the host, client, token and form of each request, and limits concurrent requests."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        context: InsightContext,
        rules: AccessRules,
        signer: Signer,
        throttle: LoginThrottle,
    ) -> None:
        self._app = app
        self._context = context
        self._signer = signer
        self._throttle = throttle
        self._concurrency = ConcurrencyLimit()
        self._local_only = rules.token is None and not rules.trusted
        default = frozenset([ANY_HOST] if rules.trusted else ())
        self._hosts = frozenset(name.lower() for name in rules.hosts) or default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        attach_session(scope, LoginSession(""))
        request = Request(scope, receive)
        try:
            await self._handle(request, receive, send)
        except HTTPException as error:
            response: Response
            if error.status_code == 401 and request.method in _SAFE_METHODS and accepts_html(request):
                here = address_of(scope)
                back = f"?next={quote(here, safe='')}" if here != "/" and is_local_path(here) else ""
                response = RedirectResponse(f"{root_of(scope)}/login{back}", 303)
            else:
                response = error_response(request, self._context, error)
            await response(scope, receive, send)

    async def _handle(self, request: Request, receive: Receive, send: Send) -> None:
        scope, path = request.scope, path_of(request.scope)
        if path == _HEALTH_PATH:  # probes use any host name, and the response reveals nothing
            await self._app(scope, receive, send)
            return
        self._check_origin(request)
        is_public = path == "/login" or path.startswith("/static/")
        has_token = self._check_token(request, required=not is_public)
        # Forms belong to the login or, without one, to the visitor.
        login, visitor = request.cookies.get(SESSION_COOKIE, ""), request.cookies.get(VISITOR_COOKIE, "")
        is_logged_in = self._signer.requires_token and self._signer.is_valid_session(login, self._context.now())
        is_new_visitor = not is_logged_in and not _VISITOR_ID.fullmatch(visitor)
        if is_new_visitor:
            visitor = secrets.token_urlsafe(24)
        owner = login if is_logged_in else visitor
        session = LoginSession(owner, self._signer.create_form_token(owner))
        attach_session(scope, session)
        if request.method not in _SAFE_METHODS:
            await self._check_form(request, session, receive, has_token=has_token)
            receive = without_body(receive)

        async def send_with_cookie(message: Message) -> None:
            """Set the visitor cookie if the response contains a form."""
            if message["type"] == "http.response.start" and session.has_form:
                header = set_cookie_header(scope, VISITOR_COOKIE, session.id, SESSION_LIFETIME)
                MutableHeaders(scope=message).append("Set-Cookie", header)
            await send(message)

        sender = send_with_cookie if is_new_visitor else send
        async with nullcontext(sender) if is_public else self._concurrency.slot(sender) as send_in_slot:
            await self._app(scope, receive, send_in_slot)

    def _check_origin(self, request: Request) -> None:
        """Reject unknown host names and, without a token, requests from other machines."""
        headers = request.headers.getlist("host")
        host = parse_host(headers[0]) if len(headers) == 1 else None
        if host is None or not is_allowed_host(host, self._hosts, local_only=self._local_only):
            step = _LOCAL_HOSTS if self._local_only else _ALLOW_HOST
            raise http_error(403, "The dashboard is not available under this host name.", step)
        client = None if request.client is None else (request.client.host, request.client.port)
        if self._local_only and not is_from_this_machine(client, request.scope["headers"]):
            problem = "Without a token, the dashboard can be reached only from the machine that it runs on."
            raise http_error(403, problem, _SET_TOKEN)
        if len(request.scope["query_string"]) > MAX_QUERY_LENGTH:
            raise http_error(414, "The URL is too long.", "Use fewer filters.")

    def _check_token(self, request: Request, *, required: bool) -> bool:
        """Return whether a header contains the token, which other sites cannot make a browser send."""
        session = request.cookies.get(SESSION_COOKIE, "")
        if not self._signer.requires_token or self._signer.is_valid_session(session, self._context.now()):
            return False
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            # The correct token is never throttled. Otherwise, anyone could lock everyone out by guessing.
            if not self._signer.is_token(presented.strip()):
                address = client_address(request)
                check_throttle(self._throttle, address)
                self._throttle.record_failure(address)
                step = "Use the dashboard_token setting of the process that serves the dashboard."
                raise http_error(401, "The token is invalid.", step, headers=_BEARER)
            return True
        if required:
            step = "In a browser, sign in at /login. From a script, send the header Authorization: Bearer TOKEN."
            raise http_error(401, "The dashboard requires a token.", step, headers=_BEARER)
        return False

    async def _check_form(self, request: Request, session: LoginSession, receive: Receive, *, has_token: bool) -> None:
        """Read the submitted form. Reject forms from other sites, and any change to a read-only dashboard."""
        if self._context.read_only and path_of(request.scope) not in _LOGIN_PATHS:
            raise http_error(403, "This dashboard is read-only.", _READ_ONLY)
        headers = request.headers
        if is_cross_site(headers.get("origin"), headers.get("sec-fetch-site"), headers.get("host", "")):
            raise http_error(403, "The form was submitted from another site.", "Use the form in the dashboard.")
        session.fields = await read_form(request.scope, receive)
        session.form = dict(session.fields)
        form_token = session.form.pop(CSRF_FIELD, "")
        if not has_token and not self._signer.is_form_token(session.id, form_token):
            raise http_error(403, "The form has expired.", "Go back, reload the page, and submit the form again.")


def client_address(request: Request) -> str:
    """Return the client's address, or an empty string if it is unknown."""
    return "" if request.client is None else request.client.host


def check_throttle(throttle: LoginThrottle, address: str) -> None:
    """Raise an error with status 429 and ``Retry-After`` if an address has presented too many invalid tokens."""
    if seconds := throttle.seconds_to_wait(address):
        headers = {"Retry-After": str(seconds)}
        raise http_error(429, "Too many failed sign-in attempts.", f"Try again in {seconds} s.", headers=headers)
