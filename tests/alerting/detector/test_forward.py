"""The detector's evidence, onset and alarms: as the formulas say, however the scores arrive."""

from __future__ import annotations

import json
import math
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.alerting.detector.literal import Literal, state_of
from tests.alerting.detector.streams import ROUTES, bad_and_good, baseline, cut, scores

from germane.alerting.detector import Detector, Seen, Turn
from germane.alerting.detector.bet_grid import Cells
from germane.baseline import OTHER, Baseline, RouteBaseline

BASELINE = baseline()
STREAM = bad_and_good()
rates = st.floats(0.0, 1.0)


@st.composite
def route_baselines(draw: st.DrawFn) -> RouteBaseline:
    n = draw(st.integers(30, 500))
    committed = draw(st.integers(0, n))
    return RouteBaseline(
        n=n, mean=0.5, deviation=0.2, committed=committed, committed_mean=draw(rates),
        committed_deviation=draw(st.just(0.0) | st.floats(0, 0.6)), zero_rate=(n - committed + 0.5) / (n + 1),
        committed_wander=draw(st.just(0.0) | st.floats(0, 0.2)), zero_wander=draw(st.just(0.0) | st.floats(0, 0.2)),
        scores_per_day=n / 14, committed_per_day=committed / 14,
    )  # fmt: skip


@st.composite
def baselines(draw: st.DrawFn) -> Baseline:
    names = draw(st.lists(st.sampled_from(["a", "b", "c", OTHER]), min_size=1, max_size=3, unique=True))
    routes = {name: draw(route_baselines()) for name in names}
    return replace(
        BASELINE, routes=routes, scores_per_day=sum(one.scores_per_day for one in routes.values()),
        committed_per_day=sum(one.committed_per_day for one in routes.values()),
        pooled=frozenset({"y", "z"} if OTHER in routes else ()),
    )  # fmt: skip


seen_scores = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "y", "z", "unknown"]),
        st.sampled_from([-0.5, 0.0, 1.0, 1.5]) | st.floats(0, 1),
        st.booleans(),
    ),
    max_size=50,
).map(lambda rows: seen_of(rows))


def seen_of(rows: list[tuple[str, float, bool]]) -> Seen:
    values = np.array([row[1] for row in rows], dtype=np.float64)
    zeros = np.array([row[2] for row in rows], dtype=np.bool_)
    return Seen([row[0] for row in rows], values, zeros, np.arange(len(rows)) * 60.0)


def agree(detector: Detector, literal: Literal) -> None:
    forward = detector._forward
    for name, values in state_of(literal).items():
        ours = getattr(forward, name).reshape(len(literal.streams), -1)
        np.testing.assert_allclose(ours, values, rtol=1e-9, atol=1e-9, err_msg=name)
    assert detector.firing == (literal.carriers is not None)
    if firing := detector.state()["firing"]:
        np.testing.assert_allclose(firing["recovery"], list(literal.capital_in_order()), rtol=1e-9)


def plain(turns: list[Turn]) -> list[tuple[Any, ...]]:
    """Return turns as the literal detector lists them."""
    return [
        (one.index, one.at, one.state, pytest.approx(one.evidence, rel=1e-9), one.onset, [*map(astuple, one.carriers)])
        for one in turns
    ]


def test_each_cell_has_the_null_and_the_bet_of_its_formula() -> None:
    """All 8 + 8 cells of the service and of each route, to 1e-9."""
    cells, literal = Cells(BASELINE, 0.05), Literal(BASELINE)
    for kind, place, route, i in np.ndindex(2, 2, len(cells.routes), 8):
        name, half = cells.routes[route], ("committed", "zero")[place]
        null, bet = literal.null_and_bet(name if kind else None, name, half, i)
        nulls, bets = ((cells.means, cells.committed_bets), (cells.rates, cells.zero_bets))[place]
        assert nulls[route, i] == pytest.approx(null, abs=1e-9)
        assert bets[kind, route, i] == pytest.approx(bet, abs=1e-9)


