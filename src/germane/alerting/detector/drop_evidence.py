"""Evidence for a drop and for the subsequent recovery.

Evidence for a drop is the Shiryaev-Roberts recursion of each bet, in logarithms. For each score in its stream, a bet
multiplies its capital by a factor. While scores are as good as the bet's null, the expected factor is at most 1. The
recursion R <- (1 + R) factor computes a sum over all times at which a drop may have begun: the current capital of a bet
of 1 that was placed at that time. Therefore, R minus the number of scores is a supermartingale, and the expected number
of scores until a fixed average of such R exceeds A is at least A.

Sources: A. Shiryaev, On optimum methods in quickest detection problems, Theory of Probability and its Applications 8,
1963; S. Roberts, A comparison of some control chart procedures, Technometrics 8, 1966; J. Shin, A. Ramdas, A. Rinaldo,
E-detectors: a nonparametric framework for sequential change detection, New England Journal of Statistics in Data
Science 2, 2023.

Evidence for recovery comes from bets, for each contributor, that scores are back to normal. The reference is halfway
between the baseline and the narrowest null, at distance h from both, so a level that keeps the detector firing cannot
resolve it. Each contributor has three bets, where q is h / 2, h or 2 h, and u and w are the variance that scores from
one day share::

    committed:  Q <- (1 + Q) (1 + g (x - r)),  r = mu - h,  g = min(q / (sd^2 + u + q^2), 0.9 / r)
    zero:       Q <- (1 + Q) (1 + g (r - y)),  r = p + h,   g = min(q / (r (1 - r) + w + q^2), 0.9 / (1 - r))

The drop is over when, for all contributors at the same time, the mean of the three values of Q exceeds
A = max(20, 10 x scores per day of the contributor's stream). Q is capped at 10 A, so that a long good period does not
outweigh a later bad one. Logarithms are not needed: factors are at least 0.1, so Q stays between 0.1 and the cap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from germane.alerting.detector.bet_grid import BETS_PER_STATISTIC, BetGrid, bet_size
from germane.alerting.detector.score_batch import BoolArray, FloatArray, IndexedScores, IntArray

Statistic = Literal["committed", "zero"]
STATISTICS: Final[tuple[Statistic, ...]] = ("committed", "zero")
"""The two statistics that are monitored in each stream: the mean of nonzero scores and the rate of zeros."""
STEPWISE_SCORES_PER_STREAM: Final = 5
MAX_STEPWISE_SCORES: Final = 60
"""Up to this number of scores, per stream and in total, processing one score at a time is faster."""
_SIZES: Final = np.array([0.5, 1.0, 2.0])
"""Sizes of the shifts that each contributor's bets assume, in units of h."""
_CAP: Final = 10.0
"""Cap on Q, as a multiple of the threshold."""


@dataclass(frozen=True, slots=True)
class Contributor:
    """A statistic of a stream that contributes much of the evidence for a drop."""

    route: str | None
    """Name of the route; None for the service as a whole."""
    half: Statistic  # the name in stored states and in alerts
    """``committed``: nonzero scores are decreasing. ``zero``: refusals are increasing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change in a detector's state: it fires or resolves."""

    index: int
    """Position, in the processed batch, of the score that caused the transition."""
    at: float
    """Arrival time of that score, as a Unix timestamp in seconds."""
    state: Literal["firing", "resolved"]
    onset: float
    """Estimated start of the drop, as a Unix timestamp in seconds."""
    contributors: tuple[Contributor, ...]
    """Contributors to the drop, strongest first."""


@dataclass(frozen=True, slots=True)
class Path:
    """The evidence in one statistic of one stream over a block of scores."""

    stream: int
    statistic: int
    counts: IntArray
    """The number of this path's scores up to and including each score in the block."""
    times: FloatArray
    """Arrival times of this path's scores."""
    sums: FloatArray
    """Cumulative log factors by bet, before the first score and after each score."""
    logs: FloatArray
    """Log R by bet, before the first score and after each score."""


