"""The gauges of a database, read now and then: many who scrape cost one reading."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from germane.dashboard.metrics.families import families
from germane.errors import StorageError

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Store


from germane.dashboard.metrics.snapshot import look

AGE: Final = 10.0
"""Seconds for which a reading stands."""
AWAY: Final = 2.0
"""Seconds for which it stands that a database is away."""
SHARE: Final = 0.05
"""Of the time that reading may take: what takes long to read is read less often."""


class Gauges(Collector):
    """What a database says of itself, for Prometheus. Safe to share between threads.

    Args:
        store: The database.
        settings: Its budget, and how long a silent process counts as one that scores.
        now: Tells the time, with its zone.
        timer: Tells seconds that only go on.
    """

    def __init__(
        self,
        store: Store,
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
        self._known: tuple[GaugeMetricFamily, ...] = ()
        self._stands_until = -float("inf")

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges; of a database that is away only that it is."""
        with self._lock:
            if self._timer() >= self._stands_until:
                self._read()
            known = self._known
        yield from known

    def _read(self) -> None:
        began, at = self._timer(), self._now()
        try:
            found = tuple(families(look(self._store, self._settings, at)))
        except StorageError:
            found = ()
        took = self._timer() - began
        self._known = (*_of_reading(at, took, up=bool(found)), *found)
        self._stands_until = began + took + max(AGE if found else AWAY, took / SHARE)


def _of_reading(at: datetime, took: float, *, up: bool) -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily(
        "germane_up", "Whether the database answered: without it there are no gauges of it", int(up)
    )
    said = "When the database was read, in seconds since 1970"
    yield GaugeMetricFamily("germane_reading_timestamp_seconds", said, at.timestamp())
    yield GaugeMetricFamily("germane_reading_duration_seconds", "How long reading the database took", took)
    info = GaugeMetricFamily("germane_build_info", "The version of germane", labels=["version"])
    info.add_metric([version("germane")], 1)
    yield info
