"""Values of chunks in the order in which a retriever ranked them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

DECAY = 0.9
"""What each next position counts for, beside the one before it."""
MOST_CHUNKS = 20
"""Chunks of an exchange that are looked at, the first ones."""

Aggregate = Literal["position_weighted", "mean"]


def position_weighted_mean(values: Sequence[float], *, decay: float = DECAY) -> float:
    """Return sum(value * decay ** position) / sum(decay ** position), the first position being 0.

    ``values`` must not be empty. With decay .9 the values .9, .8, .3 and .2 give .584.
    """
    weights = [decay**position for position in range(len(values))]
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / math.fsum(weights)


def mean(values: Sequence[float]) -> float:
    """Return the plain mean of one value or more."""
    return math.fsum(values) / len(values)


def checked_aggregate(aggregate: Aggregate) -> Aggregate:
    """Return the name of the mean that is to be the score's value.

    Raises:
        ValueError: there is none of that name.
    """
    if aggregate not in get_args(Aggregate):
        raise ValueError(f"aggregate must be one of {', '.join(get_args(Aggregate))}, not {aggregate!r}")
    return aggregate


def means(values: Sequence[float]) -> dict[str, float]:
    """Return both means, by the names under which they can be chosen."""
    return {"position_weighted": position_weighted_mean(values), "mean": mean(values)}
