"""Evidence that a drop is over: bets, on every contributor, that scores are back to normal.

The reference lies halfway between the baseline and the narrowest null, at distance h from both, so a level that keeps
the detector firing cannot resolve it. Each half places three bets, with q in (h / 2, h, 2 h) and with u and w the
variance shared by the scores of one day::

    committed:  Q <- (1 + Q) (1 + g (x - r)),  r = mu - h,  g = min(q / (sd^2 + u + q^2), .9 / r)
    zero:       Q <- (1 + Q) (1 + g (r - y)),  r = p + h,   g = min(q / (r (1 - r) + w + q^2), .9 / (1 - r))

The drop is over when the mean of the three exceeds A = max(20, 10 x scores per day of the contributor's stream) for all
contributors at once. Q is capped at 10 A, so that a long good period does not outweigh a later bad one. No logarithms
are needed: factors are at least .1, so Q stays between .1 and the cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from germane.alerting.detector.bet_grid import BetGrid, bet_size
from germane.alerting.detector.score_batch import BoolArray, FloatArray, IndexedScores
from germane.alerting.detector.transition import HALVES, Contributor

_SIZES: Final = np.array([0.5, 1.0, 2.0])
"""Bets of each contributor, in units of h."""
_CAP: Final = 10.0
"""Limit of Q, in units of the value that resolves."""


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
        """The three Q of every contributor."""
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
    """Recovery evidence of one contributor."""

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
        evidence = self._accumulate(1 + self._bets[routes] * better[:, None])
        return np.asarray(evidence.mean(axis=1) > self._threshold)[np.cumsum(selected)]

    def _accumulate(self, factors: FloatArray) -> FloatArray:
        """Return Q before the first score and after each. The cap rules out cumulative sums, so this loops."""
        cap = _CAP * self._threshold
        first, second, third = self.evidence
        steps = [(first, second, third)]
        for first_factor, second_factor, third_factor in factors.tolist():
            first = min((1 + first) * first_factor, cap)
            second = min((1 + second) * second_factor, cap)
            third = min((1 + third) * third_factor, cap)
            steps.append((first, second, third))
        self.evidence = [first, second, third]
        return np.array(steps)
