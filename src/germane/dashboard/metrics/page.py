"""``/metrics``: what Prometheus scrapes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.desk import Desk
from germane.dashboard.screen import screen

if TYPE_CHECKING:
    from germane.dashboard.metrics.exposition import Exposition

_making = threading.Lock()


def metrics(request: Request, desk: Desk) -> Response:  # noqa: ARG001 - of a screen
    """Answer with the gauges of the database; a database that is away is a gauge too, and no error."""
    asked = request.headers
    exposition = exposition_of(request.app)
    page = exposition.written(accept=asked.get("accept", ""), accept_encoding=asked.get("accept-encoding", ""))
    return Response(page.content, headers=page.headers)


def exposition_of(app: Starlette) -> Exposition:
    """Return what an application shows at ``/metrics``; more may be added to its registry."""
    from germane.dashboard.metrics.exposition import Exposition  # pages do without it

    with _making:
        if not hasattr(app.state, "exposition"):
            desk: Desk = app.state.desk
            app.state.exposition = Exposition(desk.store, desk.settings, now=desk.now)
    made: Exposition = app.state.exposition
    return made


ROUTES = (screen("/metrics", metrics),)
