"""A drop of 0.05 with a wander of 0.02 at equal false-alert rates: germane compared with a rule that knows the service.

The oracle sees daily means and knows the mean, the wander, its correlation from day to day, and the size of the drop.
It is the Shiryaev-Roberts rule with the exact likelihood ratio. The 96-hour mean is compared both with the true mean
and with the mean of a 14-day baseline. All rules are tuned on the same quiet streams, which favors rules with one
window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import numpy as np

from germane.alerting.detector.bet_grid import BetGrid
from germane.alerting.detector.drop_evidence import ShiryaevRoberts
from germane.alerting.detector.learning import learn_baseline
from streams.recipe import BASELINE_DAYS, KEPT, ROUTES, START, Change, Floats, stream
from streams.watched import score_batch

PER_DAY, WANDER, SHIFT = 1000, 0.02, 0.05
STEP: Final = 6
"""Hours between two evaluations."""
QUIET_DAYS = 182
MEAN_WINDOWS = (24, 96)
RATES = (0.2, 1.0)
SCORE_DEVIATION = 0.2


def compare(seed: int, years: int, services: int, run: Callable[..., Iterable[dict[str, Floats]]]) -> None:
    """Print the share of drops that each rule finds within 7 days at equal false-alert rates."""
    quiet = list(run(partial(statistics, seed, BASELINE_DAYS + QUIET_DAYS, None), range(4 * years)))
    worse = list(run(partial(statistics, seed, BASELINE_DAYS + 11, Change(shift=SHIFT)), range(2 * services)))
    all_years = len(quiet) * QUIET_DAYS / 365
    print(f"\na shift of 0.05 at {PER_DAY} a day, wander 0.02, tuned on {all_years:.0f} quiet years")
    for name in quiet[0]:
        if name == "onset":
            continue
        text = f"{name:44}"
        for rate in RATES:
            threshold = _tuned([each[name] for each in quiet], rate * all_years)
            found = [_found(each[name], float(each["onset"][0]), threshold) for each in worse]
            text += f"  {np.mean(found):.2f} at {rate:g} a year"
        print(text, flush=True)


def statistics(seed: int, days: int, change: Change | None, number: int) -> dict[str, Floats]:
    """Return each rule's statistic every six hours for one service, and the hour of its change."""
    random = np.random.default_rng([seed, days, number])
    made = stream(random, PER_DAY, WANDER, days=days, change=change)
    baseline = learn_baseline(
        score_batch(made, 0, 24 * BASELINE_DAYS),
        service="shop",
        scorer="answer_relevancy",
        fingerprint="simulated",
        since=START,
        until=START + 86_400 * BASELINE_DAYS,
    )
    grid = BetGrid(baseline, SHIFT)
    evidence, logs = ShiryaevRoberts(grid), []
    looks = np.arange(24 * BASELINE_DAYS, 24 * days, STEP)
    for hour in looks:
        evidence.advance(grid.index_scores(score_batch(made, hour, hour + STEP)), np.inf)
        logs.append(evidence.log_evidence())
    true = sum(route.share * route.mean * (1 - route.zeros) for route in ROUTES)
    learned = made.values[made.hours < 24 * BASELINE_DAYS].mean()
    sums = np.concatenate([[0.0], np.cumsum(made.values)])
    found = {"germane": np.array(logs)}
    for window in MEAN_WINDOWS:
        first, last = (np.searchsorted(made.hours, looks + STEP - back) for back in (window, 0))
        means = (sums[last] - sums[first]) / np.maximum(1, last - first)
        found[f"{window}-hour mean, learned in 14 days"] = learned - means
        found[f"{window}-hour mean, true mean known"] = true - means
    day = (made.hours // 24).astype(np.int64)
    counts = np.bincount(day, minlength=days)
    errors = np.bincount(day, weights=made.values, minlength=days) / counts - true
    found["likelihood ratio, everything known"] = _oracle(errors, counts, looks)
    return found | {"onset": np.array([made.onset])}


def _oracle(errors: Floats, counts: np.ndarray, looks: np.ndarray) -> Floats:
    """Return the log of the Shiryaev-Roberts statistic of the exact likelihood ratio, known at the end of each day."""
    before = np.concatenate([[0.0], errors[:-1]])
    surprises = errors - KEPT * before
    variance = WANDER**2 * (1 - KEPT**2) + (1 + KEPT**2) * SCORE_DEVIATION**2 / counts

    def log_ratio(size: float) -> Floats:
        return -(surprises * size + size**2 / 2) / variance

    first, later, total, known = log_ratio(SHIFT), log_ratio(SHIFT * (1 - KEPT)), -np.inf, []
    for hour in looks + STEP:
        if hour % 24 == 0:
            total = np.logaddexp(first[hour // 24 - 1], total + later[hour // 24 - 1])
        known.append(total)
    return np.array(known)


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
    first = int(np.ceil((onset - 24 * BASELINE_DAYS) / STEP))
    return bool((statistic[first : first + 168 // STEP] > threshold).any())
