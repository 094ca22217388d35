"""Every text about an alert: message, title, subject line and details. The facts, and what a person reads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

import pytest
from tests.alerting.channels.conftest import LABELS, NOON, a_message, over
from tests.alerting.conftest import FAILING, REFUSING, SERVICE, a_drop, a_rule, level

from germane.alert import Alert, ScoreShift
from germane.alerting.facts import AlertKind, alert_facts
from germane.alerting.wording import MEASURES, MESSAGES, alert_message, alert_title, headline
from germane.registry import BUILTIN_SCORER_NAMES

NEW_ROUTE: dict[str, Any] = {
    "baseline": None, "current": level(0.14, 25, (0.1, 0.2)),
    "details": {"new_route": True, "other_routes": [0.76, 0.88]},
}  # fmt: skip
CHANGES = {
    "markers": [
        {"name": "deploy", "at": (NOON - timedelta(hours=2, minutes=50)).isoformat()},
        {"name": "index v41", "at": (NOON - timedelta(hours=13)).isoformat()},
        {"name": "index v42", "at": (NOON - timedelta(hours=4, minutes=20)).isoformat()},
    ],
    "release": {"prompt_version": ["6", "7"], "model": ["larch-1", "larch-2"]},
    "release_times": {"prompt_version": (NOON - timedelta(days=2, hours=3)).isoformat()},
}
DECIDED = (NOON - timedelta(hours=3, minutes=5), NOON - timedelta(hours=2, minutes=55))
SHIFTS = tuple(
    ScoreShift(dimension=dimension, name=name, before=level(0.8, 9), since=level(0.6, 9), supported=True)
    for dimension, name in (
        ("route", "docs"), ("attribute", "tenant=acme"), ("scorer", "faithfulness"), ("scorer", "answer_relevancy"),
    )
)  # fmt: skip
IMPROVED: dict[str, Any] = {"type": "improvement", "current": level(0.91), "labels": SERVICE}
RATE: dict[str, Any] = {"current": level(0.18, 120, (0.12, 0.26)), "value": 0.18, "threshold": 0.1}
FAILED: dict[str, Any] = {
    "labels": SERVICE,
    "details": FAILING,
    "window": 3600.0,
    "starts_at": NOON - timedelta(hours=1),
}
SHIFT = {"size": -0.08, "interval": [-0.1, -0.06]}
DRIFTED: dict[str, Any] = {
    "labels": {"scorer": "answer_relevancy"},
    "value": -0.08,
    "onset": NOON,
    "details": {"judge": "orca-2", "interval": SHIFT["interval"], "anchors": 50},
}
FELL_TOO = {"judge_since": {"round": NOON.isoformat(), **SHIFT}}
SPENT = {"until": (NOON + timedelta(hours=12)).isoformat(), "spent": ["400 requests", "$2.00"]}
CASES = [
    (
        a_drop(details=CHANGES, shifts=SHIFTS, cause="refusals_rising", onset_interval=DECIDED),
        (
            "answer_relevancy for route docs in shop has dropped from 0.82 to 0.61 (mean of 120 answers, 95% "
            "confidence 0.57 to 0.65) since about Sun 2026-03-01 09:00 UTC; the drop is largest on route docs; the "
            "drop is largest where tenant=acme; faithfulness fell too; mostly because of more refusals; changes "
            "around that time: index v42 (80 minutes before the drop began), index v41 (10 hours before), deploy (10 "
            "minutes after); earlier: prompt version 6 \u2192 7 (2 days before)."
        ),
    ),
    (
        a_drop(details=CHANGES),
        (
            "answer_relevancy for route docs in shop has dropped from 0.82 to 0.61 (mean of 120 answers, 95% "
            "confidence 0.57 to 0.65) since about Sun 2026-03-01 09:00 UTC; changes around that time: index v42 "
            "(before or after it began: cannot be decided), index v41 (before or after it began: cannot be decided), "
            "deploy (before or after it began: cannot be decided); earlier: prompt version 6 \u2192 7 (2 days before)."
        ),
    ),
    (
        over(a_drop(), resolve_reason="by_hand"),
        (
            "Resolved (someone resolved it): answer_relevancy for route docs in shop had dropped from 0.82 to 0.61 "
            "(mean of 120 answers, 95% confidence 0.57 to 0.65) since about Sun 2026-03-01 09:00 UTC."
        ),
    ),
    (
        over(a_drop(), resolve_reason="judge_changed"),
        (
            "Resolved (the judge changed): answer_relevancy for route docs in shop had dropped from 0.82 to 0.61 "
            "(mean of 120 answers, 95% confidence 0.57 to 0.65) since about Sun 2026-03-01 09:00 UTC, and had not "
            "recovered when the judge changed."
        ),
    ),
    (
        a_drop(current=level(0.84), details=REFUSING),
        "noncommittal answers from route docs in shop have risen from 2% to 15% since about Sun 2026-03-01 09:00 UTC.",
    ),
    (
        a_drop(current=level(0.84)),
        (
            "answer_relevancy for route docs in shop is back at 0.84 (mean of 120 answers), baseline 0.82, and is "
            "still being watched."
        ),
    ),
    (
        over(a_drop(current=level(0.84)), resolve_reason="new_baseline"),
        (
            "Resolved (its level is the new baseline): answer_relevancy for route docs in shop was back at 0.84 (mean "
            "of 120 answers), baseline 0.82."
        ),
    ),
    (
        over(a_drop(current=level(0.84)), resolve_reason="judge_changed"),
        (
            "Resolved (the judge changed): answer_relevancy for route docs in shop was back at 0.84 (mean of 120 "
            "answers), baseline 0.82 when the judge changed."
        ),
    ),
    (
        over(a_drop(current=level(0.8199))),
        (
            "Resolved (recovered): answer_relevancy for route docs in shop is back at 0.8199 (mean of 120 answers), "
            "baseline 0.8200."
        ),
    ),
    (
        over(a_drop(current=None)),
        "Resolved (recovered): answer_relevancy for route docs in shop has recovered.",
    ),
    (
        a_drop(**NEW_ROUTE),
        (
            "answer_relevancy for route docs in shop has been low since about Sun 2026-03-01 09:00 UTC: 0.14 (mean of "
            "25 answers, 95% confidence 0.10 to 0.20); the route is new, and the other routes are at 0.76 to 0.88."
        ),
    ),
    (
        a_drop(**NEW_ROUTE | {"current": level(-0.001, 25, (-0.004, 0.01))}),
        (
            "answer_relevancy for route docs in shop has been low since about Sun 2026-03-01 09:00 UTC: 0.00 (mean of "
            "25 answers, 95% confidence 0.00 to 0.01); the route is new, and the other routes are at 0.76 to 0.88."
        ),
    ),
    (
        over(a_drop(**NEW_ROUTE), resolve_reason="rule_removed"),
        (
            "Resolved (its rule was removed): answer_relevancy for route docs in shop had been low since about Sun "
            "2026-03-01 09:00 UTC: 0.14 (mean of 25 answers, 95% confidence 0.10 to 0.20); the route is new, and the "
            "other routes are at 0.76 to 0.88."
        ),
    ),
    (
        over(a_drop(**NEW_ROUTE)),
        "Resolved (recovered): answer_relevancy for route docs in shop is no longer low.",
    ),
    (
        a_drop(**IMPROVED),
        (
            "answer_relevancy for service shop has improved from 0.82 to 0.91 (mean of 120 answers) since about Sun "
            "2026-03-01 09:00 UTC; the new level is watched for drops even if you do not accept it as the baseline, "
            "unless you decline it."
        ),
    ),
    (
        a_drop(**IMPROVED, details={"accepts": True}),
        (
            "answer_relevancy for service shop has improved from 0.82 to 0.91 (mean of 120 answers) since about Sun "
            "2026-03-01 09:00 UTC; the new level becomes the baseline."
        ),
    ),
    (
        over(a_drop(**IMPROVED), resolve_reason="new_baseline"),
        (
            "Resolved (its level is the new baseline): answer_relevancy for service shop has improved from 0.82 to "
            "0.91 (mean of 120 answers) since about Sun 2026-03-01 09:00 UTC."
        ),
    ),
    (
        a_drop(**IMPROVED | {"current": level(0.8)}),
        (
            "answer_relevancy for service shop is back at 0.80 (mean of 120 answers), baseline 0.82: the improvement "
            "did not last."
        ),
    ),
    (
        a_rule("mean_threshold", current=level(0.698), value=0.698, threshold=0.7, window=5400.0),
        "answer_relevancy for route docs in shop is below 0.7: 0.698 (mean of 120 answers) over the last 90 minutes.",
    ),
    (
        over(a_rule("mean_threshold", current=level(0.75), value=0.75, threshold=0.7, window=172_800.0)),
        (
            "Resolved (recovered): answer_relevancy for route docs in shop is no longer below 0.7: 0.75 (mean of 120 "
            "answers) over the last 2 days."
        ),
    ),
    (
        a_rule("low_score_rate", **RATE, window=3600.0),
        (
            "The share of low answer_relevancy scores for route docs in shop is above 10%: 18% (of 120 answers, 95% "
            "confidence 12% to 26%) over the last hour."
        ),
    ),
    (
        a_rule("noncommittal_rate", **RATE, baseline=level(0.05, 900)),
        (
            "The share of noncommittal answers from route docs in shop (by answer_relevancy) is above 10%: 18% (of "
            "120 answers, 95% confidence 12% to 26%); before that, it was 5% (of 900 answers)."
        ),
    ),
    (
        a_rule("no_data", labels=SERVICE, details={"waiting": 5, "usual": 601}, onset=NOON),
        (
            "answer_relevancy has not scored any answers from service shop since Sun 2026-03-01 12:00 UTC; 5 answers "
            "unscored; the next score usually follows within 11 minutes."
        ),
    ),
    (
        a_rule("no_data", labels=SERVICE, details={"waiting": 1}),
        "answer_relevancy has not scored any answers from service shop; 1 answer unscored.",
    ),
    (
        over(a_rule("no_data", labels=SERVICE)),
        "Resolved (recovered): answer_relevancy is scoring answers from service shop again.",
    ),
    (
        a_rule("scorer_error", **FAILED),
        (
            "answer_relevancy has failed for 31 of 31 answers from service shop over the last hour, since about Sun "
            "2026-03-01 11:00 UTC, mostly because the judge is unreachable (judge_unreachable); this says nothing "
            "about the quality of the answers."
        ),
    ),
    (
        over(a_rule("scorer_error", **FAILED | {"details": {"tried": 30, "failed": 0}})),
        (
            "Resolved (recovered): answer_relevancy scores answers from service shop again: 30 of 30 answers over the "
            "last hour, after failures since about Sun 2026-03-01 11:00 UTC."
        ),
    ),
    (
        a_rule("budget_exhausted", labels={}, details=SPENT),
        "The budget is exhausted until Mon 2026-03-02 00:00 UTC (400 requests; $2.00); answers are not scored.",
    ),
    (
        over(a_rule("budget_exhausted", labels={})),
        "Resolved (recovered): the budget is no longer exhausted.",
    ),
    (
        a_rule("judge_drift", **DRIFTED),
        (
            "The judge orca-2 scores answer_relevancy 0.08 lower than before (95% confidence 0.06 to 0.10), since "
            "about Sun 2026-03-01 12:00 UTC, measured on 50 answers that it scores again every day."
        ),
    ),
    (
        over(a_rule("judge_drift", **DRIFTED)),
        "Resolved (recovered): the judge orca-2 scores answer_relevancy as before again.",
    ),
    (
        a_drop(cause="judge_drift", details=FELL_TOO),
        (
            "answer_relevancy for route docs in shop has dropped from 0.82 to 0.61 (mean of 120 answers, 95% "
            "confidence 0.57 to 0.65) since about Sun 2026-03-01 09:00 UTC; the judge scores 0.08 lower than before "
            "(95% confidence 0.06 to 0.10), also for the same answers."
        ),
    ),
    (
        a_drop(details={"judge_since": {"round": None}}),
        (
            "answer_relevancy for route docs in shop has dropped from 0.82 to 0.61 (mean of 120 answers, 95% "
            "confidence 0.57 to 0.65) since about Sun 2026-03-01 09:00 UTC; whether the judge has changed is being "
            "measured."
        ),
    ),
]


@pytest.mark.parametrize(("alert", "expected"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_the_message_of_an_alert_is_one_sentence(alert: Alert, expected: str) -> None:
    """It states what happened, where, since when and how certain it is."""
    assert alert_message(alert) == expected


def test_every_kind_of_message_is_tested() -> None:
    """A new kind needs a template and a case above."""
    kinds = {alert_facts(alert).kind for alert, _ in CASES}
    assert set(get_args(AlertKind)) == set(MESSAGES)
    assert kinds == set(MESSAGES) - {"other"}


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
        (a_rule("judge_drift", **DRIFTED), "judge scores lower (answer_relevancy by 0.08)"),
        (a_rule("judge_drift", **DRIFTED | {"value": 0.08}), "judge scores higher (answer_relevancy by 0.08)"),
        (over(a_rule("judge_drift", **DRIFTED)), "judge scores lower"),
        (a_drop(cause="judge_drift", details=FELL_TOO), "judge scores lower in shop, docs (0.82 to 0.61)"),
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


SUPPORT = a_drop(labels={**LABELS, "route": "support"}, baseline=level(0.74), current=level(0.48))
FAILURE = a_rule("scorer_error", labels=SERVICE, details=FAILING)


@pytest.mark.parametrize(
    ("alerts", "type_", "expected"),
    [
        ([a_drop()], "repeated", "Still firing: drop in shop, docs (0.82 to 0.61)"),
        (
            [a_drop(), over(a_drop())],
            "escalated",
            "Escalated to critical: drop in shop, docs (0.82 to 0.61); 1 resolved",
        ),
        ([a_drop(**IMPROVED)], "firing", "Improvement in shop (0.82 to 0.91)"),
        ([SUPPORT, a_drop()], "firing", "Firing: 2 drops in shop: support (0.74 to 0.48), docs (0.82 to 0.61)"),
        ([over(a_drop())] * 2, "resolved", "Resolved: 2 drops in shop: docs, docs"),
        (
            [SUPPORT, FAILURE],
            "firing",
            (
                "Firing: 2 alerts in shop: drop on support (0.74 to 0.48), judge failing on answer_relevancy (31 of "
                "31 answers unscored)"
            ),
        ),
        (
            [SUPPORT] * 60,
            "firing",
            (
                "Firing: 60 drops in shop: support (0.74 to 0.48), support (0.74 to 0.48), support (0.74 to 0.48) and "
                "57 more"
            ),
        ),
    ],
)
def test_a_subject_line_names_up_to_three_routes_with_their_changes(
    alerts: list[Alert], type_: str, expected: str
) -> None:
    """Alerts of different types are named after their problems, and only firing alerts are counted as firing."""
    assert headline(a_message(*alerts, type_=type_).notification) == expected


def test_names_that_do_not_fit_into_a_subject_line_are_counted() -> None:
    """Slack accepts 150 characters."""
    long = [a_drop(labels={**LABELS, "route": f"{number}" + "x" * 90}) for number in range(5)]
    subject = headline(a_message(*long, type_="escalated").notification)

    assert len(subject) <= 150
    assert subject.endswith(" and 3 more")


def details(alert: Alert, **given: Any) -> dict[str, str]:
    """Return the details that channels show."""
    message = a_message(alert, **given)
    return dict(message.facts_for(message.alerts[0]))


@pytest.mark.parametrize(
    ("alert", "expected"),
    [
        (
            a_drop(
                details=CHANGES | {"refusals": [0.033, 0.2]},
                shifts=SHIFTS,
                cause="refusals_rising",
                onset_interval=DECIDED,
            ),
            {
                "Likely cause": "more refusals: 20% of the answers, 3.3% before",
                "Next step": "see the worst answers and what changed: germane alerts show a1",
                "Now": "0.61 (mean of 120 answers, 95% confidence 0.57 to 0.65)",
                "Baseline": "0.82 (mean of 1400 answers)",
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Largest drops": (
                    "route docs: 0.80 to 0.60; attribute tenant=acme: 0.80 to 0.60; scorer faithfulness: 0.80 to 0.60"
                ),
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
                "Changed": (
                    "index v42 (80 minutes before the drop began), index v41 (10 hours before), deploy (10 "
                    "minutes after)"
                ),
                "Changed earlier": "prompt version 6 \u2192 7 (2 days before)",
            },
        ),
        (
            a_drop(cause="answers_drifting", details={"refusals": [0.033, 0.2]}),
            {
                "Next step": "see the worst answers and what changed: germane alerts show a1",
                "Now": "0.61 (mean of 120 answers, 95% confidence 0.57 to 0.65)",
                "Baseline": "0.82 (mean of 1400 answers)",
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
            },
        ),
        (
            over(a_drop(cause="answers_drifting", shifts=SHIFTS)),
            {
                "Now": "0.61 (mean of 120 answers, 95% confidence 0.57 to 0.65)",
                "Baseline": "0.82 (mean of 1400 answers)",
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
                "Resolved because": "recovered",
            },
        ),
        (
            over(a_drop(), resolve_reason="judge_changed"),
            {
                "Next step": (
                    "check whether recent answers are still worse, because the new baseline is learned "
                    "from them; drops are detected again once it is learned, after 14 days (see germane "
                    "baseline show)"
                ),
                "At the end": "0.61 (mean of 120 answers, 95% confidence 0.57 to 0.65)",
                "Baseline": "0.82 (mean of 1400 answers)",
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
                "Resolved because": "the judge changed",
            },
        ),
        (
            a_drop(**NEW_ROUTE),
            {
                "Next step": "see the worst answers and what changed: germane alerts show a1",
                "Now": "0.14 (mean of 25 answers, 95% confidence 0.10 to 0.20)",
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
            },
        ),
        (
            over(a_drop(**NEW_ROUTE)),
            {
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
                "Resolved because": "recovered",
            },
        ),
        (
            a_drop(**IMPROVED),
            {
                "Next step": "accept it: germane baseline accept a1; or decline it: germane alerts respond resolve a1",
                "Now": "0.91 (mean of 120 answers)",
                "Baseline": "0.82 (mean of 1400 answers)",
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
            },
        ),
        (
            a_drop(**IMPROVED, details={"accepts": True}),
            {
                "Now": "0.91 (mean of 120 answers)",
                "Baseline": "0.82 (mean of 1400 answers)",
                "Scale": "answer_relevancy: how well answers match their questions; at most 1, higher is better",
                "Started about": "2026-03-01 09:00 UTC, 3 h ago",
            },
        ),
        (
            a_rule("mean_threshold", labels={**LABELS, "scorer": "faithfulness"}, current=level(0.698), threshold=0.7),
            {
                "Next step": "see the worst answers and what changed: germane alerts show a1",
                "Now": "0.698 (mean of 120 answers)",
                "Scale": (
                    "faithfulness: how many of the answers' claims the retrieved contexts support; 0 to 1, "
                    "higher is better"
                ),
                "Threshold": "0.7",
            },
        ),
        (
            a_rule("noncommittal_rate", **RATE, baseline=level(0.05, 900)),
            {
                "Next step": "see the worst answers and what changed: germane alerts show a1",
                "Now": "18% (of 120 answers, 95% confidence 12% to 26%)",
                "Before": "5% (of 900 answers)",
                "Threshold": "10%",
            },
        ),
        (
            a_rule("no_data", labels=SERVICE, threshold=7200.0),
            {
                "Next step": "see why scoring fails: germane doctor",
            },
        ),
        (
            a_rule("scorer_error", **FAILED, threshold=0.25),
            {
                "Next step": "see why scoring fails: germane doctor",
                "Threshold": "25% of the answers unscored",
                "Started about": "2026-03-01 11:00 UTC, 60 min ago",
            },
        ),
        (
            a_rule("judge_drift", **DRIFTED),
            {
                "Next step": (
                    "find out what changed on the judge's server; then resolve the alert, and new baselines are "
                    "measured: germane alerts respond resolve a1"
                ),
                "Started about": "2026-03-01 12:00 UTC, just now",
            },
        ),
        (
            a_rule("budget_exhausted", labels={}),
            {
                "Next step": "raise the budget setting, or wait until the budget is available again",
                "Started about": "2026-03-01 12:00 UTC, just now",
            },
        ),
    ],
)
def test_the_details_of_an_alert_are_labeled_lines(alert: Alert, expected: dict[str, str]) -> None:
    """Details without a value are omitted."""
    assert details(alert) == expected | {"Alert": alert.id}


def test_every_built_in_scorer_has_an_explanation_of_its_scale() -> None:
    """A person on call does not have to know its name."""
    assert sorted(MEASURES) == list(BUILTIN_SCORER_NAMES)
