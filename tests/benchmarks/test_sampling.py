"""A part of the sampling benchmark: selection, allocation and estimation on synthetic streams with a fixed seed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sampling import CALLS, REPORTED, RHOS, Found, budgeted, figures_of, simulated

REPETITIONS = 80


@cache
def found_at(rho: float) -> dict[str, Found]:
    return simulated(7, rho, REPETITIONS)


@pytest.mark.parametrize("rho", RHOS)
def test_priority_sampling_finds_low_scores_and_rare_routes_without_bias(rho: float) -> None:
    """It selects exactly 300 exchanges per day, as many low scores and rare routes as reported, and without bias."""
    found = found_at(rho)
    ours, at = found["priority"], RHOS.index(rho)

    assert set(ours.scores) == {CALLS}
    assert np.mean(ours.low) > 0.9 * REPORTED["priority"]["low"][at]
    assert np.mean(ours.low) > np.mean(found["uniform"].low)
    assert np.mean(ours.routes) > 0.9 * REPORTED["priority"]["routes"]
    for errors in (ours.hajek, ours.regression):
        assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(REPETITIONS) < 0.0075
    assert np.std(ours.regression) < np.std(found["fixed"].hajek)
    assert {figure.name for figure in figures_of(rho, found)} >= {f"rho {rho} priority regression: coverage"}


def test_at_least_nine_in_ten_intervals_contain_the_true_mean() -> None:
    """The intervals of both estimators are compared with the mean of the process over 240 days."""
    found = [found_at(rho)["priority"] for rho in RHOS]

    for way in ("hajek_covers", "regression_covers"):
        assert 0.9 <= np.mean([covers for one in found for covers in getattr(one, way)]) <= 0.99


def test_the_daily_budget_lasts_until_the_evening() -> None:
    """Over 64 days with a morning peak, the limit holds, and the daily mean reflects a drop in the evening."""
    ours, first = budgeted(9, 64)
    figures = {figure.name.partition(": ")[2]: figure.value for figure in ours}

    assert figures["most calls a day"] <= CALLS
    assert figures["evening samples"] > 60
    assert abs(figures["bias of the daily mean"]) < 4 * 0.007 / 8
    assert figures["error of the daily mean"] < 0.0085
    assert first[0].value > 0.02
