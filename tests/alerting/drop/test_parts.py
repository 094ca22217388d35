"""Parts of the drop rule: the active fingerprint, scopes, levels, and restricted and extended baselines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.score_batch import ScoreBatch
from germane.alerting.drop.baselines import BaselineExample, is_same_level, learn_from_examples
from germane.alerting.drop.scope import add_routes, attribute_scope, restrict_to_routes
from germane.alerting.drop.score_levels import (
    affected_routes,
    baseline_level,
    compared_levels,
    covered_routes,
    recent_scores,
    score_level,
)
from germane.alerting.drop.session import SCORES_TO_SWITCH, ActiveFingerprint
from germane.baseline import POOLED_ROUTE, Baseline
from germane.errors import UsageError
from germane.storage import BaselineKey, DetectorScore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = BaselineKey("shop", "relevancy", "f1")


def arrival(value: float = 0.5, **changes: Any) -> DetectorScore:
    """Return a score."""
    names: dict[str, Any] = {"service": "shop", "route": "ask", "scorer": "relevancy", "fingerprint": "f1"}
    times = {"arrived_at": NOW, "answered_at": changes.get("arrived_at", NOW)}
    moment: dict[str, Any] = {"id": 1, "exchange_id": "e", "is_zero": value <= 0, **times}
    return DetectorScore(value=value, **names | moment | changes)


def baseline(counts: dict[str, int], days: int = 14, seed: int = 3) -> Baseline:
    """Return a baseline learned from a number of scores per route."""
    chance = np.random.default_rng(seed)
    routes = [route for route, count in sorted(counts.items()) for _ in range(count)]
    values = np.where(chance.random(len(routes)) < 0.1, 0.0, chance.beta(8, 2, len(routes)))
    times = np.linspace(0, days * 86_400, len(routes), endpoint=False)
    seen = ScoreBatch(routes, values, values <= 0, times)
    return learn_baseline(seen, service="shop", scorer="relevancy", fingerprint="f1", since=0, until=days * 86_400)


@given(st.lists(st.sampled_from("abc"), max_size=120), st.lists(st.integers(1, 40), max_size=6))
def test_the_active_fingerprint_does_not_depend_on_batch_boundaries(votes: list[str], cuts: list[int]) -> None:
    """One evaluation has the same result as many."""
    arrivals = [arrival(fingerprint=vote) for vote in votes]

    def followed(parts: list[list[DetectorScore]]) -> tuple[list[str], dict[str, Any]]:
        lead, leaders = ActiveFingerprint("a"), list[str]()
        for part in parts:
            while part:
                count = lead.count_votes(part)
                leaders += [lead.fingerprint] * count
                lead, part = ActiveFingerprint.from_state(lead.state()), part[count:]
        return leaders, lead.state()

    pieces, rest = list[list[DetectorScore]](), arrivals
    for cut in cuts:
        pieces, rest = [*pieces, rest[:cut]], rest[cut:]
    whole, cut_up = followed([[one] for one in arrivals]), followed([*pieces, rest])
    assert whole[1] == cut_up[1]


def test_another_fingerprint_becomes_active_after_twenty_scores() -> None:
    """Nineteen scores are not enough."""
    lead = ActiveFingerprint("a")

    assert lead.count_votes([arrival(fingerprint="b")] * (SCORES_TO_SWITCH - 1)) == SCORES_TO_SWITCH - 1
    assert lead.fingerprint == "a"
    assert lead.count_votes([arrival(fingerprint="b")] * 3) == 1
    assert lead.fingerprint == "b"


@given(st.integers(1, 500))
def test_a_fingerprint_with_the_minority_of_scores_never_becomes_active(number: int) -> None:
    """One score in three has the other fingerprint, for any length of time."""
    lead = ActiveFingerprint("a")
    for _ in range(number):
        lead.count_votes([arrival(fingerprint=vote) for vote in "aba"])

    assert lead.fingerprint == "a"


def test_attribute_scope_does_not_depend_on_the_order_of_the_patterns() -> None:
    """Equal patterns share one baseline."""
    patterns = {"tenant": "ac*", "trial": "false"}

    assert attribute_scope(patterns) == attribute_scope(dict(reversed(patterns.items())))


@given(st.dictionaries(st.sampled_from(["ask", "buy", "help", "rare", "odd"]), st.integers(2, 90), min_size=1))
def test_a_baseline_restricted_to_routes_contains_exactly_these_routes(counts: dict[str, int]) -> None:
    """The values of its routes do not change, and the totals match them."""
    found = baseline(counts)

    assert restrict_to_routes(found, lambda _: True) == found
    none = restrict_to_routes(found, lambda _: False)
    assert (dict(none.routes), none.scores_per_day) == ({}, 0)
    some = restrict_to_routes(found, lambda route: route in {"ask", "rare"})
    assert all(found.routes[name] == one for name, one in some.routes.items())
    assert some.scores_per_day == pytest.approx(sum(one.scores_per_day for one in some.routes.values()), abs=1e-9)
    assert some.pooled == found.pooled & {"ask", "rare"}
    assert (POOLED_ROUTE in some.routes) == bool(some.pooled)


def test_adding_routes_to_a_baseline_does_not_change_other_routes() -> None:
    """Totals cover all routes together."""
    apart = baseline({"ask": 80, "buy": 50})
    old, new = restrict_to_routes(apart, "ask".__eq__), restrict_to_routes(apart, "buy".__eq__)

    both = add_routes(old, new)
    assert dict(both.routes) == dict(apart.routes)
    assert both.n == 130
    assert both.mean == pytest.approx(apart.mean, abs=1e-9)
    assert both.deviation == pytest.approx(apart.deviation, abs=1e-9)
    assert both.scores_per_day == pytest.approx(apart.scores_per_day, abs=1e-9)
    assert add_routes(both, restrict_to_routes(baseline({"ask": 60}, seed=9), "ask".__eq__)) == both


@pytest.mark.parametrize(
    ("days", "wander", "change", "is_same"),
    [(14, 0.0, 0.02, True), (14, 0.0, 0.022, False), (14, 0.02, 0.03, True), (14, 0.02, 0.036, False),
     (56, 0.02, 0.026, True), (56, 0.02, 0.03, False)],
)  # fmt: skip
def test_the_level_of_an_uncertain_baseline_may_change_more_before_it_is_kept(
    days: int, wander: float, change: float, is_same: bool
) -> None:
    """The limits are 0.020, 0.034 and 0.027: the tolerated change and one and a half standard errors of the wander."""
    before = baseline({"ask": 100_000}, days=days)
    route = replace(before.routes["ask"], committed_wander=wander / (1 - before.routes["ask"].zero_rate), zero_wander=0)
    before = replace(before, routes={"ask": route})
    for sign in (1, -1):
        now = replace(before, routes={"ask": replace(route, mean=route.mean + sign * change)})
        assert is_same_level(before, now) == is_same
        assert is_same_level(before, replace(now, routes={"ask": replace(route, mean=route.mean + sign * change / 2)}),
                             share=0.5) == is_same  # fmt: skip


@given(st.floats(0, 0.1), st.integers(1, 100))
def test_the_mean_of_a_longer_window_wanders_less(wander: float, days: int) -> None:
    """Up to three days vary like one, and the variance of n days is that of n / 3 independent days."""
    window = baseline({"ask": 40}, days=days)
    assert window.wander_in_mean == pytest.approx(min(1.0, (3 / days) ** 0.5))
    route = replace(window.routes["ask"], zero_rate=0.2, committed_mean=0.7, committed_wander=wander, zero_wander=0.01)
    assert route.wander == pytest.approx(((0.8 * wander) ** 2 + 0.007**2) ** 0.5)


def test_values_are_clipped_before_levels_are_computed() -> None:
    """Refusals count as 0. Without scores, there is no level."""
    found = score_level([arrival(0.5), arrival(1.5), arrival(-0.5), arrival(0.9, is_zero=True)])

    assert found is not None
    assert (found.mean, found.n) == (pytest.approx(1.5 / 4, abs=1e-9), 4)
    assert score_level([]) is None


def test_the_level_of_a_baseline_is_its_mean() -> None:
    """Its routes are weighted by their scores."""
    found = baseline({"ask": 80, "buy": 50})

    assert baseline_level(found).mean == found.mean


@given(st.dictionaries(st.sampled_from(["ask", "buy", "help"]), st.integers(1, 60), min_size=1))
def test_levels_of_a_service_do_not_depend_on_the_route_mix(mix: dict[str, int]) -> None:
    """Means are equal if routes keep their level, whatever their shares. A fall on all routes keeps its size."""
    found = baseline({"ask": 80, "buy": 50, "help": 40})
    level = {route: one.mean for route, one in found.routes.items()}
    as_usual = [arrival(level[route], route=route) for route, count in mix.items() for _ in range(count)]
    worse = [arrival(level[route] - 0.2, route=route) for route, count in mix.items() for _ in range(count)]

    for scores, fall in ((as_usual, 0.0), (worse, 0.2)):
        compared = compared_levels(found, scores)
        assert compared is not None
        before, now = compared
        assert before.mean - now.mean == pytest.approx(fall, abs=1e-9)
        assert now.n == len(scores)
        assert now.interval is not None
        assert now.interval[0] <= now.mean <= now.interval[1]
    assert compared_levels(found, []) is None
    assert compared_levels(found, [arrival(0.5, route="new")], "new") is None


@given(st.sets(st.sampled_from(["ask", "buy", "help", "faq"])))
def test_a_drop_is_attributed_to_the_routes_that_fell(fallen: set[str]) -> None:
    """If all routes or no route have fallen, no route is named."""
    found = baseline({"ask": 80, "buy": 80, "help": 80, "faq": 80})
    scores = [
        arrival(route.mean - 0.3 * (name in fallen), route=name)
        for name, route in found.routes.items()
        for _ in range(40)
    ]

    expected = tuple(sorted(fallen)) if len(fallen) < 4 else ()
    assert affected_routes(found, scores, 0.05) == expected


def test_a_drop_on_all_routes_of_a_rule_names_them() -> None:
    """The service may have other routes, and silences and channels select alerts by route."""
    found = baseline({"ask": 80, "buy": 80})
    scores = [arrival(route.mean - 0.3, route=name) for name, route in found.routes.items() for _ in range(40)]

    assert affected_routes(found, scores, 0.05, names_all=True) == ("ask", "buy")


def test_small_falls_on_other_routes_do_not_hide_the_affected_route() -> None:
    """If other routes are slightly lower, the drop is still attributed to the one route that fell."""
    found = baseline({"ask": 80, "buy": 80, "help": 80, "faq": 80})
    falls = {"ask": 0.3, "buy": 0.04, "help": 0.04, "faq": 0.04}
    scores = [arrival(found.routes[name].mean - fall, route=name) for name, fall in falls.items() for _ in range(20)]

    assert affected_routes(found, scores, 0.05) == ("ask",)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.2, 0.3]), st.booleans())
def test_a_drop_on_all_routes_is_attributed_to_no_route(seed: int, fall: float, refusals: bool) -> None:
    """By chance, the routes fall by different amounts. One attribution in a hundred may be wrong."""
    chance = np.random.default_rng(seed)
    found = baseline({"ask": 120, "buy": 80, "help": 40})
    wrong = 0
    for _ in range(20):
        scores = []
        for name, count in (("ask", 30), ("buy", 20), ("help", 10)):
            is_zero = chance.random(count) < 0.1 + fall * refusals
            values = chance.beta(8, 2, count) - fall * (not refusals)
            pairs = zip(values, is_zero, strict=True)
            scores += [arrival(0.0 if zero else float(value), route=name) for value, zero in pairs]
        wrong += affected_routes(found, scores, 0.05) not in {(), ("ask", "buy", "help")}
    assert wrong <= 2


def test_a_route_without_answers_does_not_hide_the_affected_route() -> None:
    """If only the routes that fell have had answers since the onset, the alert is about them."""
    found = baseline({"ask": 80, "buy": 80})
    scores = [arrival(found.routes["ask"].mean - 0.3, route="ask") for _ in range(20)]

    assert affected_routes(found, scores, 0.05) == ("ask",)


def test_a_route_without_a_baseline_is_not_affected_by_a_drop() -> None:
    """Its scores since the onset do not hide the route that fell."""
    found = baseline({"ask": 80, "buy": 80})
    means = {"ask": found.routes["ask"].mean - 0.3, "buy": found.routes["buy"].mean, "new": 0.1}
    scores = [arrival(mean, route=route) for route, mean in means.items() for _ in range(20)]

    assert affected_routes(found, scores, 0.05) == ("ask",)


def test_the_current_level_of_a_route_with_little_traffic_covers_twenty_scores() -> None:
    """A day with fewer scores is extended back to the last twenty; other routes keep their last scores."""
    found = baseline({"ask": 80, "buy": 80})
    old = [arrival(0.1, id=n, route="ask", arrived_at=NOW - timedelta(hours=40 - n / 2)) for n in range(20)]
    new = [arrival(0.8, id=n, route="ask", arrived_at=NOW - timedelta(hours=10 - n)) for n in range(10)]
    quiet = [arrival(0.5, id=99, route="buy", arrived_at=NOW - timedelta(days=3))]

    scores = recent_scores(found, [*quiet, *old, *new], NOW, "ask")
    assert ([score.value for score in scores].count(0.1), len(scores)) == (10, 20)
    service = recent_scores(found, [*quiet, *old, *new], NOW)
    assert {score.route for score in service} == {"ask", "buy"}


def test_levels_cover_only_routes_that_existed_at_the_onset() -> None:
    """A route that joins the baseline later changes neither level."""
    before = baseline({"ask": 80, "buy": 80})
    joined = baseline({"ask": 80, "buy": 80, "low": 60})
    scores = [arrival(0.4, route=name) for name in ("ask", "buy") for _ in range(20)]
    late = [arrival(0.1, route="low") for _ in range(20)]
    covered = covered_routes(before, scores)

    assert covered == ("ask", "buy")
    levels = compared_levels(joined, scores, routes=covered)
    assert levels is not None
    assert levels == compared_levels(joined, [*scores, *late], routes=covered)


def test_a_baseline_imported_from_rows_without_timestamps_uses_the_given_rate() -> None:
    """Above a thousand scores per day, they are sampled. The wander is that of a steady service."""
    examples = [BaselineExample(route="ask", value=0.5 + number / 200, zero=False) for number in range(60)]

    found = learn_from_examples(KEY, examples, per_day=3000, now=NOW)
    assert (found.n, found.sampling_rate, found.until) == (60, pytest.approx(1 / 3, abs=1e-9), NOW)
    assert found.scores_per_day == pytest.approx(1000, rel=1e-6)
    assert found.routes["ask"].scores_per_day == pytest.approx(1000, rel=1e-6)
    assert found.routes["ask"].zero_wander == 0.01
    with pytest.raises(UsageError, match="number of scores per day"):
        learn_from_examples(KEY, examples, per_day=None, now=NOW)


def test_baseline_rows_with_missing_timestamps_or_under_three_days_are_rejected() -> None:
    """Such timestamps would yield a wrong rate or wander."""
    dated = [
        BaselineExample(route="ask", value=0.5, zero=False, at=NOW - timedelta(hours=number)) for number in range(60)
    ]
    with pytest.raises(UsageError, match="59 of 60 rows"):
        learn_from_examples(
            KEY, [dated[0], *(BaselineExample(route="ask", value=0.5, zero=False),) * 59], per_day=9, now=NOW
        )
    with pytest.raises(UsageError, match="less than three days"):
        learn_from_examples(KEY, dated, per_day=None, now=NOW)
