"""A simulated service whose scores a test controls."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from tests.conftest import migrated_file

from germane.alert import Alert
from germane.alerting.detector import ScoreBatch, StreamLimiter, sampling_draw
from germane.alerting.drop import DropEvaluation, DropWatcher
from germane.alerting.drop.scope import to_batch
from germane.alerting.state_machine import AlertStateMachine
from germane.baseline import Baseline
from germane.exchange import Exchange
from germane.score import Score
from germane.settings.rules import Drop
from germane.storage import AlertTransaction, DetectorScore, SamplingDecision, TrackingStore

START = datetime(2026, 1, 5, tzinfo=UTC)
HOLDER = ("watcher", "me")
DAY = timedelta(days=1)


class Simulation:
    """A database, a clock, and random scores with a fixed seed."""

    def __init__(self, url: str, *, seed: int = 5, holder: tuple[str, str] | None = HOLDER) -> None:
        self.now = START
        self.holder = holder
        self.random = random.Random(seed)
        self.store = TrackingStore(url, clock=lambda: self.now)
        self.url = url
        self.fired: list[Alert] = []
        assert holder is None or self.store.workers.acquire_lease(*holder, ttl=1000 * DAY)

    def new_watcher(self, *rules: Drop, **given: Any) -> DropWatcher:
        """Return a watcher, as another process would create it."""
        return DropWatcher(self.store, rules or (Drop(),), holder=self.holder, clock=lambda: self.now, **given)

    def values(self, count: int, mean: float = 0.8, refused: float = 0.05) -> list[float]:
        """Return random scores, some of them refusals."""
        spread = 20
        return [
            0.0 if self.random.random() < refused else self.random.betavariate(mean * spread, (1 - mean) * spread)
            for _ in range(count)
        ]

    def add_scores(
        self,
        values: Sequence[float],
        *,
        hours: float = 24,
        fingerprint: str = "f1",
        why: str = "sampled",
        **fields: Any,
    ) -> None:
        """Store scored exchanges, spread evenly over the next hours, and advance the clock."""
        step = timedelta(hours=hours) / len(values)
        moments = [self.now + step * (number + 1) for number in range(len(values))]
        exchanges = [self._exchange(moment, **fields) for moment in moments]
        self.store.exchanges.add(exchanges)
        self.store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, why) for one in exchanges], {"relevancy": fingerprint}
        )
        found = {one.id: (value, one.started_at) for one, value in zip(exchanges, values, strict=True)}
        claims = self.store.queue.claim_tasks("me", {"relevancy": fingerprint}, limit=len(values), lease=DAY)
        claims.sort(key=lambda claim: claim.exchange.started_at)
        self.store.queue.complete_tasks(
            "me", [self._result(task, *found[task.exchange_id]) for one in claims for task in one.tasks]
        )
        self.now = moments[-1]

    def pass_days(self, count: int, *, per_day: int = 20, routes: Sequence[str] = ("ask",), **given: Any) -> None:
        """Advance the clock by a number of days, with scores for all routes."""
        names = {name: given.pop(name) for name in ("mean", "refused") if name in given}
        if len(routes) == 1:
            self.add_scores(self.values(count * per_day, **names), hours=24 * count, route=routes[0], **given)
            return
        for _ in range(count):
            for route in routes:
                self.add_scores(self.values(per_day, **names), hours=24 / len(routes), route=route, **given)

    def evaluate(self, watcher: DropWatcher) -> list[str]:
        """Evaluate once and commit; return the types of the events."""
        step = self.step(watcher)
        assert self.store.alerts.commit(step)
        self.fired += [one.alert for one in step.changes if one.event and one.event.type == "fired"]
        return [one.event.type for one in step.changes if one.event]

    def try_evaluate(self, watcher: DropWatcher) -> bool:
        """Evaluate once; return whether the result was written."""
        return self.store.alerts.commit(self.step(watcher))

    def step(self, watcher: DropWatcher) -> AlertTransaction:
        """Evaluate once; return the transaction to commit."""
        alerts = self.store.alerts.list_open()
        evaluation = watcher.evaluate({alert.key: alert for alert in alerts})
        ids = (str(UUID(int=self.random.getrandbits(128))) for _ in range(100))
        changes = AlertStateMachine(self.now, lambda: next(ids)).apply(
            alerts, evaluation.results, has_rule=lambda _: True
        )
        return step_of(evaluation, changes, holder=self.holder)

    def latest(self) -> datetime:
        """Return the arrival of the last unprocessed score."""
        return max((one.arrived_at for one in self.store.detectors.list_new_scores(10_000)), default=self.now)

    def learn_baseline(self, watcher: DropWatcher, **given: Any) -> None:
        """Learn a baseline: let a learning period and a day pass."""
        self.pass_days(1, **{**given, "per_day": 1})
        self.evaluate(watcher)
        self.pass_days(14, **given)
        self.evaluate(watcher)

    def _exchange(self, moment: datetime, **fields: Any) -> Exchange:
        names: Mapping[str, Any] = {"service": "shop", "route": "ask", "question": "q", "answer": "a"} | fields
        given = UUID(int=self.random.getrandbits(128)).hex
        return Exchange(id=given, trace_id=given, span_id=given[:16], started_at=moment, **names)

    @staticmethod
    def _result(task: Any, value: float, moment: datetime) -> tuple[Any, Score]:
        return task, Score(scorer="relevancy", fingerprint=task.fingerprint, value=value, scored_at=moment)


def step_of(
    evaluation: DropEvaluation, changes: Sequence[Any] = (), *, holder: tuple[str, str] | None = HOLDER
) -> AlertTransaction:
    """Return the transaction of an evaluation."""
    return AlertTransaction(
        holder=holder,
        detector_states=evaluation.detector_states,
        processed_score_ids=evaluation.processed_score_ids,
        changes=changes,
    )


@pytest.fixture
def simulation(migrated_url: str) -> Iterator[Simulation]:
    """A simulation on either database."""
    made = Simulation(migrated_url)
    yield made
    made.store.close()


@pytest.fixture
def sqlite_simulation(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    """A simulation on SQLite alone, for tests that do not depend on the database."""
    file = shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / "germane.db")
    made = Simulation(f"sqlite:///{file}")
    yield made
    made.store.close()


def limited_batch(baseline: Baseline, arrivals: Sequence[DetectorScore]) -> ScoreBatch:
    """Return the scores that a detector processes: those that its limiter selects."""
    selected = StreamLimiter(baseline).select(
        [arrival.route for arrival in arrivals],
        [arrival.user for arrival in arrivals],
        np.array([sampling_draw(arrival.exchange_id) / baseline.sampling_rate for arrival in arrivals]),
        np.array([arrival.arrived_at.timestamp() for arrival in arrivals]),
    )
    return to_batch([arrival for arrival, is_selected in zip(arrivals, selected, strict=True) if is_selected])
