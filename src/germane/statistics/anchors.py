"""Changes of a judge, found in repeated scores of the same exchanges, the anchors.

Each anchor has a baseline, the mean of several fresh scores, and is scored again in every round. Two CUSUM charts, for
rises and falls, add up by how much the mean difference from the baselines exceeds a dead band, in units of its standard
error. Errors of the baselines stay the same in all rounds, so without a dead band, they would become significant.

Sources: D. Hawkins, D. Olwell, Cumulative Sum Charts and Charting for Quality Improvement, 1998; J. Lucas, R. Crosier,
Robust CUSUM, Communications in Statistics 11, 1982 (limited steps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from germane.alert import Interval
from germane.statistics.estimate import t_quantile

Floats = NDArray[np.float64]
DEAD_BAND: Final = 0.02
"""Mean difference from the baselines that is no change. With few anchors, the errors of their baselines are larger, so
it is at least one standard error of a round."""
ALLOWANCE: Final = 0.5
"""The allowance for noise in each round, in standard errors."""
THRESHOLD: Final = 6.0
"""Sum, in standard errors, above which the judge has changed."""
MAX_STEP: Final = 4.0
"""The most that a round adds. A single unusual round is no change."""
MIN_ANCHORS: Final = 10
"""Rounds in which fewer anchors were scored are ignored."""
_MIN_ERROR: Final = 0.002  # for judges whose scores do not vary


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeShift:
    """A change of a judge's scores."""

    size: float
    """Mean difference, after minus before; negative if scores fell."""
    interval: Interval
    """95% confidence interval of the size."""
    since_round: int
    """Index of the first round after the change."""
    n: int
    """Number of anchors."""


def find_judge_shift(differences: Floats, baseline_counts: Floats) -> JudgeShift | None:
    """Return the change that lasts in the last round, or None.

    Args:
        differences: Score minus baseline, with shape (rounds, anchors), oldest round first; NaN for missing scores. An
            anchor that replaced another has its own column.
        baseline_counts: The number of scores in each anchor's baseline.
    """
    means, errors = _weighted_means(differences, 1 / (1 + 1 / baseline_counts))
    for sign in (1, -1):
        total, since = 0.0, 0
        excess = sign * means - np.maximum(DEAD_BAND, errors)
        steps = np.minimum(MAX_STEP, excess / np.maximum(errors, _MIN_ERROR) - ALLOWANCE)
        for number, step in enumerate(np.nan_to_num(steps).tolist()):
            since = since if total else number
            total = min(2 * THRESHOLD, max(0.0, total + step))  # a change that has passed is soon forgotten
        if total > THRESHOLD:
            # The most likely first round. The chart may have left 0 by chance before.
            later = means[since:][::-1]
            gains = np.nancumsum(later) ** 2 / np.maximum(1, np.cumsum(~np.isnan(later)))
            start = len(means) - 1 - int(np.argmax(gains))
            return _measure(differences[start:], baseline_counts, start)
    return None


def estimate_shift(old: Floats, new: Floats, baseline_counts: Floats) -> JudgeShift | None:
    """Return the difference between two judges that scored the same anchors, or None with fewer than 10 anchors.

    Args:
        old: The anchors' baselines; NaN if missing.
        new: The new judge's scores, with shape (anchors,) or (rounds, anchors); NaN if missing.
        baseline_counts: The number of scores in each anchor's baseline.
    """
    return _measure(np.atleast_2d(new) - old, baseline_counts, 0)


def weighted_shift(differences: Floats, weights: Floats) -> JudgeShift | None:
    """Return the weighted mean difference between two judges on the same answers, or None with fewer than 10.

    Args:
        differences: New minus old score of each answer.
        weights: 1 / the probability with which each answer was drawn.
    """
    (size,), (error,) = (row.tolist() for row in _weighted_means(differences[np.newaxis], weights))
    if math.isnan(size):
        return None
    half = t_quantile(len(differences) - 1) * error
    return JudgeShift(size=size, interval=(size - half, size + half), since_round=0, n=len(differences))


def _measure(differences: Floats, baseline_counts: Floats, since_round: int) -> JudgeShift | None:
    """Return the mean over anchors. The errors of their baselines contribute to the spread of anchors."""
    counts = (~np.isnan(differences)).sum(axis=0)
    seen = counts > 0
    means = np.nansum(differences[:, seen], axis=0) / counts[seen]
    shift = weighted_shift(means, 1 / (1 / counts[seen] + 1 / baseline_counts[seen]))
    return shift and replace(shift, since_round=since_round)


def _weighted_means(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean of each row, NaN if it has fewer than 10 values, and its standard error."""
    seen = ~np.isnan(values)
    n, weights, values = seen.sum(axis=1), seen * weights, np.where(seen, values, 0.0)
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    means = (weights * values).sum(axis=1)
    squares = ((weights * (values - means[:, np.newaxis])) ** 2).sum(axis=1)
    return np.where(n < MIN_ANCHORS, np.nan, means), np.sqrt(squares * n / np.maximum(1, n - 1))
