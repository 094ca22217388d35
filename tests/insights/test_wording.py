"""Every sentence on the overview and the comparison page: the facts, and what a person reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from zoneinfo import ZoneInfo

from tests.cases import each
from tests.insights.situations import (
    BASELINE,
    BEFORE,
    DAY,
    FELL,
    NOW,
    STEADY,
    Routes,
    comparisons,
    drop_alert,
    estimate,
    make_situation,
    plain_text,
    service_scores,
    unscored_coverage,
)

from germane.alert import ScoreLevel, ScoreShift
from germane.alerting import Onset
from germane.insights.comparison_context import LaterDrop, VersionContext
from germane.insights.comparison_verdict import ComparedSide, ComparisonVerdict, build_comparison_verdict
from germane.insights.context import ViewParams
from germane.insights.rule_diagnosis import Finding, FindingKind
from germane.insights.situation import Situation
from germane.insights.verdict import VerdictState, build_verdict
from germane.insights.wording import comparison_sentence, context_sentence, finding_sentence, verdict_sentence
from germane.insights.wording.rules import FINDINGS
from germane.insights.wording.verdict import CAUSES, VERDICTS
from germane.score import UnscoredReason
from germane.settings import SHARE_RULES
from germane.statistics import Estimate

ONSET = datetime(2026, 11, 18, 19, 4, tzinfo=UTC)
BEGAN = Onset(ONSET)
AFTER_DEPLOY = Onset(ONSET, deploy='it began 20 minutes after the deploy "index v42"')
ROUTE_ALERT = {"labels": {"service": "shop", "scorer": "answer_relevancy", "route": "ask"}}
THRESHOLD: dict[str, Any] = {
    "type": "mean_threshold", "onset": None, "window": 3600.0, "shifts": (), "current": ScoreLevel(mean=0.33, n=90),
}  # fmt: skip
LITTLE = Estimate(**estimate(0.8, 5))
BEFORE_AND_AFTER = ((BEFORE.since, BEFORE.until), (NOW - DAY, NOW))
SMALL = comparisons({"ask": ((0.80, 400), (0.77, 400))})
SMALL_DIFFERENCE = [replace(line, finding="dropped") for line in SMALL.routes]
JUDGE_CHANGED: dict[str, Any] = {"comparisons": comparisons({"ask": ((0.8, 400), (0.3, 80))}, "f2"), "reference": None}


@each(
    ("situation", "expected"),
    [
        (
            make_situation(FELL, onset=AFTER_DEPLOY),
            (
                "1 of 2 routes got worse: relevancy fell on docs-search. Last 24 h: 0.48 (95% interval "
                "0.42\u20130.54, n=57), compared with 0.78 before (15 Nov to 18 Nov, n=803), since about 18 Nov "
                '19:04. It began 20 minutes after the deploy "index v42". See the worst answers'
            ),
        ),
        (
            make_situation(
                {**FELL, "ask": ((0.8, 400), (0.3, 80))},
                onset=BEGAN,
                reference_period=BASELINE,
            ),
            (
                "2 of 2 routes got worse: relevancy fell most on ask. Last 24 h: 0.30 (95% interval "
                "0.24\u20130.36, n=80), compared with 0.80 in baseline 2 (15 Nov to 18 Nov, n=400), since about "
                "18 Nov 19:04; also on docs-search. See the worst answers"
            ),
        ),
        (
            make_situation(
                {"docs-search": ((0.8, 300), (0.4, 12))},
                onset=BEGAN,
                alerts=[drop_alert()],
                zone=ZoneInfo("Europe/Berlin"),
            ),
            (
                "1 of 1 route got worse: relevancy fell on docs-search. Since about 19 Nov 06:30: 0.42 (n=27), "
                "compared with 0.80 before (n=300). See the worst answers or the alert"
            ),
        ),
        (
            make_situation({}, None, alerts=[drop_alert(**THRESHOLD)]),
            (
                "Relevancy fell on the service as a whole. In the 60 min before 20 Nov 10:30: 0.33 (n=90). See the "
                "worst answers or the alert"
            ),
        ),
        (
            make_situation({}, None, alerts=[drop_alert(**THRESHOLD | {"window": None})]),
            (
                "Relevancy fell on the service as a whole. Until 20 Nov 10:30: 0.33 (n=90). See the worst answers or "
                "the alert"
            ),
        ),
        (
            make_situation(STEADY, alerts=[drop_alert()]),
            (
                "1 of 2 routes got worse: relevancy fell on docs-search. Last 24 h: 0.77 (95% interval "
                "0.71\u20130.83, n=57), compared with 0.78 before (15 Nov to 18 Nov, n=803), since about 19 Nov "
                "05:30; the alert is still open but recovering. See the worst answers or the alert"
            ),
        ),
        (
            make_situation(STEADY, alerts=[drop_alert(type="noncommittal_rate", message="12% refuse.", **ROUTE_ALERT)]),
            (
                "1 of 2 routes got worse: more answers are refusals on ask: 12% refuse. See the worst answers "
                "or the alert"
            ),
        ),
        (
            make_situation(STEADY, alerts=[drop_alert(type="low_score_rate", message="12% are low.", **ROUTE_ALERT)]),
            (
                "1 of 2 routes got worse: more answers have low scores on ask: 12% are low. See the worst answers "
                "or the alert"
            ),
        ),
        (
            make_situation({"ask": ((0.6, 400), (0.9, 80)), "docs": ((0.7, 99), (0.71, 99))}),
            (
                "1 of 2 routes got better: relevancy rose on ask. Last 24 h: 0.90 (95% interval 0.84\u20130.96, "
                "n=80), compared with 0.60 before (15 Nov to 18 Nov, n=400)."
            ),
        ),
        (
            make_situation({**STEADY, "few": ((0.8, 300), (0.79, 7))}, (0.81, 186)),
            (
                "No clear change on any of 2 routes in the last 24 h: 0.81 (95% interval 0.75\u20130.87, n=186), "
                "compared with 0.80 before (15 Nov to 18 Nov, n=900); 1 of 3 routes had too few answers to compare."
            ),
        ),
        (
            replace(make_situation({"ask": STEADY["ask"]}), route="ask", reference=None),
            "No clear change on this route in the last 24 h: 0.80 (95% interval 0.74\u20130.86, n=186).",
        ),
        (
            make_situation({"ask": (None, (0.8, 40))}, (0.8, 40), reference=None, scorer="faithfulness"),
            (
                "Faithfulness is 0.80 (95% interval 0.74\u20130.86, n=40) in the last 24 h; there is nothing to "
                "compare it with yet."
            ),
        ),
        (
            make_situation({"ask": ((0.8, 5), (0.8, 40))}, (0.8, 40), reference=LITTLE),
            (
                "Relevancy is 0.80 (95% interval 0.74\u20130.86, n=40) in the last 24 h; there is nothing to compare "
                "it with yet: not enough data (n=5, need 20) before."
            ),
        ),
        (
            make_situation({}, current=service_scores((0.3, 80), "f2"), **JUDGE_CHANGED),
            (
                "The judge changed, so scores cannot be compared yet. Mean with the new judge in the last 24 h: 0.30 "
                "(95% interval 0.24\u20130.36, n=80)."
            ),
        ),
        (
            make_situation({}, current=service_scores((0.3, 9), "f2"), **JUDGE_CHANGED),
            "The judge changed, so scores cannot be compared yet. New judge: not enough data (n=9, need 20).",
        ),
        (
            make_situation({"ask": ((0.8, 400), (0.1, 7))}, (0.1, 7)),
            "Not enough data in the last 24 h (n=7, need 20).",
        ),
        (
            make_situation({}, None, comparisons=None, answered_at=NOW - 3 * DAY),
            (
                "The newest answer is 3 days old. No answer has arrived since 17 Nov 10:30. Check that the "
                "application runs and writes to this database: run germane doctor. Open the worker page"
            ),
        ),
        (
            Situation(scorer=None, now=NOW),
            "No answer has been captured yet. Instrument your application",
        ),
        (
            Situation(scorer=None, now=NOW, answered_at=NOW, route="ask"),
            "No answer arrived on this route in the last 24 h.",
        ),
    ],
)
def test_the_verdict_is_one_sentence(situation: Situation, expected: str) -> None:
    """It contains n, the interval and the reference, and times in the visitor's time zone."""
    assert plain_text(verdict_sentence(build_verdict(situation))) == expected