class ShiryaevRoberts:
    """Log R of each bet, and a CUSUM statistic for each bet that estimates when the rise of R began.

    Stream 0 is the whole service. The other streams are its routes, in the order of the baseline.
    """

    def __init__(self, grid: BetGrid) -> None:
        self._grid = grid
        self.streams = len(grid.routes) + 1
        self.reset()

    def reset(self) -> None:
        """Discard all evidence."""
        shape = (self.streams, len(STATISTICS), BETS_PER_STATISTIC)
        self.logs = np.full(shape, -np.inf)
        self.rises = np.zeros(shape)
        """CUSUM statistic c <- max(c, 0) + log factor."""
        self.starts = np.zeros(shape)
        """Earliest time of the scores since c last left 0, as a Unix timestamp in seconds."""

    def log_evidence(self) -> float:
        """Return the logarithm of the average R over streams, statistics and bets."""
        return float(np.logaddexp.reduce(self.logs, axis=None)) - math.log(self.logs.size)

    def log_strength(self) -> FloatArray:
        """Return the logarithm of the sum of R over bets, by stream and statistic."""
        return np.asarray(np.logaddexp.reduce(self.logs, axis=2))

    def onset(self) -> float:
        """Return the start time of the largest rise, as a Unix timestamp in seconds."""
        return float(self.starts.flat[int(np.argmax(self.rises))])

    def advance(self, scores: IndexedScores, threshold: float) -> tuple[int, bool]:
        """Process scores until the log evidence exceeds the threshold. Return their number, and whether it does."""
        if len(scores) <= min(STEPWISE_SCORES_PER_STREAM * self.streams, MAX_STEPWISE_SCORES):
            return self._advance_stepwise(scores, threshold)
        streams = [0, *(route + 1 for route in np.unique(scores.routes).tolist())]
        paths = [self._path(scores, stream, statistic) for stream in streams for statistic in range(len(STATISTICS))]
        crossing = self._first_crossing(paths, threshold)
        last = len(scores) - 1 if crossing is None else crossing
        for path in paths:
            if count := int(path.counts[last]):
                self._commit(path, count)
        return last + 1, crossing is not None

    def _advance_stepwise(self, scores: IndexedScores, threshold: float) -> tuple[int, bool]:
        for position in range(len(scores)):
            self._step(scores, position)
            if self.log_evidence() > threshold:
                return position + 1, True
        return len(scores), False

    def _first_crossing(self, paths: Sequence[Path], threshold: float) -> int | None:
        """Return the position of the first score after which the log evidence exceeds the threshold, if any."""
        unchanged = self.log_strength()
        for path in paths:
            unchanged[path.stream, path.statistic] = -np.inf
        total = np.full(len(paths[0].counts), np.logaddexp.reduce(unchanged, axis=None))
        for path in paths:
            total = np.logaddexp(total, np.logaddexp.reduce(path.logs, axis=0)[path.counts])
        above = np.flatnonzero(total - math.log(self.logs.size) > threshold)
        return int(above[0]) if len(above) else None

    def _commit(self, path: Path, count: int) -> None:
        """Set the evidence and the rises to those after the first ``count`` scores of a path; at least 1."""
        at = path.stream, path.statistic
        self.logs[at] = path.logs[:, count]
        # Repeating c <- max(c, 0) + log factor yields the distance between the sum and its earlier minimum.
        lows = path.sums[:, :count].copy()
        lows[:, 0] = -np.maximum(self.rises[at], 0.0)
        lowest = count - 1 - np.argmin(lows[:, ::-1], axis=1)  # the last minimum of each bet
        continued = (lowest == 0) & (self.rises[at] > 0)
        earliest = np.minimum.accumulate(path.times[:count][::-1])[::-1][lowest]
        self.starts[at] = np.where(continued, np.minimum(self.starts[at], earliest), earliest)
        self.rises[at] = path.sums[:, count] - lows[np.arange(BETS_PER_STATISTIC), lowest]

    def _step(self, scores: IndexedScores, position: int) -> None:
        """Process one score."""
        grid, route, zero = self._grid, int(scores.routes[position]), int(scores.zeros[position])
        factors = np.empty((2, len(STATISTICS), BETS_PER_STATISTIC))
        factors[:, 0] = np.log1p(grid.committed_bets[:, route] * (grid.means[:, route] - scores.values[position]))
        factors[:, 1] = grid.zero_logs[:, route, zero]
        committed, any_score = grid.watched[:, route].tolist()
        # Select the whole service and the route, and the statistics that this score updates.
        at = slice(0, route + 2, route + 1), slice(0 if committed and not zero else 1, 2 if any_score else 1)
        logs, rises, starts, factors = self.logs[at], self.rises[at], self.starts[at], factors[:, at[1]]
        np.logaddexp(0.0, logs, out=logs)
        logs += factors
        starts[rises <= 0] = scores.times[position]
        np.minimum(starts, scores.times[position], out=starts)
        np.maximum(rises, 0.0, out=rises)
        rises += factors

    def _path(self, scores: IndexedScores, stream: int, statistic: int) -> Path:
        grid, kind = self._grid, min(stream, 1)
        selected = grid.updates_statistic(scores, statistic) & (scores.routes == stream - 1 if stream else True)
        positions = np.flatnonzero(selected)
        routes = scores.routes[positions]
        if statistic == 0:
            shortfall = grid.means[kind, routes] - scores.values[positions, None]
            factors = np.log1p(grid.committed_bets[kind, routes] * shortfall)
        else:
            factors = grid.zero_logs[kind, routes, scores.zeros[positions].astype(np.int64)]
        sums = np.zeros((BETS_PER_STATISTIC, len(positions) + 1))
        np.cumsum(factors.T, axis=1, out=sums[:, 1:])

        # This computes all steps of Z <- logaddexp(0, Z) + f at once. With C the cumulative sums of f,
        # Z_t = C_t + log(exp(Z_0) + exp(-C_0) + ... + exp(-C_(t-1))).
        terms = np.empty_like(sums)
        terms[:, 0] = self.logs[stream, statistic]
        np.negative(sums[:, :-1], out=terms[:, 1:])
        logs = np.asarray(np.logaddexp.accumulate(terms, axis=1)) + sums
        return Path(stream, statistic, np.cumsum(selected), scores.times[positions], sums, logs)


