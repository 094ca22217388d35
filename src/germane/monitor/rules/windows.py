"""The means that rules over a window look at: each as of its newest score, so that silence changes none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from germane.settings import Windowed
from germane.storage import RouteMean, Store

LONGEST: Final = 32
"""A window that holds too few scores is made longer, up to so many times."""
CLOSE: Final = 100
"""A window whose newest score is nearer to its end than this part of it need not be read again to end there."""
NEXT: Final = timedelta(microseconds=1)
Stream = tuple[str, str]
"""Service and route."""


@dataclass(slots=True)
class Windows:
    """Reads, for one rule, the mean of every route that has a newer score than at the last look.

    Of each route only the newest fingerprint counts: what another judge said is history.
    """

    store: Store
    rule: Windowed
    scorer: str
    _known: dict[Stream, datetime] = field(default_factory=dict)

    def forget(self) -> None:
        """Take all for news at the next look: of this one nothing came."""
        self._known.clear()

    def news(self, now: datetime) -> Iterator[tuple[RouteMean, timedelta]]:
        """Return the means that have changed, each with the time that it was made over."""
        window = timedelta(seconds=self.rule.window)
        for mean in self._newest(now - window, None):
            stream = (mean.service, mean.route)
            if self._known.get(stream) != mean.latest:
                yield self._as_of_its_newest(mean, now, window)
                self._known[stream] = mean.latest

    def _as_of_its_newest(self, mean: RouteMean, now: datetime, window: timedelta) -> tuple[RouteMean, timedelta]:
        if now - mean.latest > window / CLOSE:
            mean = self._read(mean, window)
        times = 1
        while mean.n < self.rule.min_count and times < LONGEST:
            times *= 2
            mean = self._read(mean, times * window)
        return mean, times * window

    def _read(self, mean: RouteMean, length: timedelta) -> RouteMean:
        found = self._newest(mean.latest - length, mean.latest + NEXT, mean.service, mean.route)
        return next(found, mean)

    def _newest(
        self, since: datetime, until: datetime | None, service: str | None = None, route: str | None = None
    ) -> Iterator[RouteMean]:
        chosen: dict[str, Any] = {
            "scorer": self.scorer,
            "since": since,
            "until": until,
            "service": service,
            "route": route,
        }
        if self.rule.attributes:
            found = self.store.means_with(self.rule.attributes, **chosen)
        else:
            found = self.store.means(**chosen, histograms=False)
        return (mean for mean in found if mean.newest and self.rule.takes(mean.route))
