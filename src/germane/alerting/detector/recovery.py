"""Evidence that a drop is over: bets, by whatever carried the alarm, that scores are back.

The reference lies halfway between the baseline and the narrowest null, h from either: what keeps firing cannot
resolve. For each half three bets, on q in (h / 2, h, 2 h), with u and w the variance that a day's scores share::

    committed:  Q <- (1 + Q) (1 + g (x - r)),  r = mu - h,  g = min(q / (sd^2 + u + q^2), .9 / r)
    zero:       Q <- (1 + Q) (1 + g (r - y)),  r = p + h,   g = min(q / (r (1 - r) + w + q^2), .9 / (1 - r))

It is over when the mean of the three exceeds A = max(20, 10 x scores per day of the carrier's stream) for each carrier
at once. Q is capped at 10 A, so that a long good time is not a reserve for a bad one. No logarithms: a factor is .1 or
more, so Q stays between .1 and the cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from germane.alerting.detector.bet_grid import Cells, stake
from germane.alerting.detector.seen import BoolArray, FloatArray, Scores
from germane.alerting.detector.transition import HALVES, Carrier

_SIZES: Final = np.array([0.5, 1.0, 2.0])
_ROOM: Final = 10.0
"""Cap in units of what resolves."""


class Recovery:
    """Resolvers of the carriers of one alarm."""

    def __init__(
        self, cells: Cells, carriers: Sequence[Carrier], evidence: Sequence[Sequence[float]] | None = None
    ) -> None:
        self.carriers = tuple(carriers)
        self._resolvers = [Resolver(cells, carrier) for carrier in carriers]
        for resolver, capital in zip(self._resolvers, evidence or [], strict=bool(evidence)):
            resolver.evidence = [float(one) for one in capital]

    @property
    def evidence(self) -> list[list[float]]:
        """Return the Q of each carrier."""
        return [list(resolver.evidence) for resolver in self._resolvers]

    def advance(self, scores: Scores) -> tuple[int, bool]:
        """Take scores up to the first after which it is over for all carriers.

        Returns:
            How many were taken, and whether it is over.
        """
        before = self.evidence
        over = self._over(scores)
        if not over.any():
            return len(scores), False
        taken = int(np.argmax(over)) + 1
        for resolver, evidence in zip(self._resolvers, before, strict=True):
            resolver.evidence = evidence
        self._over(scores.part(0, taken))
        return taken, True

    def _over(self, scores: Scores) -> BoolArray:
        return np.asarray(np.logical_and.reduce([resolver.advance(scores) for resolver in self._resolvers]))


class Resolver:
    """Resolver of one carrier."""

    def __init__(self, cells: Cells, carrier: Carrier) -> None:
        self.evidence: list[float] = [0.0] * len(_SIZES)
        self._cells = cells
        self._half = HALVES.index(carrier.half)
        self._route = None if carrier.route is None else cells.routes.index(carrier.route)
        stream = cells.baseline if carrier.route is None else cells.baseline.routes[carrier.route]
        self._enough = max(20.0, 10 * stream.scores_per_day)
        committed = carrier.half == "committed"
        bets = self._committed(stream.committed_per_day) if committed else self._zero(stream.scores_per_day)
        self._references, self._bets = bets

    def advance(self, scores: Scores) -> BoolArray:
        """Take all scores; return whether this carrier's evidence was enough after each."""
        mine = self._cells.concerns(scores, self._half)
        if self._route is not None:
            mine &= scores.routes == self._route
        evidence = self._walk(self._factors(scores, np.flatnonzero(mine)))
        return np.asarray(evidence.mean(axis=1) > self._enough)[np.cumsum(mine)]

    def _committed(self, per_day: float) -> tuple[FloatArray, FloatArray]:
        cells = self._cells
        half = (cells.mean - cells.means[:, 0]) / 2
        variance = cells.deviation**2 + per_day * cells.wander**2
        references = cells.mean - half
        return references, stake(np.outer(half, _SIZES), variance[:, None], references[:, None])

    def _zero(self, per_day: float) -> tuple[FloatArray, FloatArray]:
        cells = self._cells
        half = (cells.rates[:, 0] - cells.rate) / 2
        references = cells.rate + half
        variance = references * (1 - references) + per_day * cells.rate_wander**2
        return references, stake(np.outer(half, _SIZES), variance[:, None], 1 - references[:, None])

    def _factors(self, scores: Scores, places: Any) -> FloatArray:
        routes = scores.routes[places]
        if self._half == 0:
            better = scores.values[places] - self._references[routes]
        else:
            better = self._references[routes] - scores.zeros[places]
        return np.asarray(1 + self._bets[routes] * better[:, None])

    def _walk(self, factors: FloatArray) -> FloatArray:
        """Return Q before the first score and after each. One by one, for the cap stands in the way of sums."""
        most = _ROOM * self._enough
        one, two, three = self.evidence
        walked = [(one, two, three)]
        for first, second, third in factors.tolist():
            one = min((1 + one) * first, most)
            two = min((1 + two) * second, most)
            three = min((1 + three) * third, most)
            walked.append((one, two, three))
        self.evidence = [one, two, three]
        return np.array(walked)
