"""Evidence, onset and transitions of the detector, compared with a reference implementation."""

from __future__ import annotations

import json
import math
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.alerting.detector.reference_detector import ReferenceDetector, state_of
from tests.alerting.detector.streams import ROUTES, bad_and_good, baseline, cut, scores

from germane.alerting.detector.bet_grid import BetGrid
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.drop_evidence import Transition
from germane.alerting.detector.learning import learn_baseline
from germane.alerting.detector.score_batch import ScoreBatch
from germane.baseline import POOLED_ROUTE, Baseline, RouteBaseline

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
    names = draw(st.lists(st.sampled_from(["a", "b", "c", POOLED_ROUTE]), min_size=1, max_size=3, unique=True))
    routes = {name: draw(route_baselines()) for name in names}
    return replace(
        BASELINE, routes=routes, scores_per_day=sum(one.scores_per_day for one in routes.values()),
        committed_per_day=sum(one.committed_per_day for one in routes.values()),
        pooled=frozenset({"y", "z"} if POOLED_ROUTE in routes else ()),
    )  # fmt: skip


seen_scores = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "y", "z", "unknown"]),
        st.sampled_from([-0.5, 0.0, 1.0, 1.5]) | st.floats(0, 1),
        st.booleans(),
    ),
    max_size=50,
).map(lambda rows: seen_of(rows))


def seen_of(rows: list[tuple[str, float, bool]]) -> ScoreBatch:
    values = np.array([row[1] for row in rows], dtype=np.float64)
    zeros = np.array([row[2] for row in rows], dtype=np.bool_)
    return ScoreBatch([row[0] for row in rows], values, zeros, np.arange(len(rows)) * 60.0)


def agree(detector: Detector, reference: ReferenceDetector) -> None:
    forward = detector._drop_evidence
    for name, values in state_of(reference).items():
        ours = getattr(forward, name).reshape(len(reference.streams), -1)
        np.testing.assert_allclose(ours, values, rtol=1e-9, atol=1e-9, err_msg=name)
    assert detector.firing == (reference.contributors is not None)
    if firing := detector.state()["firing"]:
        np.testing.assert_allclose(firing["recovery"], list(reference.capital_in_order()), rtol=1e-9)


def plain(transitions: list[Transition]) -> list[tuple[Any, ...]]:
    """Return transitions as the reference detector lists them."""
    return [
        (
            one.index,
            one.at,
            one.state,
            one.onset,
            [*map(astuple, one.contributors)],
        )
        for one in transitions
    ]


def test_every_bet_of_the_detector_matches_its_formula() -> None:
    """All 8 + 8 bets of the service and of each route agree to 1e-9."""
    cells, reference = BetGrid(BASELINE, 0.05), ReferenceDetector(BASELINE)
    for kind, place, route, i in np.ndindex(2, 2, len(cells.routes), 8):
        name, half = cells.routes[route], ("committed", "zero")[place]
        null, bet = reference.null_and_bet(name if kind else None, name, half, i)
        nulls, bets = ((cells.means, cells.committed_bets), (cells.rates, cells.zero_bets))[place]
        assert nulls[kind, route, i] == pytest.approx(null, abs=1e-9)
        assert bets[kind, route, i] == pytest.approx(bet, abs=1e-9)


def test_a_bet_of_the_detector_matches_a_manual_calculation() -> None:
    """The mean is 0.8, the standard deviation 0.1, 100 of 120 scores are nonzero, and there is no wander."""
    one = RouteBaseline(
        n=120, mean=0.7, deviation=0.3, committed=100, committed_mean=0.8, committed_deviation=0.1, zero_rate=0.17,
        committed_wander=0.0, zero_wander=0.0, scores_per_day=9, committed_per_day=7,
    )  # fmt: skip
    cells = BetGrid(replace(BASELINE, routes={"a": one}), 0.05)

    assert cells.means[1, 0] == pytest.approx([0.8 - math.hypot(0.02, 0.015)] * 8, abs=1e-12)
    assert cells.committed_bets[1, 0, 0] == pytest.approx(0.03 / (0.01 + 0.0009), abs=1e-12)
    assert cells.committed_bets[1, 0, 7] == pytest.approx(0.4 / (0.01 + 0.16), abs=1e-12)
    error = math.sqrt(0.17 * 0.83 / 120)
    assert cells.rates[1, 0] == pytest.approx([0.17 + math.hypot(0.02, 1.5 * error)] * 8, abs=1e-12)


