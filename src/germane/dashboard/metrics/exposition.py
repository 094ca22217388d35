"""``/metrics``: gauges of the database, and what else this process measures."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.metrics.collector import DatabaseCollector
from germane.dashboard.web.urls import page_route
from germane.insights import InsightContext

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore

_creation_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class EncodedMetrics:
    """The body and headers of a response."""

    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


class MetricsExposition:
    """Encodes the metrics of one registry. Thread-safe.

    Args:
        store: The database.
        settings: The settings of this process.
        now: The clock; returns a time with a time zone.
    """

    def __init__(self, store: TrackingStore, settings: Settings, *, now: Callable[[], datetime]) -> None:
        self.registry = CollectorRegistry()
        """Callers may register more collectors."""
        self._lock = threading.Lock()
        self.registry.register(DatabaseCollector(store, settings, now=now))
        ProcessCollector(registry=self.registry)

    def encode(self, *, accept: str = "", accept_encoding: str = "") -> EncodedMetrics:
        """Return text or OpenMetrics, compressed or not, as the client accepts it."""
        encoder, content_type = choose_encoder(accept)
        with self._lock:  # OpenTelemetry's metric reader does not support concurrent reads
            content = encoder(self.registry)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding", "Cache-Control": "no-store"}
        if not gzip_accepted(accept_encoding):
            return EncodedMetrics(content, headers)
        return EncodedMetrics(gzip.compress(content, compresslevel=5), {**headers, "Content-Encoding": "gzip"})


def metrics(request: Request, context: InsightContext) -> Response:  # noqa: ARG001 - a page handler
    """Return all metrics. An unreachable database is reported by a gauge, not by an error."""
    accept, accept_encoding = request.headers.get("accept", ""), request.headers.get("accept-encoding", "")
    encoded = metrics_exposition(request.app).encode(accept=accept, accept_encoding=accept_encoding)
    return Response(encoded.content, headers=encoded.headers)


def metrics_exposition(app: Starlette) -> MetricsExposition:
    """Return what an application serves at ``/metrics``. More collectors may be added to its registry."""
    with _creation_lock:
        if not hasattr(app.state, "metrics_exposition"):
            context: InsightContext = app.state.context
            app.state.metrics_exposition = MetricsExposition(context.store, context.settings, now=context.now)
    exposition: MetricsExposition = app.state.metrics_exposition
    return exposition


ROUTES: Final = (page_route("/metrics", metrics),)
