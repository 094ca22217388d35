"""Evidence for a drop: the Shiryaev-Roberts recursion of every bet, in logarithms.

Each bet multiplies its capital on every score of its stream. While scores are as good as the bet's null, the expected
factor is at most 1. The recursion R <- (1 + R) factor adds up, over all moments at which a drop may have begun, what
the bets since then would have made of 1. R minus the number of scores is therefore a supermartingale, and the expected
number of scores until a fixed average of such R exceeds A is at least A.

Sources: A. Shiryaev, On optimum methods in quickest detection problems, Theory of Probability and its Applications 8,
1963; S. Roberts, A comparison of some control chart procedures, Technometrics 8, 1966; J. Shin, A. Ramdas, A. Rinaldo,
E-detectors: a nonparametric framework for sequential change detection, New England Journal of Statistics in Data
Science 2, 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from germane.alerting.detector.bet_grid import BETS_PER_HALF, BetGrid
from germane.alerting.detector.score_batch import FloatArray, IndexedScores, IntArray
from germane.alerting.detector.transition import HALVES

STEPWISE_SCORES_PER_STREAM: Final = 5
"""Blocks up to this many scores per stream, and up to 60 in all, are faster one score at a time."""


@dataclass(frozen=True, slots=True)
class Path:
    """One half of one stream over a block of scores."""

    stream: int
    half: int
    counts: IntArray
    """For each score of the block, the number of this path's scores up to and including it."""
    times: FloatArray
    """Arrival times of this path's scores."""
    sums: FloatArray
    """By bet: cumulative log factors, before the first score and after each."""
    logs: FloatArray
    """By bet: log R, before the first score and after each."""


class ShiryaevRoberts:
    """Log R of every bet, with a CUSUM per bet that estimates when its rise began.

    Stream 0 is the whole service; the others are its routes in the order of the baseline.
    """

    def __init__(self, grid: BetGrid) -> None:
        self._grid = grid
        self.streams = len(grid.routes) + 1
        self.reset()

    def reset(self) -> None:
        """Discard all evidence."""
        shape = (self.streams, len(HALVES), BETS_PER_HALF)
        self.logs = np.full(shape, -np.inf)
        self.rises = np.zeros(shape)
        """CUSUM statistic c <- max(c, 0) + log factor."""
        self.starts = np.zeros(shape)
        """When c last left 0, as a Unix timestamp in seconds."""

    def log_evidence(self) -> float:
        """Return the logarithm of the average over streams and bets."""
        return float(np.logaddexp.reduce(self.logs, axis=None)) - math.log(self.logs.size)

    def log_strength(self) -> FloatArray:
        """Return the logarithm of the sum over bets, by stream and half."""
        return np.asarray(np.logaddexp.reduce(self.logs, axis=2))

    def onset(self) -> float:
        """Return when the largest rise began."""
        return float(self.starts.flat[int(np.argmax(self.rises))])

    def advance(self, scores: IndexedScores, threshold: float) -> tuple[int, bool]:
        """Process scores up to the first one after which the log evidence exceeds the threshold.

        Returns:
            The number of processed scores, and whether the last one exceeded the threshold.
        """
        if len(scores) <= min(STEPWISE_SCORES_PER_STREAM * self.streams, 60):
            for position in range(len(scores)):
                self._step(scores, position)
                if self.log_evidence() > threshold:
                    return position + 1, True
            return len(scores), False

        paths = [self._path(scores, 0, half) for half in range(len(HALVES))]
        for route in np.unique(scores.routes).tolist():
            paths += [self._path(scores, route + 1, half) for half in range(len(HALVES))]
        strength = self.log_strength()
        for path in paths:
            strength[path.stream, path.half] = -np.inf
        total = np.full(len(scores), np.logaddexp.reduce(strength, axis=None))
        for path in paths:
            total = np.logaddexp(total, np.logaddexp.reduce(path.logs, axis=0)[path.counts])
        above = np.flatnonzero(total - math.log(self.logs.size) > threshold)
        processed = int(above[0]) + 1 if len(above) else len(scores)
        for path in paths:
            self._commit(path, int(path.counts[processed - 1]))
        return processed, bool(len(above))

    def _step(self, scores: IndexedScores, position: int) -> None:
        """Process one score."""
        grid, route, zero = self._grid, int(scores.routes[position]), int(scores.zeros[position])
        factors = np.empty((2, len(HALVES), BETS_PER_HALF))
        factors[:, 0] = np.log1p(grid.committed_bets[:, route] * (grid.means[route] - scores.values[position]))
        factors[:, 1] = grid.zero_logs[:, route, zero]
        committed, any_score = grid.watched[:, route].tolist()
        # The whole service and the route, and of both the halves that this score updates.
        at = slice(0, route + 2, route + 1), slice(0 if committed and not zero else 1, 2 if any_score else 1)
        logs, rises, starts, factors = self.logs[at], self.rises[at], self.starts[at], factors[:, at[1]]
        np.logaddexp(0.0, logs, out=logs)
        logs += factors
        starts[rises <= 0] = scores.times[position]
        np.maximum(rises, 0.0, out=rises)
        rises += factors

    def _path(self, scores: IndexedScores, stream: int, half: int) -> Path:
        grid, kind = self._grid, min(stream, 1)
        selected = grid.updates_half(scores, half) & (scores.routes == stream - 1 if stream else True)
        positions = np.flatnonzero(selected)
        routes = scores.routes[positions]
        if half == 0:
            shortfall = grid.means[routes] - scores.values[positions, None]
            factors = np.log1p(grid.committed_bets[kind, routes] * shortfall)
        else:
            factors = grid.zero_logs[kind, routes, scores.zeros[positions].astype(np.int64)]
        sums = np.zeros((BETS_PER_HALF, len(positions) + 1))
        np.cumsum(factors.T, axis=1, out=sums[:, 1:])

        # Z <- logaddexp(0, Z) + f, all steps at once: with C the cumulative sums of f,
        # Z_t = C_t + log(exp(Z_0) + exp(-C_0) + ... + exp(-C_(t-1))).
        terms = np.empty_like(sums)
        terms[:, 0] = self.logs[stream, half]
        np.negative(sums[:, :-1], out=terms[:, 1:])
        logs = np.asarray(np.logaddexp.accumulate(terms, axis=1)) + sums
        return Path(stream, half, np.cumsum(selected), scores.times[positions], sums, logs)

    def _commit(self, path: Path, count: int) -> None:
        """Take over the state after the first ``count`` scores of a path."""
        if not count:
            return
        at = (path.stream, path.half)
        self.logs[at] = path.logs[:, count]
        # max(c, 0) + log factor, repeated, is the distance of the sum from its lowest earlier point.
        lows = path.sums[:, :count].copy()
        lows[:, 0] = -np.maximum(self.rises[at], 0.0)
        last = count - 1 - np.argmin(lows[:, ::-1], axis=1)
        continued = (last == 0) & (self.rises[at] > 0)
        self.starts[at] = np.where(continued, self.starts[at], path.times[last])
        self.rises[at] = path.sums[:, count] - lows[np.arange(BETS_PER_HALF), last]
