"""Baselines learned from scores match their formulas."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.alerting.detector.streams import DAY, scores

from germane.alerting.detector.detector import Detector
from germane.alerting.detector.learning import USUAL_WANDER, learn_baseline, wander
from germane.alerting.detector.score_batch import ScoreBatch
from germane.baseline import POOLED_ROUTE, Baseline


def learned(rows: list[tuple[str, float, bool, float]], *, since: float = 0.0, days: float = 14) -> Baseline:
    """Learn from rows of route, value, noncommittal flag and time."""
    routes, values, zeros, times = zip(*rows, strict=True) if rows else ((), (), (), ())
    seen = ScoreBatch(list(routes), np.array(values), np.array(zeros, dtype=np.bool_), np.array(times))
    return learn_baseline(seen, service="shop", scorer="s", fingerprint="f", since=since, until=since + days * DAY)


def wander_by_hand(values: list[float], times: list[float], since: float) -> float:
    """Compute wander from the formula, block by block."""
    groups: dict[int, list[float]] = defaultdict(list)
    for value, time in zip(values, times, strict=True):
        groups[math.floor((time - since) / (6 * 3600))].append(value)
    blocks = [group for group in groups.values() if len(group) >= 3]
    if len(set(values)) < 2:
        return 0.0
    if len(blocks) < 6:
        return 0.02
    means = [sum(group) / len(group) for group in blocks]
    squares = [sum((x - m) ** 2 for x in group) for group, m in zip(blocks, means, strict=True)]
    n = sum(map(len, blocks))
    v = sum(squares) / sum(len(group) - 1 for group in blocks)
    if v <= 0:
        return 0.0
    mbar = sum(len(group) * m for group, m in zip(blocks, means, strict=True)) / n
    between = sum(len(group) * (m - mbar) ** 2 for group, m in zip(blocks, means, strict=True)) / v
    c = (n - sum(len(group) ** 2 for group in blocks) / n) / v
    observed, found = (between - (len(blocks) - 1)) / c, 0.0004
    for _ in range(8):
        variance = 2 * (len(blocks) - 1) / c**2 + 2 * found**2 / (0.15 * len(blocks))
        trust = 0.0004**2 / (0.0004**2 + variance)
        found = max(0.0, trust * observed + (1 - trust) * 0.0004)
    return math.sqrt(found)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 3 * DAY - 1)), min_size=30, max_size=120),
    st.sampled_from([0.0, 12_345.0]),
)
def test_the_learned_wander_matches_its_formula(rows: list[tuple[float, float]], since: float) -> None:
    """Blocks last 6 h. Blocks with fewer than 3 scores are ignored, and fewer than 6 blocks yield 0.02."""
    found = learned([("a", value, False, since + time) for value, time in rows], since=since, days=3).routes["a"]

    committed = [(value, since + time) for value, time in rows if value > 0]
    zero = [(float(value <= 0), since + time) for value, time in rows]
    assert found.committed_wander == pytest.approx(by_hand(committed, since), abs=1e-9)
    assert found.zero_wander == pytest.approx(by_hand(zero, since), abs=1e-9)


def by_hand(rows: list[tuple[float, float]], since: float) -> float:
    return wander_by_hand([value for value, _ in rows], [time for _, time in rows], since)


def test_learning_recovers_a_simulated_wander() -> None:
    """A wander of 0.03 is recovered within a tenth; without wander, the result is close to 0."""
    random = np.random.default_rng(8)
    blocks = np.repeat(np.arange(400), 25)
    noise = random.normal(0, 0.1, len(blocks))

    assert wander(0.7 + 0.03 * random.normal(size=400)[blocks] + noise, blocks) == pytest.approx(0.03, rel=0.1)
    assert wander(0.7 + noise, blocks) < 0.008


def test_learned_route_statistics_match_the_scores() -> None:
    """Standard deviations divide by n - 1, the rate of zeros is smoothed, and rates use the window length."""
    rows: list[Any] = [("a", 0.6, False, 60.0 * i) for i in range(20)]
    rows += [("a", 0.9, False, 60.0), ("a", 1.7, False, 60.0), ("a", -0.2, False, 60.0)]
    rows += [("a", 0.4, True, 60.0)] * 9
    found = learned(rows, days=2)

    route = found.routes["a"]
    committed = [0.6] * 20 + [0.9, 1.0]
    everything = [*committed, 0.0, *[0.4] * 9]
    assert (route.n, route.committed) == (32, 22)
    assert route.committed_mean == pytest.approx(np.mean(committed), abs=1e-12)
    assert route.committed_deviation == pytest.approx(np.std(committed, ddof=1), abs=1e-12)
    assert route.zero_rate == pytest.approx(10.5 / 33, abs=1e-12)
    assert (route.mean, route.deviation) == pytest.approx((np.mean(everything), np.std(everything, ddof=1)), abs=1e-12)
    assert (route.scores_per_day, route.committed_per_day) == (16, 11)
    assert (found.n, found.mean, found.scores_per_day, found.committed_per_day) == (32, route.mean, 16, 11)


def test_routes_with_few_scores_are_pooled() -> None:
    """The routes have fewer than 30 scores each and at least 30 together."""
    found = learned([("a", 0.5, False, 0.0)] * 30 + [("b", 0.5, False, 0.0)] * 29 + [("c", 0.7, False, 0.0)])

    assert set(found.routes) == {"a", POOLED_ROUTE}
    assert found.pooled == {"b", "c"}
    assert found.routes[POOLED_ROUTE].n == 30


def test_a_pool_with_few_scores_is_not_watched_on_its_own() -> None:
    """The pool's scores count only in the mean of the service."""
    found = learned([("a", 0.5, False, 0.0)] * 30 + [("b", 0.8, False, 0.0)] * 29)

    assert set(found.routes) == {"a"}
    assert found.pooled == frozenset()
    assert (found.n, found.scores_per_day) == (59, 30 / 14)


