"""The capacity benchmark simulates the limits that docs/capacity.md relies on."""

from __future__ import annotations

import numpy as np
import pytest
from capacity import LIMIT, Size, half_width, kept_shares, simulate

from germane.monitor.sampling.budget_allocation import ExchangeCost

COST = ExchangeCost(requests=2, tokens=490, usd=0.001)
SMALL = Size(exchanges=200_000, applications=2)


@pytest.mark.slow
def test_simulated_day_stays_within_the_budget() -> None:
    """The judge's cost uses the budget and never exceeds it; every route gets scores."""
    outcome = simulate(SMALL, 5.0, COST, np.ones(1440), seed=3)

    assert 4.9 <= outcome.usd <= 5.0 + 1e-9
    assert outcome.scored == round(outcome.usd / COST.usd)
    assert not any(np.isnan(outcome.half_widths))
    assert outcome.overall < min(outcome.half_widths)


@pytest.mark.slow
def test_rows_follow_the_limit_and_not_the_traffic() -> None:
    """Ten times the traffic stores the same number of exchanges."""
    stored = []
    for size in (Size(2_000_000, 10), Size(20_000_000, 100)):
        shares = kept_shares(size, np.random.default_rng(3))
        stored.append(simulate(size, 1.0, COST, shares, seed=3).stored)

    assert stored == pytest.approx([LIMIT * 1440] * 2, rel=0.05)


def test_too_few_scores_have_no_interval() -> None:
    """Nineteen scores are not enough."""
    assert np.isnan(half_width(np.full(19, 0.5), np.full(19, 0.1)))