def test_one_score_removes_at_most_nine_tenths_of_the_evidence() -> None:
    """The worst score may be any number."""
    cells = BetGrid(baseline(per_day=40), 0.3)
    lowest = 1 + cells.committed_bets * (cells.means - 1)

    assert lowest.min() >= 0.1 - 1e-12
    assert cells.zero_logs.min() >= math.log(0.1) - 1e-12


def test_detector_matches_the_reference_implementation() -> None:
    """Scores drop, recover, turn into refusals and recover. Transitions are equal, and logarithms agree to 1e-9."""
    detector, reference = Detector(BASELINE), ReferenceDetector(BASELINE)

    transitions = detector.process(STREAM)
    reference.feed_all(STREAM)

    assert [one.state for one in transitions] == ["firing", "resolved", "firing", "resolved"]
    assert reference.transitions == plain(transitions)
    assert detector.log_evidence == pytest.approx(reference.evidence, abs=1e-9)
    agree(detector, reference)


@given(baselines(), seen_scores, st.sampled_from([1.0, 1e3, 1e5]), st.sampled_from([0.01, 0.05, 0.3]))
def test_detector_matches_the_reference_implementation_for_any_baseline_and_scores(
    given_baseline: Baseline, seen: ScoreBatch, false_alarms: float, min_drop: float
) -> None:
    """Covers rates near 0 and 1, no variance, only zeros, scores outside [0, 1], and unknown and pooled routes."""
    knobs: dict[str, Any] = {"min_drop": min_drop, "false_alerts_per_year": false_alarms}
    detector, reference = Detector(given_baseline, **knobs), ReferenceDetector(given_baseline, **knobs)

    transitions = detector.process(seen)
    reference.feed_all(seen)

    assert reference.transitions == plain(transitions)
    agree(detector, reference)
    assert "NaN" not in json.dumps(detector.state())
    assert "Infinity" not in json.dumps(detector.state())


@given(st.lists(st.integers(0, len(STREAM)), max_size=12), st.booleans())
def test_transitions_do_not_depend_on_batch_boundaries(cuts: list[int], through_json: bool) -> None:
    """The state may also make a round trip through JSON."""
    whole, parts = Detector(BASELINE), Detector(BASELINE)
    expected, found = whole.process(STREAM), []

    for since, until in zip([0, *sorted(cuts)], [*sorted(cuts), len(STREAM)], strict=True):
        found += [
            replace(transition, index=transition.index + since)
            for transition in parts.process(cut(STREAM, since, until))
        ]
        if through_json:
            parts = Detector(BASELINE, state=json.loads(json.dumps(parts.state())))

    assert plain(found) == plain(expected)
    same(parts, whole)


def test_processing_scores_one_by_one_or_in_batches_has_the_same_result() -> None:
    """Small batches use a different code path."""
    whole, single = Detector(BASELINE), Detector(BASELINE)

    expected = whole.process(STREAM)
    found = [transition for at in range(len(STREAM)) for transition in single.process(cut(STREAM, at, at + 1))]

    assert [one.at for one in found] == [one.at for one in expected]
    assert [one.contributors for one in found] == [one.contributors for one in expected]
    same(single, whole)


def same(one: Detector, other: Detector) -> None:
    assert one.firing == other.firing
    for name in ("logs", "rises", "starts"):
        np.testing.assert_allclose(
            getattr(one._drop_evidence, name), getattr(other._drop_evidence, name), rtol=1e-9, atol=1e-9
        )


def test_one_batch_can_contain_several_transitions() -> None:
    """The result is the same as if the scores arrived one by one."""
    lively = replace(BASELINE, scores_per_day=2.0, routes={"faq": replace(BASELINE.routes["faq"], scores_per_day=2.0)})
    values = np.array(([0.2] * 12 + [0.95] * 150) * 2 + [0.2] * 12)
    seen = ScoreBatch(
        ["faq"] * len(values), values, np.zeros(len(values), dtype=np.bool_), np.arange(len(values)) * 60.0
    )
    detector, reference = Detector(lively), ReferenceDetector(lively)

    transitions = detector.process(seen)
    reference.feed_all(seen)

    assert [one.state for one in transitions] == ["firing", "resolved", "firing", "resolved", "firing"]
    assert reference.transitions == plain(transitions)


