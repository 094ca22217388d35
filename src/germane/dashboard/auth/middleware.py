"""Who may see and do what: asked of every request before a screen sees it."""

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
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from germane.dashboard.auth.login_throttle import Attempts
from germane.dashboard.auth.signing import LIFETIME, Seals
from germane.dashboard.web.concurrency_limit import Crowd
from germane.dashboard.web.cookies import ADMISSION, VISIT, cookie
from germane.dashboard.web.error_pages import refused, wants_page
from germane.dashboard.web.forms import NAME, Visit, already_read, arrive, read_form
from germane.dashboard.web.hosts import ANY, comes_from_here, is_foreign, is_welcome, name_of
from germane.dashboard.web.http_error import Refusal
from germane.dashboard.web.urls import is_local, path_of, root_of
from germane.insights.context import Desk

LONGEST_QUERY: Final = 4_096
"""Bytes of a query string."""
_READS: Final = frozenset({"GET", "HEAD"})
_ALIVE: Final = "/healthz"
_ENTRANCE: Final = frozenset({"/login", "/logout"})
_VISIT_NAME: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who is let in."""

    token: SecretStr | None = None
    """What has to be shown; without one only this machine itself is let in."""
    hosts: Collection[str] = ()
    """Names, besides localhost and addresses in numbers, under which pages are asked for; ``*`` for any."""
    trusted: bool = False
    """Whether somebody else asks who comes: an application in which this one is mounted."""


class Guard:
    """Refuses what may not be, and reads the forms of what may."""

    def __init__(self, app: ASGIApp, *, desk: Desk, access: Access, seals: Seals, attempts: Attempts) -> None:
        self._app = app
        self._desk = desk
        self._seals = seals
        self._attempts = attempts
        self._crowd = Crowd()
        self._alone = access.token is None and not access.trusted
        self._hosts = frozenset(name.lower() for name in access.hosts) or frozenset([ANY] if access.trusted else ())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrive(scope, Visit(""))
        request = Request(scope, receive)
        try:
            await self._let_in(request, receive, send)
        except Refusal as refusal:
            await self._refuse(request, refusal)(scope, receive, send)

    async def _let_in(self, request: Request, receive: Receive, send: Send) -> None:
        scope, path = request.scope, path_of(request.scope)
        if path == _ALIVE:  # asked under any name, and tells nothing
            await self._app(scope, receive, send)
            return
        self._check_whence(request)
        by_token = self._shows_token(request, needed=not _is_open(path))
        visit, is_new = self._visit(request)
        arrive(scope, visit)
        if request.method not in _READS:
            await self._check_write(request, visit, receive, by_token=by_token)
            receive = already_read(receive)
        if is_new:
            send = self._remembering(request, visit, send)
        async with nullcontext(send) if _is_open(path) else self._crowd.turn(send) as send_in_turn:
            await self._app(scope, receive, send_in_turn)

    def _check_whence(self, request: Request) -> None:
        """Refuse names that are not ours, and without a token everybody but this machine."""
        hosts = request.headers.getlist("host")
        name = name_of(hosts[0]) if len(hosts) == 1 else None
        if name is None or not is_welcome(name, self._hosts, alone=self._alone):
            raise Refusal(403, "These pages are not shown under the name in the address.", self._on_names())
        if self._alone and not comes_from_here(_client(request), request.scope["headers"]):
            raise Refusal(403, "Without a token these pages are shown on their own machine only.", _SET_A_TOKEN)
        if len(request.scope["query_string"]) > LONGEST_QUERY:
            raise Refusal(414, "The address is longer than any that a page here makes.", "Take fewer filters.")

    def _on_names(self) -> str:
        if self._alone:
            return "Ask for them as http://localhost or http://127.0.0.1; another name needs a token and --host-name."
        return "Name it where the dashboard is started: germane serve --host-name NAME, or the setting host_names."

    def _shows_token(self, request: Request, *, needed: bool) -> bool:
        """Return whether the token itself was shown, which no other site can have a browser do.

        Raises:
            Refusal: it is needed, and neither it nor a session of somebody who gave it was shown.
        """
        if not self._seals.asks or self._seals.admits(request.cookies.get(ADMISSION, ""), self._desk.now()):
            return False
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            self._check_token(request, shown.strip())
            return True
        if needed:
            step = "Programs send it as the header Authorization: Bearer; people sign in at /login."
            raise Refusal(401, "These pages are shown to who has the token.", step, headers=_BEARER)
        return False

    def _check_token(self, request: Request, shown: str) -> None:
        address = address_of(request)
        check_attempts(self._attempts, address)
        if not self._seals.fits(shown):
            self._attempts.note(address)
            raise Refusal(401, "That is not the token.", "It is the setting token of this process.", headers=_BEARER)

    def _visit(self, request: Request) -> tuple[Visit, bool]:
        """Return to what forms belong, and whether the browser does not know of it yet."""
        session, name = request.cookies.get(ADMISSION, ""), request.cookies.get(VISIT, "")
        if self._seals.asks and self._seals.admits(session, self._desk.now()):
            return Visit(session, self._seals.form_seal(session)), False
        if _VISIT_NAME.fullmatch(name):
            return Visit(name, self._seals.form_seal(name)), False
        name = secrets.token_urlsafe(24)
        return Visit(name, self._seals.form_seal(name)), True

    async def _check_write(self, request: Request, visit: Visit, receive: Receive, *, by_token: bool) -> None:
        """Refuse what a page of ours cannot have sent, and what may not be written."""
        if self._desk.read_only and path_of(request.scope) not in _ENTRANCE:
            raise Refusal(403, "Nothing can be changed here: this dashboard is read only.", _NOT_READ_ONLY)
        headers = request.headers
        if is_foreign(headers.get("origin"), headers.get("sec-fetch-site"), headers.get("host", "")):
            raise Refusal(403, "That form was sent by a page of another site.", "Do it on the page here.")
        visit.form = await read_form(request.scope, receive)
        seal = visit.form.pop(NAME, "")
        if not by_token and not self._seals.is_form_seal(visit.name, seal):
            raise Refusal(
                403, "That form is too old, or is not of this page.", "Go back, reload the page, do it again."
            )

    def _remembering(self, request: Request, visit: Visit, send: Send) -> Send:
        """Return a ``send`` that has the browser remember the visit, where a form was shown."""

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and visit.sealed:
                made = cookie(request.scope, VISIT, visit.name, LIFETIME)
                MutableHeaders(scope=message).append("Set-Cookie", made)
            await send(message)

        return with_cookie

    def _refuse(self, request: Request, refusal: Refusal) -> Response:
        if refusal.status == 401 and request.method in _READS and wants_page(request):
            return RedirectResponse(f"{root_of(request.scope)}/login{_and_back(request)}", 303)
        return refused(request, self._desk, refusal)


_BEARER: Final = {"WWW-Authenticate": "Bearer"}
_SET_A_TOKEN: Final = "Give it one where it is started: the setting token, or create_app(token=...)."  # noqa: S105
_NOT_READ_ONLY: Final = "Do it where germane serve runs without --read-only, or by the command line."


def address_of(request: Request) -> str:
    """Return from where a request comes."""
    client = _client(request)
    return "" if client is None else client[0]


def check_attempts(attempts: Attempts, address: str) -> None:
    """Return unless too many wrong tokens were shown.

    Raises:
        Refusal: they were; says when to come again.
    """
    if seconds := attempts.wait(address):
        step = f"Come again in {seconds} s."
        raise Refusal(429, "Too many wrong tokens were shown.", step, headers={"Retry-After": str(seconds)})


def _client(request: Request) -> tuple[str, int] | None:
    return None if request.client is None else (request.client.host, request.client.port)


def _is_open(path: str) -> bool:
    return path == "/login" or path.startswith("/static/")


def _and_back(request: Request) -> str:
    query = request.scope["query_string"].decode("latin-1")
    here = quote(path_of(request.scope)) + (f"?{query}" if query else "")
    return f"?next={quote(here, safe='')}" if here != "/" and is_local(here) else ""
