"""The bound on false alerts, for the least favorable scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.alerting.detector.streams import baseline

from germane.alerting.detector.bet_grid import BetGrid
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.score_batch import ScoreBatch

BASELINE = replace(baseline(), scores_per_day=1000 / 365)
RUNS, MAX_SCORES = 60, 6000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["beta", "two_point"])
def test_the_mean_run_length_without_a_drop_is_at_least_the_threshold(kind: str) -> None:
    """With A = 1000 and all routes at their narrowest null, an alert takes at least 1000 scores on average."""
    random, cells = np.random.default_rng(20), BetGrid(BASELINE, 0.05)

    lengths = [run(random, cells, kind) for _ in range(RUNS)]

    assert Detector(BASELINE).threshold == pytest.approx(np.log(1000), abs=1e-9)
    assert np.mean(lengths) >= 1000


def run(random: np.random.Generator, cells: BetGrid, kind: str) -> int:
    """Return the number of scores before the first alert, at most the maximum run length."""
    shares = cells.column("n") / cells.column("n").sum()
    routes = random.choice(len(shares), MAX_SCORES, p=shares)
    zeros = random.random(MAX_SCORES) < cells.rates[:, routes, 0].min(axis=0)
    means = cells.means[:, routes, 0].max(axis=0)
    values = random.beta(12 * means, 12 * (1 - means)) if kind == "beta" else random.random(MAX_SCORES) < means
    # A nonzero score is above 0. The smallest positive number affects the committed half only.
    values = np.where(zeros, 0.0, np.maximum(values, 1e-300))
    names = [cells.routes[route] for route in routes]
    transitions = Detector(BASELINE).process(ScoreBatch(names, values, zeros, np.arange(MAX_SCORES) * 60.0))
    return transitions[0].index + 1 if transitions else MAX_SCORES
