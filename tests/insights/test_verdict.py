"""The facts of the verdict in every state, consistent with open alerts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each
from tests.insights.situations import (
    DAY,
    FELL,
    NOW,
    STEADY,
    Routes,
    Side,
    comparisons,
    drop_alert,
    estimate,
    make_situation,
    route_scores,
    service_scores,
    unscored_coverage,
)

from germane.alert import Alert, AlertState, ScoreLevel, ScoreShift
from germane.alerting import Onset
from germane.insights.situation import Situation
from germane.insights.verdict import build_verdict
from germane.insights.wording import verdict_sentence
from germane.statistics import Estimate


def test_the_verdict_on_a_drop_names_route_size_and_onset() -> None:
    """The size is the difference between the means of both periods."""
    onset = Onset(datetime(2026, 11, 18, 19, tzinfo=UTC))

    found = build_verdict(make_situation(FELL, onset=onset))

    assert (found.state, found.tone, found.routes) == ("worse", "bad", ("docs-search",))
    assert found.onset == onset
    assert (found.began, found.began_on, found.lacks_alert) == (onset.at, "docs-search", True)
    assert found.movements[0].drop == pytest.approx(0.3)


def test_a_verdict_names_the_largest_drop_and_counts_other_drops() -> None:
    """Only significant drops count."""
    more = {**FELL, "ask": ((0.8, 400), (0.3, 80)), "new": (None, (0.1, 400)), "few": ((0.9, 400), (0.1, 19))}

    found = build_verdict(make_situation(more))

    assert found.routes == ("ask", "docs-search")


def test_a_service_can_drop_without_a_significant_drop_on_any_route() -> None:
    """All routes together can be significant when no single one is."""
    routes: Routes = {f"r{number}": ((0.80, 900), (0.72, 60)) for number in range(12)}

    found = build_verdict(make_situation(routes, (0.72, 720)))

    assert (found.state, found.routes, len(found.movements)) == ("worse", (), 1)


def test_steady_means_are_unchanged() -> None:
    """Routes without enough data do not change the verdict."""
    found = build_verdict(make_situation({**STEADY, "few": ((0.8, 300), (0.79, 7))}))

    assert (found.state, found.tone) == ("unchanged", "good")


def test_a_small_drop_is_not_reported() -> None:
    """With 100,000 answers, every difference is significant, so the rule sets a minimum size."""
    routes: Routes = {"ask": ((0.80, 100_000), (0.77, 100_000))}
    sharp = comparisons(routes)
    narrow = [replace(one, interval=(-0.031, -0.029), finding="dropped") for one in sharp.routes]
    given = make_situation(routes, comparisons=replace(sharp, routes=narrow))

    assert build_verdict(given).state == "unchanged"
    assert build_verdict(replace(given, min_drop=0.02)).state == "worse"


def test_an_improvement_is_reported() -> None:
    """The improvement is reported only if no route dropped."""
    found = build_verdict(make_situation({"ask": ((0.6, 400), (0.9, 80)), "docs": ((0.7, 99), (0.71, 99))}))
    more = build_verdict(make_situation(dict.fromkeys(("ask", "docs", "faq"), ((0.6, 400), (0.9, 80)))))
    both = build_verdict(make_situation({**FELL, "ask": ((0.6, 400), (0.9, 80))}))

    assert (found.state, found.tone, found.routes) == ("better", "good", ("ask",))
    assert (more.state, more.routes) == ("better", ("ask", "docs", "faq"))
    assert both.state == "worse"


def test_there_is_no_verdict_with_fewer_than_twenty_scores() -> None:
    """The minimum applies to the service as well."""
    found = build_verdict(make_situation({"ask": ((0.8, 400), (0.1, 7))}, (0.1, 7)))

    assert (found.state, found.tone) == ("few", "")


def test_the_first_day_is_not_compared_with_earlier_scores() -> None:
    """This holds without earlier scores, and with too few of them."""
    found = build_verdict(make_situation({"ask": (None, (0.8, 40))}, (0.8, 40), reference=None))
    little = build_verdict(
        make_situation({"ask": ((0.8, 5), (0.8, 40))}, (0.8, 40), reference=Estimate(**estimate(0.8, 5)))
    )

    assert found.state == little.state == "new"


def test_scores_from_different_judges_are_not_compared_in_a_verdict() -> None:
    """This holds even if all means dropped."""
    routes: Routes = {"ask": ((0.8, 400), (0.3, 80))}
    given = make_situation(
        routes, comparisons=comparisons(routes, "f2"), current=service_scores((0.3, 80), "f2"), reference=None
    )

    assert build_verdict(given).state == "judge_changed"
    assert build_verdict(replace(given, current=service_scores((0.3, 9), "f2"))).state == "judge_changed"


def test_a_verdict_on_stale_data_does_not_claim_that_answers_are_fine() -> None:
    """Missing answers are not a sign of good health."""
    found = build_verdict(make_situation({}, None, comparisons=None, answered_at=NOW - 3 * DAY))

    assert (found.state, found.tone) == ("stale", "warn")


def test_the_verdict_on_an_empty_database_says_nothing_about_scores() -> None:
    """A route without answers today is a different state."""
    assert build_verdict(Situation(scorer=None, now=NOW)).state == "empty"
    assert build_verdict(Situation(scorer=None, now=NOW, answered_at=NOW, route="ask")).state == "silent"


@each(
    ("more", "expected"),
    [
        ({"coverage": unscored_coverage(12, pending=12), "has_judge": False}, "no_judge"),
        ({"coverage": unscored_coverage(12, pending=12), "has_worker": False}, "no_worker"),
        ({"coverage": unscored_coverage(12, pending=12)}, "pending"),
        ({"coverage": unscored_coverage(12)}, "undecided"),
        ({"coverage": unscored_coverage(12, skipped={"not_sampled": 12})}, "not_sampled"),
        ({"coverage": unscored_coverage(12, skipped={"budget": 5}, failed={"judge_timeout": 7})}, "judge_timeout"),
        ({"coverage": unscored_coverage(12, pending=12), "retry_reason": "judge_rejected"}, "judge_rejected"),
    ],
)
def test_the_verdict_on_unscored_answers_names_the_main_cause(more: dict[str, Any], expected: str) -> None:
    """Reasons that tasks had so far come before what the settings and workers lack."""
    found = build_verdict(make_situation({}, None, comparisons=None, **more))

    assert (found.state, found.tone) == ("unscored", "warn")
    assert found.unscored is not None
    assert (found.unscored.seen, found.unscored.reason) == (12, expected)


def test_a_verdict_on_an_open_alert_has_the_alert_and_its_onset() -> None:
    """This holds even if the last day alone is not significant. Then, the levels are those of the alert."""
    alert = drop_alert()
    few = build_verdict(make_situation({"docs-search": ((0.8, 300), (0.4, 12))}, (0.4, 12), alerts=[alert]))
    sure = build_verdict(make_situation(FELL, alerts=[alert]))

    assert few.state == sure.state == "worse"
    assert few.alerts == sure.alerts == (alert,)
    assert few.began == sure.began == alert.onset
    assert (few.movements[0].period, few.movements[0].levels) == (
        "onset",
        (alert.shifts[0].before, alert.shifts[0].since),
    )
    assert sure.movements[0].period == "day"


def test_the_level_of_a_threshold_alert_covers_the_window_of_its_rule() -> None:
    """In that window, some answers are older than the change."""
    level = ScoreLevel(mean=0.33, n=90)
    alert = drop_alert(type="mean_threshold", onset=None, window=3600.0, shifts=(), current=level, baseline=None)

    (found,) = build_verdict(make_situation({}, None, alerts=[alert])).movements

    assert (found.period, found.levels) == ("window", (None, level))


@each("state", ["firing", "recovering"])
def test_an_open_alert_is_called_recovering_once_scores_recover(state: AlertState) -> None:
    """The alert stays open until its rule resolves it."""
    found = build_verdict(make_situation(STEADY, alerts=[drop_alert(state=state)]))

    assert (found.state, found.tone) == ("recovering", "warn")


def test_alerts_about_a_route_or_a_share_of_answers_are_reported() -> None:
    """Steady means do not show that a share is recovering."""
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": "ask"}
    found = build_verdict(make_situation(STEADY, alerts=[drop_alert(type="noncommittal_rate", labels=labels)]))

    assert (found.state, found.routes, found.movements[0].is_about_share) == ("worse", ("ask",), True)


def test_a_share_of_answers_is_never_shown_as_a_mean() -> None:
    """A share rises when quality falls, so as a change of the mean it would contradict the verdict."""
    levels = {"baseline": ScoreLevel(mean=0.1, n=90), "current": ScoreLevel(mean=0.4, n=90)}
    alert = drop_alert(type="noncommittal_rate", shifts=(), **levels)

    (found,) = build_verdict(make_situation({}, None, alerts=[alert])).movements

    assert (found.levels, found.drop) == ((None, None), 0.0)


def test_open_alerts_that_do_not_affect_the_verdict_are_listed() -> None:
    """Such alerts are about another scorer or about scoring itself."""
    other = drop_alert(id="a2", labels={"service": "shop", "scorer": "faithfulness"})
    broken = drop_alert(id="a3", type="scorer_error")

    found = build_verdict(make_situation(STEADY, alerts=[other, broken]))

    assert found.state == "unchanged"
    assert [one.id for one in found.other_alerts] == ["a2", "a3"]


def shared_drop_alert() -> Alert:
    """Return an alert about a whole service. One of its routes fell most, but by chance, and of five answers."""
    shift = ScoreShift(
        dimension="route", name="docs-search", before=ScoreLevel(mean=0.8, n=300), since=ScoreLevel(mean=0.3, n=5)
    )
    return drop_alert(shifts=(shift,), baseline=ScoreLevel(mean=0.8, n=900), current=ScoreLevel(mean=0.6, n=90))


def test_a_drop_of_a_whole_service_names_no_route_without_evidence() -> None:
    """The route that fell most of all is only the unluckiest."""
    found = build_verdict(make_situation(STEADY, alerts=[shared_drop_alert()]))

    assert (found.routes, found.began_on) == ((), None)
    assert found.alerts == (shared_drop_alert(),)


def test_an_alert_about_a_whole_service_is_the_alert_about_its_routes_that_fell() -> None:
    """Nobody asks why there is no alert, and the page of each of these routes states the onset of the alert."""
    situation = make_situation({**FELL, "ask": ((0.8, 400), (0.6, 80))}, alerts=[shared_drop_alert()])
    of_route = [situation.for_route(route, route_scores(route, (0.5, 57)), None) for route in ("ask", "docs-search")]

    found, *on_routes = map(build_verdict, (situation, *of_route))

    assert found.routes == ("docs-search", "ask")
    assert [move.alert for move in found.movements] == [shared_drop_alert(), None]
    assert [verdict.alerts for verdict in (found, *on_routes)] == [(shared_drop_alert(),)] * 3
    assert not any(verdict.lacks_alert for verdict in on_routes)


def test_the_verdict_is_about_a_drop_that_has_enough_scores() -> None:
    """A larger drop whose mean is not stated, because it has fewer than 20 scores, comes later."""
    few = ScoreLevel(mean=0.1, n=14)
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": "ask"}
    alert = drop_alert(labels=labels, shifts=(), baseline=ScoreLevel(mean=0.8, n=300), current=few)

    found = build_verdict(make_situation({**FELL, "ask": ((0.8, 400), (0.1, 14))}, alerts=[alert]))

    assert found.routes == ("docs-search", "ask")


SIDES = st.one_of(st.none(), st.tuples(st.floats(0.1, 0.9), st.integers(1, 900)))


@given(
    sides=st.lists(st.tuples(SIDES, SIDES), max_size=4),
    kind=st.sampled_from(["drop", "mean_threshold", "low_score_rate", "noncommittal_rate"]),
    route=st.sampled_from([None, "r0", "r9"]),
    age=st.integers(0, 100),
)
def test_a_verdict_never_contradicts_an_open_alert(
    sides: list[tuple[Side | None, Side | None]], kind: str, route: str | None, age: int
) -> None:
    """Whatever the means, the state is worse or recovering, and the verdict links to the alert."""
    labels = {"service": "shop", "scorer": "answer_relevancy"} | ({} if route is None else {"route": route})
    routes = {f"r{number}": pair for number, pair in enumerate(sides)}
    alert = drop_alert(type=kind, labels=labels)

    found = build_verdict(make_situation(routes, alerts=[alert], answered_at=NOW - timedelta(hours=age)))

    assert found.state in {"worse", "recovering"}
    assert "/alerts/a1" in [piece.href for piece in verdict_sentence(found)]
