"""Baselines carried over to a new judge that reports another model, by the shift on the anchors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.alerting.drop.conftest import Simulation, Template
from tests.alerting.drop.test_watcher import statuses

from germane.alerting.drop.carry_over import load_committed_shift
from germane.score import Score
from germane.settings.rules import Drop

DAY = timedelta(days=1)
SCORER = "relevancy"
ANCHORS = 50


def score_anchors(made: Simulation, fingerprint: str, shift: float = 0.0, *, rounds: int = 1, seed: int = 1) -> None:
    """Score all anchors in some rounds: each has a true value, to which a judge adds its shift and noise."""
    noise = random.Random(f"{seed}{fingerprint}")
    for _ in range(rounds):
        made.store.anchors.start_round(SCORER, "daily")
        while (pending := made.store.anchors.next_pending(SCORER)) is not None:
            true = random.Random(pending.exchange.id).betavariate(6, 5)
            value = min(1.0, max(0.01, true + shift + noise.gauss(0, 0.08)))
            made.store.anchors.save_score(SCORER, pending, Score(scorer=SCORER, fingerprint=fingerprint, value=value))


def change_judge(made: Simulation, watcher: Any, shift: float, *, seed: int = 1) -> list[str]:
    """Let a day pass with scores by a new judge, and score the anchors in its first hours, as the worker does."""
    made.store.anchors.refill(SCORER, ANCHORS, text_lifetime=timedelta(days=90))
    score_anchors(made, "f1", rounds=5, seed=seed)
    happened = pass_day(made, watcher, shift, hours=(0, 6))
    score_anchors(made, "f2", shift, seed=seed)
    return happened + pass_day(made, watcher, shift, hours=(6, 24))


def pass_day(made: Simulation, watcher: Any, shift: float, *, hours: tuple[int, int] = (0, 24)) -> list[str]:
    """Let hours of a day pass with 100 scores a day, and evaluate every hour."""
    happened = []
    for _ in range(*hours):
        count = made.random.choice((3, 4, 5, 4, 5))
        made.add_scores(made.values(count, mean=0.8 + shift), hours=1, fingerprint="f2")
        happened += made.evaluate(watcher)
    return happened


@pytest.fixture(scope="session")
def busy_template(empty: Template, tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A simulation that has learned a baseline from 100 scores a day."""

    def learn(made: Simulation) -> None:
        made.learn_baseline(made.new_watcher(), per_day=100)

    return empty.run(tmp_path_factory.mktemp("busy"), learn)


@pytest.fixture
def busy(busy_template: Template, tmp_path: Path) -> Iterator[Simulation]:
    """A simulation on SQLite with a baseline from 100 scores a day."""
    with busy_template.copy(tmp_path) as made:
        yield made


def test_a_stricter_judge_gets_the_old_baseline_minus_the_shift(busy: Simulation) -> None:
    """No alert fires, and the baseline is in use from the first answers that the new judge scored."""
    watcher = busy.new_watcher()
    changed_at = busy.now
    assert change_judge(busy, watcher, -0.08) == []

    assert statuses(busy.store) == [
        ("f1", 1, "active", "first"), ("f2", 1, "superseded", "judge_changed"), ("f2", 2, "active", "carried_over"),
    ]  # fmt: skip
    old, new = (version.baseline for version in busy.store.baselines.list_versions())
    assert old is not None
    assert new is not None
    shift = load_committed_shift(busy.store, SCORER, "f1", "f2")
    assert shift is not None
    assert shift.interval[0] < -0.08 < shift.interval[1]
    before, after = old.routes["ask"], new.routes["ask"]
    assert after.committed_mean == pytest.approx(before.committed_mean + shift.size)
    assert after.mean == pytest.approx(before.mean + shift.size * (1 - before.zero_rate))
    assert after.committed_wander > before.committed_wander
    assert changed_at < new.until <= changed_at + timedelta(hours=1)
    assert (new.scores_per_day, new.fingerprint) == (old.scores_per_day, "f2")


def test_a_drop_a_day_after_the_judge_changed_fires(busy: Simulation) -> None:
    """Without the anchors, there would be no baseline yet."""
    watcher = busy.new_watcher(Drop(critical_drop=None))
    change_judge(busy, watcher, -0.08)
    happened: list[str] = []
    while not happened and len(busy.store.baselines.list_versions()) == 2:
        happened = pass_day(busy, watcher, -0.18)
        assert busy.now - busy.store.baselines.list_versions()[1].until < timedelta(days=6)

    assert happened == ["fired"]
    (alert,) = busy.fired
    assert alert.fingerprint == "f2"
    assert alert.details["baseline"]["reason"] == "carried_over"


def test_a_baseline_that_was_carried_over_is_learned_again_from_the_new_judge(busy: Simulation) -> None:
    """After a learning period, the new judge's own scores replace it."""
    watcher = busy.new_watcher()
    change_judge(busy, watcher, -0.05)
    for _ in range(16):
        busy.add_scores(busy.values(100, mean=0.75), hours=24, fingerprint="f2")
        assert busy.evaluate(watcher) == []

    assert statuses(busy.store)[-1] == ("f2", 3, "active", "extended")
    newest = busy.store.baselines.list_versions()[-1].baseline
    assert newest is not None
    assert newest.routes["ask"].committed_mean == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("rounds", [0, 1])
def test_without_a_finished_round_by_the_new_judge_learning_starts(busy: Simulation, rounds: int) -> None:
    """A round that still runs would give a shift from a few anchors."""
    watcher = busy.new_watcher()
    busy.store.anchors.refill(SCORER, ANCHORS, text_lifetime=timedelta(days=90))
    score_anchors(busy, "f1", rounds=5)
    for _ in range(rounds):
        busy.store.anchors.start_round(SCORER, "judge_changed")
        for _ in range(ANCHORS - 1):
            pending = busy.store.anchors.next_pending(SCORER)
            assert pending is not None
            busy.store.anchors.save_score(SCORER, pending, Score(scorer=SCORER, fingerprint="f2", value=0.5))
    pass_day(busy, watcher, -0.1, hours=(0, 8))

    assert statuses(busy.store)[-1] == ("f2", 1, "learning", "judge_changed")


@pytest.mark.slow
def test_drops_after_a_judge_change_are_found_as_if_nothing_had_changed(
    busy_template: Template, tmp_path: Path
) -> None:
    """In 20 runs, no alert fires before the drop, and drops of 0.1 fire. benchmarks/truth.py measures the interval."""
    delays = []
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with busy_template.copy(folder) as made:
            made.random.seed(seed)
            shift = made.random.choice((-0.1, -0.06, 0.05, 0.08))
            watcher = made.new_watcher()
            assert change_judge(made, watcher, shift, seed=seed) == []
            days = 0
            while not made.fired:
                days += 1
                assert days < 10
                pass_day(made, watcher, shift - 0.1)
            delays.append(days)
    assert sorted(delays)[10] <= 3
