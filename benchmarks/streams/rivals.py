"""Four rules that other tools use: hourly and daily means, a weekly z-test, and a daily CUSUM.

Each rule yields one statistic per hour since the end of the baseline, and alerts when it exceeds a threshold. A rule is
tuned by choosing the lowest threshold with at most one false alert a year on quiet streams of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from streams.recipe import BASELINE_DAYS, Floats, Stream

COOL_DOWN = 24
"""Hours after a counted alert in which no other alert is counted."""
MIN_SCORES = 10
SLACK = 0.025
"""Amount by which the daily mean may fall without increasing the CUSUM."""
BEGINS = 24 * BASELINE_DAYS


class Hourly:
    """Sums of a stream's scores by hour."""

    def __init__(self, stream: Stream) -> None:
        hour = stream.hours.astype(np.int64)
        self.count = int(hour[-1]) + 1
        self.n = _cumulative(np.bincount(hour, minlength=self.count))
        self.sums = _cumulative(np.bincount(hour, weights=stream.values, minlength=self.count))
        baseline = stream.values[stream.hours < BEGINS]
        self.mean, self.deviation, self.baseline_n = baseline.mean(), baseline.std(), len(baseline)

    def window(self, hours: int) -> tuple[Floats, Floats]:
        """Return the number of scores and their mean in the ``hours`` before each tick; nan if there are none."""
        ends = np.arange(BEGINS + 1, self.count + 1)
        n = self.n[ends] - self.n[ends - hours]
        sums = self.sums[ends] - self.sums[ends - hours]
        return n, np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0)


def hourly_mean(hourly: Hourly) -> Floats:
    """Return how far each hour's mean is below the baseline mean."""
    return np.asarray(hourly.mean - hourly.window(1)[1])


def daily_mean(hourly: Hourly) -> Floats:
    """Return how far the mean of the last 24 hours is below the baseline mean, if there are at least ten scores."""
    n, means = hourly.window(24)
    return np.where(n >= MIN_SCORES, hourly.mean - means, np.nan)


def weekly_z(hourly: Hourly) -> Floats:
    """Return the z statistic of the last week against the baseline."""
    n, means = hourly.window(168)
    error = hourly.deviation * np.sqrt(1 / np.maximum(n, 1) + 1 / hourly.baseline_n)
    return np.asarray((hourly.mean - means) / error)


def daily_cusum(hourly: Hourly) -> Floats:
    """Return the CUSUM of standardized daily means, known at the end of each day."""
    n, means = hourly.window(24)
    known = np.full(len(n), np.nan)
    total = 0.0
    for tick in range(23, len(n), 24):
        if n[tick]:
            total = max(0.0, total + (hourly.mean - SLACK - means[tick]) / (hourly.deviation / np.sqrt(n[tick])))
            known[tick] = total
    return known


RIVALS: Final[Mapping[str, Callable[[Hourly], Floats]]] = {
    "hourly mean": hourly_mean,
    "tuned 24-hour mean": daily_mean,
    "weekly z": weekly_z,
    "daily CUSUM": daily_cusum,
}
DEFAULTS: Final = {"hourly mean": 0.05}
"""Thresholds of rules that are not tuned."""


def alerts(statistic: Floats, threshold: float) -> list[int]:
    """Return the hours of the counted alerts since the start of the stream."""
    counted: list[int] = []
    for hour in np.flatnonzero(np.nan_to_num(statistic, nan=-np.inf) > threshold) + BEGINS + 1:
        if not counted or hour >= counted[-1] + COOL_DOWN:
            counted.append(int(hour))
    return counted


def tuned(name: str, statistics: Sequence[Floats], years: float) -> float:
    """Return a rule's threshold, based on its statistics on quiet streams."""
    if name in DEFAULTS:
        return DEFAULTS[name]
    values = np.concatenate([each[~np.isnan(each)] for each in statistics])
    for threshold in np.quantile(values, 1 - np.geomspace(0.2, 1e-6, 120)):
        if sum(len(alerts(each, threshold)) for each in statistics) <= years:
            return float(threshold)
    return float(values.max())


def _cumulative(counts: np.ndarray) -> Floats:
    return np.concatenate([[0.0], np.cumsum(counts)])
