"""Which candidates of an interval are picked, and how probable that was: priority sampling with a defensive mixture.

Weights w in an interval with M candidates, K routes and M_r candidates in a route, by how suspicious an exchange is,
u = 1 - proxy within .02 and 1::

    w = .5 / M  +  .3 u^2 / sum u^2  +  .2 / (K M_r)

Each candidate has a ticket h, uniform in (0, 1]. The k largest w / h are picked; with tau the next largest one, a pick
stands for tau / w candidates: its inclusion probability is pi = min(1, w / tau).

Source: N. Duffield, C. Lund, M. Thorup, Priority sampling for estimation of arbitrary subset sums, J. ACM 54(6), 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

UNIFORM: Final = 0.5
SUSPICION: Final = 0.3
ROUTES: Final = 0.2
"""Shares of the mixture: the same for all, by suspicion, and the same for each route."""
LEAST_SUSPICION: Final = 0.02
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
"""Per candidate the number of its route, from 0."""
Part = Literal["uniform", "route_floor", "suspicion"]
_KEYED: Final = blake2b(digest_size=8, key=b"germane.part")


@dataclass(frozen=True, slots=True)
class Mixture:
    """What the weights of one interval are made of, and the threshold of its picks: enough to tell any probability."""

    uniform: float
    """Part of the weight that all have."""
    suspicion: float
    """What the square of the suspicion is multiplied by; 0 where no candidate has a proxy."""
    usual: float
    """Suspicion of a candidate without a proxy."""
    floors: tuple[float, ...]
    """Part of the weight by route."""
    threshold: float = 0.0
    """tau; 0 where all candidates are picked."""

    def even(self, routes: Codes) -> Floats:
        """Return the part of the weights that does not depend on the proxy."""
        return self.uniform + np.asarray(self.floors, dtype=np.float64)[routes]

    def weights(self, routes: Codes, proxies: Floats) -> Floats:
        """Return the weights, in (0, 1]; a proxy that is not there is NaN."""
        suspicion = np.clip(1 - proxies, LEAST_SUSPICION, 1)
        suspicion = np.where(np.isnan(proxies), self.usual, suspicion)
        return self.even(routes) + self.suspicion * suspicion**2

    def probabilities(self, routes: Codes, proxies: Floats) -> Floats:
        """Return the inclusion probabilities of candidates, picked or not, in (0, 1]."""
        return _shares(self.weights(routes, proxies), self.threshold)


@dataclass(frozen=True, slots=True)
class Picks:
    """What was picked of an interval."""

    mixture: Mixture
    chosen: Codes
    """Places of the picks among the candidates, in their order."""
    probabilities: Floats
    """Of the picks, in (0, 1]."""
    parts: tuple[Part, ...]
    """Why each was picked. Those that were not picked for suspicion are a sample of their own, in which all candidates
    of a route had one and the same probability."""


def mixture_of(routes: Codes, proxies: Floats) -> Mixture:
    """Return what the weights of these candidates are made of; without any proxy the uniform part takes its place.

    At least one candidate; each route from 0 to the largest has one.
    """
    candidates, of_route = len(routes), np.bincount(routes)
    floors = tuple((ROUTES / (len(of_route) * of_route)).tolist())
    known = np.clip(1 - proxies[~np.isnan(proxies)], LEAST_SUSPICION, 1)
    if not len(known):
        return Mixture((UNIFORM + SUSPICION) / candidates, 0.0, 1.0, floors)
    usual = float(np.median(known))
    # Sorted, so that the sum is the same to the last digit in whatever order the candidates come.
    squares = float(np.sort(known**2).sum()) + (candidates - len(known)) * usual**2
    return Mixture(UNIFORM / candidates, SUSPICION / squares, usual, floors)


def pick(routes: Codes, proxies: Floats, tickets: Floats, ids: Sequence[str], count: int) -> Picks:
    """Pick exactly ``count`` candidates, or all where there are no more.

    Args:
        routes: Per candidate the number of its route.
        proxies: Per candidate its proxy, NaN where there is none.
        tickets: Per candidate its ticket, in (0, 1], which must be uniform and not depend on the rest.
        ids: Per candidate its exchange's id, which settles equal priorities.
        count: At least 1.
    """
    mixture = mixture_of(routes, proxies)
    weights = mixture.weights(routes, proxies)
    chosen, threshold = _largest(weights / tickets, ids, count)
    mixture = Mixture(mixture.uniform, mixture.suspicion, mixture.usual, mixture.floors, threshold)
    probabilities = _shares(weights[chosen], threshold)
    even = _shares(mixture.even(routes[chosen]), threshold)
    marks = np.array([second_ticket(ids[place]) for place in chosen])
    # Of the part that every candidate of a route has the same chance of, some are due to all and some to the route.
    by_all = mixture.uniform / mixture.even(routes[chosen])
    parts = _parts(marks * probabilities, even, by_all)
    return Picks(mixture, chosen, probabilities, parts)


def second_ticket(exchange_id: str) -> float:
    """Return another ticket of an exchange, in (0, 1], that tells nothing of its draw."""
    keyed = _KEYED.copy()
    keyed.update(exchange_id.encode())
    return ((int.from_bytes(keyed.digest()) >> 11) + 1) / 2**53


def _shares(weights: Floats, threshold: float) -> Floats:
    return np.minimum(1.0, weights / threshold) if threshold else np.ones_like(weights)


def _largest(priorities: Floats, ids: Sequence[str], count: int) -> tuple[Codes, float]:
    """Return the places of the largest in their order, and the next largest value: 0 where there is none."""
    if len(priorities) <= count:
        return np.arange(len(priorities)), 0.0
    border = len(priorities) - count - 1
    threshold = float(np.partition(priorities, border)[border])
    above = np.flatnonzero(priorities > threshold)
    # Exchanges of one trace share a draw, hence perhaps a priority.
    equal = sorted(np.flatnonzero(priorities == threshold).tolist(), key=lambda place: ids[place])
    return np.sort(np.concatenate([above, np.array(equal[: count - len(above)], dtype=np.int64)])), threshold


def _parts(marks: Floats, even: Floats, by_all: Floats) -> tuple[Part, ...]:
    def part(mark: Any, limit: Any, share: Any) -> Part:
        if mark > limit:
            return "suspicion"
        return "uniform" if mark <= limit * share else "route_floor"

    return tuple(part(*one) for one in zip(marks, even, by_all, strict=True))
