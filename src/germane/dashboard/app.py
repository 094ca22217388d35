"""The application: its screens, and what stands in front of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from germane.dashboard import metrics, overview, theme
from germane.dashboard.desk import Desk

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store

SCREENS: tuple[BaseRoute, ...] = (*overview.ROUTES, *metrics.ROUTES, *theme.ROUTES)


def create_app(
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    read_only: bool = False,
    now: Callable[[], datetime] | None = None,
) -> Starlette:
    """Return the dashboard as an ASGI application: to be served, or mounted in another one.

    Args:
        settings: By default those of this process.
        store: The database; by default that of the settings.
        read_only: Whether nothing may be written.
        now: Tells the time, with its zone.

    Raises:
        SettingsError: a setting is wrong or unknown.
    """
    from germane.settings import load
    from germane.storage import Store, utc_now

    settings = settings or load()
    store = store or Store(settings.database, erase_after_scoring=settings.erase_after_scoring)
    app = Starlette(
        routes=[*SCREENS, Mount("/static", StaticFiles(packages=[("germane.dashboard", "static")]), name="static")]
    )
    app.state.desk = Desk(store=store, settings=settings, now=now or utc_now, read_only=read_only)
    return app
