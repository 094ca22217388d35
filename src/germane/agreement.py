"""How well scores agree with labels, and how sure one can be of it: statistics over rows, by np.

Rows are arrays of one length: ``labels`` (higher is better), ``scores`` (NaN where a scorer gave none), ``groups``
(rows to be ranked against each other) and ``units`` (what was drawn independently: a question, a conversation).

    pairwise_accuracy(labels, scores, groups)            share of pairs of a group that the scores rank as the labels do
    auc(labels, scores, high=.75, low=.25)               the same of all pairs of a good row and a bad one
    spearman(labels, scores)                             correlation of ranks
    mean(scores)                                         of the scores that are there: rates, of zeros and ones
    interval(statistic, units, labels=..., scores=...)   one of them with its 95 % interval
    difference(statistic, units, scores=..., others=..., labels=...)   two scorers on the same rows
    at_most(count, of)                                   limit of a share, also where none was seen

An interval is that of the percentile bootstrap: units are drawn with replacement, all their rows go with them. A
resample is a row of ``weights``, which says how often each row was drawn: a statistic of one's own takes the arrays
that :func:`interval` was given and ``weights`` of shape (resamples, rows), and returns one number per resample::

    def over_sources(*, labels, scores, groups, weights):
        return sum(pairwise_accuracy(labels[at], scores[at], groups[at], weights=weights[:, at]) for at in masks) / 4

Every statistic is NaN where there is nothing to compare.

Sources: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 and 16; Mann and Whitney, 1947;
Clopper and Pearson, 1934.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Statistic = Callable[..., Any]
RESAMPLES = 2000
_CELLS = 4_000_000
"""Weights in memory at once."""


@dataclass(frozen=True)
class Interval:
    """A statistic with its 95 % interval over so many units."""

    value: float
    low: float
    high: float
    units: int

    @property
    def excludes_zero(self) -> bool:
        """Whether a difference may be called one."""
        return self.low > 0 or self.high < 0


@overload
def pairwise_accuracy(
    labels: ArrayLike, scores: ArrayLike, groups: ArrayLike, *, absent: float | None = None, weights: None = None
) -> float: ...
@overload
def pairwise_accuracy(
    labels: ArrayLike, scores: ArrayLike, groups: ArrayLike, *, absent: float | None = None, weights: Floats
) -> Floats: ...
def pairwise_accuracy(
    labels: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike,
    *,
    absent: float | None = None,
    weights: Floats | None = None,
) -> float | Floats:
    """Return the share of pairs of a group, of different labels, whose scores stand in the labels' order; 0..1.

    Args:
        absent: What a pair counts of which a score is missing, such as .5; None leaves such pairs out.
        weights: How often each row was drawn, shape (resamples, rows).

    Raises:
        ValueError: the rows of a group were not drawn together: it spans units.
    """
    order, found = _floats(labels), _floats(scores)
    _, membership = np.unique(np.asarray(groups), return_inverse=True)
    won, pairs = np.zeros(len(order)), np.zeros(len(order))
    for members in _parts(membership):
        won[members], pairs[members] = _wins(order[members], found[members], absent)
        if weights is not None and (weights[:, members] != weights[:, members[:1]]).any():
            raise ValueError("a group spans units: its rows would be drawn apart")
    return _ratio(won, pairs) if weights is None else _divided(weights @ won, weights @ pairs)


def _wins(labels: Floats, scores: Floats, absent: float | None) -> tuple[Floats, Floats]:
    """Return per row how many pairs in which it is the better one it wins, and how many there are.

    By sorting, since a question may have been asked thousands of times.
    """
    won, pairs = np.zeros(len(labels)), np.zeros(len(labels))
    for level in np.unique(labels):
        better, worse = labels == level, scores[labels < level]
        mine, known = scores[better], np.sort(worse[~np.isnan(worse)])
        above = (np.searchsorted(known, mine, "left") + np.searchsorted(known, mine, "right")) / 2  # ties half
        there = ~np.isnan(mine)
        won[better], pairs[better] = above * there, len(known) * there
        if absent is not None:
            won[better] += absent * (len(worse) - pairs[better])
            pairs[better] = len(worse)
    return won, pairs


def _parts(membership: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each group."""
    by_group = np.argsort(membership, kind="stable")
    return np.split(by_group, np.cumsum(np.bincount(membership))[:-1]) if len(membership) else []


