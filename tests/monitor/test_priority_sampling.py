"""Priority sampling: the selected candidates and their probabilities."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.monitor.sampling.priority_sampling import (
    Mixture,
    PrioritySample,
    build_mixture,
    component_uniform,
    draw_priority_sample,
)

proxies_or_none = st.one_of(st.just(float("nan")), st.floats(-1, 2))
candidates = st.lists(
    st.tuples(st.integers(0, 3), proxies_or_none, st.floats(1e-9, 1), st.uuids().map(lambda one: one.hex)),
    min_size=1,
    max_size=60,
    unique_by=lambda one: one[3],
)


def arrays(rows: list[tuple[int, float, float, str]]) -> tuple[Any, Any, Any, list[str]]:
    """Return route indexes without gaps, proxy scores, uniform numbers and ids."""
    routes = np.unique([row[0] for row in rows], return_inverse=True)[1]
    return routes, np.array([row[1] for row in rows]), np.array([row[2] for row in rows]), [row[3] for row in rows]


def test_sampling_weights_follow_the_mixture_formula() -> None:
    """.5 / M + .3 u^2 / sum u^2 + .2 / (K M_r); a missing proxy score is replaced by the median suspicion."""
    routes, proxies = np.array([0, 0, 0, 1]), np.array([0.5, 0.9, 1.0, np.nan])

    weights = build_mixture(routes, proxies).weights(routes, proxies)

    squares = [0.5**2, 0.1**2, 0.02**2, 0.1**2]
    shares = [square / sum(squares) for square in squares]
    floors = [0.2 / (2 * 3)] * 3 + [0.2 / 2]
    expected = [0.5 / 4 + 0.3 * share + floor for share, floor in zip(shares, floors, strict=True)]
    assert weights == pytest.approx(expected, abs=1e-12)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_uniform_component_gets_the_share_of_suspicion_without_proxy_scores() -> None:
    """The weight is .8 / M + .2 / (K M_r), and no candidate is selected by suspicion."""
    routes, proxies = np.array([0, 0, 0, 1]), np.full(4, np.nan)
    uniforms, ids = np.array([0.3, 0.9, 0.6, 0.2]), list("abcd")

    assert build_mixture(routes, proxies).weights(routes, proxies) == pytest.approx(
        [0.8 / 4 + 0.2 / 6] * 3 + [0.8 / 4 + 0.2 / 2], abs=1e-12
    )
    assert "suspicion" not in draw_priority_sample(routes, proxies, uniforms, ids, 2).components


def test_candidates_with_the_largest_priorities_are_selected() -> None:
    """The priority is w / h. If tau is the next largest value, the probability is min(1, w / tau)."""
    routes, proxies = np.zeros(4, dtype=np.int64), np.full(4, np.nan)
    uniforms = np.array([0.5, 0.1, 0.8, 0.4])  # all weights are .25, so tau is .25 / .5

    sample = draw_priority_sample(routes, proxies, uniforms, list("abcd"), 2)

    assert sample.selected.tolist() == [1, 3]
    assert sample.probabilities == pytest.approx([0.5, 0.5], abs=1e-12)
    assert sample.mixture.threshold == pytest.approx(0.5, abs=1e-12)


@given(rows=candidates, count=st.integers(1, 70))
def test_a_priority_sample_has_exactly_the_requested_size(rows: list[Any], count: int) -> None:
    """Exactly the requested number of candidates is selected, or all of them. The mixture reproduces their
    probabilities, which are in (0, 1]."""
    routes, proxies, uniforms, ids = arrays(rows)

    sample = draw_priority_sample(routes, proxies, uniforms, ids, count)

    assert len(set(sample.selected.tolist())) == len(sample.components) == min(count, len(rows))
    assert np.all((sample.probabilities > 0) & (sample.probabilities <= 1))
    reproduced = sample.mixture.probabilities(routes, proxies)
    assert np.array_equal(reproduced[sample.selected], sample.probabilities)
    assert np.all((reproduced > 0) & (reproduced <= 1))
    if count >= len(rows):
        assert np.all(reproduced == 1)


@given(rows=candidates, count=st.integers(1, 70), seed=st.integers(0, 99))
def test_the_selection_does_not_depend_on_the_order_of_candidates(rows: list[Any], count: int, seed: int) -> None:
    """Any order yields the same selection with bitwise equal probabilities."""

    def picked(some: list[Any]) -> set[tuple[str, float, str]]:
        routes, proxies, uniforms, ids = arrays(some)
        sample = draw_priority_sample(routes, proxies, uniforms, ids, count)
        names = [ids[place] for place in sample.selected]
        return set(zip(names, sample.probabilities.tolist(), sample.components, strict=True))

    shuffled = [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]
    assert picked(rows) == picked(shuffled)


def test_equal_priorities_are_ordered_by_exchange_id() -> None:
    """Exchanges in one trace share a sampling key. The sample size is still exact, and smaller ids are selected."""
    routes, proxies, uniforms = np.zeros(5, dtype=np.int64), np.full(5, np.nan), np.full(5, 0.25)

    sample = draw_priority_sample(routes, proxies, uniforms, list("ecadb"), 3)

    assert sorted("ecadb"[place] for place in sample.selected) == ["a", "b", "c"]
    assert sample.probabilities == pytest.approx([0.25] * 3, abs=1e-12)


def _drawn(random: np.random.Generator, routes: Any, proxies: Any, ids: list[str], count: int) -> PrioritySample:
    return draw_priority_sample(routes, proxies, 1 - random.random(len(ids)), ids, count)


def test_estimates_weighted_by_inverse_probabilities_are_unbiased() -> None:
    """Over many samples, the sum of 1 / pi matches the number of candidates, overall and per route."""
    random = np.random.default_rng(4)
    routes = random.choice(3, size=200, p=[0.8, 0.15, 0.05])
    proxies = np.where(random.random(200) < 0.7, random.random(200), np.nan)
    ids = [f"{number:032x}" for number in range(200)]
    totals = []
    for _ in range(2000):
        sample = _drawn(random, routes, proxies, ids, 20)
        totals.append(np.bincount(routes[sample.selected], weights=1 / sample.probabilities, minlength=3))

    error = np.std(totals, axis=0) / np.sqrt(len(totals))
    assert np.all(np.abs(np.mean(totals, axis=0) - np.bincount(routes)) < 4 * error)
    assert abs(np.sum(totals, axis=1).mean() - 200) < 4 * np.sum(totals, axis=1).std() / np.sqrt(len(totals))


def test_selections_without_suspicion_are_a_fair_sample_of_their_route() -> None:
    """Suspicious candidates are selected more often, but not by the other components."""
    random = np.random.default_rng(5)
    routes, proxies = np.repeat([0, 1], [240, 60]), np.tile([0.1, 0.95, np.nan], 100)
    suspicious = proxies == 0.1
    fair, picked = np.zeros(300), np.zeros(300)
    for draw in range(3000):
        ids = [f"{draw}-{number}" for number in range(300)]
        sample = _drawn(random, routes, proxies, ids, 30)
        picked[sample.selected] += 1
        fair[sample.selected[[part != "suspicion" for part in sample.components]]] += 1

    for route in (0, 1):
        here = routes == route
        mean, error = fair[here].mean() / 3000, np.sqrt(fair[here].mean() / 3000 / (3000 * 20))
        assert abs(fair[here & suspicious].mean() - fair[here & ~suspicious].mean()) / 3000 < 5 * error
        assert picked[here & suspicious].mean() > 1.5 * picked[here & ~suspicious].mean()
        assert mean > 0


def test_the_random_number_that_selects_the_component_is_independent_of_the_sampling_key(new_exchange: Any) -> None:
    """The number is in (0, 1], and always the same for an id."""
    exchanges = [new_exchange() for _ in range(2000)]
    draws, marks = [one.sampling_key for one in exchanges], [component_uniform(one.id) for one in exchanges]

    assert all(0 < mark <= 1 for mark in marks)
    assert marks == [component_uniform(one.id) for one in exchanges]
    assert abs(np.corrcoef(draws, marks)[0, 1]) < 0.1


def test_a_stored_mixture_reproduces_the_probabilities_of_unselected_candidates() -> None:
    """They can be computed later and in batches, and are bitwise equal."""
    random = np.random.default_rng(6)
    routes, proxies = random.integers(0, 5, 500), random.random(500)
    sample = _drawn(random, routes, proxies, [str(number) for number in range(500)], 40)
    mixture = sample.mixture
    again = Mixture(mixture.uniform, mixture.suspicion, mixture.default_suspicion, mixture.floors, mixture.threshold)

    whole = mixture.probabilities(routes, proxies)
    parts = [again.probabilities(routes[at : at + 7], proxies[at : at + 7]) for at in range(0, 500, 7)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_selecting_from_a_busy_hour_takes_little_time() -> None:
    """300,000 candidates take about a tenth of a second; ten times that is allowed for a busy machine."""
    random = np.random.default_rng(7)
    routes, proxies, uniforms = random.integers(0, 50, 300_000), random.random(300_000), 1 - random.random(300_000)
    ids = [str(number) for number in range(300_000)]

    def timed() -> float:
        began = time.process_time()
        assert len(draw_priority_sample(routes, proxies, uniforms, ids, 300).selected) == 300
        return time.process_time() - began

    assert min(timed() for _ in range(3)) < 1.0
