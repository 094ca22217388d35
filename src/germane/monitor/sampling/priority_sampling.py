"""Priority sampling with a defensive mixture: selection of candidates, and their inclusion probabilities.

In an interval with M candidates, K routes and M_r candidates in route r, the weight w of a candidate with the suspicion
u = 1 - proxy, clipped to [0.02, 1], is::

    w = 0.5 / M  +  0.3 u^2 / sum u^2  +  0.2 / (K M_r)

Each candidate gets a random number h, uniform in (0, 1]. The k candidates with the largest values of w / h are
selected. If tau is the next largest value, the inclusion probability of a candidate is pi = min(1, w / tau).

Source: N. Duffield, C. Lund, M. Thorup, Priority sampling for estimation of arbitrary subset sums, J. ACM 54(6), 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

UNIFORM_SHARE: Final = 0.5
SUSPICION_SHARE: Final = 0.3
ROUTE_SHARE: Final = 0.2
"""The shares of the mixture's components: uniform over candidates, by suspicion, and uniform over routes."""
MIN_SUSPICION: Final = 0.02
FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
MixtureComponent = Literal["uniform", "route_floor", "suspicion"]

_COMPONENT_HASH: Final = blake2b(digest_size=8, key=b"germane.part")


@dataclass(frozen=True, slots=True)
class Mixture:
    """One interval's weights and sampling threshold, from which any inclusion probability can be computed."""

    uniform: float
    """The uniform component of the weight."""
    suspicion: float
    """The factor for the squared suspicion; 0 if no candidate has a proxy score."""
    default_suspicion: float
    """The suspicion of a candidate without a proxy score."""
    floors: tuple[float, ...]
    """The route component of the weight, by route."""
    threshold: float = 0.0
    """The sampling threshold tau; 0 if all candidates are selected."""

    def proxy_free_weights(self, routes: IndexArray) -> FloatArray:
        """Return the part of each candidate's weight that does not depend on its proxy score."""
        return self.uniform + np.asarray(self.floors, dtype=np.float64)[routes]

    def weights(self, routes: IndexArray, proxies: FloatArray) -> FloatArray:
        """Return the candidates' weights, in (0, 1]. Missing proxy scores are passed as NaN."""
        suspicion = np.clip(1 - proxies, MIN_SUSPICION, 1)
        suspicion = np.where(np.isnan(proxies), self.default_suspicion, suspicion)
        return self.proxy_free_weights(routes) + self.suspicion * suspicion**2

    def probabilities(self, routes: IndexArray, proxies: FloatArray) -> FloatArray:
        """Return the inclusion probabilities of any candidates, selected or not, in (0, 1]."""
        return _inclusion_probabilities(self.weights(routes, proxies), self.threshold)


@dataclass(frozen=True, slots=True)
class PrioritySample:
    """The selected candidates of an interval."""

    mixture: Mixture
    selected: IndexArray
    """The indexes of the selected candidates, ascending."""
    probabilities: FloatArray
    """The inclusion probabilities of the selected candidates, in (0, 1]."""
    components: tuple[MixtureComponent, ...]
    """The component that selected each candidate. Candidates that were not selected by suspicion form a sample in which
    all candidates of a route had the same probability."""


def build_mixture(routes: IndexArray, proxies: FloatArray) -> Mixture:
    """Return the mixture for the candidates of an interval.

    If there are no proxy scores, the uniform component replaces the suspicion component. ``routes`` has each
    candidate's route, as an index; it must not be empty, and every index up to the largest must occur. A candidate
    without a proxy score has NaN.
    """
    candidates, per_route = len(routes), np.bincount(routes)
    floors = tuple((ROUTE_SHARE / (len(per_route) * per_route)).tolist())
    known = np.clip(1 - proxies[~np.isnan(proxies)], MIN_SUSPICION, 1)
    if not len(known):
        return Mixture((UNIFORM_SHARE + SUSPICION_SHARE) / candidates, 0.0, 1.0, floors)
    median = float(np.median(known))
    # Sort the values, so that the sum is bit-for-bit independent of the order of the candidates.
    squares = float(np.sort(known**2).sum()) + (candidates - len(known)) * median**2
    return Mixture(UNIFORM_SHARE / candidates, SUSPICION_SHARE / squares, median, floors)


def draw_priority_sample(
    routes: IndexArray, proxies: FloatArray, uniforms: FloatArray, ids: Sequence[str], count: int
) -> PrioritySample:
    """Select exactly ``count`` candidates, or all if there are fewer.

    ``routes`` and ``proxies`` are those of :func:`build_mixture`. ``uniforms`` are in (0, 1] and independent of
    everything else. The ids break ties.
    """
    mixture = build_mixture(routes, proxies)
    weights = mixture.weights(routes, proxies)
    priorities, threshold = weights / uniforms, 0.0
    selected: IndexArray = np.arange(len(priorities))
    if len(priorities) > count:
        rank = len(priorities) - count - 1
        threshold = float(np.partition(priorities, rank)[rank])
        above = np.flatnonzero(priorities > threshold)
        # Exchanges in the same trace have the same sampling key, and may therefore have the same priority.
        ties = sorted(np.flatnonzero(priorities == threshold).tolist(), key=lambda index: ids[index])
        selected = np.sort(np.concatenate([above, np.array(ties[: count - len(above)], dtype=np.int64)]))
    probabilities = _inclusion_probabilities(weights[selected], threshold)
    proxy_free = mixture.proxy_free_weights(routes[selected])
    # A second random number attributes each selection to a component, in proportion to the components' weights.
    marks = np.array([component_uniform(ids[index]) for index in selected]) * probabilities
    limits = _inclusion_probabilities(proxy_free, threshold)

    def component(mark: Any, limit: Any, uniform_share: Any) -> MixtureComponent:
        if mark > limit:
            return "suspicion"
        return "uniform" if mark <= limit * uniform_share else "route_floor"

    components = tuple(map(component, marks, limits, mixture.uniform / proxy_free))
    return PrioritySample(replace(mixture, threshold=threshold), selected, probabilities, components)


def component_uniform(exchange_id: str) -> float:
    """Return a number in (0, 1] from a keyed hash of the exchange id, independent of the exchange's sampling key."""
    keyed = _COMPONENT_HASH.copy()
    keyed.update(exchange_id.encode())
    return ((int.from_bytes(keyed.digest()) >> 11) + 1) / 2**53


def _inclusion_probabilities(weights: FloatArray, threshold: float) -> FloatArray:
    return np.minimum(1.0, weights / threshold) if threshold else np.ones_like(weights)
