"""Whether a mean fell more than chance explains, and in one group more than in the others. Sentences name nothing else.

Errors combine the intervals of the means (MOVER method, see ``germane.statistics``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from germane.score import MIN_SAMPLES
from germane.statistics import SIGNIFICANCE_LEVEL, Estimate, Z
from germane.storage import RouteMean

MIN_SCORES: Final = 5
"""Minimum number of scores, both before and since the start. Means of fewer scores are not compared."""
MIN_SHIFT: Final = 0.02
"""Minimum difference to report. Smaller ones are ignored."""
MAX_SHARED: Final = 0.5
"""A group is named only if the others fell by at most this share of its fall. Otherwise, the drop is everybody's."""
WANDER: Final = 0.02
"""Standard deviation of the difference between a group and the others from day to day, in addition to chance."""


@dataclass(frozen=True, slots=True)
class MeanPair:
    """The means for one service, route, scorer and fingerprint, before and after the onset of a drop."""

    before: RouteMean
    since: RouteMean


Groups = dict[str, list[MeanPair]]
"""Means by the name of a group: a route, an attribute's value or a scorer."""


def critical_z(candidates: int) -> float:
    """Return the quantile for a one-sided test of each of several candidates, with Bonferroni's correction."""
    return NormalDist().inv_cdf(1 - SIGNIFICANCE_LEVEL / candidates)


def fell_significantly(pairs: Iterable[MeanPair], candidates: int) -> bool:
    """Return whether a mean of enough scores fell by more than chance explains."""
    if not _has_min_samples(compared := _comparable(pairs)):
        return False
    fall, variance = _fall(compared, 1)
    return fall >= MIN_SHIFT and fall > critical_z(candidates) * math.sqrt(variance)


def find_carriers(dimensions: Mapping[str, Groups]) -> dict[str, str]:
    """Return the dimension and the name of the groups that carry a drop: at most one route and one other group.

    The test is a difference in differences: the fall in the group minus the fall of the others, corrected for the
    number of groups that were compared. Of several groups, only the clearest is named, because the others may have
    fallen only because they are often used together with it.
    """
    falls: list[tuple[float, bool, str, str]] = []
    for dimension, groups in dimensions.items():
        for name, group in groups.items():
            others = [pair for other, pairs in groups.items() if other != name for pair in pairs]
            found = _excess_fall(group, others, within_routes=dimension != "route")
            if found is not None and group[0].since.label != "":  # answers without a value have no name
                excess, error, is_shared = found
                falls.append((excess / math.hypot(error, WANDER), excess < MIN_SHIFT or is_shared, dimension, name))
    carriers: dict[bool, tuple[str, str]] = {}
    for z, is_common, dimension, name in sorted(falls, reverse=True):
        if not is_common and z > critical_z(len(falls)):
            carriers.setdefault(dimension == "route", (dimension, name))
    return dict(carriers.values())


def _excess_fall(
    group: Iterable[MeanPair], others: Iterable[MeanPair], *, within_routes: bool
) -> tuple[float, float, bool] | None:
    """Return how much more a group fell than the others, the standard error, and whether they share the drop.

    Answers are compared with those on the same route, so that a drop on one route is not attributed to the models or
    tenants that use it most. Return None if one of the four means has fewer than 20 scores.
    """
    strata: dict[str, tuple[list[MeanPair], list[MeanPair]]] = {}
    for side, pairs in enumerate((group, others)):
        for pair in _comparable(pairs):
            strata.setdefault(pair.since.route if within_routes else "", ([], []))[side].append(pair)
    compared = [stratum for stratum in strata.values() if all(stratum)]
    if not all(_has_min_samples([pair for stratum in compared for pair in stratum[side]]) for side in (0, 1)):
        return None
    inside = outside = variance = total = 0.0
    for own, rest in compared:
        cells = [sum(getattr(pair, name).n for pair in side) for side in (own, rest) for name in ("before", "since")]
        weight = 1 / sum(1 / n for n in cells)
        (fall, error), (other_fall, other_error) = _fall(own, 1), _fall(rest, -1)
        inside, outside, total = inside + weight * fall, outside + weight * other_fall, total + weight
        variance += weight**2 * (error + other_error)
    return (inside - outside) / total, math.sqrt(variance) / total, outside > MAX_SHARED * inside


def _comparable(pairs: Iterable[MeanPair]) -> list[MeanPair]:
    return [pair for pair in pairs if min(pair.before.n, pair.since.n) >= MIN_SCORES]


def _has_min_samples(pairs: Sequence[MeanPair]) -> bool:
    return min(sum(pair.before.n for pair in pairs), sum(pair.since.n for pair in pairs)) >= MIN_SAMPLES


def _fall(pairs: Sequence[MeanPair], side: int) -> tuple[float, float]:
    """Return the fall, weighted by the scores since the start so that the mix does not affect it, and its variance.

    The variance is that toward a smaller fall for the side 1, and toward a larger fall for the side -1.
    """
    total = sum(pair.since.n for pair in pairs)
    fall = variance = 0.0
    for pair in pairs:
        weight = pair.since.n / total
        fall += weight * (pair.before.mean - pair.since.mean)
        variance += weight**2 * (_error(pair.before, -side) ** 2 + _error(pair.since, side) ** 2)
    return fall, variance


def _error(mean: Estimate, side: int) -> float:
    """Return the standard error of a mean toward lower (-1) or higher values (1)."""
    low, high = mean.interval or (mean.mean, mean.mean)
    return (high - mean.mean if side > 0 else mean.mean - low) / Z