def test_a_route_with_the_name_of_the_pool_is_pooled() -> None:
    """The number of its scores does not matter. A route named "other" is an ordinary route."""
    found = learned(
        [(POOLED_ROUTE, 0.5, False, 0.0)] * 50 + [("b", 0.8, False, 0.0)] * 5 + [("other", 0.8, False, 0.0)] * 30
    )

    assert found.pooled == {POOLED_ROUTE, "b"}
    assert {name: route.n for name, route in found.routes.items()} == {POOLED_ROUTE: 55, "other": 30}
    detector = Detector(found)
    detector.process(ScoreBatch([POOLED_ROUTE, "b"], np.array([0.5, 0.5]), np.zeros(2, dtype=np.bool_), np.zeros(2)))
    assert [stream["logs"][0][0] is None for stream in detector.state()["streams"]] == [False, False, True]


@pytest.mark.parametrize("seed", range(8))
def test_the_wander_of_a_few_scores_of_0_or_1_is_close_to_the_usual_one(seed: int) -> None:
    """Two weeks of them say hardly anything about it. A thousand scores a day do."""
    random = np.random.default_rng(seed)
    few, many = np.repeat(np.arange(56), 25), np.repeat(np.arange(56), 250)

    assert wander((random.random(len(few)) < 0.8).astype(float), few) == pytest.approx(USUAL_WANDER, abs=0.006)
    assert wander(random.normal(0.8, 0.1, len(many)), many) < 0.008
    assert wander(np.array([0.2, 0.8, 0.4, 0.6]), np.arange(4)) == USUAL_WANDER


def test_deviation_and_wander_are_zero_if_all_answers_are_refusals() -> None:
    """The standard deviation is 0, not NaN."""
    for committed in (0, 1):
        found = learned([("a", 0.5, False, 0.0)] * committed + [("a", 0.0, False, 0.0)] * 40)
        assert (found.routes["a"].committed_deviation, found.routes["a"].committed_wander) == (0.0, 0.0)


def test_a_steady_route_with_mostly_refusals_does_not_fire() -> None:
    """The route's rate of zeros is too high to be watched."""
    random = np.random.default_rng(4)
    rows = [("a", float(value > 0.95) / 2, False, 900.0 * i) for i, value in enumerate(random.random(1300))]
    detector = Detector(learned(rows))

    more = random.random(20_000) > 0.95
    assert detector.process(ScoreBatch(["a"] * len(more), more / 2, ~more, np.arange(len(more)) * 900.0)) == []


def test_learning_from_an_empty_window_is_rejected() -> None:
    """Scores per day would be undefined."""
    with pytest.raises(ValueError, match="window must end after it starts"):
        learned([("a", 0.5, False, 0.0)], days=0)


def test_learning_from_no_scores_yields_an_empty_baseline() -> None:
    """The resulting baseline has no routes."""
    found = learned([])
    assert (found.n, found.scores_per_day, dict(found.routes)) == (0, 0, {})


def test_a_learned_baseline_recovers_simulated_values() -> None:
    """The scores cover fourteen days and three routes."""
    found = learn_baseline(
        scores(np.random.default_rng(1), 14_000, per_day=1000), service="s", scorer="r", fingerprint="f", since=0.0,
        until=14 * DAY, sampling_rate=0.4,
    )  # fmt: skip

    assert found.sampling_rate == 0.4
    assert found.scores_per_day == pytest.approx(1000)
    assert found.routes["faq"].committed_mean == pytest.approx(0.88, abs=0.005)
    assert found.routes["support"].zero_rate == pytest.approx(0.15, abs=0.03)
