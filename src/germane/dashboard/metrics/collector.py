"""Gauges of the database, read at most every few seconds however many scrapers there are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from germane.dashboard.metrics.families import MetricsSnapshot, build_families
from germane.errors import StorageError

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import TrackingStore

WINDOWS: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
"""All windows end at the same whole minute, because exchanges are counted by the minute."""
MAX_AGE: Final = 10.0
"""Seconds until the database is read again."""
MAX_AGE_WHEN_DOWN: Final = 2.0
"""Seconds until a database that was unreachable is tried again."""
MAX_READ_SHARE: Final = 0.05
"""Share of time spent reading: slow reads are made less often."""


def load_snapshot(store: TrackingStore, settings: Settings, now: datetime) -> MetricsSnapshot:
    """Read the database once.

    Raises:
        StorageError: The database is unreachable, or its tables are of another version.
    """
    from germane.storage import budget_shares

    spent, until = store.quota.load_usage(), now.replace(second=0, microsecond=0)
    versions = store.baselines.list_versions()
    return MetricsSnapshot(
        windows={
            name: store.trends.window_summary(since=until - length, until=until) for name, length in WINDOWS.items()
        },
        backlog=store.queue.load_backlog(alive_within=timedelta(seconds=settings.task_lease)),
        spent=spent,
        shares={} if settings.budget is None else budget_shares(spent.usage, settings.budget),
        alerts=tuple(store.alerts.list_open()),
        baselines=tuple(one for one in versions if one.status == "active" and not one.key.scope),
    )


class DatabaseCollector(Collector):
    """Collects the gauges of a database. Thread-safe.

    Args:
        store: The database.
        settings: The budget, and the age at which a worker without a heartbeat no longer counts.
        now: The clock; returns a time with a time zone.
        timer: A monotonic clock in seconds.
    """

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
        """Yield the gauges. If the database is unreachable, only ``germane_up`` and metadata."""
        with self._lock:
            if self._timer() >= self._valid_until:
                self._refresh()
            families = self._families
        yield from families

    def _refresh(self) -> None:
        began, at = self._timer(), self._now()
        try:
            families = tuple(build_families(load_snapshot(self._store, self._settings, at)))
        except StorageError:
            families = ()
        seconds = self._timer() - began
        info = GaugeMetricFamily("germane_build_info", "Version of germane.", labels=["version"])
        info.add_metric([version("germane")], 1)
        self._families = (
            GaugeMetricFamily("germane_up", "Whether the database is reachable.", int(bool(families))),
            GaugeMetricFamily(
                "germane_reading_timestamp_seconds", "Unix time at which the database was read.", at.timestamp()
            ),
            GaugeMetricFamily("germane_reading_duration_seconds", "Time that reading the database took.", seconds),
            info,
            *families,
        )
        max_age = MAX_AGE if families else MAX_AGE_WHEN_DOWN
        self._valid_until = began + seconds + max(max_age, seconds / MAX_READ_SHARE)
