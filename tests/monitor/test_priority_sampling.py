"""Which candidates of an interval are picked, and with which probability."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.monitor.sampling.priority_sampling import Mixture, Picks, mixture_of, pick, second_ticket

proxies_or_none = st.one_of(st.just(float("nan")), st.floats(-1, 2))
candidates = st.lists(
    st.tuples(st.integers(0, 3), proxies_or_none, st.floats(1e-9, 1), st.uuids().map(lambda one: one.hex)),
    min_size=1,
    max_size=60,
    unique_by=lambda one: one[3],
)


def arrays(rows: list[tuple[int, float, float, str]]) -> tuple[Any, Any, Any, list[str]]:
    """Return routes, numbered anew without gaps, proxies, tickets and ids."""
    routes = np.unique([row[0] for row in rows], return_inverse=True)[1]
    return routes, np.array([row[1] for row in rows]), np.array([row[2] for row in rows]), [row[3] for row in rows]


def test_the_weights_are_the_mixture() -> None:
    """.5 / M + .3 u^2 / sum u^2 + .2 / (K M_r), with the median suspicion where there is no proxy."""
    routes, proxies = np.array([0, 0, 0, 1]), np.array([0.5, 0.9, 1.0, np.nan])

    weights = mixture_of(routes, proxies).weights(routes, proxies)

    squares = [0.5**2, 0.1**2, 0.02**2, 0.1**2]
    shares = [square / sum(squares) for square in squares]
    floors = [0.2 / (2 * 3)] * 3 + [0.2 / 2]
    expected = [0.5 / 4 + 0.3 * share + floor for share, floor in zip(shares, floors, strict=True)]
    assert weights == pytest.approx(expected, abs=1e-12)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_without_any_proxy_the_uniform_part_takes_its_place() -> None:
    """.8 / M + .2 / (K M_r), and nothing is picked for suspicion."""
    routes, proxies = np.array([0, 0, 0, 1]), np.full(4, np.nan)
    tickets, ids = np.array([0.3, 0.9, 0.6, 0.2]), list("abcd")

    assert mixture_of(routes, proxies).weights(routes, proxies) == pytest.approx(
        [0.8 / 4 + 0.2 / 6] * 3 + [0.8 / 4 + 0.2 / 2], abs=1e-12
    )
    assert "suspicion" not in pick(routes, proxies, tickets, ids, 2).parts


def test_the_largest_priorities_are_picked() -> None:
    """Those of the largest w / h, and with tau the next largest each has the probability w / tau, at most 1."""
    routes, proxies = np.zeros(4, dtype=np.int64), np.full(4, np.nan)
    tickets = np.array([0.5, 0.1, 0.8, 0.4])  # all weigh .25, so that tau is .25 / .5

    picks = pick(routes, proxies, tickets, list("abcd"), 2)

    assert picks.chosen.tolist() == [1, 3]
    assert picks.probabilities == pytest.approx([0.5, 0.5], abs=1e-12)
    assert picks.mixture.threshold == pytest.approx(0.5, abs=1e-12)


@given(rows=candidates, count=st.integers(1, 70))
def test_exactly_so_many_are_picked(rows: list[Any], count: int) -> None:
    """As many as asked for, or all; each with a probability in (0, 1] that the mixture tells again, 1 for all."""
    routes, proxies, tickets, ids = arrays(rows)

    picks = pick(routes, proxies, tickets, ids, count)

    assert len(set(picks.chosen.tolist())) == len(picks.parts) == min(count, len(rows))
    assert np.all((picks.probabilities > 0) & (picks.probabilities <= 1))
    told = picks.mixture.probabilities(routes, proxies)
    assert np.array_equal(told[picks.chosen], picks.probabilities)
    assert np.all((told > 0) & (told <= 1))
    if count >= len(rows):
        assert np.all(told == 1)


@given(rows=candidates, count=st.integers(1, 70), seed=st.integers(0, 99))
def test_the_order_of_candidates_is_nothing_to_the_picks(rows: list[Any], count: int, seed: int) -> None:
    """The same ones are picked, with the same probabilities to the last digit, in whatever order they come."""

    def picked(some: list[Any]) -> set[tuple[str, float, str]]:
        routes, proxies, tickets, ids = arrays(some)
        picks = pick(routes, proxies, tickets, ids, count)
        names = [ids[place] for place in picks.chosen]
        return set(zip(names, picks.probabilities.tolist(), picks.parts, strict=True))

    shuffled = [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]
    assert picked(rows) == picked(shuffled)


def test_equal_priorities_are_settled_by_the_id() -> None:
    """Exchanges of one trace share a draw: the count stays exact, and the smaller ids win."""
    routes, proxies, tickets = np.zeros(5, dtype=np.int64), np.full(5, np.nan), np.full(5, 0.25)

    picks = pick(routes, proxies, tickets, list("ecadb"), 3)

    assert sorted("ecadb"[place] for place in picks.chosen) == ["a", "b", "c"]
    assert picks.probabilities == pytest.approx([0.25] * 3, abs=1e-12)


def _drawn(random: np.random.Generator, routes: Any, proxies: Any, ids: list[str], count: int) -> Picks:
    return pick(routes, proxies, 1 - random.random(len(ids)), ids, count)


def test_a_pick_stands_for_as_many_as_its_weight_says() -> None:
    """Over many draws the sum of 1 / pi is the number of candidates, and that of each route, within four errors."""
    random = np.random.default_rng(4)
    routes = random.choice(3, size=200, p=[0.8, 0.15, 0.05])
    proxies = np.where(random.random(200) < 0.7, random.random(200), np.nan)
    ids = [f"{number:032x}" for number in range(200)]
    totals = []
    for _ in range(2000):
        picks = _drawn(random, routes, proxies, ids, 20)
        totals.append(np.bincount(routes[picks.chosen], weights=1 / picks.probabilities, minlength=3))

    error = np.std(totals, axis=0) / np.sqrt(len(totals))
    assert np.all(np.abs(np.mean(totals, axis=0) - np.bincount(routes)) < 4 * error)
    assert abs(np.sum(totals, axis=1).mean() - 200) < 4 * np.sum(totals, axis=1).std() / np.sqrt(len(totals))


def test_what_was_not_picked_for_suspicion_is_a_fair_sample_of_its_route() -> None:
    """Within a route the suspicious are not in it more often than the others, although they are picked more often."""
    random = np.random.default_rng(5)
    routes, proxies = np.repeat([0, 1], [240, 60]), np.tile([0.1, 0.95, np.nan], 100)
    suspicious = proxies == 0.1
    fair, picked = np.zeros(300), np.zeros(300)
    for draw in range(3000):
        ids = [f"{draw}-{number}" for number in range(300)]
        picks = _drawn(random, routes, proxies, ids, 30)
        picked[picks.chosen] += 1
        fair[picks.chosen[[part != "suspicion" for part in picks.parts]]] += 1

    for route in (0, 1):
        here = routes == route
        mean, error = fair[here].mean() / 3000, np.sqrt(fair[here].mean() / 3000 / (3000 * 20))
        assert abs(fair[here & suspicious].mean() - fair[here & ~suspicious].mean()) / 3000 < 5 * error
        assert picked[here & suspicious].mean() > 1.5 * picked[here & ~suspicious].mean()
        assert mean > 0


def test_a_second_ticket_tells_nothing_of_the_first(new_exchange: Any) -> None:
    """It lies in (0, 1], is always the same for an id, and does not go with the draw."""
    exchanges = [new_exchange() for _ in range(2000)]
    draws, marks = [one.draw for one in exchanges], [second_ticket(one.id) for one in exchanges]

    assert all(0 < mark <= 1 for mark in marks)
    assert marks == [second_ticket(one.id) for one in exchanges]
    assert abs(np.corrcoef(draws, marks)[0, 1]) < 0.1


def test_a_mixture_tells_the_probability_of_those_that_were_not_picked() -> None:
    """It is enough to say it later, one batch after another, to the last digit."""
    random = np.random.default_rng(6)
    routes, proxies = random.integers(0, 5, 500), random.random(500)
    picks = _drawn(random, routes, proxies, [str(number) for number in range(500)], 40)
    mixture = picks.mixture
    again = Mixture(mixture.uniform, mixture.suspicion, mixture.usual, mixture.floors, mixture.threshold)

    whole = mixture.probabilities(routes, proxies)
    parts = [again.probabilities(routes[at : at + 7], proxies[at : at + 7]) for at in range(0, 500, 7)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_a_busy_hour_is_picked_from_at_once() -> None:
    """300,000 candidates take about a tenth of a second; ten times that is allowed for a busy machine."""
    random = np.random.default_rng(7)
    routes, proxies, tickets = random.integers(0, 50, 300_000), random.random(300_000), 1 - random.random(300_000)
    ids = [str(number) for number in range(300_000)]

    def timed() -> float:
        began = time.process_time()
        assert len(pick(routes, proxies, tickets, ids, 300).chosen) == 300
        return time.process_time() - began

    assert min(timed() for _ in range(3)) < 1.0
