"""Each score counts once, whoever is killed when, and however many look."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.alerting.drop.conftest import START, World

from germane.alerting.detector import Detector
from germane.alerting.drop.history import heard, seen

ROOT = Path(__file__).parents[3]
DAY = timedelta(days=1)


def prepared(world: World) -> None:
    """Learn nearly a fortnight, and leave its end, a drop and a recovery to those who look."""
    world.days(1, per_day=1)
    world.look(world.watch())
    world.days(13)
    while world.store.arrivals(1):
        world.look(world.watch())
    world.days(2)
    world.days(3, mean=0.5)
    world.days(8)


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    """What has processes of its own look, when it is told to."""
    command = [sys.executable, "-m", "tests.alerting.drop.killed"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        yield running
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(timeout=60) == 0


def told(processes: subprocess.Popen[str], what: str, url: str) -> int:
    """Say what is to be done; return the number that it answers."""
    assert processes.stdin is not None
    assert processes.stdout is not None
    processes.stdin.write(f"{what} {url}\n")
    processes.stdin.flush()
    return int(processes.stdout.readline())


def assert_counted_once(world: World) -> None:
    """The detector stands where one pass over all scores brings it, and what it found was told once."""
    (version,) = world.store.baselines()
    baseline = version.baseline
    assert baseline is not None
    past = heard(world.store, version.key, baseline.until, world.now + DAY, baseline.keep)
    alone = Detector(baseline)
    turns = alone.feed(seen(past))
    (live,) = world.store.detectors()
    assert world.store.arrivals(1) == []
    assert live.seen_at == past[-1].arrived_at
    assert live.log_evidence == pytest.approx(alone.log_evidence, rel=1e-9)
    assert [turn.state for turn in turns] == ["firing", "resolved"]
    (alert,) = world.store.alerts()
    told = Counter(event.what for event in world.store.alert_events(alert.id))
    assert (told["fired"], told["resolved"]) == (1, 1)
    assert alert.state == "resolved"


def test_a_look_that_is_killed_at_any_statement_counts_once_or_not_at_all(world: Any, processes: Any) -> None:
    """Learning, freezing, feeding, firing, resolving: what had not been committed is done again by the next one."""
    prepared(world)

    assert told(processes, "killed", world.url) > 20
    world.now = START + 40 * DAY
    world.look(world.watch())
    assert_counted_once(world)


def test_two_processes_that_both_think_it_is_their_turn_count_once(world: Any, processes: Any) -> None:
    """Whoever is later finds that the row has moved on, and reads anew."""
    prepared(world)

    assert told(processes, "beside", world.url) == 2
    world.now = START + 40 * DAY
    world.look(world.watch())
    assert_counted_once(world)