@overload
def auc(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    high: float = 0.75,
    low: float = 0.25,
    absent: float | None = None,
    weights: None = None,
) -> float: ...
@overload
def auc(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    high: float = 0.75,
    low: float = 0.25,
    absent: float | None = None,
    weights: Floats,
) -> Floats: ...
def auc(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    high: float = 0.75,
    low: float = 0.25,
    absent: float | None = None,
    weights: Floats | None = None,
) -> float | Floats:
    """Return how often a row labelled ``high`` or more scores above one labelled ``low`` or less, ties half; 0..1.

    ``absent`` and ``weights`` as in :func:`pairwise_accuracy`.
    """
    order, found = _floats(labels), _floats(scores)
    drawn = _drawn(weights, len(order))
    good, bad, there = order >= high, order <= low, ~np.isnan(found)
    blocks = _blocks(found[there])
    wins, losses = blocks.sums(drawn[:, there] * good[there]), blocks.sums(drawn[:, there] * bad[there])
    won = (wins * (_below(losses) + losses / 2)).sum(axis=1)
    pairs = wins.sum(axis=1) * losses.sum(axis=1)
    if absent is not None:
        every = (drawn @ good) * (drawn @ bad)
        won, pairs = won + absent * (every - pairs), every
    result = _divided(won, pairs)
    return float(result[0]) if weights is None else result


@overload
def spearman(labels: ArrayLike, scores: ArrayLike, *, weights: None = None) -> float: ...
@overload
def spearman(labels: ArrayLike, scores: ArrayLike, *, weights: Floats) -> Floats: ...
def spearman(labels: ArrayLike, scores: ArrayLike, *, weights: Floats | None = None) -> float | Floats:
    """Return the correlation of ranks, ties averaged, of the rows that have a score; -1..1."""
    order, found = _floats(labels), _floats(scores)
    there = ~np.isnan(found)
    drawn = _drawn(weights, len(order))[:, there]
    first, second = (_centred(_ranks(values[there], drawn), drawn) for values in (order, found))
    spread = np.sqrt((drawn * first**2).sum(axis=1) * (drawn * second**2).sum(axis=1))
    result = _divided((drawn * first * second).sum(axis=1), np.where(spread > 1e-9, spread, 0.0))
    return float(result[0]) if weights is None else result


@overload
def mean(scores: ArrayLike, *, weights: None = None) -> float: ...
@overload
def mean(scores: ArrayLike, *, weights: Floats) -> Floats: ...
def mean(scores: ArrayLike, *, weights: Floats | None = None) -> float | Floats:
    """Return the mean of the scores that are there."""
    found = _floats(scores)
    there = ~np.isnan(found)
    drawn = _drawn(weights, len(found))[:, there]
    result = _divided(drawn @ found[there], drawn.sum(axis=1))
    return float(result[0]) if weights is None else result


def at_most(count: int, of: int, certainty: float = 0.95) -> float:
    """Return the share, 0..1, that is certainly not exceeded when ``count`` of so many independent ones were seen.

    The one-sided limit of Clopper and Pearson. It says something also where none was seen, which a bootstrap does not:
    none of 60 is at most 4.9 %.
    """
    if count >= of:
        return 1.0
    low, high = count / of, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _up_to(count, of, middle) > 1 - certainty else (low, middle)
    return high


def _up_to(count: int, of: int, share: float) -> float:
    """Return the probability of so many or fewer, of a binomial distribution."""
    every = math.lgamma(of + 1)
    return sum(
        math.exp(
            every
            - math.lgamma(seen + 1)
            - math.lgamma(of - seen + 1)
            + seen * math.log(share)
            + (of - seen) * math.log1p(-share)
        )
        for seen in range(count + 1)
    )