def test_the_numbers_of_one_cell_by_hand() -> None:
    """Worked out on paper: mean .8, deviation .1, 100 committed of 120, no wander."""
    one = RouteBaseline(
        n=120, mean=0.7, deviation=0.3, committed=100, committed_mean=0.8, committed_deviation=0.1, zero_rate=0.17,
        committed_wander=0.0, zero_wander=0.0, scores_per_day=9, committed_per_day=7,
    )  # fmt: skip
    cells = Cells(replace(BASELINE, routes={"a": one}), 0.05)

    assert cells.means[0] == pytest.approx([0.8 - 0.02 - 0.01] * 8, abs=1e-12)
    assert cells.committed_bets[1, 0, 0] == pytest.approx(0.03 / (0.01 + 0.0009), abs=1e-12)
    assert cells.committed_bets[1, 0, 7] == pytest.approx(0.4 / (0.01 + 0.16), abs=1e-12)
    assert cells.rates[0, 0] == pytest.approx(0.17 + 0.02 + math.sqrt(0.17 * 0.83 / 120), abs=1e-12)


def test_no_factor_is_below_a_tenth() -> None:
    """Whatever the worst score: one alone never wipes out what was gathered."""
    cells = Cells(baseline(per_day=40), 0.3)
    lowest = 1 + cells.committed_bets * (cells.means - 1)

    assert lowest.min() >= 0.1 - 1e-12
    assert cells.zero_logs.min() >= math.log(0.1) - 1e-12


def test_evidence_onset_and_alarms_are_the_formulas_taken_one_by_one() -> None:
    """A stream that drops, recovers, refuses and recovers: the same turns, and the same logs to 1e-9."""
    detector, literal = Detector(BASELINE), Literal(BASELINE)

    turns = detector.feed(STREAM)
    literal.feed_all(STREAM)

    assert [one.state for one in turns] == ["firing", "resolved", "firing", "resolved"]
    assert literal.turns == plain(turns)
    assert detector.log_evidence == pytest.approx(literal.evidence, abs=1e-9)
    agree(detector, literal)


@settings(max_examples=60)
@given(baselines(), seen_scores, st.sampled_from([1.0, 1e3, 1e5]), st.sampled_from([0.01, 0.05, 0.3]))
def test_any_baseline_and_any_scores_give_what_the_formulas_give(
    given_baseline: Baseline, seen: Seen, false_alarms: float, min_drop: float
) -> None:
    """Rates near 0 and 1, no deviation, no committed answer, scores outside [0, 1], unknown and pooled routes."""
    knobs: dict[str, Any] = {"min_drop": min_drop, "false_alarms_per_year": false_alarms}
    detector, literal = Detector(given_baseline, **knobs), Literal(given_baseline, **knobs)

    turns = detector.feed(seen)
    literal.feed_all(seen)

    assert literal.turns == plain(turns)
    agree(detector, literal)
    assert "NaN" not in json.dumps(detector.state())
    assert "Infinity" not in json.dumps(detector.state())


@settings(max_examples=25)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.booleans())
def test_any_split_gives_the_same_turns_and_state(cuts: list[int], through_json: bool) -> None:
    """All at once, or in parts between which the state goes through JSON."""
    whole, parts = Detector(BASELINE), Detector(BASELINE)
    expected, found = whole.feed(STREAM), []

    for since, until in zip([0, *sorted(cuts)], [*sorted(cuts), len(STREAM)], strict=True):
        found += [replace(turn, index=turn.index + since) for turn in parts.feed(cut(STREAM, since, until))]
        if through_json:
            parts = Detector(BASELINE, state=json.loads(json.dumps(parts.state())))

    assert plain(found) == plain(expected)
    same(parts, whole)


def test_one_by_one_gives_the_same_turns_and_state() -> None:
    """A score at a time goes another way through the code, to the same place."""
    whole, single = Detector(BASELINE), Detector(BASELINE)

    expected = whole.feed(STREAM)
    found = [turn for at in range(len(STREAM)) for turn in single.feed(cut(STREAM, at, at + 1))]

    assert [one.at for one in found] == [one.at for one in expected]
    assert [one.carriers for one in found] == [one.carriers for one in expected]
    same(single, whole)


def same(one: Detector, other: Detector) -> None:
    assert one.firing == other.firing
    for name in ("logs", "rises", "starts"):
        np.testing.assert_allclose(getattr(one._forward, name), getattr(other._forward, name), rtol=1e-9, atol=1e-9)


