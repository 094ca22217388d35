"""Sensitivity of the drop rule: drops that a baseline's detector would detect."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from germane.alerting.detector.bet_grid import tolerance
from germane.alerting.sensitivity import DropSensitivity, list_sensitivities, simulate_drops
from germane.baseline import Baseline, RouteBaseline
from germane.settings import Drop
from germane.storage import BaselineKey

ROUTE = RouteBaseline(
    n=1400, mean=0.76, deviation=0.2, committed=1330, committed_mean=0.8, committed_deviation=0.1, zero_rate=0.05,
    committed_wander=0.01, zero_wander=0.01, scores_per_day=100.0, committed_per_day=95.0,
)  # fmt: skip
BASELINE = Baseline(
    service="shop", scorer="relevancy", fingerprint="f1", since=datetime(2026, 1, 1, tzinfo=UTC),
    until=datetime(2026, 1, 15, tzinfo=UTC), n=1400, mean=0.76, deviation=0.2, scores_per_day=100.0,
    committed_per_day=95.0, routes={"ask": ROUTE},
)  # fmt: skip
RULE = Drop()


def test_large_drops_are_detected_and_tiny_ones_are_not() -> None:
    """A drop far below the tolerance is rarely detected; a drop of 0.3 is always detected within a day."""
    result = simulate_drops(BASELINE, RULE, drops=(0.005, 0.3), runs=8)

    tiny, large = result.probabilities
    assert max(tiny) < 0.5
    assert large == (1.0, 1.0)
    assert result.smallest_drop(1) == 0.3
    assert (result.scores_per_day, result.days) == (100.0, (1.0, 7.0))


def test_smaller_drops_are_detected_with_more_scores_up_to_a_thousand_per_day() -> None:
    """Above a thousand scores per day, the detector samples, so more scores do not help."""
    few, many, thousand, more = (
        simulate_drops(BASELINE, RULE, days=(2,), drops=(0.05,), scores_per_day=n, runs=12)
        for n in (10, 500, 1000, 5000)
    )

    assert few.probabilities[0][0] < many.probabilities[0][0]
    assert thousand == more


def test_a_drop_of_the_mean_is_a_larger_drop_of_the_nonzero_scores() -> None:
    """Zeros cannot fall, so the others fall by more, and a small drop is detected soon, but not before its scores."""
    mostly_zero = replace(ROUTE, mean=0.24, zero_rate=0.7, committed=420, committed_per_day=30.0)
    baseline = replace(BASELINE, mean=0.24, committed_per_day=30.0, routes={"ask": mostly_zero})

    result = simulate_drops(baseline, RULE, days=(0.01, 2), drops=(0.0, 0.05), runs=8)

    assert result.probabilities == ((0.0, 0.0), (0.0, 1.0))


def test_scores_that_vary_from_day_to_day_like_those_of_the_baseline_are_not_detected() -> None:
    """The simulated days vary as much as those of the baseline, for weeks, so a drop of zero stays undetected."""
    unsteady = replace(ROUTE, committed_wander=0.05, zero_wander=0.05)

    result = simulate_drops(replace(BASELINE, routes={"ask": unsteady}), RULE, days=(14,), drops=(0.0,), runs=8)

    assert result.probabilities == ((0.0,),)


def test_simulated_sensitivity_is_reproducible() -> None:
    """The random seed is fixed."""
    first, second = (simulate_drops(BASELINE, RULE, drops=(0.1,), runs=4) for _ in range(2))

    assert first == second


def test_the_smallest_detectable_drop_requires_that_all_larger_drops_are_detected() -> None:
    """A gap ends the search. Times that were not simulated are an error."""
    result = DropSensitivity(
        rule="drop", service="shop", scorer="relevancy", scores_per_day=1, days=(1.0, 7.0), drops=(0.1, 0.2, 0.3),
        probabilities=((0.8, 0.9), (0.1, 0.8), (0.7, 1.0)), tolerance=0.02, zero_tolerance=0.02,
    )  # fmt: skip

    assert result.smallest_drop(7) == 0.1
    assert result.smallest_drop(1) is None
    assert result.smallest_drop(7, 0.95) == 0.3
    with pytest.raises(ValueError, match="not in tuple"):
        result.smallest_drop(3)


def test_the_tolerance_is_a_multiple_of_the_wander_or_a_fraction_of_the_smallest_drop() -> None:
    """The tolerance is averaged over routes, weighted by their scores."""
    unsteady = replace(ROUTE, committed_wander=0.1, scores_per_day=300.0)
    baseline = replace(BASELINE, routes={"ask": ROUTE, "buy": unsteady})

    committed, zero = tolerance(baseline, min_drop=0.05)
    assert committed == pytest.approx((0.02 + 3 * 0.15) / 4, abs=1e-9)
    assert zero == pytest.approx(0.02, abs=1e-9)


def test_constant_scores_and_routes_with_only_refusals_can_be_simulated() -> None:
    """A route without variance or without nonzero scores raises no error and yields finite numbers."""
    constant = replace(ROUTE, committed_deviation=0.0, committed_wander=0.0)
    silent = replace(ROUTE, committed=0, committed_mean=0.0, committed_deviation=0.0, zero_rate=0.99)

    result = simulate_drops(replace(BASELINE, routes={"a": constant, "b": silent}), RULE, drops=(0.2,), runs=3)
    assert np.isfinite(result.probabilities).all()


def test_sensitivity_is_simulated_for_each_rule_and_service_with_a_baseline(sqlite_simulation: Any) -> None:
    """Learning baselines and other scorers are excluded."""
    store = sqlite_simulation.store
    assert list_sensitivities(store, [RULE], runs=2) == []
    for service in ("shop", "help"):
        baseline = replace(BASELINE, service=service)
        store.baselines.replace_baseline(BaselineKey(service, "relevancy", "f1"), "imported", baseline, (None, None))

    results = list_sensitivities(store, [RULE, Drop(name="other", scorer="other")], days=(1,), runs=2)
    assert [(result.rule, result.service) for result in results] == [("drop", "help"), ("drop", "shop")]
    assert list_sensitivities(store, [Drop(routes=("buy",))], runs=2) == []