def interval(
    statistic: Statistic, units: ArrayLike, resamples: int = RESAMPLES, seed: int = 0, **arrays: ArrayLike
) -> Interval:
    """Return a statistic of the arrays with its percentile bootstrap interval (2.5 % to 97.5 %) over units.

    A resample of which the statistic is NaN is left out. One unit cannot be resampled: low and high are NaN.
    """
    return _interval(lambda weights: statistic(**_arrays(arrays), weights=weights), units, resamples, seed)


def difference(
    statistic: Statistic,
    units: ArrayLike,
    *,
    scores: ArrayLike,
    others: ArrayLike,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **arrays: ArrayLike,
) -> Interval:
    """Return how much more of the statistic ``scores`` have than ``others``, on the same resamples.

    A row that either leaves without a score counts as absent for both.
    """
    first, second = _floats(scores), _floats(others)
    missing = np.isnan(first) | np.isnan(second)
    mine, theirs = (np.where(missing, np.nan, values) for values in (first, second))
    rest = _arrays(arrays)

    def gap(weights: Floats) -> Floats:
        left: Floats = statistic(scores=mine, **rest, weights=weights)
        right: Floats = statistic(scores=theirs, **rest, weights=weights)
        return left - right

    return _interval(gap, units, resamples, seed)


def _interval(statistic: Callable[[Floats], Floats], units: ArrayLike, resamples: int, seed: int) -> Interval:
    names, membership = np.unique(np.asarray(units), return_inverse=True)
    if not len(names):
        return Interval(np.nan, np.nan, np.nan, 0)
    value = float(statistic(np.ones((1, len(membership))))[0])
    source, share = np.random.default_rng(seed), np.full(len(names), 1 / len(names))
    at_once = max(1, _CELLS // len(membership))
    sizes = [min(at_once, resamples - done) for done in range(0, resamples, at_once)]
    drawn = (source.multinomial(len(names), share, size=size)[:, membership].astype(float) for size in sizes)
    found = np.concatenate([statistic(weights) for weights in drawn])
    found = found[~np.isnan(found)] if len(names) > 1 else found[:0]
    low, high = np.percentile(found, [2.5, 97.5]) if len(found) else (np.nan, np.nan)
    return Interval(value, float(low), float(high), len(names))


@dataclass(frozen=True)
class _Blocks:
    """Rows in the order of their values, cut where the value changes."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    membership: NDArray[np.intp]

    def sums(self, weights: Floats) -> Floats:
        """Return the weight of each value, lowest first."""
        if not len(self.starts):
            return np.zeros((len(weights), 0))
        return np.add.reduceat(weights[:, self.order], self.starts, axis=1)


def _blocks(values: Floats) -> _Blocks:
    order = np.argsort(values, kind="stable")
    _, starts, membership = np.unique(values[order], return_index=True, return_inverse=True)
    back = np.empty(len(values), dtype=np.intp)
    back[order] = membership
    return _Blocks(order, starts, back)


def _ranks(values: Floats, drawn: Floats) -> Floats:
    blocks = _blocks(values)
    sums = blocks.sums(drawn)
    return (_below(sums) + (sums + 1) / 2)[:, blocks.membership]


def _below(sums: Floats) -> Floats:
    below: Floats = np.cumsum(sums, axis=1) - sums
    return below


def _centred(values: Floats, drawn: Floats) -> Floats:
    return values - _divided((drawn * values).sum(axis=1), drawn.sum(axis=1))[:, None]


def _divided(above: Floats, below: Floats) -> Floats:
    result: Floats = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return result


def _ratio(above: Floats, below: Floats) -> float:
    return float(_divided(above.sum(keepdims=True), below.sum(keepdims=True))[0])


def _drawn(weights: Floats | None, rows: int) -> Floats:
    return np.ones((1, rows)) if weights is None else weights


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _arrays(arrays: dict[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    return {name: np.asarray(values) for name, values in arrays.items()}
