"""Statistics for the agreement between scores and labels, with confidence intervals.

Rows are arrays of equal length: ``labels`` (higher is better), ``scores`` (NaN for missing scores), ``groups`` (rows
that are ranked against each other) and ``units`` (independent samples, such as questions or conversations).

    pairwise_accuracy(labels, scores, groups)            share of pairs within a group that the scores order correctly
    auc(labels, scores, high=0.75, low=0.25)             the same share, for all pairs of a good and a bad row
    spearman(labels, scores)                             rank correlation
    mean(scores)                                         mean of the available scores; a rate if all are 0 or 1
    bootstrap_interval(statistic, units, labels=..., scores=...)   a statistic with its 95% interval
    bootstrap_difference(statistic, units, scores=..., others=..., labels=...)   two scorers on the same rows
    upper_limit(count, of)                               upper confidence limit for a share, even if count is 0

Intervals are percentile bootstrap intervals: units are drawn with replacement, each with all of its rows. A
user-defined statistic takes the arrays that are passed to :func:`bootstrap_interval`, and ``weights`` of shape
(resamples, rows), which contains the number of times that each row was drawn. It returns one number per resample::

    def over_sources(*, labels, scores, groups, weights):
        return sum(pairwise_accuracy(labels[at], scores[at], groups[at], weights=weights[:, at]) for at in masks) / 4

A statistic is NaN if there is nothing to compare.

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
DEFAULT_RESAMPLES = 2000
_CELLS = 4_000_000
"""Maximum number of weights in memory at a time."""


@dataclass(frozen=True)
class BootstrapInterval:
    """A statistic with its 95% interval."""

    value: float
    low: float
    high: float
    units: int
    """Number of units that were resampled."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes zero, that is, whether the difference is significant."""
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
    """Return the share (0..1) of correctly ordered pairs, among pairs in the same group whose labels differ.

    Args:
        absent: Credit for a pair with a missing score, such as 0.5. None excludes such pairs.
        weights: Number of times that each row was drawn, with shape (resamples, rows).

    Raises:
        ValueError: A group spans several units, so its rows would not be drawn together.
    """
    order, values = _floats(labels), _floats(scores)
    _, membership = np.unique(np.asarray(groups), return_inverse=True)
    won, pairs = np.zeros(len(order)), np.zeros(len(order))
    by_group = np.argsort(membership, kind="stable")
    for members in np.split(by_group, np.cumsum(np.bincount(membership))[:-1]) if len(membership) else ():
        won[members], pairs[members] = _wins(order[members], values[members], absent)
        if weights is not None and (weights[:, members] != weights[:, members[:1]]).any():
            raise ValueError("a group spans several units: its rows would not be resampled together")
    drawn = _weights_or_ones(weights, len(order))
    result = _divide(drawn @ won, drawn @ pairs)
    return float(result[0]) if weights is None else result


def _wins(labels: Floats, scores: Floats, absent: float | None) -> tuple[Floats, Floats]:
    """Return two arrays with one number per row: the pairs that the row won, and the pairs in which it has the better
    label.

    Sorting keeps this fast for groups with thousands of rows.
    """
    won, pairs = np.zeros(len(labels)), np.zeros(len(labels))
    for level in np.unique(labels):
        better, worse = labels == level, scores[labels < level]
        mine, known = scores[better], np.sort(worse[~np.isnan(worse)])
        above = (np.searchsorted(known, mine, "left") + np.searchsorted(known, mine, "right")) / 2  # ties count as half
        scored = ~np.isnan(mine)
        won[better], pairs[better] = above * scored, len(known) * scored
        if absent is not None:
            won[better] += absent * (len(worse) - pairs[better])
            pairs[better] = len(worse)
    return won, pairs


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
    """Return the share (0..1) of pairs in which a row labeled ``high`` or above outscores one labeled ``low`` or below.

    Ties count as half. For ``absent`` and ``weights``, see :func:`pairwise_accuracy`.
    """
    order, values = _floats(labels), _floats(scores)
    drawn = _weights_or_ones(weights, len(order))
    good, bad, scored = order >= high, order <= low, ~np.isnan(values)
    blocks = _blocks(values[scored])
    wins, losses = blocks.sums(drawn[:, scored] * good[scored]), blocks.sums(drawn[:, scored] * bad[scored])
    won = (wins * (_below(losses) + losses / 2)).sum(axis=1)
    pairs = wins.sum(axis=1) * losses.sum(axis=1)
    if absent is not None:
        every = (drawn @ good) * (drawn @ bad)
        won, pairs = won + absent * (every - pairs), every
    result = _divide(won, pairs)
    return float(result[0]) if weights is None else result


