"""Evidence for a drop, score by score: the Shiryaev-Roberts recursion of each cell, in logarithms.

Each cell bets on every score of its stream: its factor has an expectation of at most 1 while the scores are as good as
its null. R <- (1 + R) factor sums, over all moments at which a drop may have begun, what the bets since then would have
made of 1. So R minus the number of scores is a supermartingale, and the expected number of scores until a fixed
average of such R exceeds A is at least A.

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

from germane.alerting.detector.bet_grid import CELLS, Cells
from germane.alerting.detector.seen import FloatArray, IntArray, Scores
from germane.alerting.detector.transition import HALVES

FEW: Final = 5
"""Scores for each stream up to which a block is not worth its making; not above 60 in all."""


@dataclass(frozen=True, slots=True)
class Path:
    """One half of one stream over a block of scores."""

    stream: int
    half: int
    counts: IntArray
    """How many of its scores came up to each score of the block, with that one."""
    times: FloatArray
    """Of its scores."""
    sums: FloatArray
    """By cell: of the logarithms of the factors, before the first score and after each."""
    logs: FloatArray
    """By cell: of R, before the first score and after each."""


class Forward:
    """Logarithms of all cells, with a companion each that tells when their rise began.

    Stream 0 is the whole service; the others are its routes in the order of the baseline.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self.streams = len(cells.routes) + 1
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        shape = (self.streams, len(HALVES), CELLS)
        self.logs = np.full(shape, -np.inf)
        self.rises = np.zeros(shape)
        """c <- max(c, 0) + log factor."""
        self.starts = np.zeros(shape)
        """When c last left 0: seconds since 1970."""

    def evidence(self) -> float:
        """Return the logarithm of the average over streams and cells."""
        return float(np.logaddexp.reduce(self.logs, axis=None)) - self._share()

    def strength(self) -> FloatArray:
        """Return by stream and half the logarithm of the sum over its cells."""
        return np.asarray(np.logaddexp.reduce(self.logs, axis=2))

    def onset(self) -> float:
        """Return when the largest rise began."""
        return float(self.starts.flat[int(np.argmax(self.rises))])

    def advance(self, scores: Scores, threshold: float) -> tuple[int, bool]:
        """Take scores up to the first after which the evidence exceeds the threshold.

        Returns:
            How many were taken, and whether the last of them did it.
        """
        if len(scores) <= min(FEW * self.streams, 60):
            return self._step_by_step(scores, threshold)
        paths = self._paths(scores)
        above = np.flatnonzero(self._evidences(paths, len(scores)) > threshold)
        taken = int(above[0]) + 1 if len(above) else len(scores)
        for path in paths:
            self._settle(path, int(path.counts[taken - 1]))
        return taken, bool(len(above))

    def _share(self) -> float:
        return math.log(self.logs.size)

    def _step_by_step(self, scores: Scores, threshold: float) -> tuple[int, bool]:
        """Do the same one score after another, which is quicker for few."""
        for place in range(len(scores)):
            self._step(scores, place)
            if self.evidence() > threshold:
                return place + 1, True
        return len(scores), False

    def _step(self, scores: Scores, place: int) -> None:
        route, zero = int(scores.routes[place]), int(scores.zeros[place])
        factors = np.empty((2, len(HALVES), CELLS))
        factors[:, 0] = np.log1p(
            self._cells.committed_bets[:, route] * (self._cells.means[route] - scores.values[place])
        )
        factors[:, 1] = self._cells.zero_logs[:, route, zero]
        committed, any_score = self._cells.watched[:, route].tolist()
        # The whole service and the route, and of both the halves that learn from this score.
        at = slice(0, route + 2, route + 1), slice(0 if committed and not zero else 1, 2 if any_score else 1)
        logs, rises, starts, factors = self.logs[at], self.rises[at], self.starts[at], factors[:, at[1]]
        np.logaddexp(0.0, logs, out=logs)
        logs += factors
        starts[rises <= 0] = scores.times[place]
        np.maximum(rises, 0.0, out=rises)
        rises += factors

    def _paths(self, scores: Scores) -> list[Path]:
        paths = [self._path(scores, 0, half) for half in range(len(HALVES))]
        for route in np.unique(scores.routes).tolist():
            paths += [self._path(scores, route + 1, half) for half in range(len(HALVES))]
        return paths

    def _path(self, scores: Scores, stream: int, half: int) -> Path:
        mine = self._cells.concerns(scores, half) & (scores.routes == stream - 1 if stream else True)
        places = np.flatnonzero(mine)
        factors = (self._committed if half == 0 else self._zero)(scores, places, min(stream, 1))
        sums = np.zeros((CELLS, len(places) + 1))
        np.cumsum(factors.T, axis=1, out=sums[:, 1:])
        logs = _accumulated(self.logs[stream, half], sums)
        return Path(stream, half, np.cumsum(mine), scores.times[places], sums, logs)

    def _committed(self, scores: Scores, places: IntArray, kind: int) -> FloatArray:
        routes = scores.routes[places]
        worse = self._cells.means[routes] - scores.values[places, None]
        return np.asarray(np.log1p(self._cells.committed_bets[kind, routes] * worse))

    def _zero(self, scores: Scores, places: IntArray, kind: int) -> FloatArray:
        return np.asarray(self._cells.zero_logs[kind, scores.routes[places], scores.zeros[places].astype(np.int64)])

    def _evidences(self, paths: list[Path], length: int) -> FloatArray:
        """Return the evidence after each score of the block."""
        strength = self.strength()
        for path in paths:
            strength[path.stream, path.half] = -np.inf
        total = np.full(length, np.logaddexp.reduce(strength, axis=None))
        for path in paths:
            total = np.logaddexp(total, np.logaddexp.reduce(path.logs, axis=0)[path.counts])
        return total - self._share()

    def _settle(self, path: Path, count: int) -> None:
        """Take over the first scores of a path."""
        if not count:
            return
        at = (path.stream, path.half)
        self.logs[at] = path.logs[:, count]
        # max(c, 0) + log factor, repeated, is the distance of the sum from its lowest point before.
        lows = path.sums[:, :count].copy()
        lows[:, 0] = -np.maximum(self.rises[at], 0.0)
        last = count - 1 - np.argmin(lows[:, ::-1], axis=1)
        went_on = (last == 0) & (self.rises[at] > 0)
        self.starts[at] = np.where(went_on, self.starts[at], path.times[last])
        self.rises[at] = path.sums[:, count] - lows[np.arange(CELLS), last]


def _accumulated(first: FloatArray, sums: FloatArray) -> FloatArray:
    """Return what ``Z <- logaddexp(0, Z) + f`` makes of the first Z, all steps at once.

    With C the cumulative sums of f, Z_t = C_t + log(exp(Z_0) + exp(-C_0) + ... + exp(-C_(t-1))).
    """
    terms = np.empty_like(sums)
    terms[:, 0] = first
    np.negative(sums[:, :-1], out=terms[:, 1:])
    return np.asarray(np.logaddexp.accumulate(terms, axis=1)) + sums
