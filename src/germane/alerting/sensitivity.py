"""Sensitivity of drop rules: which drops the detector for a baseline would find, and how soon.

The detector runs on scores that are simulated from the baseline: nonzero scores from a Beta distribution with each
route's mean and standard deviation, zeros at the route's zero rate, and a daily level shift that all routes share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from germane.alerting.detector.bet_grid import BetGrid, tolerance
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.score_batch import MAX_SCORES_PER_DAY, ScoreBatch
from germane.alerting.drop.scope import attribute_scope, restrict_to_routes
from germane.baseline import Baseline
from germane.settings import Drop
from germane.storage import TrackingStore

DROPS: Final = (0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
RUNS: Final = 60
"""Number of simulation runs. With 60 runs, a probability of 0.8 has a standard error of 0.05."""
SEED: Final = 20_260_914
DAY: Final = 86_400.0
AUTOCORRELATION: Final = 0.5
"""Correlation between the wander of consecutive days, as in the simulations that the detector was tuned with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSensitivity:
    """Probabilities of detecting drops in the mean of all scores within a number of days."""

    rule: str
    service: str
    scorer: str
    scores_per_day: float
    """Scores per day that the detector processes."""
    days: tuple[float, ...]
    """Maximum times to detection, in days."""
    drops: tuple[float, ...]
    """Simulated drops, smallest first."""
    probabilities: tuple[tuple[float, ...], ...]
    """Probability of detection for each drop and each number of days."""
    tolerance: float
    """Largest drop in the mean of nonzero scores that does not count as evidence."""
    zero_tolerance: float
    """Largest increase in the rate of zeros that does not count as evidence."""

    def smallest_drop(self, days: float, probability: float = 0.8) -> float | None:
        """Return the smallest drop that is detected within ``days`` with at least the given probability.

        All larger drops must also be detected with at least this probability. Return None if there is no such drop.

        Raises:
            ValueError: ``days`` was not simulated.
        """
        index, smallest = self.days.index(days), None
        for drop, probabilities in zip(reversed(self.drops), reversed(self.probabilities), strict=True):
            if probabilities[index] < probability:
                break
            smallest = drop
        return smallest


def list_sensitivities(
    store: TrackingStore,
    rules: Sequence[Drop],
    *,
    days: Sequence[float] = (1.0, 7.0),
    scores_per_day: float | None = None,
    runs: int = RUNS,
) -> list[DropSensitivity]:
    """Return the sensitivity of each rule for every service and scorer with an active baseline.

    Takes a few seconds per baseline.

    Args:
        store: The store that contains the baselines.
        rules: The drop rules.
        days: Maximum times to detection, in days.
        scores_per_day: Scores per day that the detector processes. Defaults to the baseline's.
        runs: Number of simulation runs.
    """
    used = {state.baseline_id for state in store.detectors.list_states()}
    # If there are several fingerprints, prefer the one that a detector uses, then the one with the newest baseline.
    versions = sorted(store.baselines.list_versions(), key=lambda version: (version.id in used, version.created_at))
    sensitivities = []
    for rule in rules:
        scope = attribute_scope(rule.attributes)
        baselines = {
            (version.key.service, version.key.scorer): version.baseline
            for version in versions
            if version.baseline is not None and version.key.scope == scope and rule.scorer in {None, version.key.scorer}
        }
        for _, whole in sorted(baselines.items()):
            baseline = restrict_to_routes(whole, rule.matches_route)
            if baseline.routes:
                sensitivities.append(
                    simulate_drops(baseline, rule, days=days, scores_per_day=scores_per_day, runs=runs)
                )
    return sensitivities


def simulate_drops(
    baseline: Baseline,
    rule: Drop,
    *,
    days: Sequence[float] = (1.0, 7.0),
    scores_per_day: float | None = None,
    drops: Sequence[float] = DROPS,
    runs: int = RUNS,
    seed: int = SEED,
) -> DropSensitivity:
    """Simulate drops on all routes, and return the probabilities that the detector fires in time.

    The arguments are the same as for :func:`list_sensitivities`. ``drops`` must be sorted, smallest first.
    """
    if scores_per_day is not None:
        # Scale the baseline as if it had been learned from this number of scores per day.
        scores_per_day = min(scores_per_day, MAX_SCORES_PER_DAY)
        scaled = baseline.with_traffic(scores_per_day / baseline.scores_per_day)
        baseline = replace(scaled, scores_per_day=scores_per_day)  # exactly, without the factor's rounding
    random = np.random.default_rng(seed)
    delays = np.array([_detection_delays(baseline, rule, drops, max(days), random) for _ in range(runs)])
    committed, zero = tolerance(baseline, min_drop=rule.min_drop)
    return DropSensitivity(
        rule=rule.name,
        service=baseline.service,
        scorer=baseline.scorer,
        scores_per_day=baseline.scores_per_day,
        days=tuple(days),
        drops=tuple(drops),
        probabilities=tuple(
            tuple(float((delays[:, index] <= within).mean()) for within in days) for index in range(len(drops))
        ),
        tolerance=committed,
        zero_tolerance=zero,
    )


def _detection_delays(
    baseline: Baseline, rule: Drop, drops: Sequence[float], days: float, random: np.random.Generator
) -> list[float]:
    """Return the delay until the detector fires, for each drop: days after the end of one normal day, or infinity."""
    grid = BetGrid(baseline, rule.min_drop)
    names, rates = np.array(grid.routes, dtype=object), grid.column("scores_per_day")
    # If there is no variance, or if all scores are 0 or 1, no Beta distribution has these moments.
    variance = np.clip(grid.deviation**2, 1e-6, None)
    concentration = np.clip(grid.mean * (1 - grid.mean) / variance - 1, 0.1, 1e6)

    def draw_day(day: int, drop: float, wander: np.ndarray) -> ScoreBatch:
        counts = random.poisson(rates)
        routes = random.permutation(np.repeat(np.arange(len(counts)), counts))
        times = (day + np.sort(random.random(len(routes)))) * DAY
        zero_rates = np.clip(grid.rate + wander[1] * grid.rate_wander, 0.0, 1.0)
        zeros = random.random(len(routes)) < zero_rates[routes]
        # Zeros cannot fall, so nonzero scores must fall by more than the mean of all scores.
        means = grid.mean - drop / np.maximum(1 - grid.rate, 0.05) + wander[0] * grid.wander
        means, spread = np.clip(means, 1e-3, 1 - 1e-3)[routes], concentration[routes]
        values = np.where(zeros, 0.0, random.beta(means * spread, (1 - means) * spread))
        return ScoreBatch(names[routes].tolist(), values, zeros, times)

    def detector(state: dict[str, object] | None = None) -> Detector:
        return Detector(baseline, min_drop=rule.min_drop, false_alerts_per_year=rule.false_alerts_per_year, state=state)

    first_wander, before = random.normal(size=2), detector()
    state = None if before.process(draw_day(0, 0.0, first_wander)) else before.state()
    delays = []
    for drop in drops:
        wander, after, delay = first_wander, detector(state), math.inf
        for day in range(1, math.ceil(days) + 1):
            step = math.sqrt(1 - AUTOCORRELATION**2) * random.normal(size=2)
            wander = AUTOCORRELATION * wander + step
            if transitions := after.process(draw_day(day, drop, wander)):
                delay = transitions[0].at / DAY - 1
                break
        delays.append(delay)
    return delays
