"""Provisional baselines, which detect drops during the first two weeks, until learning is complete."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.alerting.drop.test_watcher import statuses

from germane.alerting.drop.baselines import PROVISIONAL_WANDER
from germane.settings.rules import Drop

DAY = timedelta(days=1)


def start(simulation: Any, watcher: Any, *, per_day: int = 250, **given: Any) -> None:
    """Let the first day pass, with 250 good scores by default."""
    simulation.pass_days(1, per_day=per_day, **given)
    simulation.evaluate(watcher)  # starts learning with the first score
    simulation.pass_days(1, per_day=per_day, **given)
    simulation.evaluate(watcher)


def test_a_drop_on_the_second_day_fires_an_alert(simulation: Any) -> None:
    """After 250 good answers, 150 bad ones fire an alert against the provisional baseline."""
    watcher = simulation.new_watcher()
    simulation.add_scores(simulation.values(250), hours=24)
    simulation.evaluate(watcher)
    simulation.add_scores(simulation.values(10), hours=1)
    assert simulation.evaluate(watcher) == []

    simulation.add_scores(simulation.values(150, mean=0.4), hours=12)

    assert simulation.evaluate(watcher) == ["fired"]
    (alert,) = simulation.fired
    assert alert.details["baseline"]["reason"] == "provisional"
    assert statuses(simulation.store) == [("f1", 1, "active", "provisional"), ("f1", 2, "learning", "first")]


def test_the_baseline_learned_in_14_days_replaces_the_provisional_baseline(simulation: Any) -> None:
    """Learning continues for the whole learning period, which starts with the first score."""
    watcher = simulation.new_watcher()
    start(simulation, watcher)
    (learning,) = simulation.store.baselines.list_learning()
    assert learning.provisional.n == pytest.approx(250, abs=3)
    assert (learning.until - learning.since) == 14 * DAY

    for _ in range(13):
        simulation.pass_days(1, per_day=50)
        assert simulation.evaluate(watcher) == []

    assert statuses(simulation.store) == [("f1", 1, "superseded", "provisional"), ("f1", 2, "active", "first")]
    assert simulation.store.baselines.list_learning() == []


@pytest.mark.parametrize(("per_day", "days"), [(199, 1), (20, 9), (1000, 0.9)])
def test_a_provisional_baseline_needs_a_day_and_200_scores(sqlite_simulation: Any, per_day: int, days: float) -> None:
    """With fewer scores or less time, only learning continues."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.add_scores(sqlite_simulation.values(int(per_day * days)), hours=24 * days)
    sqlite_simulation.evaluate(watcher)
    sqlite_simulation.evaluate(watcher)

    assert statuses(sqlite_simulation.store) == [("f1", 1, "learning", "first")]


def test_a_provisional_baseline_takes_several_days_if_there_are_few_scores(sqlite_simulation: Any) -> None:
    """A slow service may take more than a day to collect 200 scores."""
    watcher = sqlite_simulation.new_watcher()
    for _ in range(11):
        sqlite_simulation.pass_days(1, per_day=20)
        sqlite_simulation.evaluate(watcher)

    (learning,) = sqlite_simulation.store.baselines.list_learning()
    assert 200 <= learning.provisional.n <= 220


def test_a_provisional_baseline_learns_only_from_the_first_day_even_if_evaluated_late(sqlite_simulation: Any) -> None:
    """A drop that began before the worker ran does not become part of the provisional baseline."""
    watcher = sqlite_simulation.new_watcher()
    sqlite_simulation.add_scores(sqlite_simulation.values(10), hours=1)
    sqlite_simulation.evaluate(watcher)
    sqlite_simulation.pass_days(1, per_day=250)
    sqlite_simulation.pass_days(1, per_day=250, mean=0.4)

    assert sqlite_simulation.evaluate(watcher) == ["fired"]


def test_a_provisional_baseline_assumes_a_variation_between_days(sqlite_simulation: Any) -> None:
    """A single day does not show day-to-day differences."""
    watcher = sqlite_simulation.new_watcher()
    start(sqlite_simulation, watcher)

    (learning,) = sqlite_simulation.store.baselines.list_learning()
    route = learning.provisional.routes["ask"]
    assert min(route.committed_wander, route.zero_wander) >= PROVISIONAL_WANDER


def test_a_drop_that_fires_does_not_become_part_of_the_baseline(sqlite_simulation: Any) -> None:
    """Learning is extended day by day until the drop resolves."""
    watcher = sqlite_simulation.new_watcher(Drop(critical_drop=None))
    start(sqlite_simulation, watcher)
    for _ in range(15):
        sqlite_simulation.pass_days(1, per_day=50, mean=0.4)
        sqlite_simulation.evaluate(watcher)
    assert [alert.state for alert in sqlite_simulation.store.alerts.list_open()] == ["firing"]
    assert len(sqlite_simulation.store.baselines.list_learning()) == 1

    for _ in range(5):
        sqlite_simulation.pass_days(1, per_day=200)
        sqlite_simulation.evaluate(watcher)

    assert sqlite_simulation.store.alerts.list_open() == []
    assert statuses(sqlite_simulation.store)[-1] == ("f1", 2, "active", "first")


def test_a_new_judge_gets_a_provisional_baseline(learned: Any) -> None:
    """The old judge's baseline stays active until the new judge has enough scores."""
    watcher = learned.new_watcher()
    start(learned, watcher, fingerprint="f2")

    assert statuses(learned.store) == [
        ("f1", 1, "active", "first"),
        ("f2", 1, "active", "provisional"),
        ("f2", 2, "learning", "judge_changed"),
    ]


def test_a_process_without_the_lease_starts_no_provisional_baseline(simulation: Any) -> None:
    """Only the process that holds the lease starts a provisional baseline."""
    watcher = simulation.new_watcher()
    simulation.pass_days(1, per_day=250)
    simulation.evaluate(watcher)
    simulation.pass_days(1, per_day=250)
    simulation.holder = ("watcher", "another process")

    assert not simulation.try_evaluate(simulation.new_watcher())

    assert statuses(simulation.store) == [("f1", 1, "learning", "first")]
