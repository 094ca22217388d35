"""Titles, subject lines, sentences and facts: what happened, in words that do not require knowledge of germane."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.alerting.channels.conftest import LABELS, NOON, a_message, an_alert, over

from germane.alert import Alert, ResolveReason, ScoreLevel
from germane.alerting.intervals import is_higher
from germane.alerting.messages import alert_message
from germane.alerting.titles import alert_title, headline
from germane.alerting.wording import MEASURES
from germane.registry import BUILTIN_SCORER_NAMES

SERVICE = {"service": "shop", "scorer": "answer_relevancy"}


def level(mean: float, n: int = 120, interval: tuple[float, float] | None = None) -> ScoreLevel:
    return ScoreLevel(mean=mean, n=n, interval=interval)


def a_drop(**given: Any) -> Alert:
    """Return an alert about a drop with the message of the production code."""
    alert = an_alert(**{"cause": None, "shifts": (), **given})
    return replace(alert, message=alert_message(alert))


def a_rule(type_: str, **given: Any) -> Alert:
    """Return an alert of another type, with its default name."""
    values = {"type": type_, "rule": type_, "baseline": None, "current": None, "onset": None, **given}
    return a_drop(**values)


def facts(alert: Alert) -> dict[str, str]:
    message = a_message(alert)
    return dict(message.facts_for(message.alerts[0]))


FAILING = {"tried": 31, "failed": 31, "reason": "judge_unreachable"}
REFUSING = {
    "contributors": [
        {"half": "zero", "before": {"mean": 0.02, "n": 900}, "since": {"mean": 0.15, "n": 120}},
    ]
}


@pytest.mark.parametrize(
    ("alert", "expected"),
    [
        (a_drop(), "drop in shop, docs (0.82 to 0.61)"),
        (a_drop(current=level(0.8161)), "drop in shop, docs (0.820 to 0.816)"),
        (a_drop(current=level(0.84)), "drop in shop, docs (back at 0.84, still being watched)"),
        (a_drop(current=level(0.84), details=REFUSING), "more noncommittal answers in shop, docs (2% to 15%)"),
        (a_drop(state="recovering", current=level(0.8)), "drop in shop, docs (back at 0.80, still being watched)"),
        (
            a_drop(details={"new_route": True}, current=level(0.14), baseline=None),
            "low scores on new route docs in shop (0.14)",
        ),
        (a_drop(type="improvement", current=level(0.91), labels=SERVICE), "improvement in shop (0.82 to 0.91)"),
        (
            a_rule("scorer_error", labels=SERVICE, details=FAILING),
            "judge failing in shop (31 of 31 answers unscored)",
        ),
        (
            a_rule("scorer_error", labels=SERVICE, details=FAILING | {"reason": "embedder_error"}),
            "embedder failing in shop (31 of 31 answers unscored)",
        ),
        (a_rule("no_data", labels=SERVICE, details={"waiting": 12}), "no scores in shop (12 answers unscored)"),
        (a_rule("budget_exhausted", labels={"service": "shop"}), "budget exhausted in shop"),
        (a_rule("budget_exhausted", labels={}), "budget exhausted"),
        (
            a_rule("mean_threshold", current=level(0.62), value=0.62, threshold=0.7),
            "mean below 0.7 in shop, docs (0.62)",
        ),
        (
            a_rule("mean_threshold", current=level(0.698), value=0.698, threshold=0.7),
            "mean below 0.7 in shop, docs (0.698)",
        ),
        (a_rule("low_score_rate", current=level(0.18), threshold=0.1), "low scores above 10% in shop, docs (18%)"),
        (
            a_rule("noncommittal_rate", current=level(0.18), threshold=0.1),
            "noncommittal answers above 10% in shop, docs (18%)",
        ),
        (a_drop(rule="search quality"), "search quality: drop in shop, docs (0.82 to 0.61)"),
        (over(a_drop()), "drop in shop, docs"),
        (over(a_rule("scorer_error", labels=SERVICE, details=FAILING)), "judge failing in shop"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_alert_titles_state_the_problem_the_place_and_the_size(alert: Alert, expected: str) -> None:
    """The type of the rule is not shown. A user's own name for a rule is."""
    assert alert_title(alert) == expected


