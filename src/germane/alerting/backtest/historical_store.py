"""A store as it was at a moment that goes on: what came later is not seen, and what is written stays here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from germane.alert import Alert, Event, Notification, Silence
from germane.alerting.backtest.baseline_history import Shelf
from germane.alerting.detector import kept, thinning
from germane.baseline import Baseline
from germane.score import Reason
from germane.storage import (
    Advance,
    Arrival,
    BaselineVersion,
    Coverage,
    Failing,
    Flow,
    Key,
    Past,
    Progress,
    RouteMean,
    RouteSummary,
    Scored,
    Spent,
    Store,
    Why,
)

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


class Hindsight:
    """Has of :class:`Store` what watches asks of it. The store itself is only read.

    Scores count from the time of their answers on, as if all had been made at once: only :meth:`flows` and the scores
    on their way to the detectors go by when they were made.

    Args:
        store: what there is now.
        clock: tells the moment.
        shelf: baselines.
        queue: scores on their way to the detectors.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime], shelf: Shelf, queue: Queue) -> None:
        self._store = store
        self._clock = clock
        self._shelf = shelf
        self._queue = queue
        self._progress: dict[tuple[str, str, str], Progress] = {}
        self.alerts: dict[str, Alert] = {}
        """By id, in the order in which they began, as they stand."""
        self.fired: dict[str, Alert] = {}
        """As they were when they fired."""
        self.events: list[Event] = []
        self.notifications: list[Notification] = []

    def open_alerts(self) -> list[Alert]:
        """Return those that are not over."""
        return [alert for alert in self.alerts.values() if alert.is_open]

    def silences(self) -> list[Silence]:
        """Return none: what people did then is not done again."""
        return []

    def advance(self, step: Advance) -> bool:
        """Take over what a look has found."""
        for one in step.progress:
            if isinstance(one, Progress):
                names = (one.rule, one.service, one.scorer)
                self._progress[names] = replace(one, row_version=one.row_version + 1)
        self._queue.take(step.consumed)
        self.alerts |= {change.alert.id: change.alert for change in step.changes}
        happened = [(change.event.what, change.alert) for change in step.changes if change.event is not None]
        self.fired |= {alert.id: alert for what, alert in happened if what == "fired"}
        self.events += [change.event for change in step.changes if change.event is not None]
        self.notifications += step.notifications
        return True

    def detectors(self, known: Sequence[Progress] = ()) -> list[Progress]:  # noqa: ARG002 - all of it is at hand
        """Return how far the detectors have come."""
        return list(self._progress.values())

    def arrivals(self, limit: int, *, attributes: bool = False) -> list[Arrival]:  # noqa: ARG002 - the queue knows
        """Return scores that no detector has seen."""
        return self._queue.waiting(self._clock(), limit)

    def past(self, sought: Past, chosen: Any, *, attributes: bool = False) -> list[Arrival]:
        """Return the scores of a time."""
        return self._store.past(sought, chosen, attributes=attributes)

    def count_past(self, sought: Past) -> int:
        """Return how many there are."""
        return self._store.count_past(sought)

    def earliest(self, sought: Past) -> tuple[datetime, datetime] | None:
        """Return when the first of their answers was asked for, and when the first of them arrived."""
        return self._store.earliest(replace(sought, until=self._by_now(sought.until)))

    def release_of(self, sought: Past) -> tuple[str | None, str | None]:
        """Return model and prompt version of most of them."""
        return self._store.release_of(sought)

    def baselines(self, *, known: Sequence[BaselineVersion] = ()) -> list[BaselineVersion]:  # noqa: ARG002
        """Return what is learned or gone by."""
        return self._shelf.current()

    def begin_learning(self, key: Key, reason: Why, *, since: datetime, until: datetime, holder: Any = None) -> Any:  # noqa: ARG002
        """Begin to learn."""
        return self._shelf.begin(key, reason, since, until)

    def extend_learning(self, version_id: int, until: datetime, *, holder: Any = None) -> bool:  # noqa: ARG002
        """Go on learning until then."""
        return self._shelf.extend(version_id, until)

    def give_up_learning(self, version_id: int, *, holder: Any = None) -> bool:  # noqa: ARG002
        """Learn no more."""
        return self._shelf.give_up(version_id)

    def freeze(self, version_id: int, found: Baseline, release: tuple[str | None, str | None]) -> bool:
        """Go by what was learned."""
        return self._shelf.freeze(version_id, found, release)

    def means(self, *, until: datetime | None = None, **asked: Any) -> list[RouteMean]:
        """Return means of answers that were given by now."""
        return self._store.means(until=self._by_now(until), **asked)

    def means_with(
        self, attributes: Mapping[str, str], *, until: datetime | None = None, **asked: Any
    ) -> list[RouteMean]:
        """Return the same of some of them."""
        return self._store.means_with(attributes, until=self._by_now(until), **asked)

    def summary(self, *, until: datetime | None = None, **asked: Any) -> list[RouteSummary]:
        """Return means and coverage of answers that were given by now."""
        return self._store.summary(until=self._by_now(until), **asked)

    def worst(self, **asked: Any) -> list[Scored]:
        """Return the lowest scores of answers that were given by now."""
        return self._store.worst(until=self._clock(), **asked)

    def coverage(self, *, since: datetime) -> list[Coverage]:
        """Return what became in the end of answers that were given by now."""
        return self._store.coverage(since=since, until=self._clock())

    def failing(self) -> list[Failing]:
        """Return none: what was tried in vain and went well later is not kept."""
        return []

    def flows(self, *, since: datetime, takes: Callable[[str], bool]) -> list[Flow]:
        """Return whether scores kept coming."""
        return self._store.flows(since=since, until=self._clock(), takes=takes)

    def usual_wait(self, service: str, scorer: str, *, since: datetime) -> timedelta | None:
        """Return how long it usually took."""
        return self._store.usual_wait(service, scorer, since=since, until=self._clock())

    def spent(self) -> Spent:
        """Return what was spent on the day in the end, once an answer of it was not paid for, and nothing before."""
        today = self._clock().astimezone(UTC).date()
        counts = self.coverage(since=datetime.combine(today, time(), UTC))
        is_spent = any(Reason.BUDGET.value in one.skipped for one in counts)
        return self._store.spent(today) if is_spent else Spent(day=today)

    def _by_now(self, until: datetime | None) -> datetime:
        return self._clock() if until is None else min(until, self._clock())
