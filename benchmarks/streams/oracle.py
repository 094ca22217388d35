"""A drop of 0.05 with a wander of 0.02 at equal false-alert rates: germane compared with rules that know the service.

All rules look at the scores every 6 hours and are tuned on the same quiet streams, which favors rules with one window.

The likelihood ratio knows the means of the routes and hours, the wander, its correlation from day to day, and the size
of the drop. It is the Shiryaev-Roberts rule with the exact likelihood ratio of a Gaussian model: the level of a day is
a first-order autoregression, which a Kalman filter predicts for every block of 6 hours. The same rule is also run with
means that are learned from the 14 days of the baseline, which shows the best result that a rule with a baseline can
achieve. The means over one to seven days are also compared with the true mean and with the learned mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import numpy as np

from germane.alerting.detector.bet_grid import BetGrid
from germane.alerting.detector.drop_evidence import ShiryaevRoberts
from germane.alerting.detector.learning import wander
from streams.production import BEGINS, learn, score_batch
from streams.recipe import (
    BASELINE_DAYS,
    KEPT,
    MEAN_FROM_HOUR,
    MEAN_SWING,
    ROUTES,
    Change,
    Floats,
    Stream,
    stream,
)
from streams.results import EqualRow

PER_DAY, WANDER, SHIFT = 1000, 0.02, 0.05
STEP: Final = 6
"""Hours between two evaluations."""
QUIET_DAYS = 182
MIN_WANDER = 0.005
"""Lower limit of the learned wander."""
MEAN_WINDOWS = (24, 48, 96, 168)
RATES = (0.2, 1.0)


def compare(seed: int, years: int, services: int, run: Callable[..., Iterable[Any]]) -> list[EqualRow]:
    """Return the number of drops that each rule finds within 7 days at equal false-alert rates."""
    quiet: list[dict[str, Floats]] = list(
        run(partial(statistics, seed, BASELINE_DAYS + QUIET_DAYS, None), range(4 * years))
    )
    worse = list(run(partial(statistics, seed, BASELINE_DAYS + 11, Change(shift=SHIFT)), range(2 * services)))
    all_years = len(quiet) * QUIET_DAYS / 365
    rows = []
    for name in quiet[0].keys() - {"onset"}:
        thresholds = [_tuned([each[name] for each in quiet], rate * all_years) for rate in RATES]
        found = [
            sum(_found(each[name], float(each["onset"][0]), threshold) for each in worse) for threshold in thresholds
        ]
        rows.append(EqualRow(name, len(worse), found))
    order = list(quiet[0])
    return sorted(rows, key=lambda row: order.index(row.rule))


def statistics(seed: int, days: int, change: Change | None, number: int) -> dict[str, Floats]:
    """Return each rule's statistic every six hours for one service, and the hour at which the service changes."""
    random = np.random.default_rng([seed, days, number])
    made = stream(random, PER_DAY, WANDER, days=days, change=change)
    baseline = learn(made, 0, BEGINS, most=np.inf)
    grid = BetGrid(baseline, SHIFT)
    evidence, logs = ShiryaevRoberts(grid), []
    looks = np.arange(BEGINS, 24 * days, STEP)
    for hour in looks.tolist():
        evidence.advance(grid.index_scores(score_batch(made, hour, hour + STEP)), np.inf)
        logs.append(evidence.log_evidence())
    found = {"germane": np.array(logs)}
    true = sum(route.share * route.mean * (1 - route.zeros) for route in ROUTES)
    learned = made.values[made.hours < BEGINS].mean()
    sums = np.concatenate([[0.0], np.cumsum(made.values)])
    for name, mean in (("learned in 14 days", learned), ("true mean known", true)):
        for window in MEAN_WINDOWS:
            first, last = (np.searchsorted(made.hours, looks + STEP - back) for back in (window, 0))
            means = (sums[last] - sums[first]) / np.maximum(1, last - first)
            found[f"{window}-hour mean, {name}"] = mean - means
    errors, counts, spread = _blocks(made, days)
    begins = BEGINS // STEP
    offset = np.average(errors[:begins], weights=counts[:begins])
    known_wander = WANDER * (1 - sum(route.share * route.zeros for route in ROUTES))
    in_baseline = made.hours < BEGINS
    learned_wander = max(MIN_WANDER, wander(made.values[in_baseline], (made.hours[in_baseline] // 24).astype(np.int64)))
    for window in (96, 168):
        fall = found[f"{window}-hour mean, learned in 14 days"]
        found[f"{window}-hour mean, mean and wander learned"] = fall / learned_wander
    for name, mean, deviation in (
        ("mean and wander learned", offset, learned_wander),
        ("mean learned in 14 days", offset, known_wander),
        ("everything known", 0.0, known_wander),
    ):
        found[f"likelihood ratio, {name}"] = log_shiryaev_roberts(errors - mean, counts, spread, deviation)[begins:]
    return found | {"onset": np.array([made.onset])}


def _blocks(made: Stream, days: int) -> tuple[Floats, Floats, float]:
    """Return the mean error and the number of scores per 6 hours, and the standard deviation of a single score."""
    zeros = np.array([route.zeros for route in ROUTES])[made.routes]
    means = np.array([route.mean for route in ROUTES])[made.routes]
    swing = MEAN_SWING * np.sin(2 * np.pi * (made.hours % 24 - MEAN_FROM_HOUR) / 24)
    errors = made.values - (1 - zeros) * (means + swing)
    block = (made.hours // STEP).astype(np.int64)
    blocks = 24 * days // STEP
    counts = np.bincount(block, minlength=blocks).astype(np.float64)
    sums = np.bincount(block, weights=errors, minlength=blocks)
    return sums / np.maximum(counts, 1), counts, float(errors[made.hours < BEGINS].std())


def log_shiryaev_roberts(errors: Floats, counts: Floats, spread: float, wander: float) -> Floats:
    """Return the log of the Shiryaev-Roberts statistic of the exact likelihood ratio after each block.

    The ratio for a drop that begins with a block follows from the errors of the filter's one-step predictions: a drop
    changes their means by a known amount, which shrinks as the filter attributes the drop to wander.
    """
    per_day = 24 // STEP
    level, variance = 0.0, wander**2
    absorbed = np.zeros(len(errors))  # share of a drop that the filter predicts, by the block in which it begins
    ratios = np.full(len(errors), -np.inf)
    known = np.empty(len(errors))
    for block in range(len(errors)):
        if block % per_day == 0 and block:
            level, variance = KEPT * level, KEPT**2 * variance + wander**2 * (1 - KEPT**2)
            absorbed[:block] *= KEPT
        ratios[block] = 0.0
        if counts[block]:
            surprise, total = errors[block] - level, variance + spread**2 / counts[block]
            size = SHIFT * (1 - absorbed[: block + 1])
            ratios[: block + 1] -= (size * surprise + size**2 / 2) / total
            gain = variance / total
            level, variance = level + gain * surprise, (1 - gain) * variance
            absorbed[: block + 1] += gain * (1 - absorbed[: block + 1])
        known[block] = np.logaddexp.reduce(ratios[: block + 1])
    return known


def _tuned(found: list[Floats], most: float) -> float:
    values = np.concatenate(found)
    for threshold in np.quantile(values[np.isfinite(values)], 1 - np.geomspace(0.2, 2e-5, 150)):
        if sum(_events(each, threshold) for each in found) <= most:
            return float(threshold)
    return float(values.max())


def _events(statistic: Floats, threshold: float) -> int:
    """Return the number of alerts. Alerts within a week of each other count as one."""
    above = np.flatnonzero(statistic > threshold)
    return 1 + int((np.diff(above) > 168 // STEP).sum()) if len(above) else 0


def _found(statistic: Floats, onset: float, threshold: float) -> bool:
    first = int(np.ceil((onset - BEGINS) / STEP))
    return bool((statistic[first : first + 168 // STEP] > threshold).any())
