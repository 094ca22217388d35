"""Random samples of answers for people to label.

Within a route, an answer is drawn with probability proportional to 1 / its sampling probability. Each answer of the
window then has the same chance of a label, whether or not suspicious answers are scored more often, and the labels have
equal weights. Samples of low scores only, or of scored answers with equal chances, have wider intervals.

Sources: W. Madow, On the theory of systematic sampling II, Annals of Mathematical Statistics 20, 1949; C.-E. Särndal,
B. Swensson, J. Wretman, Model Assisted Survey Sampling, 1992, section 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

MIN_LABELS_PER_ROUTE = 10
_CERTAIN = 1 - 1e-9  # any difference from 1 is a rounding error


def systematic_sample(
    weights: NDArray[np.float64], count: int, generator: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Draw ``count`` items with probability proportional to their weights, or all if there are fewer.

    Items whose probability would exceed 1 are always drawn. The sample is spread over the items in their order, so
    answers in order of time yield a sample from the whole window, and rarely two answers of one conversation.

    Returns:
        The indexes of the drawn items, ascending, and their inclusion probabilities, in (0, 1].
    """
    certain = np.full(len(weights), count >= len(weights))
    probabilities = np.ones(len(weights))
    while not certain.all():
        probabilities = np.where(certain, 1.0, (count - certain.sum()) * weights / weights[~certain].sum())
        if not (probabilities[~certain] >= _CERTAIN).any():
            break
        certain |= probabilities >= _CERTAIN
    others = np.flatnonzero(~certain)
    ends = np.cumsum(probabilities[others])
    places = generator.random() + np.arange(min(count, len(weights)) - certain.sum())
    drawn = others[np.minimum(np.searchsorted(ends, places, side="right"), len(others) - 1)]
    indexes = np.sort(np.concatenate([np.flatnonzero(certain), drawn]))
    return indexes, probabilities[indexes]


def allot(
    traffic: Mapping[str, float],
    count: int,
    minimum: int = MIN_LABELS_PER_ROUTE,
    limits: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Divide a number of labels among routes: a minimum for each, and the rest by traffic.

    The minimums use at most two thirds of the labels, unless each route gets only one. Otherwise, 50 labels for five
    routes, one with 90% of the traffic, would say as little about all answers as 12 labels do. With more routes than
    labels, traffic alone decides.

    Args:
        traffic: The number of answers of each route, above 0.
        count: The number of labels. If it is smaller than the number of routes, those with the least traffic get none.
        limits: The most labels that a route can get.
    """
    left = {route: count if limits is None else min(count, limits[route]) for route in traffic}
    floor = max(int(len(traffic) <= count), min(minimum, 2 * count // (3 * max(1, len(traffic)))))
    allotted = dict.fromkeys(traffic, 0)
    for route in sorted(traffic, key=lambda name: -traffic[name]):
        allotted[route] = min(floor, left[route], count - sum(allotted.values()))
    while sum(allotted.values()) < count and (open_routes := [name for name in traffic if allotted[name] < left[name]]):
        allotted[max(open_routes, key=lambda name: traffic[name] / (2 * allotted[name] + 1))] += 1  # Sainte-Lague
    return allotted
