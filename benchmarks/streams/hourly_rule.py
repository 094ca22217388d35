"""A threshold on the hourly mean, as in most tools: it alerts when the last hour's mean is far below the baseline's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streams.recipe import BASELINE_DAYS, Bools, Floats, Stream

THRESHOLD = 0.05
COOL_DOWN = 24
"""Hours after a counted alert in which no other alert is counted."""
GRID = np.round(np.arange(0.05, 1.0, 0.01), 2)
"""Candidate thresholds for tuning."""


def falls(stream: Stream) -> Floats:
    """Return how far each hour's mean after the baseline is below the baseline mean; nan for empty hours."""
    hour = stream.hours.astype(np.int64)
    hour_count = int(hour[-1]) + 1
    counts = np.bincount(hour, minlength=hour_count)
    sums = np.bincount(hour, weights=stream.values, minlength=hour_count)
    usual = stream.values[stream.hours < 24 * BASELINE_DAYS].mean()
    means = np.divide(sums, counts, out=np.full(hour_count, np.nan), where=counts > 0)
    return np.asarray(usual - means[24 * BASELINE_DAYS :])


def ticks(hourly_falls: Floats) -> NDArray[np.int64]:
    """Return the times at which the falls become known, which are the ends of their hours, in hours since the start."""
    return np.arange(len(hourly_falls)) + 24 * BASELINE_DAYS + 1


def alerts(hourly_falls: Floats, threshold: float = THRESHOLD) -> list[int]:
    """Return the hours of the counted alerts since the start; an alert within a day of a counted one is not counted."""
    counted: list[int] = []
    for hour in ticks(hourly_falls)[_below(hourly_falls, threshold)]:
        if not counted or hour >= counted[-1] + COOL_DOWN:
            counted.append(int(hour))
    return counted


def transitions(hourly_falls: Floats, threshold: float = THRESHOLD) -> list[tuple[float, bool]]:
    """Return each crossing of the threshold as (hour, fires). An hour without scores changes nothing."""
    known = ~np.isnan(hourly_falls)
    below, hours = _below(hourly_falls, threshold)[known], ticks(hourly_falls)[known]
    changes = np.flatnonzero(np.diff(below, prepend=False))
    return [(float(hours[at]), bool(below[at])) for at in changes]


def tuned(null_streams: list[Floats], most: float) -> float:
    """Return the lowest threshold with an average of at most ``most`` alerts per stream on streams without a change."""
    for threshold in GRID:
        if sum(len(alerts(stream, threshold)) for stream in null_streams) <= most * len(null_streams):
            return float(threshold)
    return float("nan")


def _below(hourly_falls: Floats, threshold: float) -> Bools:
    return np.nan_to_num(hourly_falls, nan=-1.0) > threshold
