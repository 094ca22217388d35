"""A simulated service whose scores a test controls."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from tests.conftest import migrated_file

from germane.alert import Alert
from germane.alerting.detector.limiter import StreamLimiter
from germane.alerting.detector.score_batch import ScoreBatch, sampling_draw
from germane.alerting.drop.scope import to_batch
from germane.alerting.drop.watcher import DropEvaluation, DropWatcher
from germane.alerting.state_machine import AlertStateMachine
from germane.baseline import Baseline
from germane.exchange import Exchange
from germane.score import Score
from germane.settings.rules import Drop
from germane.storage import AlertTransaction, DetectorScore, SamplingDecision, TrackingStore

START = datetime(2026, 1, 5, tzinfo=UTC)
HOLDER = ("watcher", "me")
DAY = timedelta(days=1)
SEED = 5
ROUTES = ("docs", "faq", "support")


class Simulation:
    """A database, a clock, and random scores with a fixed seed."""

    def __init__(
        self, url: str, *, seed: int = SEED, holder: tuple[str, str] | None = HOLDER, now: datetime = START
    ) -> None:
        self.now = now
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
        late: timedelta = timedelta(),
        **fields: Any,
    ) -> None:
        """Store scored exchanges, spread evenly over the next hours, and advance the clock. Scores may arrive late."""
        drawn = self._draw(values, hours, self.now, **fields)
        self._store(drawn, fingerprint, why, late)

    def add_routes(
        self, means: Mapping[str, float], *, count: int = 20, hours: float = 24, refused: float = 0.05, **fields: Any
    ) -> None:
        """Store ``count`` scores for each route, with a given mean. The routes follow each other."""
        drawn: list[tuple[Exchange, float]] = []
        for route, mean in means.items():
            start = drawn[-1][0].started_at if drawn else self.now
            drawn += self._draw(self.values(count, mean, refused), hours / len(means), start, route=route, **fields)
        self._store(drawn, "f1", "sampled")

    def _draw(
        self, values: Sequence[float], hours: float, start: datetime, **fields: Any
    ) -> list[tuple[Exchange, float]]:
        """Return exchanges and their scores, spread evenly over the hours after ``start``."""
        step = timedelta(hours=hours) / len(values)
        return [(self._exchange(start + step * (number + 1), **fields), value) for number, value in enumerate(values)]

    def _store(
        self, drawn: Sequence[tuple[Exchange, float]], fingerprint: str, why: str, late: timedelta = timedelta()
    ) -> None:
        """Store and score exchanges, and advance the clock to the last one."""
        self.store.exchanges.add([one for one, _ in drawn])
        self.store.sampling.assign_tasks(
            [SamplingDecision(one.id, 1.0, why) for one, _ in drawn], {"relevancy": fingerprint}
        )
        found = {one.id: (value, one.started_at + late) for one, value in drawn}
        claims = self.store.queue.claim_tasks("me", {"relevancy": fingerprint}, limit=len(drawn), lease=DAY)
        claims.sort(key=lambda claim: claim.exchange.started_at)
        self.store.queue.complete_tasks(
            "me", [self._result(task, *found[task.exchange_id]) for one in claims for task in one.tasks]
        )
        self.now = drawn[-1][0].started_at

    def pass_days(self, count: int, *, per_day: int = 20, routes: Sequence[str] = ("ask",), **given: Any) -> None:
        """Advance the clock by a number of days, with scores for all routes."""
        if len(routes) > 1:
            mean = given.pop("mean", 0.8)
            for _ in range(count):
                self.add_routes(dict.fromkeys(routes, mean), count=per_day, **given)
            return
        names = {name: given.pop(name) for name in ("mean", "refused") if name in given}
        self.add_scores(self.values(count * per_day, **names), hours=24 * count, route=routes[0], **given)

    def evaluate(self, watcher: DropWatcher) -> list[str]:
        """Evaluate once and commit; return the types of the events."""
        step = self.step(watcher)
        assert self.store.alerts.commit(step)
        self.fired += [one.alert for one in step.changes if one.event and one.event.type == "fired"]
        return [one.event.type for one in step.changes if one.event]

    def try_evaluate(self, watcher: DropWatcher) -> bool:
        """Evaluate once without a leader lease, next to other processes; return whether the result was written.

        Alerts are read before the states. If a state changes in between, its alert seems to have been resolved by a
        person. A leader lease prevents this.
        """
        states = self.store.detectors.list_states()
        step = self.step(watcher)
        return self.store.detectors.list_states() == states and self.store.alerts.commit(step)

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
def sqlite_simulation(empty: Template, tmp_path: Path) -> Iterator[Simulation]:
    """A simulation on SQLite alone, for tests that do not depend on the database."""
    with empty.copy(tmp_path) as made:
        yield made


@pytest.fixture
def learned(learned_template: Template, tmp_path: Path) -> Iterator[Simulation]:
    """A simulation on SQLite with the baseline that :meth:`Simulation.learn_baseline` learns."""
    with learned_template.copy(tmp_path) as made:
        yield made


@pytest.fixture
def three_routes(three_routes_template: Template, tmp_path: Path) -> Iterator[Simulation]:
    """A simulation on SQLite with a baseline for three routes, each with 40 scores per day."""
    with three_routes_template.copy(tmp_path) as made:
        yield made


@dataclass(frozen=True)
class Template:
    """A simulation that is run once, to be copied."""

    file: Path
    now: datetime
    random_state: Any

    @contextmanager
    def copy(self, directory: Path) -> Iterator[Simulation]:
        """Yield a simulation with its own database, which continues where this one ended."""
        made = Simulation(f"sqlite:///{shutil.copy(self.file, directory / 'germane.db')}", now=self.now)
        made.random.setstate(self.random_state)
        yield made
        made.store.close()

    def run(self, directory: Path, action: Callable[[Simulation], object]) -> Template:
        """Return the template that an action makes from a copy of this one."""
        with self.copy(directory) as made:
            action(made)
        return Template(directory / "germane.db", made.now, made.random.getstate())


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A simulation without scores."""
    return Template(migrated_file(tmp_path_factory.getbasetemp()), START, random.Random(SEED).getstate())


@pytest.fixture(scope="session")
def learned_template(empty: Template, tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A simulation that has learned a baseline."""
    return empty.run(tmp_path_factory.mktemp("learned"), lambda made: made.learn_baseline(made.new_watcher()))


@pytest.fixture(scope="session")
def three_routes_template(empty: Template, tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A simulation that has learned a baseline for three routes."""

    def learn(made: Simulation) -> None:
        watcher = made.new_watcher()
        made.add_scores(made.values(1), hours=0.01, route=ROUTES[0])
        made.evaluate(watcher)
        made.pass_days(14, per_day=40, routes=ROUTES)
        made.evaluate(watcher)

    return empty.run(tmp_path_factory.mktemp("three-routes"), learn)


def limited_batch(baseline: Baseline, arrivals: Sequence[DetectorScore]) -> ScoreBatch:
    """Return the scores that a detector processes: those that its limiter selects."""
    selected = StreamLimiter(baseline).select(
        [arrival.route for arrival in arrivals],
        [arrival.user for arrival in arrivals],
        np.array([sampling_draw(arrival.exchange_id) / baseline.sampling_rate for arrival in arrivals]),
        np.array([arrival.arrived_at.timestamp() for arrival in arrivals]),
    )
    return to_batch([arrival for arrival, is_selected in zip(arrivals, selected, strict=True) if is_selected])
