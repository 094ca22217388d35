"""Tests of the demo's final output."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from germane.cli.commands.demo import describe_result
from germane.demo.run import DemoAlert, DemoResult

ALERT = DemoAlert("setup", 62.0, "firing", "setup is below 0.45.")
OUTCOME = DemoResult(
    captured=112,
    sampled=83,
    scored=80,
    failed=2,
    failed_reasons={"no_usable_question": 2},
    on_original_span=79,
    on_carrier_span=1,
    rows=80,
    fault_at=36.0,
    before=(0.71, 14),
    after=(0.22, 17),
    alerts=[ALERT],
    seconds=95.0,
    database="sqlite:////folder/demo.db",
    judge="some-judge",
    spans=112,
    worst=[],
)


def verdict_text(**changes: Any) -> str:
    """Return the verdict on an outcome as one line."""
    return " ".join(" ".join(describe_result(dataclasses.replace(OUTCOME, **changes))).split())


def test_the_demo_reports_a_detected_fault_with_means_and_delay() -> None:
    """The output contains the broken route's means before and since the fault."""
    assert (
        "'setup' stopped answering the question: mean relevancy 0.71 (n = 14) before the fault, "
        "0.22 (n = 17) after it. Alert 26 s after the fault: setup is below 0.45." in verdict_text()
    )


def test_each_sampled_answer_counts_as_scored_failed_or_pending() -> None:
    """Failures are shown with their reasons."""
    assert "83 sampled, 80 scored, 2 failed (2 no_usable_question), 1 pending." in verdict_text()


def test_the_demo_reports_that_a_fault_was_not_detected() -> None:
    """An alert before the fault or for another route is a false alert."""
    early, other = dataclasses.replace(ALERT, at=20.0), dataclasses.replace(ALERT, route="api")

    assert "Missed: 'setup' broke after 36 s, but no alert fired." in verdict_text(alerts=[])
    for alert in (early, other):
        assert f"no alert fired. False alert after {alert.at:.0f} s" in verdict_text(alerts=[alert])


def test_the_demo_states_that_a_slow_judge_may_have_missed_a_fault() -> None:
    """On a busy machine, too few answers are scored before the demo ends."""
    words = verdict_text(alerts=[], scored=52)

    assert "no alert fired. The judge was too slow: 29 of 83 answers were not scored in time." in words
    assert "too slow" not in verdict_text(alerts=[])


def test_the_demo_shows_no_mean_if_there_are_no_scores() -> None:
    """The list of lowest scores is also omitted."""
    words = verdict_text(before=(math.nan, 0), scored=0, rows=0)

    assert "mean relevancy unknown (n = 0) before" in words
    assert "Lowest-scoring answers" not in words


def test_the_output_labels_the_toy_judge_as_such() -> None:
    """Other judges are not called toy judges."""
    assert "local:tiny is a toy" in verdict_text(judge="local:tiny")
    assert "toy" not in verdict_text()
