"""The rule that most tools offer: the mean of the last hour is under the usual mean by more than a threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.recipe import BASELINE_DAYS, Bools, Floats, Stream

THRESHOLD = 0.05
REST = 24
"""Hours after an alarm that counts in which no other does."""
GRID = np.round(np.arange(0.05, 1.0, 0.01), 2)
"""Thresholds to choose from."""


def falls(stream: Stream) -> Floats:
    """Return by hour after the baseline how far its mean is under the baseline's; nan: no score in that hour."""
    hour = stream.hours.astype(np.int64)
    many = int(hour[-1]) + 1
    counts = np.bincount(hour, minlength=many)
    sums = np.bincount(hour, weights=stream.values, minlength=many)
    usual = stream.values[stream.hours < 24 * BASELINE_DAYS].mean()
    means = np.divide(sums, counts, out=np.full(many, np.nan), where=counts > 0)
    return np.asarray(usual - means[24 * BASELINE_DAYS :])


def ticks(found: Floats) -> NDArray[np.int64]:
    """Return the hours since the beginning at whose ends these falls are known."""
    return np.arange(len(found)) + 24 * BASELINE_DAYS + 1


def alarms(found: Floats, threshold: float = THRESHOLD) -> list[int]:
    """Return at which hours since the beginning an alarm counts: none within a day of the last that did."""
    counted: list[int] = []
    for hour in ticks(found)[_below(found, threshold)]:
        if not counted or hour >= counted[-1] + REST:
            counted.append(int(hour))
    return counted


def turns(found: Floats, threshold: float = THRESHOLD) -> list[tuple[float, bool]]:
    """Return when the rule fires and resolves (hour, fires) if each crossing is told; an empty hour changes nothing."""
    known = ~np.isnan(found)
    below, hours = _below(found, threshold)[known], ticks(found)[known]
    changes = np.flatnonzero(np.diff(below, prepend=False))
    return [(float(hours[at]), bool(below[at])) for at in changes]


def tuned(of_nulls: list[Floats], most: float) -> float:
    """Return the smallest threshold at which these streams, in which nothing happens, have so few alarms on average."""
    for threshold in GRID:
        if sum(len(alarms(found, threshold)) for found in of_nulls) <= most * len(of_nulls):
            return float(threshold)
    return float("nan")


def _below(found: Floats, threshold: float) -> Bools:
    return np.nan_to_num(found, nan=-1.0) > threshold
