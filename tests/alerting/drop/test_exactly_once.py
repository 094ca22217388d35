"""Each score counts once, even with killed or concurrent processes."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.alerting.drop.conftest import START, Simulation, limited_batch

from germane.alerting.detector.detector import Detector
from germane.alerting.drop.scope import load_sampled_scores

ROOT = Path(__file__).parents[3]
DAY = timedelta(days=1)


def prepared(simulation: Simulation) -> None:
    """Learn for 13 days, then add a drop and a recovery that have not been evaluated yet."""
    simulation.pass_days(1, per_day=1)
    simulation.evaluate(simulation.new_watcher())
    simulation.pass_days(13)
    while simulation.store.detectors.list_new_scores(1):
        simulation.evaluate(simulation.new_watcher())
    simulation.pass_days(2)
    simulation.pass_days(3, mean=0.5)
    simulation.pass_days(8)


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[str]]:
    """A helper process that evaluates in child processes on request."""
    command = [sys.executable, "-m", "tests.alerting.drop.killed_processes"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        yield running
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(timeout=60) == 0


def run_command(processes: subprocess.Popen[str], what: str, url: str) -> int:
    """Send a command to the helper; return the number that it prints."""
    assert processes.stdin is not None
    assert processes.stdout is not None
    processes.stdin.write(f"{what} {url}\n")
    processes.stdin.flush()
    return int(processes.stdout.readline())


def assert_counted_once(simulation: Simulation) -> None:
    """Assert that the state equals a single pass over all scores, with one event per transition."""
    (version,) = simulation.store.baselines.list_versions()
    baseline = version.baseline
    assert baseline is not None
    past = load_sampled_scores(
        simulation.store, version.key, baseline.until, simulation.now + DAY, baseline.sampling_rate
    )
    alone = Detector(baseline)
    transitions = alone.process(limited_batch(baseline, past))
    (live,) = simulation.store.detectors.list_states()
    assert simulation.store.detectors.list_new_scores(1) == []
    assert live.seen_at == past[-1].arrived_at
    assert live.log_evidence == pytest.approx(alone.log_evidence, rel=1e-9)
    assert [transition.state for transition in transitions] == ["firing", "resolved"]
    (alert,) = simulation.store.alerts.search()
    run_command = Counter(event.type for event in simulation.store.alerts.list_events(alert.id))
    assert (run_command["fired"], run_command["resolved"]) == (1, 1)
    assert alert.state == "resolved"


@pytest.mark.slow
def test_scores_are_counted_once_even_if_an_evaluation_is_killed(simulation: Any, processes: Any) -> None:
    """The process may be killed at any statement. The next evaluation repeats uncommitted work."""
    prepared(simulation)

    assert run_command(processes, "killed", simulation.url) > 20
    simulation.now = START + 40 * DAY
    simulation.evaluate(simulation.new_watcher())
    assert_counted_once(simulation)


def test_scores_are_counted_once_despite_concurrent_evaluations(simulation: Any, processes: Any) -> None:
    """The later evaluation finds a newer row version and reads the row again."""
    prepared(simulation)

    assert run_command(processes, "concurrent", simulation.url) == 2
    simulation.now = START + 40 * DAY
    simulation.evaluate(simulation.new_watcher())
    assert_counted_once(simulation)
