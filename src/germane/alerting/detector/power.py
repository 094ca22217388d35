"""What drop would be noticed, and how soon: by letting the detector watch made-up scores that drop.

The scores are drawn from the baseline's own numbers: of each route a Beta distribution with the committed mean and
deviation, zeros at its rate, and a level that wanders from day to day, together for all routes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from germane.alerting.detector.bet_grid import TOLERANCE, Cells
from germane.alerting.detector.detector import Detector
from germane.alerting.detector.seen import FloatArray, IntArray, Seen
from germane.baseline import Baseline

DROPS: Final = (0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
RUNS: Final = 40
"""Of each size: a chance near .8 is told to within .06."""
DAY: Final = 86_400.0
LASTING: Final = 0.5
"""Part of one day's wander that is there the next day: the autocorrelation that the detector was tried with."""


@dataclass(frozen=True, slots=True)
class Chance:
    """Of noticing a drop of one size."""

    drop: float
    """By which the mean of all scores falls."""
    within: tuple[float, ...]
    """Probability of an alarm within each number of days asked for, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Power:
    """What would be noticed at so many scores a day."""

    days: tuple[float, ...]
    chances: tuple[Chance, ...]
    """By size, the smallest first."""
    tolerance: float
    """How far the mean of committed answers may fall before any evidence is held against it."""
    zero_tolerance: float
    """How far the rate of zeros may rise likewise."""

    def smallest_noticed(self, days: float, chance: float = 0.8) -> float | None:
        """Return the smallest drop that is noticed within days with this probability, as all larger ones are.

        None where none of those tried is.

        Raises:
            ValueError: these days were not asked for.
        """
        place, found = self.days.index(days), None
        for one in reversed(self.chances):
            if one.within[place] < chance:
                break
            found = one.drop
        return found


def power(
    baseline: Baseline,
    per_day: float,
    *,
    seed: int | np.random.Generator,
    days: Sequence[float] = (1.0, 7.0),
    min_drop: float = 0.05,
    false_alarms_per_year: float = 1.0,
    drops: Sequence[float] = DROPS,
    runs: int = RUNS,
) -> Power:
    """Return how probable it is that drops of all routes are noticed; some seconds at a thousand scores a day.

    Args:
        baseline: What the detector watches against, and what the scores are drawn from.
        per_day: Scores that reach the detector, at today's budget.
        seed: Of the random numbers.
        days: How soon.
        min_drop: As of the detector.
        false_alarms_per_year: As of the detector.
        drops: Sizes to try, above 0.
        runs: Of each size.
    """
    random = np.random.default_rng(seed)
    knobs = {"min_drop": min_drop, "false_alarms_per_year": false_alarms_per_year}
    sizes = sorted(drops)
    delays = np.array([_delays(baseline, per_day, sizes, max(days), knobs, random) for _ in range(runs)])
    chances = [(delays <= within).mean(axis=0).tolist() for within in days]
    return Power(
        tuple(days),
        tuple(Chance(drop, tuple(one[place] for one in chances)) for place, drop in enumerate(sizes)),
        *tolerance(baseline, min_drop=min_drop),
    )


def tolerance(baseline: Baseline, *, min_drop: float = 0.05) -> tuple[float, float]:
    """Return how far the mean of committed answers may fall, and the rate of zeros rise, before it counts.

    max(.4 min_drop, 2 s) with the wander s of each route, averaged by their scores; chance comes on top.
    """
    routes = list(baseline.routes.values())
    weights = [route.scores_per_day for route in routes] or [1.0]
    least = TOLERANCE * min_drop
    committed = [max(least, 2 * route.committed_wander) for route in routes] or [least]
    zero = [max(least, 2 * route.zero_wander) for route in routes] or [least]
    return float(np.average(committed, weights=weights)), float(np.average(zero, weights=weights))


def _delays(
    baseline: Baseline, per_day: float, drops: Sequence[float], days: float, knobs: Any, random: np.random.Generator
) -> list[float]:
    """Return for each size how many days an alarm takes, after one good day; infinite beyond those watched."""
    source = Source(baseline, per_day, random)
    before = Detector(baseline, **knobs)
    warm = None if before.feed(source.day(0, 0.0)) else before.state()
    wander = source.wander
    delays = []
    for drop in drops:
        source.wander = wander
        delays.append(_delay(Detector(baseline, **knobs, state=warm), source.days(drop, days)))
    return delays


def _delay(detector: Detector, days: Iterator[Seen]) -> float:
    for seen in days:
        if turns := detector.feed(seen):
            return turns[0].at / DAY - 1
    return math.inf


class Source:
    """Draws scores as a baseline's."""

    def __init__(self, baseline: Baseline, per_day: float, random: np.random.Generator) -> None:
        self._cells = cells = Cells(baseline, 0.5)
        self._random = random
        self._names = np.array(cells.routes, dtype=object)
        self._rates = cells.column("scores_per_day") * (per_day / (baseline.scores_per_day or 1.0))
        spread = cells.mean * (1 - cells.mean)
        # Without any deviation, or with all scores at the ends, no Beta distribution has exactly these numbers.
        variance = np.clip(cells.deviation**2, 1e-6, None)
        self._concentration = np.clip(spread / variance - 1, 0.1, 1e6)
        self.wander = random.normal(size=2)
        """Today's, of the committed mean and of the rate of zeros, in standard deviations."""

    def days(self, drop: float, length: float) -> Iterator[Seen]:
        """Yield the scores of days after the first, with all routes lower by this much."""
        for day in range(1, math.ceil(length) + 1):
            yield self.day(day, drop)

    def day(self, day: int, drop: float) -> Seen:
        """Return the scores of one day, and let the level wander on."""
        routes, times = self._arrivals(day)
        zeros = self._random.random(len(routes)) < self._zero_rates()[routes]
        means = np.clip(self._means(drop), 1e-3, 1 - 1e-3)[routes]
        concentration = self._concentration[routes]
        values = self._random.beta(means * concentration, (1 - means) * concentration)
        self.wander = LASTING * self.wander + math.sqrt(1 - LASTING**2) * self._random.normal(size=2)
        return Seen(self._names[routes].tolist(), np.where(zeros, 0.0, values), zeros, times)

    def _arrivals(self, day: int) -> tuple[IntArray, FloatArray]:
        counts = self._random.poisson(self._rates)
        routes = np.repeat(np.arange(len(counts)), counts)
        self._random.shuffle(routes)
        return routes, (day + np.sort(self._random.random(len(routes)))) * DAY

    def _means(self, drop: float) -> FloatArray:
        # Zeros cannot fall: what the mean of all scores loses, the committed ones lose for them.
        fall = drop / np.maximum(1 - self._cells.rate, 0.05)
        return np.asarray(self._cells.mean - fall + self.wander[0] * self._cells.wander)

    def _zero_rates(self) -> FloatArray:
        return np.asarray(np.clip(self._cells.rate + self.wander[1] * self._cells.rate_wander, 0.0, 1.0))