@each(
    ("more", "expected"),
    [
        (
            {"coverage": unscored_coverage(1200, pending=1200)},
            (
                "1,200 answers arrived in the last 24 h and none was scored: 1,200 are waiting to be scored. Open the "
                "worker page"
            ),
        ),
        (
            {"coverage": unscored_coverage(1, pending=1), "has_judge": False},
            (
                "One answer arrived in the last 24 h and was not scored: no judge is configured. Set OPENAI_API_KEY "
                "or OPENAI_BASE_URL, or configure scorers that need no judge. Open the worker page"
            ),
        ),
        (
            {"has_worker": False},
            (
                "Answers arrived in the last 24 h and none was scored: no worker is running. Run germane worker. Open "
                "the worker page"
            ),
        ),
        (
            {"coverage": unscored_coverage(12, failed={"judge_unreachable": 12}), "scored_at": NOW - 2 * DAY},
            (
                "12 answers arrived in the last 24 h and none was scored: the judge is unreachable (no scores since "
                "18 Nov 10:30). Check its URL, and that it is running. Open the worker page"
            ),
        ),
    ],
)
def test_the_verdict_on_unscored_answers_names_cause_and_remedy(more: dict[str, Any], expected: str) -> None:
    """The time of the last score is added if it is known."""
    assert plain_text(verdict_sentence(build_verdict(make_situation({}, None, comparisons=None, **more)))) == expected


