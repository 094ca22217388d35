"""Tests of `germane alerts backtest`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

from germane.alerting import run_backtest
from germane.evaluation import open_engine, run_backtest_on_engine
from germane.settings import load_settings
from germane.storage import TrackingStore

Call = Callable[..., Any]
Scored = Callable[..., Any]
PREVIEW = ("alerts", "backtest")
FLOOR = (*PREVIEW, "--rule", "mean_threshold", "--set", "threshold=.7")
GOOD, BAD = [0.9, 0.8, 0.85] * 20, [0.3, 0.2, 0.25] * 20


@pytest.fixture
def history(store: TrackingStore, scored: Scored) -> TrackingStore:
    """A database in which a route was good, bad, and good again."""
    now = datetime.now(UTC)
    for hours, values in ((72, GOOD), (48, BAD), (3, GOOD)):
        scored(store, values, started_at=now - timedelta(hours=hours))
    return store


def test_a_rule_type_that_is_not_configured_can_be_backtested(call: Call, history: TrackingStore) -> None:
    """The output shows when and for how long alerts would have fired, their messages, and the notifications."""
    ended = call(*FLOOR, "--since", "4d")

    assert ended.code == 0
    assert all(len(line) <= 80 for line in ended.out.splitlines())
    unwrapped = re.sub(r"\n +(?!- |\d)(?=\S)", " ", ended.out).replace(
        " answer_relevancy for", "\n    answer_relevancy for"
    )
    head, _, summary, when, message, *notes = unwrapped.splitlines()
    assert head.endswith("UTC over 180 scores.")
    assert summary == "mean_threshold: fired once, resolved 0 times; 2 notifications (1 firing, 1 repeated)"
    assert "warning, for " in when
    assert when.endswith(": still firing")
    assert message.startswith("    answer_relevancy for route ask in shop is below 0.7: 0.25 (mean of 60 answers")
    assert "  - evaluated every hour; times are no more precise than that" in notes
    assert "A channel for all of these rules would have received 2 notifications." in notes


def test_backtest_json_contains_alerts_and_counts(call: Call, history: TrackingStore) -> None:
    """The output is one object with the replayed settings."""
    content = call(*FLOOR, "--set", "keep_firing_for=0", "--since", "4d", "--json").content

    (rule,) = content["rules"]
    assert (rule["name"], rule["type"], rule["settings"]["threshold"]) == ("mean_threshold", "mean_threshold", 0.7)
    assert (rule["fired"], rule["resolved"], rule["unfired"]) == (1, 1, 0)
    assert rule["notifications"] == {"firing": 1, "escalated": 0, "resolved": 1, "repeated": 1}
    (alert,) = rule["alerts"]
    assert (alert["state"], alert["resolve_reason"]) == ("resolved", "recovered")
    assert alert["value"] == pytest.approx(0.25)
    assert [event["type"] for event in alert["events"]] == ["fired", "repeated", "resolved"]
    assert content["notifications"] == 3
    assert content["scores"] == 180


def test_all_active_rules_are_backtested_by_default(call: Call, history: TrackingStore, bare: Path) -> None:
    """Each rule is replayed separately. Rules that cannot be replayed are listed with the reason."""
    (bare / "germane.toml").write_text('[[rules]]\nname = "low"\nthreshold = 0.5\n')

    ended = call(*PREVIEW, "--since", "6h")

    assert "180 scores" not in ended.out
    assert "60 scores, each rule separately" in " ".join(ended.out.split())
    for name in (
        "drop: fired 0 times",
        "no_data: fired once",
        "scorer_error: fired 0 times",
        "low (mean_threshold): fired 0 times",
    ):
        assert name in ended.out
    assert "budget_exhausted: cannot be replayed: no budget is configured." in ended.out
    assert "no baseline yet; one would be learned until" in ended.out


@pytest.mark.slow
def test_a_disabled_rule_can_be_backtested(call: Call, history: TrackingStore, bare: Path) -> None:
    """The rule is selected by name, and its settings can be changed."""
    (bare / "germane.toml").write_text('[[rules]]\nname = "low"\nthreshold = 0.1\nenabled = false\n')

    assert "low (mean_threshold): fired 0 times" in call(*PREVIEW, "--rule", "low", "--since", "4d").out
    changed = call(*PREVIEW, "--rule", "low", "--set", "threshold=0.7", "--set", 'routes=["as*"]', "--since", "4d")
    assert "low (mean_threshold): fired once" in changed.out


def test_a_backtest_without_scores_exits_with_5(call: Call, store: TrackingStore) -> None:
    """There is nothing to replay."""
    ended = call(*FLOOR)

    assert ended.code == 5
    shown = " ".join(ended.out.split())
    assert "mean_threshold: cannot be replayed: no score of answer_relevancy is stored for this period." in shown


@each(
    ("arguments", "expected"),
    [
        (("--rule", "mean_treshold"), "unknown rule 'mean_treshold'; did you mean 'mean_threshold'?"),
        (("--rule", "mean_threshold"), "rule type mean_threshold requires threshold: --set threshold=VALUE"),
        (("--rule", "mean_threshold", "--set", "treshold=1"), "has no setting 'treshold'; did you mean 'threshold'?"),
        (
            ("--rule", "mean_threshold", "--set", "threshold=7"),
            "--set threshold=7: Input should be less than or equal to 1",
        ),
        (("--rule", "drop", "--set", "for=-1"), "--set for=-1: Input should be greater than or equal to 0"),
        (("--rule", "drop", "--set", "name=x"), "rule drop has no setting 'name'"),
        (("--set", "recovery=1"), "active rules have no setting 'recovery'"),
        (("--set", "min_drop"), "does not have the form NAME=VALUE, such as threshold=0.7"),
        (("--since", "2099-01-01"), "is in the future"),
    ],
)
def test_invalid_backtest_options_are_usage_errors(
    call: Call, database: str, arguments: tuple[str, ...], expected: str
) -> None:
    """The error lists valid names."""
    ended = call(*PREVIEW, *arguments)

    assert ended.code == 2
    assert expected in ended.err


@pytest.mark.slow
def test_an_engine_gives_the_same_report(call: Call, history: TrackingStore, database: str) -> None:
    """Each rule runs in a process of the engine."""
    settings = load_settings(database=database, rules=[{"type": "mean_threshold", "threshold": 0.7}])
    since, until = datetime.now(UTC) - timedelta(days=4), datetime.now(UTC)
    expected = run_backtest(history, settings, settings.active_rules, since=since, until=until)

    with open_engine("local", workers=2) as engine:
        report = run_backtest_on_engine(settings, settings.active_rules, engine, since=since, until=until)

    assert report == expected
    assert sum(len(rule.episodes) for rule in report.rules) > 0
    ended = call(*FLOOR, "--since", "4d", "--engine", "local:1")
    assert "mean_threshold: fired once" in ended.out
