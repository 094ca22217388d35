"""`germane alerts sensitivity`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.baseline import Baseline, RouteBaseline
from germane.storage import BaselineKey, TrackingStore

Call = Callable[..., Any]
QUICK = ("alerts", "sensitivity", "--runs", "10")


@pytest.fixture
def baseline(store: TrackingStore) -> Baseline:
    """Store an active baseline with 20 scores per day."""
    route = RouteBaseline(
        n=280, mean=0.8, deviation=0.1, committed=280, committed_mean=0.8, committed_deviation=0.1, zero_rate=0.005,
        committed_wander=0.0, zero_wander=0.0, scores_per_day=20.0, committed_per_day=20.0,
    )  # fmt: skip
    until = store.now() - timedelta(days=1)
    active = Baseline(
        service="shop", scorer="answer_relevancy", fingerprint="f", since=until - timedelta(days=14), until=until,
        n=280, mean=0.8, deviation=0.1, scores_per_day=20.0, committed_per_day=20.0, routes={"docs": route},
    )  # fmt: skip
    store.baselines.replace_baseline(BaselineKey("shop", "answer_relevancy", "f"), "imported", active, (None, None))
    return active


@pytest.mark.usefixtures("baseline")
def test_sensitivity_prints_the_smallest_drop_and_the_tolerance(call: Call) -> None:
    """The output also states the number of runs and the standard error."""
    ended = call(*QUICK)

    assert ended.code == 0
    first, rate, detected, tolerance, *_ = ended.out.splitlines()
    assert first == "answer_relevancy for shop"
    assert rate == "  20 scores per day reach the detector."
    assert detected.startswith("  Detected with a probability of at least 0.8: a drop of 0.")
    assert "within a week" in detected
    assert tolerance.startswith(
        "  Tolerance, averaged over routes: drops in the mean of up to 0.020 and increases in refusals of up to 2.0% "
    )
    assert "10 runs per drop and a fixed seed" in ended.out
    assert "near 0.8 is 0.13" in ended.out


@pytest.mark.usefixtures("baseline")
def test_sensitivity_json_lists_probabilities_for_another_score_rate(call: Call) -> None:
    """The probabilities are listed by drop and number of days."""
    content = call(*QUICK, "--per-day", "50", "--json").content

    assert (content["target_probability"], content["runs"]) == (0.8, 10)
    assert content["standard_error"] == pytest.approx(0.126, abs=0.001)
    (stream,) = content["streams"]
    assert (stream["service"], stream["scorer"], stream["scores_per_day"]) == ("shop", "answer_relevancy", 50)
    assert [one["drop"] for one in stream["probabilities"]] == [0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3]
    assert stream["probabilities"][-1]["within"]["7.0"] == 1.0


def test_sensitivity_without_an_active_baseline_exits_with_5(call: Call, store: TrackingStore) -> None:
    """Without a baseline, there is nothing to simulate."""
    ended = call(*QUICK)

    assert ended.code == 5
    assert ended.out.startswith("No active baseline.")
    assert call(*QUICK, "--json").content["streams"] == []


@each(
    ("arguments", "message"),
    [
        (("--rule", "mean_threshold"), "unknown drop rule 'mean_threshold'; known: drop"),
        (("--per-day", "0"), "'--per-day'"),
        (("--runs", "3"), "'--runs'"),
    ],
)
def test_invalid_sensitivity_options_are_usage_errors(
    call: Call, store: TrackingStore, arguments: tuple[str, ...], message: str
) -> None:
    """The error lists the allowed values."""
    ended = call("alerts", "sensitivity", *arguments)

    assert ended.code == 2
    assert message in ended.err


def test_a_disabled_drop_rule_is_a_usage_error(call: Call, store: TrackingStore, bare: Path) -> None:
    """The message names the setting."""
    (bare / "germane.toml").write_text('[[rules]]\ntype = "drop"\nenabled = false\n')

    ended = call(*QUICK)

    assert ended.code == 2
    assert "no drop rule is active" in ended.err
