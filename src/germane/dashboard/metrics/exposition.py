"""Exposition of the database gauges at ``/metrics``.

The database is read at most once every few seconds, regardless of the number of scrapers. Other collectors in this
process can be registered too.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.responses import Response

from germane.dashboard.metrics.families import MetricsSnapshot, build_families
from germane.errors import StorageError
from germane.insights import DEFAULT_WINDOW, InsightContext, ViewParams, load_estimates, load_unexplained_fleet

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore

WINDOWS: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
"""Time windows by name. All of them end at the same full minute, because exchanges are counted by the minute."""
MAX_AGE: Final = 10.0
"""Seconds after which the database is read again."""
MAX_AGE_WHEN_DOWN: Final = 2.0
"""Seconds after which an unreachable database is retried."""
MAX_READ_SHARE: Final = 0.05
"""Maximum share of time spent on reads, so that slow reads are repeated less often."""
_creation_lock = threading.Lock()


def load_snapshot(store: TrackingStore, settings: Settings, now: datetime) -> MetricsSnapshot:
    """Return the data for all gauges, read from the database. Raise StorageError if that fails."""
    spent, until = store.quota.load_usage(), now.replace(second=0, microsecond=0)
    versions = store.baselines.list_versions()
    context = InsightContext(store=store, settings=settings, now=lambda: now)
    view = ViewParams(window=DEFAULT_WINDOW, since=now - WINDOWS[DEFAULT_WINDOW], until=now)
    return MetricsSnapshot(
        verdict=load_unexplained_fleet(context, view, now).verdict,
        windows={
            name: store.trends.window_summary(since=until - length, until=until) for name, length in WINDOWS.items()
        },
        backlog=store.backlog.load_backlog(alive_within=timedelta(seconds=settings.task_lease)),
        spent=spent,
        shares={} if settings.budget is None else spent.shares(settings.budget),
        alerts=tuple(store.alerts.list_open()),
        estimates=load_estimates(store),
        forwarding=store.forwarding.list_targets(),
        baselines=tuple(
            version
            for version in versions
            if version.status == "active" and not version.is_provisional and not version.key.scope
        ),
    )


class DatabaseCollector(Collector):
    """Collects the database gauges. Thread-safe."""

    def __init__(
        self,
        store: TrackingStore,
        settings: Settings,
        *,
        now: Callable[[], datetime],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._settings = settings
        self._now = now
        self._timer = timer
        self._lock = threading.Lock()
        self._families: tuple[GaugeMetricFamily, ...] = ()
        self._valid_until = -float("inf")

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges. If the database is unreachable, yield only ``germane_up`` and metadata."""
        with self._lock:
            if self._timer() >= self._valid_until:
                began, at = self._timer(), self._now()
                try:
                    snapshot = load_snapshot(self._store, self._settings, at)
                    gauges = tuple(build_families(snapshot))
                except StorageError:
                    gauges = ()
                seconds = self._timer() - began
                help_text = "Unix time of the last database read."
                info = GaugeMetricFamily("germane_build_info", "Version of germane.", labels=["version"])
                info.add_metric([version("germane")], 1)
                self._families = (
                    GaugeMetricFamily("germane_up", "Whether the database is reachable.", int(bool(gauges))),
                    GaugeMetricFamily("germane_reading_timestamp_seconds", help_text, at.timestamp()),
                    GaugeMetricFamily(
                        "germane_reading_duration_seconds", "Duration of the last database read.", seconds
                    ),
                    info,
                    *gauges,
                )
                max_age = MAX_AGE if gauges else MAX_AGE_WHEN_DOWN
                self._valid_until = began + seconds + max(max_age, seconds / MAX_READ_SHARE)
            families = self._families
        yield from families


class MetricsExposition:
    """Encodes the metrics in one registry. Thread-safe."""

    def __init__(self, store: TrackingStore, settings: Settings, *, now: Callable[[], datetime]) -> None:
        self.registry = CollectorRegistry()
        """The registry of all metrics, in which callers can register more collectors."""
        self._lock = threading.Lock()
        self.registry.register(DatabaseCollector(store, settings, now=now))
        ProcessCollector(registry=self.registry)

    def encode(self, *, accept: str = "", accept_encoding: str = "") -> Response:
        """Return the metrics in the text or OpenMetrics format, compressed or not, as the request headers allow."""
        encoder, content_type = choose_encoder(accept)
        with self._lock:  # OpenTelemetry's metric reader does not support concurrent reads
            content = encoder(self.registry)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding", "Cache-Control": "no-store"}
        if not gzip_accepted(accept_encoding):
            return Response(content, headers=headers)
        compressed = gzip.compress(content, compresslevel=5)
        return Response(compressed, headers={**headers, "Content-Encoding": "gzip"})


def metrics_exposition(app: Starlette) -> MetricsExposition:
    """Return the exposition that an application serves at ``/metrics``, creating it on first use."""
    with _creation_lock:
        if not hasattr(app.state, "metrics_exposition"):
            context: InsightContext = app.state.context
            app.state.metrics_exposition = MetricsExposition(context.store, context.settings, now=context.now)
    exposition: MetricsExposition = app.state.metrics_exposition
    return exposition
