"""The verdict sentence in every state, consistent with open alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alert import Alert, AlertState, ScoreLevel, ScoreShift
from germane.insights.situation import ComparisonPeriod, Situation, estimate_onset
from germane.insights.verdict import Verdict, build_verdict
from germane.storage import Bucket, Comparisons, Coverage, Estimate, RouteSummary, ServiceSummary, compare_summaries

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
DAY = timedelta(days=1)
BEFORE = ComparisonPeriod(since=NOW - 5 * DAY, until=NOW - 2 * DAY)
BASELINE = replace(BEFORE, baseline=2)
Side = tuple[float, int]
"""A mean and its n."""
Routes = dict[str, tuple[Side | None, Side | None]]
"""The means before and now, by route."""


def estimate(mean: float, n: int, half: float = 0.06) -> dict[str, Any]:
    """Return an estimate."""
    ends = None if n < 2 else (mean - half, mean + half)
    shares: dict[str, Any] = {"low_share": 0.1, "noncommittal_share": 0.0, "deviation": 0.2}
    return {"n": n, "mean": mean, "interval": ends, **shares}


def route_scores(name: str, side: Side, fingerprint: str = "f1") -> RouteSummary:
    """Return one route's scores in a window."""
    coverage = Coverage(service="shop", route=name, scorer="answer_relevancy", seen=side[1], scored=side[1])
    who: dict[str, Any] = {"service": "shop", "route": name, "scorer": "answer_relevancy", "fingerprint": fingerprint}
    return RouteSummary(**who, **estimate(*side), newest=True, latest=NOW, coverage=coverage)


def service_scores(side: Side, fingerprint: str = "f1") -> ServiceSummary:
    """Return a service's scores."""
    coverage = Coverage(service="shop", route="", scorer="answer_relevancy", seen=side[1], scored=side[1])
    who: dict[str, Any] = {"service": "shop", "scorer": "answer_relevancy", "fingerprint": fingerprint}
    return ServiceSummary(**who, **estimate(*side), newest=True, latest=NOW, coverage=coverage)


def comparisons(routes: Routes, new: str = "f1") -> Comparisons:
    """Compare routes before and now; ``new`` is the current fingerprint."""
    old = [route_scores(name, before) for name, (before, _) in routes.items() if before]
    now = [route_scores(name, after, new) for name, (_, after) in routes.items() if after]
    return compare_summaries(old, now, ((BEFORE.since, BEFORE.until), (NOW - DAY, NOW)))


def make_situation(routes: Routes, now: Side | None = (0.8, 186), **more: Any) -> Situation:
    """Return the situation of a service with these routes."""
    usual = Estimate(**estimate(0.8, 900, 0.02))
    given: dict[str, Any] = {
        "scorer": "answer_relevancy",
        "now": NOW,
        "zone": ZoneInfo("UTC"),
        "current": None if now is None else service_scores(now),
        "reference": usual,
        "reference_period": BEFORE,
        "comparisons": comparisons(routes),
        "answered_at": NOW - timedelta(minutes=1),
    }
    return Situation(**given | more)


def drop_alert(**more: Any) -> Alert:
    """Return an open relevancy alert that is caused mainly by ``docs-search``."""
    shift = ScoreShift(
        dimension="route", name="docs-search", before=ScoreLevel(mean=0.8, n=300), since=ScoreLevel(mean=0.42, n=27)
    )
    defaults: dict[str, Any] = {
        "id": "a1",
        "key": "k",
        "rule": "drop",
        "type": "drop",
        "labels": {"service": "shop", "scorer": "answer_relevancy"},
        "state": "firing",
        "message": "relevancy dropped.",
        "onset": NOW - timedelta(hours=29),
        "shifts": (shift,),
        "starts_at": NOW - timedelta(hours=25),
        "evaluated_at": NOW,
    }
    return Alert(**defaults | more)


FELL: Routes = {
    "ask": ((0.8, 400), (0.81, 80)),
    "docs-search": ((0.78, 803), (0.48, 57)),
}
STEADY: Routes = {
    "ask": ((0.8, 400), (0.81, 80)),
    "docs-search": ((0.78, 803), (0.77, 57)),
}


