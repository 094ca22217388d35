"""When a route's scores are reason to tell somebody."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from germane.monitor.alerts import Alert, key_of
from germane.settings import AnyRule, Floor
from germane.storage import RouteMean, Store

logger = logging.getLogger("germane.monitor")

WORST: Final = 5
"""Exchanges that an alert names."""
FOREVER: Final = timedelta(days=36_500)
FIRING: Final = "firing"


def tell_unfed(rules: Sequence[AnyRule], scorers: Collection[str]) -> None:
    """Say in the log which rules watch a scorer that is not among those of this process."""
    for rule in rules:
        if scorers and rule.scorer is not None and rule.scorer not in scorers:
            logger.warning(
                "rule %r watches %s, which does not score here (%s does): it sees only what other processes score",
                rule.name, rule.scorer, ", ".join(sorted(scorers)),
            )  # fmt: skip


class Rules:
    """Finds the transitions of all rules: each once, however many processes look and however often they restart.

    Which alerts are open stands in the database, as leases that their rule holds while it fires.
    """

    def __init__(self, store: Store, rules: Sequence[AnyRule], *, owner: str, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._floors = [rule for rule in rules if isinstance(rule, Floor)]
        self._owner = owner
        self._clock = clock
        self._found: list[Alert] = []
        self._known: dict[str, Alert | bool] = {}
        """Per key the alert that fires, or whether one does."""

    @property
    def open(self) -> tuple[Alert, ...]:
        """What fires, as far as this process has seen it begin."""
        return tuple(alert for alert in list(self._known.values()) if isinstance(alert, Alert))

    def forget(self) -> None:
        """Drop what is known: another process watches, and things may change behind our back."""
        self._known.clear()

    def look(self) -> None:
        """Find what began to fire and what is over since the last look. Calls the database."""
        for floor in self._floors:
            self._look(floor)

    def take(self) -> list[Alert]:
        """Return the transitions found and not taken yet: also those of a look that ended in an error."""
        found, self._found = self._found, []
        return found

    def _look(self, floor: Floor) -> None:
        now = self._clock()
        since = now - timedelta(seconds=floor.window)
        for mean in self._store.means(scorer=floor.scorer or "", since=since):
            # A new fingerprint measures otherwise: until it has scores enough of its own, nothing is decided.
            if floor.takes(mean.route) and mean.newest and mean.n >= floor.min_count:
                self._judge(floor, mean, now, since)

    def _judge(self, floor: Floor, mean: RouteMean, now: datetime, since: datetime) -> None:
        key = key_of(floor.name, {"service": mean.service, "route": mean.route, "scorer": mean.scorer})
        if mean.mean < floor.threshold and not self._is_open(key):
            alert = self._alert(key, floor, mean, now, since)
            self._store.elect(_lease(key), FIRING, ttl=FOREVER)
            self._known[key] = alert
            self._found.append(alert)
        elif mean.mean >= floor.threshold + floor.recovery and self._is_open(key):
            fired = self._known[key]
            fired_at = fired.fired_at if isinstance(fired, Alert) else None
            alert = self._alert(key, floor, mean, now, since).resolved(fired_at=fired_at)
            self._store.elect(_lease(key), FIRING, ttl=timedelta())
            self._known[key] = False
            self._found.append(alert)

    def _is_open(self, key: str) -> bool:
        if key not in self._known:
            # Nobody gets the lease of an open alert; of any other we do, and give it back in the same breath.
            self._known[key] = not self._store.elect(_lease(key), self._owner, ttl=timedelta())
        return bool(self._known[key])

    def _alert(self, key: str, floor: Floor, mean: RouteMean, now: datetime, since: datetime) -> Alert:
        return Alert(
            key=key,
            rule=floor.name,
            state="firing",
            service=mean.service,
            route=mean.route,
            scorer=mean.scorer,
            fingerprint=mean.fingerprint,
            value=mean.mean,
            n=mean.n,
            interval=mean.interval,
            threshold=floor.threshold,
            window=floor.window,
            fired_at=now,
            at=now,
            exchange_ids=self._worst(floor, mean, since),
        )

    def _worst(self, floor: Floor, mean: RouteMean, since: datetime) -> tuple[str, ...]:
        # Another service may have a route of the same name: some more are read than are named.
        worst = self._store.worst(
            scorer=floor.scorer, since=since, route=mean.route, fingerprint=mean.fingerprint, limit=10 * WORST
        )
        return tuple(scored.exchange.id for scored in worst if scored.exchange.service == mean.service)[:WORST]


def _lease(key: str) -> str:
    return f"alert {key}"