@overload
def spearman(labels: ArrayLike, scores: ArrayLike, *, weights: None = None) -> float: ...
@overload
def spearman(labels: ArrayLike, scores: ArrayLike, *, weights: Floats) -> Floats: ...
def spearman(labels: ArrayLike, scores: ArrayLike, *, weights: Floats | None = None) -> float | Floats:
    """Return the rank correlation (-1..1) of labels and scores over the scored rows, with average ranks for ties."""
    order, values = _floats(labels), _floats(scores)
    scored = ~np.isnan(values)
    drawn = _weights_or_ones(weights, len(order))[:, scored]
    ranks = (_ranks(column[scored], drawn) for column in (order, values))
    first, second = (column - _divide((drawn * column).sum(axis=1), drawn.sum(axis=1))[:, None] for column in ranks)
    spread = np.sqrt((drawn * first**2).sum(axis=1) * (drawn * second**2).sum(axis=1))
    result = _divide((drawn * first * second).sum(axis=1), np.where(spread > 1e-9, spread, 0.0))
    return float(result[0]) if weights is None else result


@overload
def mean(scores: ArrayLike, *, weights: None = None) -> float: ...
@overload
def mean(scores: ArrayLike, *, weights: Floats) -> Floats: ...
def mean(scores: ArrayLike, *, weights: Floats | None = None) -> float | Floats:
    """Return the mean of the available scores."""
    values = _floats(scores)
    scored = ~np.isnan(values)
    drawn = _weights_or_ones(weights, len(values))[:, scored]
    result = _divide(drawn @ values[scored], drawn.sum(axis=1))
    return float(result[0]) if weights is None else result


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Return the agreement (-1..1) of two people's labels of the same items beyond that expected by chance.

    It is NaN if chance alone explains full agreement, because both people gave all items the same label.

    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20, 1960.
    """
    one, other = _floats(first), _floats(second)
    expected = sum(float((one == label).mean() * (other == label).mean()) for label in np.unique(one))
    return (float((one == other).mean()) - expected) / (1 - expected) if expected < 1 else np.nan


def upper_limit(count: int, of: int, certainty: float = 0.95) -> float:
    """Return the one-sided upper confidence limit (0..1) of a share, given ``count`` events in ``of`` trials.

    This is the Clopper-Pearson limit for independent trials. Unlike a bootstrap, it is informative even with no events:
    for 0 of 60, it is 4.9%.
    """
    if count >= of:
        return 1.0
    low, high = count / of, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _binomial_cdf(count, of, middle) > 1 - certainty else (low, middle)
    return high


def _binomial_cdf(count: int, of: int, share: float) -> float:
    """Return the probability of at most ``count`` events in ``of`` trials with probability ``share`` each."""
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


def bootstrap_interval(
    statistic: Statistic, units: ArrayLike, resamples: int = DEFAULT_RESAMPLES, seed: int = 0, **arrays: ArrayLike
) -> BootstrapInterval:
    """Return a statistic for the arrays, with its percentile bootstrap interval (2.5% to 97.5%) over the units.

    Resamples whose statistic is NaN are excluded. With a single unit, low and high are NaN.
    """
    rows = {name: np.asarray(values) for name, values in arrays.items()}
    names, membership = np.unique(np.asarray(units), return_inverse=True)
    if not len(names):
        return BootstrapInterval(np.nan, np.nan, np.nan, 0)
    value = float(statistic(**rows, weights=np.ones((1, len(membership))))[0])
    source, share = np.random.default_rng(seed), np.full(len(names), 1 / len(names))
    batch_size = max(1, _CELLS // len(membership))
    sizes = [min(batch_size, resamples - done) for done in range(0, resamples, batch_size)]
    drawn = (source.multinomial(len(names), share, size=size)[:, membership].astype(float) for size in sizes)
    values = np.concatenate([statistic(**rows, weights=weights) for weights in drawn])
    values = values[~np.isnan(values)] if len(names) > 1 else values[:0]
    low, high = np.percentile(values, [2.5, 97.5]) if len(values) else (np.nan, np.nan)
    return BootstrapInterval(value, float(low), float(high), len(names))


def bootstrap_difference(
    statistic: Statistic,
    units: ArrayLike,
    *,
    scores: ArrayLike,
    others: ArrayLike,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    **arrays: ArrayLike,
) -> BootstrapInterval:
    """Return the difference in the statistic between ``scores`` and ``others``, on the same resamples.

    A row without a score in either array counts as missing in both.
    """
    first, second = _floats(scores), _floats(others)
    missing = np.isnan(first) | np.isnan(second)
    mine, theirs = (np.where(missing, np.nan, values) for values in (first, second))

    def gap(*, mine: Floats, theirs: Floats, **rest: Any) -> Any:
        return statistic(scores=mine, **rest) - statistic(scores=theirs, **rest)

    return bootstrap_interval(gap, units, resamples, seed, mine=mine, theirs=theirs, **arrays)


@dataclass(frozen=True)
class _Blocks:
    """Rows sorted by value and grouped into blocks of equal values."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    membership: NDArray[np.intp]

    def sums(self, weights: Floats) -> Floats:
        """Return the total weight of each block, lowest value first, with shape (resamples, blocks)."""
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


def _divide(above: Floats, below: Floats) -> Floats:
    result: Floats = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return result


def _weights_or_ones(weights: Floats | None, rows: int) -> Floats:
    return np.ones((1, rows)) if weights is None else weights


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)