def hrefs(found: Verdict) -> list[str]:
    """Return the link targets."""
    return [piece.href for piece in found.pieces if piece.href]


def test_the_verdict_on_a_drop_names_route_size_and_onset() -> None:
    """The sentence contains n, the interval, and the reference."""
    onset = datetime(2026, 11, 18, 19, tzinfo=UTC)

    found = build_verdict(make_situation(FELL, onsets={"docs-search": onset}))

    assert found.text == (
        "Relevancy fell on docs-search. Last 24 h: 0.48 (95% interval 0.42\u20130.54, n=57), compared with 0.78 "
        "before (15 Nov to 18 Nov, n=803), since about 18 Nov 19:00. See the worst answers"
    )
    assert (found.state, found.tone, found.routes) == ("worse", "bad", ("docs-search",))
    assert hrefs(found) == [
        "/r/docs-search",
        "/answers?since=2026-11-18T19%3A00%3A00%2B00%3A00&sort=lowest&route=docs-search",
    ]


def test_a_verdict_names_the_baseline_that_it_compares_with() -> None:
    """The verdict contains the baseline's version and period."""
    assert (
        "0.78 in baseline 2 (15 Nov to 18 Nov, n=803)"
        in build_verdict(make_situation(FELL, reference_period=BASELINE)).text
    )


def test_a_verdict_names_the_largest_drop_and_counts_other_drops() -> None:
    """Only significant drops count."""
    more = {**FELL, "ask": ((0.8, 400), (0.3, 80)), "new": (None, (0.1, 400)), "few": ((0.9, 400), (0.1, 19))}

    found = build_verdict(make_situation(more))

    assert found.routes == ("ask", "docs-search")
    assert "fell on ask" in found.text
    assert "; also on 1 more route." in found.text


def test_times_in_a_verdict_use_the_time_zone_of_the_visitor() -> None:
    """The time zone applies to both the time and the date."""
    onset = datetime(2026, 11, 18, 23, 30, tzinfo=UTC)
    given = make_situation(FELL, onsets={"docs-search": onset}, zone=ZoneInfo("Europe/Berlin"))

    assert "since about 19 Nov 00:30" in build_verdict(given).text
    assert "since about 19 Nov. See" in build_verdict(replace(given, onset_step=DAY)).text


def test_a_service_can_drop_without_a_significant_drop_on_any_route() -> None:
    """All routes together can be significant when no single one is."""
    routes: Routes = {f"r{number}": ((0.80, 900), (0.72, 60)) for number in range(12)}

    found = build_verdict(make_situation(routes, (0.72, 720)))

    assert "Relevancy fell on the service as a whole. Last 24 h: 0.72" in found.text
    assert (found.state, found.routes) == ("worse", ())


def test_a_verdict_without_a_change_names_mean_and_baseline() -> None:
    """The verdict also states the number of routes without enough data."""
    found = build_verdict(make_situation(STEADY, (0.81, 186)))
    unsure = build_verdict(make_situation({**STEADY, "few": ((0.8, 300), (0.79, 7))}))

    assert found.text == (
        "No clear change on any route in the last 24 h: 0.81 (95% interval 0.75\u20130.87, n=186), "
        "compared with 0.80 before (15 Nov to 18 Nov, n=900)."
    )
    assert (found.state, found.tone) == ("unchanged", "good")
    assert "; 1 of 3 routes had too few answers to compare." in unsure.text


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
    both = build_verdict(make_situation({**FELL, "ask": ((0.6, 400), (0.9, 80))}))

    assert found.text.startswith("Relevancy rose on ask. Last 24 h: 0.90 (95% interval")
    assert (found.state, found.tone, found.routes) == ("better", "good", ("ask",))
    assert both.state == "worse"


def test_there_is_no_verdict_with_fewer_than_twenty_scores() -> None:
    """The minimum applies to the sentence too."""
    found = build_verdict(make_situation({"ask": ((0.8, 400), (0.1, 7))}, (0.1, 7)))

    assert found.text == "Not enough data in the last 24 h (n=7, need 20)."
    assert (found.state, found.tone) == ("few", "")


