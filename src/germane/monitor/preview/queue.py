"""Stored scores as they once arrived."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from germane.monitor.detector import kept, thinning
from germane.storage import Arrival, Past, Store

DAY: Final = timedelta(days=1)
LEAST_DAYS: Final = 1 / 24
"""A shorter time says nothing of a day."""
SPARE: Final = 2.0
"""So many times what reaches a detector is read: traffic is not the same every day."""
Stream = tuple[str, str, str]
"""Service, scorer and fingerprint."""


class Queue:
    """Gives scores in the order of their arrival, and reads them a day at a time.

    Of a busy service twice as many as reach its detector: it is not all of them that it chooses from.

    Args:
        since: earlier ones have been seen.
        until: later ones are not looked for.
        keep: with which probability scores reach a detector whose baseline is there already, by stream.
        attributes: whether those of the exchanges are wanted.
    """

    def __init__(
        self,
        store: Store,
        streams: Collection[Stream],
        *,
        since: datetime,
        until: datetime,
        attributes: bool,
        keep: Callable[[Stream], float] = lambda _: 0.0,
    ) -> None:
        self._store = store
        self._keep = {stream: max(keep(stream), self._enough(stream, since, until)) for stream in sorted(streams)}
        self._read_until = since
        self._until = until
        self._attributes = attributes
        self._waiting: list[Arrival] = []

    def waiting(self, now: datetime, limit: int) -> list[Arrival]:
        """Return up to ``limit`` of those that have arrived by now and that nobody has taken."""
        while self._read_until <= now and self._read_until < self._until:
            self._read_a_day()
        arrived = bisect_right(self._waiting, now, key=lambda one: one.arrived_at)
        return self._waiting[: min(arrived, limit)]

    def take(self, ids: Sequence[int]) -> None:
        """Take scores away."""
        taken = set(ids)
        self._waiting = [one for one in self._waiting if one.id not in taken] if taken else self._waiting

    def _read_a_day(self) -> None:
        since, until = self._read_until, min(self._read_until + DAY, self._until)
        found = [one for stream, keep in self._keep.items() for one in self._past(stream, keep, since, until)]
        self._waiting += sorted(found, key=lambda one: (one.arrived_at, one.id))
        self._read_until = until

    def _past(self, stream: Stream, keep: float, since: datetime, until: datetime) -> list[Arrival]:
        return self._store.past(
            _sought(stream, since, until), lambda exchange_id: kept(exchange_id, keep), attributes=self._attributes
        )

    def _enough(self, stream: Stream, since: datetime, until: datetime) -> float:
        count = self._store.count_past(_sought(stream, since, until))
        return min(1.0, SPARE * thinning(count / max((until - since) / DAY, LEAST_DAYS)))


def _sought(stream: Stream, since: datetime, until: datetime) -> Past:
    service, scorer, fingerprint = stream
    return Past(service=service, scorer=scorer, fingerprint=fingerprint, since=since, until=until)