def test_a_subject_line_names_up_to_three_routes_with_their_changes() -> None:
    """Alerts of different types are named after their problems. Names that do not fit are counted."""
    support = a_drop(labels={**LABELS, "route": "support"}, baseline=level(0.74), current=level(0.48))
    failing = a_rule("scorer_error", labels=SERVICE, details=FAILING)
    long = [a_drop(labels={**LABELS, "route": f"{number}" + "x" * 90}) for number in range(5)]

    assert headline(a_message(support, a_drop()).notification) == (
        "Firing: 2 drops in shop: support (0.74 to 0.48), docs (0.82 to 0.61)"
    )
    assert headline(a_message(support, failing).notification) == (
        "Firing: 2 alerts in shop: drop on support (0.74 to 0.48), judge failing on answer_relevancy (31 of 31 answers "
        "unscored)"
    )
    assert headline(a_message(support, a_drop(), over(a_drop())).notification).endswith("; 1 resolved")
    subject = headline(a_message(*long, type_="escalated").notification)
    assert len(subject) <= 150
    assert subject.endswith(" and 3 more")


@pytest.mark.parametrize(("now", "is_back"), [(0.81, False), (0.8199, False), (0.82, True), (0.9, True)])
def test_no_message_reports_a_drop_if_the_level_is_at_or_above_the_baseline(now: float, is_back: bool) -> None:
    """The level is back and still being watched. The message, the title and the facts give the same numbers."""
    alert = a_drop(current=level(now, interval=(0.78, 0.86)))
    shown = facts(alert)

    assert ("has dropped" in alert.message) is not is_back
    assert (", and is still being watched" in alert.message) is is_back
    assert shown["Now"] in alert.message
    assert shown["Baseline"].partition(" ")[0] in alert.message


def test_a_rise_in_refusals_is_reported_only_if_it_is_significant() -> None:
    """A rise from 3.3% to two of 25 is due to chance. A rise from 2% of 900 to 15% of 120 is not."""
    chance = {"contributors": [{"half": "zero", "before": {"mean": 0.033, "n": 424}, "since": {"mean": 0.08, "n": 25}}]}

    assert not is_higher(0.08, 25, 0.033, 424)
    assert is_higher(0.15, 120, 0.02, 900)
    assert "noncommittal" not in a_drop(current=level(0.84), details=chance).message
    assert "noncommittal answers from route docs in shop have risen from 2% to 15%" in (
        a_drop(current=level(0.84), details=REFUSING).message
    )


def test_the_likely_cause_includes_the_share_of_refusals() -> None:
    """The share is not stated for other causes, or after the alert has resolved."""
    refusals = {"refusals": [0.033, 0.2]}

    assert facts(a_drop(cause="refusals_rising", details=refusals))["Likely cause"] == (
        "more refusals: 20% of the answers, 3.3% before"
    )
    assert facts(a_drop(cause="answers_drifting", details=refusals))["Likely cause"] == (
        "answers drift away from the questions"
    )
    assert "Likely cause" not in facts(over(a_drop(cause="refusals_rising", details=refusals)))


def test_a_drop_that_a_judge_change_resolved_is_not_reported_as_fixed() -> None:
    """The message states that the drop was still present, and when drops are detected again."""
    alert = over(a_drop())
    ended = replace(alert, resolve_reason="judge_changed")
    back = replace(ended, current=level(0.83))

    assert "had dropped from 0.82 to 0.61" in alert_message(ended)
    assert "had not recovered when the judge changed" in alert_message(ended)
    assert alert_title(ended) == "drop in shop, docs (not recovered, but the judge changed)"
    assert re.search(r"once it is learned, after 14 days \(see germane baseline show", facts(ended)["Next step"])
    assert facts(ended)["At the end"] == "0.61 (mean of 120 answers, 95% confidence 0.57 to 0.65)"
    assert "was back at 0.83 (mean of 120 answers), baseline 0.82 when the judge changed" in alert_message(back)
    assert alert_title(back) == "drop in shop, docs (the judge changed)"