def test_the_first_day_is_not_compared_with_earlier_scores() -> None:
    """The verdict states the mean without a change."""
    found = build_verdict(make_situation({"ask": (None, (0.8, 40))}, (0.8, 40), reference=None))
    little = build_verdict(
        make_situation({"ask": ((0.8, 5), (0.8, 40))}, (0.8, 40), reference=Estimate(**estimate(0.8, 5)))
    )

    assert "Relevancy is 0.80 (95% interval 0.74\u20130.86, n=40) in the last 24 h; there is nothing" in found.text
    assert little.text.endswith("yet: not enough data (n=5, need 20) before.")
    assert found.state == "new"


def test_scores_from_different_judges_are_not_compared_in_a_verdict() -> None:
    """This holds even if all means dropped."""
    routes: Routes = {"ask": ((0.8, 400), (0.3, 80))}
    given = make_situation(
        routes, comparisons=comparisons(routes, "f2"), current=service_scores((0.3, 80), "f2"), reference=None
    )

    found = build_verdict(given)

    assert found.text == (
        "The judge changed, so scores cannot be compared yet. Mean with the new judge in the last 24 h: "
        "0.30 (95% interval 0.24\u20130.36, n=80)."
    )
    assert (
        "not enough data (n=9, need 20)" in build_verdict(replace(given, current=service_scores((0.3, 9), "f2"))).text
    )


def test_a_verdict_on_stale_data_does_not_claim_that_answers_are_fine() -> None:
    """Missing answers are not a sign of good health."""
    found = build_verdict(make_situation({}, None, comparisons=None, answered_at=NOW - 3 * DAY))

    assert found.text.startswith("The newest answer is 3 days old. No answer has arrived since 17 Nov 10:30.")
    assert (found.state, found.tone) == ("stale", "warn")


def test_the_verdict_on_an_empty_database_shows_the_first_step() -> None:
    """The verdict says nothing about scores."""
    found = build_verdict(Situation(scorer=None, now=NOW))

    assert (found.state, hrefs(found)) == ("empty", ["/start"])


def unscored_coverage(seen: int, **more: Any) -> Sequence[Coverage]:
    """Return the coverage of answers without scores."""
    return [Coverage(service="shop", route="ask", scorer="answer_relevancy", seen=seen, **more)]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"coverage": unscored_coverage(12, pending=12), "has_judge": False},
            "no judge is configured. Set OPENAI_API_KEY",
        ),
        (
            {"coverage": unscored_coverage(12, pending=12), "has_worker": False},
            "no worker is running. Run germane worker.",
        ),
        ({"coverage": unscored_coverage(12, pending=12)}, "12 are waiting to be scored."),
        ({"coverage": unscored_coverage(12, skipped={"not_sampled": 12})}, "no answer was sampled. Raise sample_rate"),
        ({"coverage": unscored_coverage(12, skipped={"budget": 12})}, "the budget is exhausted."),
        (
            {"coverage": unscored_coverage(12, failed={"judge_unreachable": 12}), "scored_at": NOW - 2 * DAY},
            "the judge is unreachable (no scores since 18 Nov 10:30). Check its URL",
        ),
        (
            {"coverage": unscored_coverage(12, pending=12), "retry_reason": "judge_rejected"},
            "the judge's server rejects the key",
        ),
        ({"coverage": unscored_coverage(12, failed={"scorer_error": 12})}, "the scorer raises an error."),
    ],
)
def test_the_verdict_on_unscored_answers_names_cause_and_remedy(more: dict[str, Any], expected: str) -> None:
    """The verdict links to the details."""
    found = build_verdict(make_situation({}, None, comparisons=None, **more))

    assert found.text.startswith("12 answers arrived in the last 24 h and none was scored: ")
    assert expected in found.text
    assert hrefs(found) == ["/worker"]


def test_a_verdict_on_an_open_alert_has_the_onset_and_a_link() -> None:
    """This holds even if the last day alone is not significant."""
    few = build_verdict(make_situation({"docs-search": ((0.8, 300), (0.4, 12))}, (0.4, 12), alerts=[drop_alert()]))
    sure = build_verdict(make_situation(FELL, alerts=[drop_alert()]))

    assert few.state == sure.state == "worse"
    assert ". Since about 19 Nov 05:30: 0.42 (n=27), compared with 0.80 before (n=300). See" in few.text
    assert "Last 24 h: 0.48 (95% interval" in sure.text
    assert "/alerts/a1" in hrefs(few)
    assert "/alerts/a1" in hrefs(sure)


