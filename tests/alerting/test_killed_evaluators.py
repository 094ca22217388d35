"""Evaluators that are killed while two of them evaluate the same database concurrently."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.alerting.channels.conftest import Receiver, receiver  # noqa: F401 - a fixture
from tests.alerting.drop.conftest import HOLDER, ROUTES, Simulation
from tests.alerting.drop.killed_processes import Fuse
from tests.conftest import migrated_file
from tests.deliveries import Courier

from germane.alerting import AlertEvaluator, ChannelMessage, build_channels
from germane.settings import Settings
from germane.storage import DeliveryOutcome, TrackingStore
from germane.testing import engine_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CALLS = 30
"""A process is killed at one of its first 30 statements, commits and requests. Each failed attempt adds another 30."""
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.alerting.test_killed_evaluators"])


@dataclass(frozen=True, slots=True)
class Phase:
    """Some days with the same traffic and levels."""

    days: int
    steps: int
    """Evaluations per day."""
    per_day: int = 20
    """Scores per day and route."""
    means: Mapping[str, float] | float = 0.8


@dataclass(frozen=True, slots=True)
class Scenario:
    """The events after a baseline has been learned, and the expected results."""

    phases: Sequence[Phase]
    events: Sequence[str]
    reasons: Sequence[str] = ()
    """Reasons of the new baseline versions."""
    routes: Sequence[str | None] = ()
    """Routes of the alerts."""


SCENARIOS = {
    "a drop on a route": Scenario(
        [Phase(3, 2, means={"support": 0.3}), Phase(8, 1)],
        ["fired", "recovering", "relapsed", "recovering", "resolved"],
        routes=["support"],
    ),
    "an improvement": Scenario([Phase(7, 1, means=0.93)], ["fired", "resolved"], ["accepted"], [None]),
    "lasting growth": Scenario([Phase(17, 1, per_day=80)], [], ["traffic_changed"]),
}


CASES = [
    ("postgresql", "a drop on a route"),
    ("sqlite", "an improvement"),
    ("postgresql", "lasting growth"),
    pytest.param("sqlite", "a drop on a route", marks=pytest.mark.thorough),
    pytest.param("postgresql", "an improvement", marks=pytest.mark.thorough),
    pytest.param("sqlite", "lasting growth", marks=pytest.mark.thorough),
]


def configured() -> Settings:
    """Return the settings of all processes."""
    return Settings.model_validate(
        {
            "service": "shop",
            "rules": [{"type": "drop", "accept_improvements": True}],
            "channels": {"hook": {"type": "webhook", "url": "env:HOOK_URL", "severity": "info"}},
        }
    )


def new_evaluator(store: TrackingStore, now: Any) -> AlertEvaluator:
    """Return an evaluator. All evaluators hold the same lease, so it does not prevent concurrency."""
    settings = configured()
    filters = {name: channel.matches for name, channel in settings.channels.items()}
    return AlertEvaluator(store, settings, holder=HOLDER, scorers=["relevancy"], channels=filters, clock=now)


def evaluate_and_deliver(url: str, hook: str, now: datetime, die_at: int) -> None:
    """Evaluate at a given time and deliver due notifications. Exit before the given statement or request."""
    os.environ["HOOK_URL"] = hook
    fuse, store = Fuse(die_at), TrackingStore(url, clock=lambda: now)
    event.listen(engine_of(store), "before_cursor_execute", fuse.burn)
    event.listen(engine_of(store), "commit", fuse.burn)
    new_evaluator(store, lambda: now).evaluate()
    channel, courier = build_channels(configured())["hook"], Courier(store, "hook", f"process {os.getpid()}")
    while (due := courier.claim()) is not None:
        fuse.burn()
        status = asyncio.run(channel.send(ChannelMessage(notification=due)))
        fuse.burn()
        courier.record(DeliveryOutcome(http_status=status))
    store.close()


class KilledPairs:
    """Evaluates in pairs of processes until one process completes. The others are killed at random calls."""

    def __init__(self, url: str, hook: str) -> None:
        self.url, self.hook = url, hook
        self.died = 0
        self._random = random.Random(11)

    def __call__(self, now: datetime) -> None:
        """Evaluate and deliver at a given time."""
        completed, calls = False, 0
        while not completed:
            calls += CALLS
            die_at = [self._random.randint(1, calls) for _ in range(2)]
            pair = [
                FORKED.Process(target=evaluate_and_deliver, args=(self.url, self.hook, now, number))
                for number in die_at
            ]
            for process in pair:
                process.start()
            for process in pair:
                process.join(60)
            statuses = [process.exitcode for process in pair]
            assert set(statuses) <= {0, -signal.SIGKILL}
            self.died += statuses.count(-signal.SIGKILL)
            completed = 0 in statuses


def learn(simulation: Simulation) -> None:
    """Learn a baseline."""
    evaluator = new_evaluator(simulation.store, lambda: simulation.now)
    for _ in range(15):
        pass_step(simulation, 24, Phase(1, 1))
        evaluator.evaluate()


def pass_step(simulation: Simulation, hours: int, phase: Phase) -> None:
    """Add the scores of some hours."""
    levels = dict.fromkeys(ROUTES, phase.means) if isinstance(phase.means, float) else phase.means
    simulation.add_routes(dict.fromkeys(ROUTES, 0.8) | levels, count=phase.per_day * hours // 24, hours=hours)


def play(simulation: Simulation, scenario: Scenario, evaluate: Any) -> None:
    """Add the scores of a scenario and evaluate after each step. After the last one, only deliveries are due."""
    for phase in scenario.phases:
        for _ in range(phase.days * phase.steps):
            pass_step(simulation, 24 // phase.steps, phase)
            evaluate(simulation.now)
    for _ in range(2):
        simulation.now += HOUR
        evaluate(simulation.now)


def rows(store: TrackingStore) -> dict[str, Any]:
    """Return everything that evaluations write, apart from ids. Sums may differ between databases in the last digit."""
    versions = store.baselines.list_versions(superseded=True)
    numbers = {version.id: version.number for version in versions}
    alerts = sorted(store.alerts.search(), key=lambda alert: (alert.starts_at, alert.key))
    sent = sorted(
        (record.notification for record in store.notifications.search(limit=1000)),
        key=lambda notification: (notification.created_at, notification.type),
    )
    return {
        "states": [plain(state, baseline_id=numbers[state.baseline_id]) for state in store.detectors.list_states()],
        "waiting": store.detectors.list_new_scores(1),
        "baselines": [plain(version, id=0) for version in versions],
        "alerts": [plain(alert, id="") for alert in alerts],
        "events": [
            [plain(one, id="", alert_id="") for one in sorted(store.alerts.list_events(alert.id), key=lambda e: e.at)]
            for alert in alerts
        ],
        "notifications": [
            (each.channel, each.type, each.created_at, [plain(alert, id="") for alert in each.alerts]) for each in sent
        ],
    }


def plain(row: Any, **ids: Any) -> Any:
    """Return the fields of a row with other ids and rounded numbers."""
    return rounded(asdict(replace(row, **ids)))


def rounded(value: Any) -> Any:
    """Return a value whose numbers are rounded to nine digits."""
    if isinstance(value, Mapping):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield the differences between two results."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping) and expected.keys() == found.keys():
        for name, value in expected.items():
            yield from differences(value, found[name], f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif expected != found:
        yield f"{path}: {expected} expected, found {found}"


@pytest.fixture
def killed(request: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    """A simulation on either database whose evaluators are killed."""
    if request.param == "sqlite":
        url = f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'killed.db')}"
    else:
        url = request.getfixturevalue("postgresql").emptied()
    made = Simulation(url)
    yield made
    made.store.close()


@pytest.mark.slow
@pytest.mark.parametrize(("killed", "name"), CASES, indirect=["killed"])
def test_killed_evaluators_write_the_same_rows_as_an_uninterrupted_one(
    killed: Simulation,
    sqlite_file: Path,
    receiver: Receiver,  # noqa: F811 - a fixture
    name: str,
) -> None:
    """States, baselines, alerts, events and notifications are the same. Each notification has one idempotency key."""
    scenario = SCENARIOS[name]
    undisturbed = Simulation(f"sqlite:///{sqlite_file}")
    evaluator = new_evaluator(undisturbed.store, lambda: undisturbed.now)
    for simulation in (undisturbed, killed):
        learn(simulation)
    before = len(undisturbed.store.baselines.list_versions(superseded=True))

    play(undisturbed, scenario, lambda _now: evaluator.evaluate())
    pairs = KilledPairs(killed.url, receiver.url)
    play(killed, scenario, pairs)

    expected, found = rows(undisturbed.store), rows(killed.store)
    undisturbed.store.close()
    assert list(differences(expected, found)) == []
    assert pairs.died > 10
    events = [one["type"] for events in found["events"] for one in events if one["type"] != "repeated"]
    assert events == list(scenario.events)
    assert [alert["labels"].get("route") for alert in found["alerts"]] == list(scenario.routes)
    assert [version["reason"] for version in found["baselines"]][before:] == list(scenario.reasons)
    records = killed.store.notifications.search(limit=1000)
    assert {record.status for record in records} <= {"sent"}
    assert set(receiver.keys) == {record.notification.idempotency_key for record in records}
    assert len({(key, post.body) for key, post in zip(receiver.keys, receiver.posts, strict=True)}) == len(records)


@pytest.fixture
def sqlite_file(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file without rows."""
    return Path(shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / "undisturbed.db"))