def test_every_state_and_reason_has_a_sentence() -> None:
    """All other states are rendered by other tests."""
    assert set(CAUSES) == {*UnscoredReason, "no_judge", "no_worker", "pending", "undecided"}
    assert {*get_args(VerdictState), *SHARE_RULES} - {"recovering"} == set(VERDICTS)


def test_the_verdict_states_the_cause_and_the_group_that_there_is_evidence_for() -> None:
    """Evidence that was found after the alert fired counts. Causes that repeat the symptom are omitted."""
    level = ScoreLevel(mean=0.8, n=300)
    shifts = [
        ScoreShift(dimension="attribute", name=name, before=level, since=level, supported=supported)
        for name, supported in (("tenant=acme", False), ("model=orca-2", True))
    ]

    def text(**alert: Any) -> str:
        alert["labels"] = {"service": "shop", "scorer": "answer_relevancy", "route": "docs-search"}
        explained = drop_alert(**alert)
        situation = make_situation(FELL, alerts=[drop_alert(labels=explained.labels)], explained=explained)
        return plain_text(verdict_sentence(build_verdict(situation)))

    said = "Likely cause: retrieval returns less relevant contexts. The drop is largest where model=orca-2. See"
    assert said in text(cause="retrieval_worse", shifts=tuple(shifts))
    unsupported = text(cause="answers_drifting", shifts=tuple(shifts[:1]))
    assert "Likely cause" not in unsupported
    assert "largest" not in unsupported


def test_the_links_of_a_verdict_lead_to_its_route_answers_and_alerts() -> None:
    """The answers are those since the onset."""
    situation = make_situation(FELL, alerts=[drop_alert()])

    hrefs = [piece.href for piece in verdict_sentence(build_verdict(situation)) if piece.href]

    assert hrefs == [
        "/r/docs-search",
        "/answers?since=2026-11-19T05%3A30%3A00%2B00%3A00&sort=lowest&route=docs-search",
        "/alerts/a1",
    ]


VERSIONS = tuple(
    ComparedSide(name=f"prompt version {name}", window=BEFORE_AND_AFTER[0], condition={"prompt_version": name})
    for name in "67"
)
PERIODS = tuple(ComparedSide(name=name, window=BEFORE_AND_AFTER[0]) for name in ("13 to 14 Nov", "14 to 15 Nov"))


def compare(routes: Routes, new: str = "f1", sides: tuple[ComparedSide, ...] = VERSIONS) -> ComparisonVerdict:
    """Return the verdict on two sides of these routes."""
    return build_comparison_verdict(comparisons(routes, new), sides, "answer_relevancy", 0.05)