def test_missing_scores_do_not_change_the_detector_state() -> None:
    """Without scores, a detector neither fires nor resolves."""
    detector = Detector(BASELINE)
    for part in (cut(STREAM, 0, 700), cut(STREAM, 700, 1500)):
        detector.process(part)
        before = detector.state()
        assert detector.process(cut(STREAM, 0, 0)) == []
        assert detector.state() == before
    assert detector.firing


def test_scores_of_unknown_routes_and_nan_are_skipped() -> None:
    """Such scores do not change the state. Only the index of later scores advances."""
    detector, other = Detector(BASELINE), Detector(BASELINE)
    strange = ScoreBatch(
        ["new"] * 9 + ["faq"], np.array([0.0] * 9 + [math.nan]), np.zeros(10, dtype=np.bool_), np.zeros(10)
    )
    part = cut(STREAM, 0, 1500)
    mixed = ScoreBatch(
        [*strange.routes, *part.routes], np.r_[strange.values, part.values], np.r_[strange.zeros, part.zeros],
        np.r_[strange.times, part.times],
    )  # fmt: skip

    assert detector.process(strange) == []
    assert detector.state() == Detector(BASELINE).state()
    assert [one.index - 10 for one in detector.process(mixed)] == [one.index for one in other.process(part)]
    assert detector.state() == other.state()


def test_a_detector_whose_baseline_has_no_routes_never_fires() -> None:
    """Without routes, there is no evidence."""
    empty = replace(BASELINE, routes={}, scores_per_day=0.0, committed_per_day=0.0)
    detector = Detector(empty)

    assert detector.process(STREAM) == []
    assert detector.log_evidence == -math.inf
    assert json.loads(json.dumps(detector.state())) == Detector(empty, state=detector.state()).state()


def test_a_transition_contains_contributors_and_onset() -> None:
    """A resolution reports the onset of its drop."""
    detector = Detector(BASELINE)
    transitions = detector.process(STREAM)

    assert [one.contributors[0].half for one in transitions] == ["committed", "committed", "zero", "zero"]
    assert all(contributor.route in (None, *ROUTES) for one in transitions for contributor in one.contributors)
    assert abs(transitions[0].onset - 17 * 86_400) < 86_400 / 4
    assert transitions[1].onset == transitions[0].onset


def test_a_drop_on_one_route_names_the_route() -> None:
    """The route's stream is the strongest contributor."""
    good = scores(np.random.default_rng(3), 3000, since=14 * 86_400)
    values = np.where(np.array(good.routes) == "support", good.values * 0.6, good.values)

    transitions = Detector(BASELINE).process(replace(good, values=values))

    assert transitions[0].contributors[0].route == "support"


@pytest.mark.parametrize(("min_drop", "false_alarms"), [(0, 1), (1, 1), (math.nan, 1), (0.05, 0), (0.05, math.inf)])
def test_detector_parameters_out_of_range_are_rejected(min_drop: float, false_alarms: float) -> None:
    """The error names the parameter."""
    with pytest.raises(ValueError, match=r"min_drop|false_alerts"):
        Detector(BASELINE, min_drop=min_drop, false_alerts_per_year=false_alarms)


def test_score_arrays_of_different_lengths_are_rejected() -> None:
    """Each score has a route, a value, a flag and a time."""
    with pytest.raises(ValueError, match="same length"):
        ScoreBatch(["faq"], np.zeros(2), np.zeros(2, dtype=np.bool_), np.zeros(2))


def test_a_fall_of_a_tenth_in_scores_of_0_or_1_is_detected_within_a_week() -> None:
    """In half of the services, at 100 a day, although such scores vary a lot. With more time, in most of them."""
    found = 0
    for seed in range(20):
        random = np.random.default_rng(seed)

        def batch(mean: float, days: int, random: np.random.Generator = random) -> ScoreBatch:
            values = (random.random(100 * days) < mean).astype(float)
            times = np.linspace(0, days * 86_400, len(values), endpoint=False)
            return ScoreBatch(["ask"] * len(values), values, values <= 0, times)

        learned = learn_baseline(batch(0.8, 14), service="s", scorer="c", fingerprint="f", since=0, until=14 * 86_400)
        found += bool(Detector(learned).process(batch(0.7, 7)))

    assert found >= 10
