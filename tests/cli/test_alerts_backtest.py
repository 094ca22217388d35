"""What `germane alerts preview` says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from germane.storage import Store

Call = Callable[..., Any]
Scored = Callable[..., Any]
PREVIEW = ("alerts", "preview")
FLOOR = (*PREVIEW, "--rule", "floor", "--set", "threshold=.7")
GOOD, BAD = [0.9, 0.8, 0.85] * 20, [0.3, 0.2, 0.25] * 20


@pytest.fixture
def history(store: Store, scored: Scored) -> Store:
    """A database in which a route was good, bad, and good again."""
    now = datetime.now(UTC)
    for hours, values in ((72, GOOD), (48, BAD), (3, GOOD)):
        scored(store, values, started_at=now - timedelta(hours=hours))
    return store


def test_a_kind_that_is_in_no_settings_can_be_tried(call: Call, history: Store) -> None:
    """When it would have fired, for how long, with what message, and how often somebody had been told."""
    ended = call(*FLOOR, "--since", "4d")

    assert ended.code == 0
    head, _, said, when, message, *notes = ended.out.splitlines()
    assert head.endswith("UTC: 180 scores.")
    assert said == "floor: fired once, resolved never; would have notified twice (1 firing, 1 repeated)"
    assert "warning, for " in when
    assert when.endswith(": still firing")
    assert message.startswith("    answer_relevancy of route ask in shop is below 0.7: mean 0.250")
    assert "  - looked at every hour: when it fired is known to within that" in notes
    assert "A channel that takes all of it would have been notified twice." in notes


def test_json_has_alerts_and_counts(call: Call, history: Store) -> None:
    """One object, with the settings that were tried."""
    content = call(*FLOOR, "--set", "keep_firing=0", "--since", "4d", "--json").content

    (rule,) = content["rules"]
    assert (rule["name"], rule["kind"], rule["settings"]["threshold"]) == ("floor", "floor", 0.7)
    assert (rule["fired"], rule["resolved"], rule["passed"]) == (1, 1, 0)
    assert rule["notifications"] == {"firing": 1, "escalated": 0, "resolved": 1, "repeated": 1}
    (alert,) = rule["alerts"]
    assert (alert["state"], alert["resolve_reason"]) == ("resolved", "recovered")
    assert alert["value"] == pytest.approx(0.25)
    assert [event["what"] for event in alert["events"]] == ["fired", "repeated", "resolved"]
    assert content["would_have_notified"] == 3
    assert content["scores"] == 180


def test_all_rules_in_force_are_tried_by_default(call: Call, history: Store, bare: Path) -> None:
    """Each by itself, those that are configured too; what cannot be replayed is said.

    The answers of three hours ago were all scored just now: until then scores were missing.
    """
    (bare / "germane.toml").write_text('[[rules]]\nname = "low"\nthreshold = 0.5\n')

    ended = call(*PREVIEW, "--since", "6h")

    assert "180 scores" not in ended.out
    assert "60 scores, each by itself" in ended.out
    for name in ("drop: fired never", "no_data: fired once", "scorer_error: fired never", "low (floor): fired never"):
        assert name in ended.out
    assert "budget_exhausted: cannot be replayed, because there is no budget in the settings" in ended.out
    assert "learning would go on until" in ended.out


def test_a_rule_that_is_switched_off_can_be_tried(call: Call, history: Store, bare: Path) -> None:
    """By its name; with other settings too."""
    (bare / "germane.toml").write_text('[[rules]]\nname = "low"\nthreshold = 0.1\nenabled = false\n')

    assert "low (floor): fired never" in call(*PREVIEW, "--rule", "low", "--since", "4d").out
    changed = call(*PREVIEW, "--rule", "low", "--set", "threshold=0.7", "--set", 'routes=["as*"]', "--since", "4d")
    assert "low (floor): fired once" in changed.out


def test_without_scores_it_ends_with_5(call: Call, store: Store) -> None:
    """There is nothing to replay."""
    ended = call(*FLOOR)

    assert ended.code == 5
    assert "floor: cannot be replayed, because no score of that time is stored of answer_relevancy." in ended.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rule", "flor"), "there is no rule called 'flor'; did you mean 'floor'?"),
        (("--rule", "floor"), "a rule of the kind floor needs a threshold: --set threshold=VALUE"),
        (("--rule", "floor", "--set", "treshold=1"), "does not have a setting 'treshold'; did you mean 'threshold'?"),
        (("--rule", "floor", "--set", "threshold=7"), "--set threshold=7: Input should be less than or equal to 1"),
        (("--rule", "drop", "--set", "for=-1"), "--set for=-1: Input should be greater than or equal to 0"),
        (("--rule", "drop", "--set", "name=x"), "the rule drop does not have a setting 'name'"),
        (("--set", "recovery=1"), "no rule in force has a setting 'recovery'"),
        (("--set", "min_drop"), "say NAME=VALUE, such as threshold=0.7"),
        (("--since", "2099-01-01"), "is still to come"),
    ],
)
def test_what_cannot_be_tried_is_wrong_usage(call: Call, database: str, arguments: tuple[str, ...], said: str) -> None:
    """With what could be."""
    ended = call(*PREVIEW, *arguments)

    assert ended.code == 2
    assert said in ended.err
