"""Evidence for a drop, and evidence that it is over.

For a drop: the Shiryaev-Roberts recursion of every bet, in logarithms. Each bet multiplies its capital on every score
of its stream. While scores are as good as the bet's null, the expected factor is at most 1. The recursion
R <- (1 + R) factor is the sum, over all moments at which a drop may have begun, of the capital that a bet placed
then with 1 would have now. R minus the number of scores is therefore a supermartingale, and the expected number of
scores until a fixed average of such R exceeds A is at least A.

Sources: A. Shiryaev, On optimum methods in quickest detection problems, Theory of Probability and its Applications 8,
1963; S. Roberts, A comparison of some control chart procedures, Technometrics 8, 1966; J. Shin, A. Ramdas, A. Rinaldo,
E-detectors: a nonparametric framework for sequential change detection, New England Journal of Statistics in Data
Science 2, 2023.

For recovery: bets, on every contributor, that scores are back to normal. The reference lies halfway between the
baseline and the narrowest null, at distance h from both, so a level that keeps the detector firing cannot resolve it.
Each half places three bets, with q in (h / 2, h, 2 h) and with u and w the variance shared by the scores of one day::

    committed:  Q <- (1 + Q) (1 + g (x - r)),  r = mu - h,  g = min(q / (sd^2 + u + q^2), .9 / r)
    zero:       Q <- (1 + Q) (1 + g (r - y)),  r = p + h,   g = min(q / (r (1 - r) + w + q^2), .9 / (1 - r))

The drop is over when the mean of the three exceeds A = max(20, 10 x scores per day of the contributor's stream) for all
contributors simultaneously. Q is capped at 10 A, so that a long good period does not outweigh a later bad one. No
logarithms are needed: factors are at least .1, so Q stays between .1 and the cap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from germane.alerting.detector.bet_grid import BETS_PER_HALF, BetGrid, bet_size
from germane.alerting.detector.score_batch import BoolArray, FloatArray, IndexedScores, IntArray

Half = Literal["committed", "zero"]
HALVES: Final[tuple[Half, ...]] = ("committed", "zero")
"""A stream's two monitored statistics: the mean of nonzero scores and the rate of zeros."""
STEPWISE_SCORES_PER_STREAM: Final = 5
"""Blocks of up to this many scores per stream, and up to 60 in total, are processed faster one score at a time."""
_SIZES: Final = np.array([0.5, 1.0, 2.0])
"""Sizes of each contributor's bets, in units of h."""
_CAP: Final = 10.0
"""Cap on Q, as a multiple of the threshold."""


@dataclass(frozen=True, slots=True)
class Contributor:
    """One half of one stream that holds most of the evidence for a drop."""

    route: str | None
    """None for the service as a whole."""
    half: Half
    """``committed``: nonzero scores drift lower. ``zero``: refusals rise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change in state: a detector fires or resolves."""

    index: int
    """Position in the processed batch of the score that caused the transition."""
    at: float
    """Arrival of that score, as a Unix timestamp in seconds."""
    state: Literal["firing", "resolved"]
    onset: float
    """Estimated start of the drop, as a Unix timestamp in seconds."""
    contributors: tuple[Contributor, ...]
    """Strongest first."""


@dataclass(frozen=True, slots=True)
class Path:
    """One half of one stream over a block of scores."""

    stream: int
    half: int
    counts: IntArray
    """Number of this path's scores up to and including each score in the block."""
    times: FloatArray
    """Arrival times of this path's scores."""
    sums: FloatArray
    """Cumulative log factors by bet, before the first score and after each."""
    logs: FloatArray
    """Log R by bet, before the first score and after each."""


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
        """Time when c last left 0, as a Unix timestamp in seconds."""

    def log_evidence(self) -> float:
        """Return the logarithm of the average over streams and bets."""
        return float(np.logaddexp.reduce(self.logs, axis=None)) - math.log(self.logs.size)

    def log_strength(self) -> FloatArray:
        """Return the logarithm of the sum over bets, by stream and half."""
        return np.asarray(np.logaddexp.reduce(self.logs, axis=2))

    def onset(self) -> float:
        """Return the start of the largest rise, as a Unix timestamp in seconds."""
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
            count, at = int(path.counts[processed - 1]), (path.stream, path.half)
            if not count:
                continue
            self.logs[at] = path.logs[:, count]
            # max(c, 0) + log factor, repeated, is the distance of the sum from its lowest earlier point.
            lows = path.sums[:, :count].copy()
            lows[:, 0] = -np.maximum(self.rises[at], 0.0)
            last = count - 1 - np.argmin(lows[:, ::-1], axis=1)
            continued = (last == 0) & (self.rises[at] > 0)
            self.starts[at] = np.where(continued, self.starts[at], path.times[last])
            self.rises[at] = path.sums[:, count] - lows[np.arange(BETS_PER_HALF), last]
        return processed, bool(len(above))

    def _step(self, scores: IndexedScores, position: int) -> None:
        """Process one score."""
        grid, route, zero = self._grid, int(scores.routes[position]), int(scores.zeros[position])
        factors = np.empty((2, len(HALVES), BETS_PER_HALF))
        factors[:, 0] = np.log1p(grid.committed_bets[:, route] * (grid.means[route] - scores.values[position]))
        factors[:, 1] = grid.zero_logs[:, route, zero]
        committed, any_score = grid.watched[:, route].tolist()
        # Selects the whole service and the route, and the halves that this score updates.
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

        # Z <- logaddexp(0, Z) + f, all steps vectorized: with C the cumulative sums of f,
        # Z_t = C_t + log(exp(Z_0) + exp(-C_0) + ... + exp(-C_(t-1))).
        terms = np.empty_like(sums)
        terms[:, 0] = self.logs[stream, half]
        np.negative(sums[:, :-1], out=terms[:, 1:])
        logs = np.asarray(np.logaddexp.accumulate(terms, axis=1)) + sums
        return Path(stream, half, np.cumsum(selected), scores.times[positions], sums, logs)