class RecoveryEvidence:
    """Recovery evidence for all contributors to one drop."""

    def __init__(
        self, grid: BetGrid, contributors: Sequence[Contributor], evidence: Sequence[Sequence[float]] | None = None
    ) -> None:
        self.contributors = tuple(contributors)
        self._parts = [ContributorRecovery(grid, contributor) for contributor in contributors]
        for part, values in zip(self._parts, evidence or [], strict=bool(evidence)):
            part.evidence = [float(value) for value in values]

    @property
    def evidence(self) -> list[list[float]]:
        """The three values of Q for each contributor."""
        return [list(part.evidence) for part in self._parts]

    def advance(self, scores: IndexedScores) -> tuple[int, bool]:
        """Process scores until all contributors have recovered. Return their number, and whether the drop is over."""
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
        self._statistic = STATISTICS.index(contributor.half)
        self._route = None if contributor.route is None else grid.routes.index(contributor.route)
        stream = grid.baseline if contributor.route is None else grid.baseline.routes[contributor.route]
        kind = 0 if contributor.route is None else 1
        self._threshold = max(20.0, 10 * stream.scores_per_day)
        if contributor.half == "committed":
            h = (grid.mean - grid.means[kind, :, 0]) / 2
            self._references = grid.mean - h
            variance = grid.deviation**2 + stream.committed_per_day * grid.wander**2
            worst = self._references
        else:
            h = (grid.rates[kind, :, 0] - grid.rate) / 2
            self._references = grid.rate + h
            variance = self._references * (1 - self._references) + stream.scores_per_day * grid.rate_wander**2
            worst = 1 - self._references
        self._bets = bet_size(np.outer(h, _SIZES), variance[:, None], worst[:, None])

    def advance(self, scores: IndexedScores) -> BoolArray:
        """Process all scores, and return whether the evidence exceeds the threshold after each of them."""
        selected = self._grid.updates_statistic(scores, self._statistic)
        if self._route is not None:
            selected &= scores.routes == self._route
        positions = np.flatnonzero(selected)
        routes = scores.routes[positions]
        if self._statistic == 0:
            better = scores.values[positions] - self._references[routes]
        else:
            better = self._references[routes] - scores.zeros[positions]
        factors = 1 + self._bets[routes] * better[:, None]
        # Compute Q before the first score and after each score. The cap rules out cumulative sums, so this is a loop.
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