def test_a_verdict_on_a_threshold_alert_states_the_period_of_its_mean() -> None:
    """The mean covers the rule's window, in which some answers are older than the change."""
    level = ScoreLevel(mean=0.33, n=90)
    alert = drop_alert(type="mean_threshold", onset=None, window=3600.0, shifts=(), current=level, baseline=None)

    text = build_verdict(make_situation({}, None, alerts=[alert])).text

    assert f". In the 60 min before {NOW.day} Nov {NOW:%H:%M}: 0.33 (n=90). See" in text


@pytest.mark.parametrize("state", ["firing", "recovering"])
def test_an_open_alert_is_called_recovering_once_scores_recover(state: AlertState) -> None:
    """The alert stays open until its rule resolves it."""
    found = build_verdict(make_situation(STEADY, alerts=[drop_alert(state=state)]))

    assert "the alert is still open but recovering" in found.text
    assert (found.state, found.tone) == ("recovering", "warn")


def test_alerts_about_a_route_or_a_share_of_answers_are_reported() -> None:
    """The verdict on a window rule names the route; a rule about refusals has its own wording."""
    labels = {"service": "shop", "scorer": "answer_relevancy", "route": "ask"}
    given = make_situation(STEADY, alerts=[drop_alert(type="noncommittal_rate", labels=labels, message="12% refuse.")])

    found = build_verdict(given)

    assert found.text.startswith("More answers are refusals on ask: 12% refuse. See the worst answers")
    assert found.state == "worse"


def test_open_alerts_that_do_not_affect_the_verdict_are_listed() -> None:
    """Such alerts are about another scorer or about scoring itself."""
    other = drop_alert(id="a2", labels={"service": "shop", "scorer": "faithfulness"})
    broken = drop_alert(id="a3", type="scorer_error")

    found = build_verdict(make_situation(STEADY, alerts=[other, broken]))

    assert found.state == "unchanged"
    assert [one.id for one in found.other_alerts] == ["a2", "a3"]


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
    assert "/alerts/a1" in hrefs(found)


def buckets(*means: float, n: int = 10, fingerprint: str = "f1") -> list[Bucket]:
    """Return buckets of six hours."""
    starts = (NOW + timedelta(hours=6 * number) for number in range(len(means)))
    return [
        Bucket(start=at, fingerprint=fingerprint, **estimate(mean, n)) for at, mean in zip(starts, means, strict=True)
    ]


def test_the_estimated_onset_is_the_best_split_into_two_levels() -> None:
    """Buckets are weighted by n; other fingerprints are ignored."""
    found = estimate_onset([*buckets(0.8, 0.82, 0.79, 0.4, 0.45), *buckets(0.1, 0.9, fingerprint="f0")], "f1")

    assert found == NOW + timedelta(hours=18)
    assert estimate_onset(buckets(0.4, 0.5, 0.8), "f1") is None
    assert estimate_onset(buckets(0.4), "f1") is None
    assert estimate_onset([], "f1") is None


def test_an_onset_before_the_start_of_the_chart_is_unknown() -> None:
    """Scores before the split must be closer to the baseline than to the scores after it."""
    line = buckets(0.8, 0.82, 0.4, 0.45)

    assert estimate_onset(line, "f1", reference=0.85) == NOW + timedelta(hours=12)
    assert estimate_onset(buckets(0.45, 0.44, 0.40), "f1", reference=0.85) is None


@given(before=st.integers(1, 9), after=st.integers(1, 9), drop=st.floats(0.01, 0.5))
def test_the_estimated_onset_of_a_drop_without_noise_is_exact(before: int, after: int, drop: float) -> None:
    """The lengths of the two levels do not matter."""
    line = buckets(*[0.8] * before, *[0.8 - drop] * after)

    assert estimate_onset(line, "f1") == line[before].start
