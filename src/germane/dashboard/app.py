"""The ASGI application: routes, access control and security headers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from germane import storage
from germane.dashboard.auth.hosts import ANY_HOST
from germane.dashboard.auth.limits import LoginThrottle
from germane.dashboard.auth.middleware import AccessMiddleware, AccessRules
from germane.dashboard.auth.signing import Signer
from germane.dashboard.pages import (
    alerts,
    answers,
    comparison,
    labels,
    list_actions,
    login,
    metrics,
    overview,
    saved_views,
    sessions,
    test_sets,
    traces,
    worker,
)
from germane.dashboard.web import preferences
from germane.dashboard.web.error_pages import EXCEPTION_HANDLERS
from germane.dashboard.web.templates import VersionedStaticFiles
from germane.insights import InsightContext

if TYPE_CHECKING:
    from germane.settings import Settings

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_GZIP_LEVEL: Final = 5
"""Level 9, the default, takes twice as long and makes pages only 2% smaller."""
_SECURITY_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def healthz(_: Request) -> Response:
    """Return status 200 while this process is running. Does not check the database."""
    return PlainTextResponse("ok\n")


PAGE_ROUTES: Final[tuple[BaseRoute, ...]] = (
    *overview.ROUTES,
    *alerts.ROUTES,
    *worker.ROUTES,
    *traces.ROUTES,
    *answers.ROUTES,
    *list_actions.ROUTES,
    *labels.ROUTES,
    *test_sets.ROUTES,
    *sessions.ROUTES,
    *comparison.ROUTES,
    *saved_views.ROUTES,
    *metrics.ROUTES,
    *preferences.ROUTES,
    *login.ROUTES,
)
PUBLIC_ROUTES: Final[tuple[BaseRoute, ...]] = (
    Route("/healthz", healthz),
    Mount("/static", VersionedStaticFiles(), name="static"),
)


class SecurityHeadersMiddleware:
    """Sets security headers on every response, and forbids caching unless a response allows it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Dashboard(Starlette):
    """The dashboard for one database."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return the middleware stack with security headers outermost, so that server error pages have them too.

        Compression does not reveal the tokens in forms: they are tied to cookies that browsers do not send with
        requests from other sites.
        """
        return SecurityHeadersMiddleware(GZipMiddleware(super().build_middleware_stack(), compresslevel=_GZIP_LEVEL))


def create_app(
    settings: Settings | None = None,
    *,
    store: storage.TrackingStore | None = None,
    read_only: bool = False,
    now: Callable[[], datetime] | None = None,
    token: str | SecretStr | None = None,
    hosts: Collection[str] = (),
    trusted: bool = False,
    refresh: timedelta = timedelta(seconds=30),
) -> Starlette:
    """Create the dashboard as an ASGI application, which can be served or mounted in another application.

    Without a token, and unless ``trusted`` is set, only requests from this machine to localhost, 127.0.0.1 or ::1 are
    accepted.

    Args:
        settings: The settings to use. Defaults to the settings of this process.
        store: The database, which the application does not close. Defaults to the database in the settings.
        read_only: Whether to reject all changes.
        now: A function that returns the current time with a time zone.
        token: The token that visitors must present, at least 16 characters long. Defaults to the ``dashboard_token``
            setting.
        hosts: Host names to accept in addition to IP addresses and the ``allowed_hosts`` setting.
        trusted: Whether the application that mounts the dashboard controls access itself.
        refresh: Interval at which the live parts of an open page are reloaded.

    Raises:
        SettingsError: The token or a setting is invalid.
    """
    from germane.settings import load_settings, parse_token

    settings = settings or load_settings()
    closes_store = store is None
    store = store or storage.TrackingStore(
        settings.database, erase_after_scoring=settings.erase_after_scoring, sinks=list(settings.sinks)
    )
    context = InsightContext(
        store=store,
        settings=settings,
        now=now or partial(datetime.now, UTC),
        read_only=read_only,
        refresh_interval=refresh,
    )
    secret = settings.dashboard_token if token is None else parse_token(token)
    names = (hosts,) if isinstance(hosts, str) else hosts
    rules = AccessRules(token=secret, hosts=(*names, *settings.allowed_hosts), trusted=trusted)
    return _create(context, rules, closes_store=closes_store)


def create_metrics_app(settings: Settings) -> Starlette:
    """Create an application that serves only ``/metrics``, for a worker process. It has its own database connection.

    Without the ``dashboard_token`` setting, only requests from this machine are accepted. With the setting, requests
    for any host name are accepted.
    """
    store, token = storage.TrackingStore(settings.database), settings.dashboard_token
    context = InsightContext(store=store, settings=settings, now=partial(datetime.now, UTC), read_only=True)
    rules = AccessRules(token=token, hosts=() if token is None else (ANY_HOST,))
    return _create(context, rules, closes_store=True, routes=(*metrics.ROUTES, *login.ROUTES))


def _create(
    context: InsightContext, rules: AccessRules, *, closes_store: bool, routes: Sequence[BaseRoute] = PAGE_ROUTES
) -> Dashboard:
    signer, throttle = Signer(rules.token), LoginThrottle(context.now)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        if closes_store:
            context.store.close()

    app = Dashboard(
        routes=[*routes, *PUBLIC_ROUTES],
        middleware=[Middleware(AccessMiddleware, context=context, rules=rules, signer=signer, throttle=throttle)],
        exception_handlers=EXCEPTION_HANDLERS,
        lifespan=lifespan,
    )
    app.state.context, app.state.signer, app.state.login_throttle = context, signer, throttle
    return app
