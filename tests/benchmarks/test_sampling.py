"""A part of the sampling benchmark: selection, allocation and estimation on synthetic streams with a fixed seed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from common import Goals
from sampling import CALLS, RHOS, Found, budgeted, report, simulated

REPETITIONS = 80


@cache
def found_at(rho: float) -> dict[str, Found]:
    return simulated(7, rho, REPETITIONS)


@pytest.mark.parametrize("rho", RHOS)
def test_priority_sampling_finds_low_scores_and_rare_routes_without_bias(rho: float) -> None:
    """It selects exactly 300 exchanges per day. The better the proxy score, the more low scores are found."""
    found = found_at(rho)
    ours = found["priority"]

    assert set(ours.scores) == {CALLS}
    assert np.mean(ours.low) > {0.3: 36, 0.6: 48, 0.9: 64}[rho] > np.mean(found["uniform"].low)
    assert np.mean(ours.routes) > 9.2
    for errors in (ours.hajek, ours.regression):
        assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(REPETITIONS) < 0.0075
    assert np.std(ours.regression) < np.std(found["fixed"].hajek)
    goals = Goals()
    report(rho, found, goals)
    assert f"rho {rho} priority regression: coverage" in goals.values


def test_at_least_nine_in_ten_intervals_contain_the_true_mean() -> None:
    """The intervals of both estimators are compared with the mean of the process over 240 days."""
    found = [found_at(rho)["priority"] for rho in RHOS]

    for way in ("hajek_covers", "regression_covers"):
        assert 0.9 <= np.mean([covers for one in found for covers in getattr(one, way)]) <= 0.99


def test_the_daily_budget_lasts_until_the_evening() -> None:
    """Over 64 days with a morning peak, the limit holds, and the daily mean reflects a drop in the evening."""
    goals = Goals()
    budgeted(9, 64, goals)

    assert goals.values["budget: most calls a day"] <= CALLS
    assert goals.values["budget: evening samples"] > 60
    assert goals.values["budget: bias of the daily mean"] < 4 * 0.007 / 8
    assert goals.values["budget: error of the daily mean"] < 0.0085
    assert goals.values["first come: bias of the daily mean"] > 0.02
