"""Baselines are learned: from the first score of a judge on, and again when a route has joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from germane.alerting.drop.history import DAY, heard, learned, learned_from, past_of, seen
from germane.alerting.drop.scope import joined
from germane.baseline import OTHER, Baseline
from germane.storage import Arrival, BaselineVersion, Key, Store, Why

LEARN_FOR: Final = timedelta(days=14)
"""Two of each day of the week, so that a week's rhythm is not taken for a drop; and a route that is asked twice a day
has 28 scores by then. Longer would leave a new service unwatched for longer than its first troubles take."""
LEAST: Final = 30
"""Scores that a route joins with."""


class Learner:
    """Keeps baselines up to date. What it begins and puts off it writes as the holder of an office."""

    def __init__(self, store: Store, *, holder: tuple[str, str] | None, learn_for: timedelta = LEARN_FOR) -> None:
        self._store = store
        self._holder = holder
        self._learn_for = learn_for
        self._known: list[BaselineVersion] = []

    def read(self) -> list[BaselineVersion]:
        """Return what is learned and gone by."""
        self._known = self._store.baselines(known=self._known)
        return self._known

    def current(self, now: datetime) -> list[BaselineVersion]:
        """Return what is learned and gone by, once all is learned that is due."""
        found = self.read()
        due = [one for one in found if one.status == "learning" and one.until <= now]
        for version in due:
            active = next((one for one in found if one.key == version.key and one.status == "active"), None)
            if active is None or active.baseline is None:
                self._finish(version, now)
            else:
                self._join(version, active.baseline, now)
        return self.read() if due else found

    def begin(self, key: Key, reason: Why, since: datetime) -> None:
        """Begin to learn."""
        until = since + self._learn_for
        self._store.begin_learning(key, reason, since=since, until=until, holder=self._holder)

    def _finish(self, version: BaselineVersion, now: datetime) -> None:
        found = learned(self._store, version.key, version.since, version.until)
        if found.routes:
            self._freeze(version, found)
        else:
            self._go_on(version, now)

    def _go_on(self, version: BaselineVersion, now: datetime) -> None:
        """Learn for another day, unless nothing has come for as long as learning takes: then with the next score."""
        lately = past_of(version.key, version.until - self._learn_for, version.until)
        if self._store.count_past(lately):
            # A day at least, and not one after another of those in which nobody looked.
            until = version.until + max(1, (now - version.until) // DAY) * DAY
            self._store.extend_learning(version.id, until, holder=self._holder)
        else:
            self._store.give_up_learning(version.id, holder=self._holder)

    def _join(self, version: BaselineVersion, active: Baseline, now: datetime) -> None:
        """Have routes join that are there for long enough; their neighbours' numbers stay as they are."""
        arrivals = heard(self._store, version.key, version.since, version.until, active.keep)
        strange = [one for one in arrivals if is_strange(active, one.route)]
        ready = self._ready(strange, version.until)
        if not ready:
            self._go_on(version, now)
            return
        theirs = [one for one in strange if one.route in ready]
        newcomer = learned_from(version.key, seen(theirs), version.since, version.until, active.keep)
        self._freeze(version, joined(active, newcomer))
        rest = [one for one in strange if one.route not in ready]
        if rest:
            self.begin(version.key, "route_joined", rest[0].arrived_at)

    def _ready(self, arrivals: Sequence[Arrival], until: datetime) -> set[str]:
        firsts: dict[str, datetime] = {}
        for one in arrivals:
            firsts.setdefault(one.route, one.arrived_at)
        counts = Counter(one.route for one in arrivals)
        # Routes of one launch join together, though each had its first score at a time of its own.
        early = until - self._learn_for + DAY
        return {route for route, first in firsts.items() if first <= early and counts[route] >= LEAST}

    def _freeze(self, version: BaselineVersion, found: Baseline) -> None:
        release = self._store.release_of(past_of(version.key, version.since, version.until))
        # Reading a busy fortnight may take longer than a term in office: of two that learn the same the first one's
        # counts, and a third need not begin again.
        self._store.freeze(version.id, found, release)


def is_strange(baseline: Baseline, route: str) -> bool:
    """Whether a route is not watched, and may join."""
    watched = route in baseline.routes or (OTHER in baseline.routes and route in baseline.pooled)
    return not watched and route != OTHER
