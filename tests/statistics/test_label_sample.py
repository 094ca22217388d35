"""Samples of answers for people to label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.statistics.label_sample import allot, systematic_sample

WEIGHTS = st.lists(st.floats(0.01, 1000.0), min_size=1, max_size=60).map(np.array)
ROUTES = st.dictionaries(st.text("abc", max_size=3), st.floats(0.5, 1e4), min_size=1, max_size=9)


@given(WEIGHTS, st.integers(0, 70), st.integers(0, 2**32))
def test_the_sample_has_the_requested_size_without_duplicates(weights: np.ndarray, count: int, seed: int) -> None:
    """All items are drawn if there are not enough. Indexes are ascending, and probabilities are in (0, 1]."""
    indexes, probabilities = systematic_sample(weights, count, np.random.default_rng(seed))

    assert len(indexes) == len(probabilities) == min(count, len(weights))
    assert (np.diff(indexes) > 0).all()
    assert ((probabilities > 0) & (probabilities <= 1)).all()


@given(WEIGHTS, st.integers(1, 59), st.integers(0, 2**32))
def test_probabilities_are_proportional_to_weights_except_for_certain_items(
    weights: np.ndarray, count: int, seed: int
) -> None:
    """Items with a probability below 1 have the same ratio of probability to weight, and certain ones a smaller one."""
    indexes, probabilities = systematic_sample(weights, count, np.random.default_rng(seed))
    ratios = probabilities / weights[indexes]

    others = ratios[probabilities < 1]
    if len(others):
        assert others == pytest.approx(others[0])
        assert (ratios <= others[0] * (1 + 1e-6)).all()


def test_items_are_drawn_as_often_as_their_probability_says() -> None:
    """The item with a weight above its share is always drawn, and one with twice the weight is drawn twice as often."""
    weights, drawn = np.array([1.0, 2.0, 100.0, 1.0, 4.0]), np.zeros(5)
    generator = np.random.default_rng(1)
    for _ in range(4000):
        indexes, probabilities = systematic_sample(weights, 3, generator)
        drawn[indexes] += 1
        assert probabilities == pytest.approx(np.array([0.25, 0.5, 1.0, 0.25, 1.0])[indexes])

    assert drawn / 4000 == pytest.approx([0.25, 0.5, 1.0, 0.25, 1.0], abs=0.03)


def test_an_item_with_slightly_more_than_its_share_is_certain() -> None:
    """Its probability would be 1.2. The others share the other two places."""
    indexes, probabilities = systematic_sample(np.array([1.0, 1.0, 2.0, 1.0]), 3, np.random.default_rng(1))

    assert 2 in indexes
    assert sorted(probabilities) == pytest.approx([2 / 3, 2 / 3, 1])


def test_a_sample_is_spread_over_the_items_in_their_order() -> None:
    """One of ten equal items is drawn from each tenth."""
    indexes, _ = systematic_sample(np.ones(100), 10, np.random.default_rng(2))

    assert list(np.diff(indexes)) == [10] * 9


@given(ROUTES, st.integers(0, 200), st.integers(0, 12))
def test_all_labels_are_allotted_within_the_limits(traffic: dict[str, float], count: int, limit: int) -> None:
    """No route gets more than its limit, and labels are left only if all routes have reached it."""
    limits = {route: limit + len(route) for route in traffic}
    allotted = allot(traffic, count, limits=limits)

    assert list(allotted) == list(traffic)
    assert all(0 <= allotted[route] <= limits[route] for route in traffic)
    assert sum(allotted.values()) == min(count, sum(limits.values()))


@pytest.mark.parametrize(
    ("traffic", "count", "expected"),
    [
        ({"a": 500, "b": 300, "c": 200}, 100, {"a": 50, "b": 30, "c": 20}),
        ({"a": 900, "b": 100}, 50, {"a": 40, "b": 10}),
        ({"a": 20, "b": 900, "c": 80}, 50, {"a": 10, "b": 30, "c": 10}),
        ({"a": 900, "b": 40, "c": 30, "d": 20, "e": 10}, 50, {"a": 26, "b": 6, "c": 6, "d": 6, "e": 6}),
        ({"a": 1, "b": 2, "c": 3}, 2, {"a": 0, "b": 1, "c": 1}),
        ({"a": 100, "b": 1, "c": 1}, 3, {"a": 1, "b": 1, "c": 1}),
        (
            {"a": 900, "b": 60} | dict.fromkeys(map(str, range(60)), 2),
            50,
            {"a": 47, "b": 3} | dict.fromkeys(map(str, range(60)), 0),
        ),
        ({}, 50, {}),
    ],
)
def test_each_route_gets_ten_labels_and_the_rest_is_divided_by_traffic(
    traffic: dict[str, int], count: int, expected: dict[str, int]
) -> None:
    """With many routes, the minimum shrinks, so that a third of the labels is left to divide. If there are more routes
    than labels, most labels still go to the routes with the most traffic."""
    assert allot(traffic, count) == expected


def test_labels_that_a_route_cannot_use_go_to_the_others() -> None:
    """A route with four scored answers gets four labels."""
    assert allot({"a": 500, "b": 500, "c": 10}, 50, limits={"a": 4, "b": 100, "c": 100}) == {"a": 4, "b": 36, "c": 10}
    assert allot({"a": 600, "b": 400}, 10, minimum=2) == {"a": 6, "b": 4}
    assert allot({"a": 53, "b": 24, "c": 23}, 7, minimum=1) == {"a": 3, "b": 2, "c": 2}
