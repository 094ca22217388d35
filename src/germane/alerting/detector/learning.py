"""Estimation of baselines from scores.

Wander is the standard deviation of the level between blocks of several hours, beyond sampling error. It is estimated as
the between-group standard deviation in a one-way random-effects model, by the method of moments. The estimate is
derived from the sum of squares of the group means, weighted by group size, and the within-group variance pooled over
groups. Two weeks say little about it, and hardly anything if there are few scores or if each is 0 or 1. Therefore, the
estimate is combined with the usual wander of services, weighted by how certain both are.

Sources: W. Cochran, The combination of estimates from different experiments, Biometrics 10, 1954; R. DerSimonian,
N. Laird, Meta-analysis in clinical trials, Controlled Clinical Trials 7, 1986.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from typing import Final

import numpy as np

from germane.alerting.detector.score_batch import FloatArray, IntArray, ScoreBatch
from germane.baseline import POOLED_ROUTE, Baseline, RouteBaseline

MIN_SCORES_PER_ROUTE: Final = 30
"""Minimum number of scores per route. Routes with fewer scores are pooled."""
DAY: Final = 86_400.0
BLOCK: Final = 6 * 3600.0
"""Length, in seconds, of the blocks that wander is measured between. The first block starts at the start of the
window."""
MIN_SCORES_PER_BLOCK: Final = 3
MIN_BLOCKS: Final = 6
USUAL_WANDER: Final = 0.02
"""Wander of a service about which nothing is known. The square of the wander is assumed to be within about as much of
the square of this value for most services."""
_ROUNDS: Final = 8
_INDEPENDENT_SHARE: Final = 0.15
"""Number of independent levels per block: there are four blocks a day, and consecutive days resemble each other."""


def learn_baseline(
    batch: ScoreBatch,
    *,
    service: str,
    scorer: str,
    fingerprint: str,
    since: float,
    until: float,
    sampling_rate: float = 1.0,
) -> Baseline:
    """Learn a baseline from all sampled scores in a window.

    Routes with fewer than 30 scores are pooled. If the pool also has fewer than 30 scores, its routes are not watched.
    A route with the same name as the pool belongs to the pool.

    Args:
        batch: Scores that arrived within the window, sampled at ``sampling_rate``.
        service: Name of the service.
        scorer: Name of the scorer.
        fingerprint: Fingerprint of the scorer.
        since: Start of the window, as a Unix timestamp in seconds.
        until: End of the window, as a Unix timestamp in seconds.
        sampling_rate: Probability with which each score was sampled.

    Raises:
        ValueError: The window is empty.
    """
    if not until > since:
        raise ValueError(f"a baseline's window must end after it starts, not {since} to {until}")
    counts = Counter(batch.routes)
    # A watched route is a stream of its own or part of the pool. Other routes have no stream.
    stream_of = {route: route for route, n in counts.items() if n >= MIN_SCORES_PER_ROUTE and route != POOLED_ROUTE}
    small = counts.keys() - stream_of.keys()
    if sum(counts[route] for route in small) >= MIN_SCORES_PER_ROUTE:
        stream_of |= dict.fromkeys(small, POOLED_ROUTE)
    days = (until - since) / DAY
    blocks = ((np.asarray(batch.times, dtype=np.float64) - since) // BLOCK).astype(np.int64)
    values, zeros = batch.clipped_values(), batch.zero_flags()
    streams = np.array([stream_of.get(route) for route in batch.routes], dtype=object)
    routes = {}
    for name in sorted(set(stream_of.values())):
        at = np.flatnonzero(streams == name)
        in_route, is_zero = values[at], zeros[at]
        committed = in_route[~is_zero]
        routes[name] = RouteBaseline(
            n=len(in_route),
            mean=_mean(in_route),
            deviation=_deviation(in_route),
            committed=len(committed),
            committed_mean=_mean(committed),
            committed_deviation=_deviation(committed),
            zero_rate=(int(is_zero.sum()) + 0.5) / (len(in_route) + 1),
            committed_wander=wander(committed, blocks[at][~is_zero]),
            zero_wander=wander(is_zero.astype(np.float64), blocks[at]),
            scores_per_day=len(in_route) / days,
            committed_per_day=len(committed) / days,
            longest_gap=int(np.diff(at, prepend=-1, append=len(values)).max()) - 1,
        )
    return Baseline(
        service=service,
        scorer=scorer,
        fingerprint=fingerprint,
        since=datetime.fromtimestamp(since, UTC),
        until=datetime.fromtimestamp(until, UTC),
        n=len(values),
        mean=_mean(values),
        deviation=_deviation(values),
        scores_per_day=sum(route.scores_per_day for route in routes.values()),
        committed_per_day=sum(route.committed_per_day for route in routes.values()),
        sampling_rate=sampling_rate,
        routes=routes,
        pooled=frozenset(route for route, stream in stream_of.items() if stream == POOLED_ROUTE),
    )


def wander(values: FloatArray, blocks: IntArray) -> float:
    """Return the standard deviation of the level between blocks, beyond sampling error.

    Blocks with fewer than 3 values are ignored. If fewer than 6 blocks remain, it is the usual wander. If all values
    are the same, it is 0.

    Args:
        values: Scores in any order.
        blocks: Block number of each score.
    """
    if not len(values) or values.min() == values.max():
        return 0.0
    groups, sizes = np.unique(blocks, return_inverse=True, return_counts=True)[1:]
    means = np.bincount(groups, values, len(sizes)).astype(np.float64) / sizes
    squares = np.bincount(groups, (values - means[groups]) ** 2, len(sizes)).astype(np.float64)
    used = sizes >= MIN_SCORES_PER_BLOCK
    sizes, means, squares = sizes[used].astype(np.float64), means[used], squares[used]
    n = sizes.sum()
    if len(sizes) < MIN_BLOCKS:
        return USUAL_WANDER
    within = squares.sum() / (n - len(sizes))
    if within <= 0:
        return 0.0
    mean = (sizes * means).sum() / n
    between = (sizes * (means - mean) ** 2).sum() / within
    weight = (n - (sizes**2).sum() / n) / within
    freedom, usual = len(sizes) - 1, USUAL_WANDER**2
    observed, found = (between - freedom) / weight, usual
    # The certainty of the estimate depends on the wander itself.
    for _ in range(_ROUNDS):
        doubt = 2 * freedom / weight**2 + 2 * found**2 / (_INDEPENDENT_SHARE * len(sizes))
        found = max(0.0, (observed * usual**2 + usual * doubt) / (usual**2 + doubt))
    return math.sqrt(found)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _deviation(values: FloatArray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0