@each(
    ("verdict", "expected"),
    [
        (
            compare({**FELL, "ask": ((0.8, 400), (0.3, 80)), "docs": ((0.3, 400), (0.7, 80))}),
            (
                "Relevancy is worse with prompt version 7 than with prompt version 6 on ask: 0.30 (95% interval "
                "0.24\u20130.36, n=80), compared with 0.80 (95% interval 0.74\u20130.86, n=400); difference "
                "\u22120.50, 95% interval \u22120.58 to \u22120.42; also on 1 more route; better on 1 route."
            ),
        ),
        (
            compare({"docs": ((0.3, 400), (0.7, 80))}, sides=PERIODS),
            (
                "Relevancy is better from 14 to 15 Nov than from 13 to 14 Nov on docs: 0.70 (95% interval "
                "0.64\u20130.76, n=80), compared with 0.30 (95% interval 0.24\u20130.36, n=400); difference +0.40, "
                "95% interval 0.32\u20130.48."
            ),
        ),
        (
            compare({"ask": ((0.8, 400), (0.81, 80)), "few": ((0.8, 400), (0.81, 8))}),
            (
                "No difference shown between prompt version 6 and prompt version 7: 0.80 (95% interval "
                "0.76\u20130.84, n=800) and 0.81 (95% interval 0.77\u20130.85, n=88); difference +0.01, 95% interval "
                "\u22120.05 to 0.07; 1 of 2 routes have too few scores to compare."
            ),
        ),
        (
            replace(compare({"ask": ((0.80, 400), (0.77, 400))}), routes=SMALL_DIFFERENCE),
            (
                "No difference of 0.05 or more shown between prompt version 6 and prompt version 7: 0.80 (95% "
                "interval 0.74\u20130.86, n=400) and 0.77 (95% interval 0.71\u20130.83, n=400); difference "
                "\u22120.03, 95% interval \u22120.11 to 0.05."
            ),
        ),
        (
            compare({"ask": ((0.8, 400), (0.81, 80))}, "f2"),
            "The judge changed, so the two sides cannot be compared. No fingerprint has enough scores on both sides.",
        ),
        (
            compare({"ask": ((0.8, 1400), (0.81, 8))}),
            (
                "Not enough data to compare: n=1,400 with prompt version 6 and n=8 with prompt version 7, need 20 on "
                "each side."
            ),
        ),
        (
            compare({"ask": ((0.8, 400), (0.81, 8)), "docs": ((0.8, 1), (0.81, 8))}),
            (
                "Not enough data to compare: n=401 with prompt version 6 and n=16 with prompt version 7, need 20 on "
                "each side of a route."
            ),
        ),
        (
            ComparisonVerdict(state="one_version", by="prompt_version"),
            "Not enough data to compare: this window has scores of only one prompt version.",
        ),
        (
            ComparisonVerdict(state="no_version", by="model"),
            "Not enough data to compare: no model has scores in this window.",
        ),
        (
            ComparisonVerdict(state="no_scores", sides=PERIODS),
            "No scores from 13 to 14 Nov or from 14 to 15 Nov.",
        ),
        (
            ComparisonVerdict(state="empty"),
            "No scores in this window.",
        ),
    ],
)
def test_the_verdict_on_a_comparison_is_one_sentence(verdict: ComparisonVerdict, expected: str) -> None:
    """It contains both means, and the difference with its interval."""
    assert plain_text(comparison_sentence(verdict)) == expected


def test_the_context_of_a_comparison_names_versions_and_later_drops() -> None:
    """Without a drop or a version that began together with the new one, its sentence is omitted."""
    view = ViewParams(window="7d", since=NOW - 7 * DAY, until=NOW, zone=UTC)
    drop = LaterDrop(onset=ONSET, route="docs", deploy=AFTER_DEPLOY.deploy, path="/compare")
    together = {"model": "larch-2", "prompt_version": "7"}

    def sentence(began_together: dict[str, str] | None, later_drop: LaterDrop | None) -> str:
        context = VersionContext(began=NOW - 3 * DAY, began_together=began_together, later_drop=later_drop)
        return plain_text(context_sentence(context, view))

    assert sentence(together, drop) == (
        "larch-2 and prompt version 7 began together on 17 Nov, so this comparison cannot distinguish them. The drop "
        'on docs began later, on 18 Nov 19:04. It began 20 minutes after the deploy "index v42". '
        "Compare the time before and after it"
    )
    assert (
        sentence(None, replace(drop, route=None, deploy=None, path=None)) == "The drop began later, on 18 Nov 19:04. "
    )


STREAM: dict[str, Any] = {"scorer": "answer_relevancy", "service": "shop", "until": NOW}
IN_WINDOW: dict[str, Any] = {"service": "shop", "scorer": "mine", "route": "docs", "window": timedelta(hours=24)}
MEAN = ScoreLevel(mean=0.62, n=1200, interval=(0.6, 0.64))


