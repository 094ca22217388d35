"""``/metrics``: what Prometheus scrapes."""

from __future__ import annotations

import threading

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.desk import Desk
from germane.dashboard.screen import screen

_making = threading.Lock()


def metrics(request: Request, desk: Desk) -> Response:
    """Answer with the gauges of the database; a database that is away is a gauge too, and no error."""
    from germane.dashboard.metrics.exposition import Exposition  # pages do without it

    state = request.app.state
    with _making:
        if not hasattr(state, "exposition"):
            state.exposition = Exposition(desk.store, desk.settings, now=desk.now)
    exposition: Exposition = state.exposition
    asked = request.headers
    page = exposition.written(accept=asked.get("accept", ""), accept_encoding=asked.get("accept-encoding", ""))
    return Response(page.content, headers=page.headers)


ROUTES = (screen("/metrics", metrics),)
