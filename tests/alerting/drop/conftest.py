"""A service whose scores come when a test says so, and what watches it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.conftest import migrated_file

from germane.alert import Alert
from germane.alerting.drop import Look, Watch
from germane.alerting.state_machine import Lifecycle
from germane.exchange import Exchange
from germane.score import Score
from germane.settings.rules import Drop
from germane.storage import Advance, Decision, Store

START = datetime(2026, 1, 5, tzinfo=UTC)
HOLDER = ("watcher", "me")
DAY = timedelta(days=1)


class World:
    """One database, a clock, and random scores with a seed."""

    def __init__(self, url: str, *, seed: int = 5, holder: tuple[str, str] | None = HOLDER) -> None:
        self.now = START
        self.holder = holder
        self.random = random.Random(seed)
        self.store = Store(url, clock=lambda: self.now)
        self.url = url
        self.fired: list[Alert] = []
        assert holder is None or self.store.elect(*holder, ttl=1000 * DAY)

    def watch(self, *rules: Drop, **given: Any) -> Watch:
        """Return what watches, as a process of its own."""
        return Watch(self.store, rules or (Drop(),), holder=self.holder, clock=lambda: self.now, **given)

    def values(self, count: int, mean: float = 0.8, refused: float = 0.05) -> list[float]:
        """Return scores of which some are refusals."""
        spread = 20
        return [
            0.0 if self.random.random() < refused else self.random.betavariate(mean * spread, (1 - mean) * spread)
            for _ in range(count)
        ]

    def score(
        self, values: Sequence[float], *, hours: float = 24, fingerprint: str = "f1", why: str = "drawn", **fields: Any
    ) -> None:
        """Have exchanges scored, evenly over the next hours; each score comes with its answer."""
        step = timedelta(hours=hours) / len(values)
        moments = [self.now + step * (number + 1) for number in range(len(values))]
        exchanges = [self._exchange(moment, **fields) for moment in moments]
        self.store.add(exchanges)
        self.store.assign([Decision(one.id, 1.0, why) for one in exchanges], {"relevancy": fingerprint})
        found = {one.id: (value, one.started_at) for one, value in zip(exchanges, values, strict=True)}
        claims = self.store.claim("me", {"relevancy": fingerprint}, limit=len(values), lease=DAY)
        claims.sort(key=lambda claim: claim.exchange.started_at)
        self.store.complete(
            "me", [self._result(task, *found[task.exchange_id]) for one in claims for task in one.tasks]
        )
        self.now = moments[-1]

    def days(self, count: int, *, per_day: int = 20, routes: Sequence[str] = ("ask",), **given: Any) -> None:
        """Let days go by, on each of which all routes are scored."""
        names = {name: given.pop(name) for name in ("mean", "refused") if name in given}
        if len(routes) == 1:
            self.score(self.values(count * per_day, **names), hours=24 * count, route=routes[0], **given)
            return
        for _ in range(count):
            for route in routes:
                self.score(self.values(per_day, **names), hours=24 / len(routes), route=route, **given)

    def look(self, watch: Watch) -> list[str]:
        """Look once, and have all of it written with the alerts that follow; return what happened to these."""
        step = self.step(watch)
        assert self.store.advance(step)
        self.fired += [one.alert for one in step.changes if one.event and one.event.what == "fired"]
        return [one.event.what for one in step.changes if one.event]

    def tries_to_look(self, watch: Watch) -> bool:
        """Look once; return whether it was written."""
        return self.store.advance(self.step(watch))

    def step(self, watch: Watch) -> Advance:
        """Look once; return what is to be written."""
        alerts = self.store.open_alerts()
        look = watch.look({alert.key: alert for alert in alerts})
        ids = (str(UUID(int=self.random.getrandbits(128))) for _ in range(100))
        changes = Lifecycle(self.now, lambda: next(ids)).step(alerts, look.verdicts, watched=lambda _: True)
        return step_of(look, changes, holder=self.holder)

    def latest(self) -> datetime:
        """Return when the last of the scores that nobody has seen came."""
        return max((one.arrived_at for one in self.store.arrivals(10_000)), default=self.now)

    def learned(self, watch: Watch, **given: Any) -> None:
        """Let a fortnight go by, and a little more."""
        self.days(1, **{**given, "per_day": 1})
        self.look(watch)
        self.days(14, **given)
        self.look(watch)

    def _exchange(self, moment: datetime, **fields: Any) -> Exchange:
        names: Mapping[str, Any] = {"service": "shop", "route": "ask", "question": "q", "answer": "a"} | fields
        given = UUID(int=self.random.getrandbits(128)).hex
        return Exchange(id=given, trace_id=given, span_id=given[:16], started_at=moment, **names)

    @staticmethod
    def _result(task: Any, value: float, moment: datetime) -> tuple[Any, Score]:
        return task, Score(scorer="relevancy", fingerprint=task.fingerprint, value=value, scored_at=moment)


def step_of(look: Look, changes: Sequence[Any] = (), *, holder: tuple[str, str] | None = HOLDER) -> Advance:
    """Return what is to be written of a look."""
    return Advance(holder=holder, progress=look.progress, consumed=look.consumed, changes=changes)


@pytest.fixture
def world(migrated_url: str) -> Iterator[World]:
    """A world on either database."""
    made = World(migrated_url)
    yield made
    made.store.close()


@pytest.fixture
def small(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world on SQLite alone, for what does not depend on the database."""
    file = shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / "germane.db")
    made = World(f"sqlite:///{file}")
    yield made
    made.store.close()