def test_firing_resolving_and_firing_again_fit_into_one_batch() -> None:
    """In a single call, as one by one."""
    lively = replace(BASELINE, scores_per_day=2.0, routes={"faq": replace(BASELINE.routes["faq"], scores_per_day=2.0)})
    values = np.array(([0.2] * 12 + [0.95] * 150) * 2 + [0.2] * 12)
    seen = Seen(["faq"] * len(values), values, np.zeros(len(values), dtype=np.bool_), np.arange(len(values)) * 60.0)
    detector, literal = Detector(lively), Literal(lively)

    turns = detector.feed(seen)
    literal.feed_all(seen)

    assert [one.state for one in turns] == ["firing", "resolved", "firing", "resolved", "firing"]
    assert literal.turns == plain(turns)


def test_silence_changes_nothing() -> None:
    """No score, no evidence: neither for a drop nor for recovery."""
    detector = Detector(BASELINE)
    for part in (cut(STREAM, 0, 700), cut(STREAM, 700, 1500)):
        detector.feed(part)
        before = detector.state()
        assert detector.feed(cut(STREAM, 0, 0)) == []
        assert detector.state() == before
    assert detector.firing


def test_what_has_no_baseline_or_is_no_number_is_passed_over() -> None:
    """An unknown route, and a value that is not a number, leave no trace; the index counts them all the same."""
    detector, other = Detector(BASELINE), Detector(BASELINE)
    strange = Seen(["new"] * 9 + ["faq"], np.array([0.0] * 9 + [math.nan]), np.zeros(10, dtype=np.bool_), np.zeros(10))
    part = cut(STREAM, 0, 1500)
    mixed = Seen(
        [*strange.routes, *part.routes], np.r_[strange.values, part.values], np.r_[strange.zeros, part.zeros],
        np.r_[strange.times, part.times],
    )  # fmt: skip

    assert detector.feed(strange) == []
    assert detector.state() == Detector(BASELINE).state()
    assert [one.index - 10 for one in detector.feed(mixed)] == [one.index for one in other.feed(part)]
    assert detector.state() == other.state()


def test_a_baseline_without_routes_watches_nothing() -> None:
    """And says so by never having evidence."""
    empty = replace(BASELINE, routes={}, scores_per_day=0.0, committed_per_day=0.0)
    detector = Detector(empty)

    assert detector.feed(STREAM) == []
    assert detector.log_evidence == -math.inf
    assert json.loads(json.dumps(detector.state())) == Detector(empty, state=detector.state()).state()


def test_a_turn_says_how_rare_it_is_where_it_sits_and_since_when() -> None:
    """False alarms a year as rare as this are 365 N / evidence; answers drifted, then refusals rose."""
    detector = Detector(BASELINE)
    turns = detector.feed(STREAM)

    assert all(0 < turn.evidence < 1 for turn in turns)
    assert [one.carriers[0].half for one in turns] == ["committed", "committed", "zero", "zero"]
    assert all(carrier.route in (None, *ROUTES) for one in turns for carrier in one.carriers)
    assert abs(turns[0].onset - 17 * 86_400) < 86_400 / 4
    assert (turns[1].onset, turns[1].evidence) == (turns[0].onset, turns[0].evidence)


def test_a_drop_of_one_route_names_the_route() -> None:
    """Only support gets worse: its own stream carries the alarm first."""
    good = scores(np.random.default_rng(3), 3000, since=14 * 86_400)
    values = np.where(np.array(good.routes) == "support", good.values * 0.6, good.values)

    turns = Detector(BASELINE).feed(replace(good, values=values))

    assert turns[0].carriers[0].route == "support"


@pytest.mark.parametrize(("min_drop", "false_alarms"), [(0, 1), (1, 1), (math.nan, 1), (0.05, 0), (0.05, math.inf)])
def test_a_knob_out_of_range_is_refused(min_drop: float, false_alarms: float) -> None:
    """Named, before anything is watched."""
    with pytest.raises(ValueError, match=r"drop|false alarms"):
        Detector(BASELINE, min_drop=min_drop, false_alarms_per_year=false_alarms)


def test_scores_that_do_not_fit_together_are_refused() -> None:
    """Each has a route, a value, a mark and a time."""
    with pytest.raises(ValueError, match="differ in length"):
        Seen(["faq"], np.zeros(2), np.zeros(2, dtype=np.bool_), np.zeros(2))
