"""Stored scores as they once arrived."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from germane.storage import Arrival, Past, Store

DAY = timedelta(days=1)
Stream = tuple[str, str, str]
"""Service, scorer and fingerprint."""


class Queue:
    """Gives scores in the order of their arrival, and reads them a day at a time.

    Args:
        since: earlier ones have been seen.
        until: later ones are not looked for.
        attributes: whether those of the exchanges are wanted.
    """

    def __init__(
        self, store: Store, streams: Collection[Stream], *, since: datetime, until: datetime, attributes: bool
    ) -> None:
        self._store = store
        self._streams = sorted(streams)
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
        found = [one for stream in self._streams for one in self._past(stream, since, until)]
        self._waiting += sorted(found, key=lambda one: (one.arrived_at, one.id))
        self._read_until = until

    def _past(self, stream: Stream, since: datetime, until: datetime) -> list[Arrival]:
        service, scorer, fingerprint = stream
        sought = Past(service=service, scorer=scorer, fingerprint=fingerprint, since=since, until=until)
        return self._store.past(sought, attributes=self._attributes)