class RecoveryEvidence:
    """Recovery evidence of all contributors to one drop."""

    def __init__(
        self, grid: BetGrid, contributors: Sequence[Contributor], evidence: Sequence[Sequence[float]] | None = None
    ) -> None:
        self.contributors = tuple(contributors)
        self._parts = [ContributorRecovery(grid, contributor) for contributor in contributors]
        for part, values in zip(self._parts, evidence or [], strict=bool(evidence)):
            part.evidence = [float(value) for value in values]

    @property
    def evidence(self) -> list[list[float]]:
        """The three values of Q of every contributor."""
        return [list(part.evidence) for part in self._parts]

    def advance(self, scores: IndexedScores) -> tuple[int, bool]:
        """Process scores up to the first one after which all contributors have recovered.

        Returns:
            The number of processed scores, and whether the drop is over.
        """
        before = self.evidence
        recovered = np.logical_and.reduce([part.advance(scores) for part in self._parts])
        if not recovered.any():
            return len(scores), False
        processed = int(np.argmax(recovered)) + 1
        for part, evidence in zip(self._parts, before, strict=True):
            part.evidence = evidence
            part.advance(scores.part(0, processed))
        return processed, True


class ContributorRecovery:
    """Recovery evidence for one contributor."""

    def __init__(self, grid: BetGrid, contributor: Contributor) -> None:
        self.evidence: list[float] = [0.0] * len(_SIZES)
        self._grid = grid
        self._half = HALVES.index(contributor.half)
        self._route = None if contributor.route is None else grid.routes.index(contributor.route)
        stream = grid.baseline if contributor.route is None else grid.baseline.routes[contributor.route]
        self._threshold = max(20.0, 10 * stream.scores_per_day)
        if contributor.half == "committed":
            h = (grid.mean - grid.means[:, 0]) / 2
            self._references = grid.mean - h
            variance = grid.deviation**2 + stream.committed_per_day * grid.wander**2
            worst = self._references
        else:
            h = (grid.rates[:, 0] - grid.rate) / 2
            self._references = grid.rate + h
            variance = self._references * (1 - self._references) + stream.scores_per_day * grid.rate_wander**2
            worst = 1 - self._references
        self._bets = bet_size(np.outer(h, _SIZES), variance[:, None], worst[:, None])

    def advance(self, scores: IndexedScores) -> BoolArray:
        """Process all scores; return whether this contributor's evidence exceeds its threshold after each."""
        selected = self._grid.updates_half(scores, self._half)
        if self._route is not None:
            selected &= scores.routes == self._route
        positions = np.flatnonzero(selected)
        routes = scores.routes[positions]
        if self._half == 0:
            better = scores.values[positions] - self._references[routes]
        else:
            better = self._references[routes] - scores.zeros[positions]
        factors = 1 + self._bets[routes] * better[:, None]
        # Q before the first score and after each. The cap rules out cumulative sums, so this loops.
        cap = _CAP * self._threshold
        first, second, third = self.evidence
        steps = [(first, second, third)]
        for first_factor, second_factor, third_factor in factors.tolist():
            first = min((1 + first) * first_factor, cap)
            second = min((1 + second) * second_factor, cap)
            third = min((1 + third) * third_factor, cap)
            steps.append((first, second, third))
        self.evidence = [first, second, third]
        return np.asarray(np.array(steps).mean(axis=1) > self._threshold)[np.cumsum(selected)]