@pytest.mark.parametrize("reason", ["by_hand", "new_baseline", "rule_removed"])
def test_a_resolution_without_recovery_says_that_scores_did_not_recover(reason: ResolveReason) -> None:
    """The score had dropped, and no text claims that it is back."""
    alert = replace(over(a_drop()), resolve_reason=reason)

    assert "had dropped from 0.82 to 0.61" in alert_message(alert)
    assert alert_title(alert).startswith("drop in shop, docs (")
    assert "Now" not in facts(alert)


def test_a_message_about_a_new_route_names_no_earlier_level() -> None:
    """This applies while its scores are low and afterwards."""
    details = {"new_route": True, "other_routes": [0.76, 0.88]}
    alert = a_drop(baseline=None, current=level(0.14, 25, (0.1, 0.2)), details=details)
    ended = over(alert)

    assert alert.message == (
        "answer_relevancy for route docs in shop has been low since about Sun 2026-03-01 09:00 UTC: 0.14 (mean of 25 "
        "answers, 95% confidence 0.10 to 0.20); the route is new, and the other routes are at 0.76 to 0.88."
    )
    assert alert_message(ended) == "Resolved (recovered): answer_relevancy for route docs in shop is no longer low."
    assert "Now" not in facts(ended)


def test_a_message_about_a_failing_judge_states_when_it_began() -> None:
    """Both messages give the start, and the second one counts the scores."""
    alert = a_rule("scorer_error", labels=SERVICE, details=FAILING, window=3600.0, starts_at=NOON - timedelta(hours=1))
    ended = over(replace(alert, details=FAILING | {"tried": 30, "failed": 0}))

    assert alert.message.startswith(
        "answer_relevancy has failed for 31 of 31 answers from service shop over the last hour, since about Sun "
        "2026-03-01 11:00 UTC, mostly because the judge is unreachable"
    )
    assert facts(alert)["Started about"] == "2026-03-01 11:00 UTC, 60 min ago"
    assert alert_message(ended) == (
        "Resolved (recovered): answer_relevancy scores answers from service shop again: 30 of 30 answers over the last "
        "hour, after failures since about Sun 2026-03-01 11:00 UTC."
    )


def test_a_message_about_an_improvement_says_how_to_accept_or_decline_it() -> None:
    """The alert names both commands, unless germane accepts the improvement automatically."""
    alert = a_drop(id="7ca4e1711618", type="improvement", current=level(0.91), labels=SERVICE)
    accepted = replace(alert, details={"accepts": True})

    assert facts(alert)["Next step"] == (
        "accept it: germane baseline accept 7ca4e171; or decline it: germane alerts resolve 7ca4e171"
    )
    assert "Next step" not in facts(accepted)
    assert "has improved" not in alert_message(replace(alert, current=level(0.8)))


@pytest.mark.parametrize(
    ("scorer", "type_", "expected"),
    [
        (
            "answer_relevancy",
            "drop",
            "answer_relevancy: how well answers match their questions; at most 1, higher is better",
        ),
        (
            "faithfulness",
            "mean_threshold",
            "faithfulness: how many of the answers' claims the retrieved contexts support; 0 to 1, higher is better",
        ),
        ("faithfulness", "low_score_rate", None),
        ("mine", "drop", None),
    ],
)
def test_messages_explain_the_scale_of_a_built_in_scorer(scorer: str, type_: str, expected: str | None) -> None:
    """Cosines can be below 0. The scale of custom scorers is unknown, and a share does not need one."""
    assert facts(a_rule(type_, labels={**LABELS, "scorer": scorer}, threshold=0.5)).get("Scale") == expected


def test_shares_in_messages_are_percentages() -> None:
    """This applies to the message and the facts."""
    now, before = level(0.18, 120, (0.12, 0.26)), level(0.05, 900)
    alert = a_rule("noncommittal_rate", current=now, baseline=before, value=0.18, threshold=0.1)

    assert facts(alert)["Now"] == "18% (of 120 answers, 95% confidence 12% to 26%)"
    assert facts(alert)["Before"] == "5% (of 900 answers)"
    assert f"is above 10%: {facts(alert)['Now']}; before that, it was {facts(alert)['Before']}." in alert.message


def test_every_built_in_scorer_has_an_explanation_of_its_scale() -> None:
    """A person on call does not have to know its name."""
    assert sorted(MEASURES) == list(BUILTIN_SCORER_NAMES)
