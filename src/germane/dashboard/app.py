"""The application: its screens, and what stands in front of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from germane.dashboard import metrics
from germane.dashboard.auth.login_throttle import Attempts
from germane.dashboard.auth.middleware import Access, Guard
from germane.dashboard.auth.signing import Seals
from germane.dashboard.pages import login, overview, route, start, worker
from germane.dashboard.pages.alerts import alert_list
from germane.dashboard.pages.answers import answer_detail, answer_list
from germane.dashboard.web import theme
from germane.dashboard.web.error_pages import HANDLERS
from germane.dashboard.web.hosts import ANY
from germane.dashboard.web.security_headers import Headers
from germane.dashboard.web.static_files import Assets
from germane.insights.context import Desk

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store


async def healthz(_: Request) -> Response:
    """Say that this process answers; of the database it says nothing."""
    return PlainTextResponse("ok\n")


SCREENS: tuple[BaseRoute, ...] = (
    *overview.ROUTES,
    *alert_list.ROUTES,
    *worker.ROUTES,
    *answer_list.ROUTES,
    *answer_detail.ROUTES,
    *route.ROUTES,
    *metrics.ROUTES,
    *theme.ROUTES,
    *start.ROUTES,
    *login.ROUTES,
)
OTHERS: tuple[BaseRoute, ...] = (Route("/healthz", healthz), Mount("/static", Assets(), name="static"))


class Dashboard(Starlette):
    """Pages over one database."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return it with headers around all of it, the page that tells of a fault of our own as well."""
        return Headers(super().build_middleware_stack())


def create_app(
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    read_only: bool = False,
    now: Callable[[], datetime] | None = None,
    token: str | SecretStr | None = None,
    hosts: Collection[str] = (),
    trusted: bool = False,
    refresh: timedelta = timedelta(seconds=30),
) -> Starlette:
    """Return the dashboard as an ASGI application: to be served, or mounted in another one.

    Without a token and unless it is trusted, it answers requests of its own machine only, under the names localhost,
    127.0.0.1 and ::1.

    Args:
        settings: By default those of this process.
        store: The database, which is then not closed here; by default that of the settings.
        read_only: Whether nothing may be written.
        now: Tells the time, with its zone.
        token: What visitors have to show, of 16 characters or more; by default the setting ``token``.
        hosts: Names under which it is asked for, beside the setting ``host_names`` and addresses in numbers.
        trusted: Whether the application in which it is mounted asks itself who comes.
        refresh: How often an open page asks for what is new.

    Raises:
        SettingsError: a setting or the token is wrong, or a setting unknown.
    """
    from germane.settings import as_token, load
    from germane.storage import Store, utc_now

    settings = settings or load()
    own = store is None
    store = store or Store(settings.database, erase_after_scoring=settings.erase_after_scoring)
    desk = Desk(store=store, settings=settings, now=now or utc_now, read_only=read_only, refresh=refresh)
    secret = settings.token if token is None else as_token(token)
    names = (hosts,) if isinstance(hosts, str) else hosts
    access = Access(token=secret, hosts=(*names, *settings.host_names), trusted=trusted)
    return _assembled(desk, access, closing=own)


def create_metrics_app(settings: Settings) -> Starlette:
    """Return ``/metrics`` alone, for a process whose work is another: with a connection to the database of its own.

    Without the setting ``token`` it answers requests of its own machine only; with it those under any name.
    """
    from germane.storage import Store, utc_now

    desk = Desk(store=Store(settings.database), settings=settings, now=utc_now, read_only=True)
    access = Access(token=settings.token, hosts=() if settings.token is None else (ANY,))
    return _assembled(desk, access, closing=True, screens=(*metrics.ROUTES, *login.ROUTES))


def _assembled(desk: Desk, access: Access, *, closing: bool, screens: Sequence[BaseRoute] = SCREENS) -> Dashboard:
    seals, attempts = Seals(access.token), Attempts(desk.now)
    guard = Middleware(Guard, desk=desk, access=access, seals=seals, attempts=attempts)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        if closing:
            desk.store.close()

    app = Dashboard(routes=[*screens, *OTHERS], middleware=[guard], exception_handlers=HANDLERS, lifespan=lifespan)
    app.state.desk, app.state.seals, app.state.attempts = desk, seals, attempts
    return app
