"""What drop would be noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.alerting.detector.streams import baseline

from germane.alerting.detector import Chance, Power, power, tolerance

BASELINE = baseline(per_day=100)


def test_large_drops_are_noticed_and_small_ones_are_not() -> None:
    """At a hundred scores a day .3 within a day, and .005 not within a week."""
    found = power(BASELINE, 100, seed=1, drops=(0.3, 0.005), runs=8)

    assert [one.drop for one in found.chances] == [0.005, 0.3]
    assert found.chances[0].within[0] <= found.chances[0].within[1] <= 0.2
    assert found.chances[1].within == (1.0, 1.0)
    assert found.smallest_noticed(1) == 0.3


def test_more_scores_notice_more() -> None:
    """Of a drop by .05, within two days, by the same baseline."""
    few, many = (power(BASELINE, n, seed=2, days=(2,), drops=(0.05,), runs=12) for n in (10, 500))

    assert few.chances[0].within[0] + 0.5 < many.chances[0].within[0]


def test_the_same_seed_tells_the_same() -> None:
    """Random numbers are the caller's."""
    one, other = (power(BASELINE, 50, seed=3, drops=(0.1,), runs=4) for _ in range(2))

    assert one == other


def test_the_smallest_noticed_is_noticed_as_all_larger_ones_are() -> None:
    """None where not even the largest is; a number of days that was not asked for is refused."""
    found = Power((1.0, 7.0), (Chance(0.1, (0.8, 0.9)), Chance(0.2, (0.1, 0.8)), Chance(0.3, (0.7, 1.0))), 0.02, 0.02)

    assert found.smallest_noticed(7) == 0.1
    assert found.smallest_noticed(1) is None
    assert found.smallest_noticed(7, 0.95) == 0.3
    with pytest.raises(ValueError, match="not in"):
        found.smallest_noticed(3)


def test_the_tolerance_is_what_matters_or_twice_the_wander() -> None:
    """Of each route the larger, weighted by its scores."""
    faq, docs = BASELINE.routes["faq"], BASELINE.routes["docs"]
    calm = replace(faq, committed_wander=0.001, zero_wander=0.0, scores_per_day=30.0)
    restless = replace(docs, committed_wander=0.03, zero_wander=0.05, scores_per_day=10.0)

    found = tolerance(replace(BASELINE, routes={"faq": calm, "docs": restless}), min_drop=0.05)

    assert found == pytest.approx((0.75 * 0.02 + 0.25 * 0.06, 0.75 * 0.02 + 0.25 * 0.1), abs=1e-12)


def test_a_baseline_of_nothing_notices_nothing() -> None:
    """And has the tolerance of the smallest drop that matters."""
    empty = replace(BASELINE, routes={}, scores_per_day=0.0, committed_per_day=0.0)

    found = power(empty, 100, seed=1, drops=(0.3,), runs=2)

    assert found.chances == (Chance(0.3, (0.0, 0.0)),)
    assert (found.tolerance, found.zero_tolerance) == pytest.approx((0.02, 0.02))


def test_numbers_at_the_edge_draw_scores_too() -> None:
    """No deviation, or nothing but zeros."""
    faq = BASELINE.routes["faq"]
    stiff = replace(faq, committed_deviation=0.0, committed_mean=1.0)
    silent = replace(faq, committed=0, committed_mean=0.0, committed_deviation=0.0, zero_rate=0.999)

    found = power(replace(BASELINE, routes={"a": stiff, "b": silent}), 50, seed=1, drops=(0.2,), runs=3)

    assert 0 <= found.chances[0].within[0] <= 1
