"""A page for Prometheus: gauges of the database, and what else a process measures."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.metrics.gauges import Gauges
from germane.dashboard.web.urls import screen
from germane.insights.context import Desk

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store


@dataclass(frozen=True, slots=True)
class Written:
    """A page as it goes out."""

    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


class Exposition:
    """Writes the page. Safe to share between threads.

    Args:
        store: The database.
        settings: Those of this process.
        now: Tells the time, with its zone.
    """

    def __init__(self, store: Store, settings: Settings, *, now: Callable[[], datetime]) -> None:
        self.registry = CollectorRegistry()
        """What is on the page; others may add to it."""
        self._lock = threading.Lock()
        self.registry.register(Gauges(store, settings, now=now))
        ProcessCollector(registry=self.registry)

    def written(self, *, accept: str = "", accept_encoding: str = "") -> Written:
        """Return the page as who asks can take it: as text or OpenMetrics, compressed or not."""
        encoder, content_type = choose_encoder(accept)
        with self._lock:  # the reader of OpenTelemetry's instruments is for one at a time
            content = encoder(self.registry)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding", "Cache-Control": "no-store"}
        if not gzip_accepted(accept_encoding):
            return Written(content, headers)
        return Written(gzip.compress(content, compresslevel=5), {**headers, "Content-Encoding": "gzip"})


_making = threading.Lock()


def metrics(request: Request, desk: Desk) -> Response:  # noqa: ARG001 - of a screen
    """Answer with the gauges of the database; a database that is away is a gauge too, and no error."""
    asked = request.headers
    exposition = exposition_of(request.app)
    page = exposition.written(accept=asked.get("accept", ""), accept_encoding=asked.get("accept-encoding", ""))
    return Response(page.content, headers=page.headers)


def exposition_of(app: Starlette) -> Exposition:
    """Return what an application shows at ``/metrics``; more may be added to its registry."""
    # pages do without it

    with _making:
        if not hasattr(app.state, "exposition"):
            desk: Desk = app.state.desk
            app.state.exposition = Exposition(desk.store, desk.settings, now=desk.now)
    made: Exposition = app.state.exposition
    return made


ROUTES = (screen("/metrics", metrics),)
