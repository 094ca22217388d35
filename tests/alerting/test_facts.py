"""What an alert states: decided from its levels, its state and its evidence, before any text is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.alerting.channels.conftest import over
from tests.alerting.conftest import REFUSING, SERVICE, a_drop, a_rule, level

from germane.alert import ResolveReason
from germane.alerting.facts import AlertKind, alert_facts
from germane.alerting.intervals import is_higher


@pytest.mark.parametrize(("now", "is_back"), [(0.81, False), (0.8199, False), (0.82, True), (0.9, True)])
def test_no_alert_is_a_drop_if_the_level_is_at_or_above_the_baseline(now: float, is_back: bool) -> None:
    """The level is back and still being watched."""
    assert alert_facts(a_drop(current=level(now))).kind == ("still_watched" if is_back else "dropped")


def test_a_rise_in_refusals_is_the_problem_if_the_mean_does_not_show_it() -> None:
    """A rise from 3.3% to two of 25 is due to chance, and not stored. A rise from 2% of 900 to 15% of 120 is not."""
    rise = alert_facts(a_drop(current=level(0.84), details=REFUSING))

    assert not is_higher(0.08, 25, 0.033, 424)
    assert is_higher(0.15, 120, 0.02, 900)
    assert alert_facts(a_drop(current=level(0.84))).kind == "still_watched"
    assert (rise.kind, rise.refusals) == ("refusals_rose", (0.02, 0.15))


def test_the_share_of_refusals_belongs_only_to_drops_that_refusals_cause() -> None:
    """If the mean does not show the rise, the alert is about refusals instead."""
    shares = {"refusals": [0.033, 0.2]}

    assert alert_facts(a_drop(cause="refusals_rising", details=shares)).refusal_shares == [0.033, 0.2]
    assert alert_facts(a_drop(cause="answers_drifting", details=shares)).refusal_shares is None
    rise = a_drop(cause="refusals_rising", current=level(0.84), details=shares | REFUSING)
    assert alert_facts(rise).refusal_shares is None


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("recovered", "back"),
        ("judge_changed", "not_recovered"),
        ("by_hand", "had_dropped"),
        ("new_baseline", "had_dropped"),
        ("rule_removed", "had_dropped"),
    ],
)
def test_only_a_recovery_is_reported_as_fixed(reason: ResolveReason, kind: AlertKind) -> None:
    """After any other resolution, the score had dropped, and its level is that at the end."""
    facts = alert_facts(over(a_drop(), resolve_reason=reason))

    assert (facts.kind, facts.is_level_current) == (kind, reason == "recovered")
    assert facts.next_step == ("judge_changed" if reason == "judge_changed" else None)
    back = alert_facts(over(a_drop(current=level(0.83)), resolve_reason="judge_changed"))
    assert back.kind == "was_back_with_judge"


def test_the_level_of_a_new_route_that_recovered_is_unknown_without_a_baseline() -> None:
    """Its alert only stored the level while it was low."""
    alert = a_drop(baseline=None, current=level(0.14, 25), details={"new_route": True})
    ended = alert_facts(over(alert))

    assert alert_facts(alert).kind == "low"
    assert (ended.kind, ended.level) == ("no_longer_low", None)
    assert alert_facts(over(replace(alert, baseline=level(0.8)))).kind == "back"


def test_a_failing_scorer_began_when_its_rule_first_matched() -> None:
    """Other rules without an estimated onset state no start."""
    failing = a_rule("scorer_error", labels=SERVICE, details={"tried": 31, "failed": 31})

    assert alert_facts(failing).began == failing.starts_at
    assert alert_facts(a_rule("mean_threshold")).began is None


def test_an_improvement_that_is_not_accepted_automatically_asks_for_a_decision() -> None:
    """An improvement that did not last is not called an improvement."""
    alert = a_drop(type="improvement", current=level(0.91), labels=SERVICE)
    accepted = replace(alert, details={"accepts": True})

    assert (alert_facts(alert).kind, alert_facts(alert).next_step) == ("proposed", "improvement")
    assert (alert_facts(accepted).kind, alert_facts(accepted).next_step) == ("accepted", None)
    assert alert_facts(replace(alert, current=level(0.8))).kind == "improvement_lost"


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"cause": "answers_drifting"}, None),
        ({"cause": "retrieval_worse"}, "retrieval_worse"),
        ({"cause": "refusals_rising"}, "refusals_rising"),
        ({"cause": "refusals_rising", "type": "noncommittal_rate"}, None),
        ({"cause": "no_data", "type": "no_data"}, None),
        ({"cause": "budget", "type": "no_data"}, "budget"),
        ({"cause": "budget", "type": "budget_exhausted"}, None),
        ({"cause": "judge_broken", "type": "scorer_error"}, "judge_broken"),
        ({"cause": "retrieval_worse", "state": "resolved", "resolve_reason": "recovered"}, None),
    ],
)
def test_the_likely_cause_is_not_what_the_alert_is_about(fields: dict[str, Any], cause: str | None) -> None:
    """A drop of an answer scorer is drift, no data is unscored answers, and a resolved alert has no cause."""
    assert alert_facts(replace(a_drop(), **fields)).cause == cause