@each(
    ("finding", "expected"),
    [
        (
            Finding(kind="disabled"),
            "The rule is disabled in the settings (enabled = false).",
        ),
        (
            Finding(kind="other_route"),
            "The rule's route patterns do not match this route.",
        ),
        (
            Finding(kind="other_scorer", scorer="faithfulness"),
            "The rule covers only scores from faithfulness.",
        ),
        (
            Finding(kind="no_budget"),
            "No budget is configured.",
        ),
        (
            Finding(kind="no_scores"),
            "There are no scores in this window.",
        ),
        (
            Finding(kind="no_scores", scorer="mine"),
            "There are no scores from mine in this window.",
        ),
        (
            Finding(kind="uncovered_route", route="docs", **STREAM),
            "answer_relevancy for shop: the baseline does not cover route docs until the route has enough scores.",
        ),
        (
            Finding(kind="not_learning", **STREAM),
            "answer_relevancy for shop: no baseline is being learned, because no worker has evaluated the rule yet.",
        ),
        (
            Finding(kind="learning", **STREAM),
            (
                "answer_relevancy for shop: learning a baseline until Fri 20 Nov 2026, 11:30 CET. Large drops are "
                "detected after one day and 200 scores."
            ),
        ),
        (
            Finding(kind="few_scores", level=MEAN, limit=5000, **IN_WINDOW),
            (
                "Route docs, service shop: n=1200 in 24 h, but the rule needs 5000; the window is extended until it "
                "contains enough scores."
            ),
        ),
        (
            Finding(kind="share_unknown", **IN_WINDOW),
            "Route docs, service shop: mine does not detect noncommittal answers.",
        ),
        (
            Finding(kind="silenced", until=NOW),
            "Notifications are silenced until Fri 20 Nov 2026, 11:30 CET. The alert still fires and resolves.",
        ),
        (
            Finding(kind="partly_silenced", until=NOW),
            "Some notifications are silenced until Fri 20 Nov 2026, 11:30 CET. The alert still fires and resolves.",
        ),
        (
            Finding(kind="no_worker"),
            "No worker is running, and only workers evaluate rules.",
        ),
        (
            Finding(kind="provisional", **STREAM),
            (
                "answer_relevancy for shop: until Fri 20 Nov 2026, 11:30 CET, the baseline is provisional, and drops "
                "below 0.1 are missed."
            ),
        ),
        (
            Finding(kind="no_drop", limit=1.0, **STREAM),
            (
                "answer_relevancy for shop: no drop detected. To keep false alerts to 1 per year, detection waits for "
                "more evidence than the overview, which can report a drop earlier."
            ),
        ),
        (
            Finding(kind="mean_below", level=MEAN, limit=0.7, **IN_WINDOW),
            "Route docs, service shop: the mean is 0.62 (95% interval 0.60\u20130.64, n=1,200), below 0.7.",
        ),
        (
            Finding(kind="mean_not_below", level=MEAN, limit=0.63, **IN_WINDOW),
            (
                "Route docs, service shop: the mean is 0.62 (95% interval 0.60\u20130.64, n=1,200), not significantly "
                "below 0.63."
            ),
        ),
        (
            Finding(kind="mean_not_below", level=MEAN, limit=0.6, **IN_WINDOW),
            "Route docs, service shop: the mean is 0.62 (95% interval 0.60\u20130.64, n=1,200), not below 0.6.",
        ),
        (
            Finding(kind="share_above", level=MEAN, limit=0.1, **IN_WINDOW),
            "Route docs, service shop: the share is 62% (n=1,200), above 10%.",
        ),
        (
            Finding(kind="share_not_above", level=MEAN, limit=0.61, **IN_WINDOW),
            "Route docs, service shop: the share is 62% (n=1,200), not significantly above 61%.",
        ),
    ],
)
def test_each_reason_why_a_rule_is_not_firing_is_one_sentence(finding: Finding, expected: str) -> None:
    """Times are in the visitor's time zone."""
    view = ViewParams(window="7d", since=NOW - 7 * DAY, until=NOW, zone=ZoneInfo("Europe/Berlin"))
    assert finding_sentence(finding, view) == expected


def test_every_finding_has_a_sentence() -> None:
    """A new kind needs a template and a case above."""
    assert set(get_args(FindingKind)) == set(FINDINGS)
