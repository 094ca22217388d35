"""What scores say of how a service behaves when all is well.

Wander is how far the level moves from one stretch of hours to the next, beyond what chance explains. It is estimated
as the between-group deviation of a one-way layout with random effects, from the weighted sum of squares of the group
means: the method of moments, with weights by size and the variance within pooled over the groups.

Sources: W. Cochran, The combination of estimates from different experiments, Biometrics 10, 1954; R. DerSimonian,
N. Laird, Meta-analysis in clinical trials, Controlled Clinical Trials 7, 1986.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from germane.alerting.detector.seen import BoolArray, FloatArray, IntArray, Seen
from germane.baseline import OTHER, Baseline, RouteBaseline

LEAST: Final = 30
"""Scores that a route is learned from by itself."""
DAY: Final = 86_400.0
BLOCK: Final = 6 * 3600.0
"""Seconds of a stretch that wander is measured between; the first begins with the window."""
LEAST_IN_BLOCK: Final = 3
LEAST_BLOCKS: Final = 6


def learn(
    seen: Seen, *, service: str, scorer: str, fingerprint: str, since: float, until: float, keep: float = 1.0
) -> Baseline:
    """Learn a baseline from all scores of a window that would have reached the detector.

    Routes with fewer than 30 scores are pooled; with fewer than 30 in the pool none of them is watched. A route that
    bears the pool's own name belongs to the pool.

    Args:
        seen: Scores that arrived within the window, thinned with ``keep``.
        service: What was scored.
        scorer: Its name.
        fingerprint: Of the scorer.
        since: Beginning of the window: seconds since 1970, UTC.
        until: Its end.
        keep: Probability with which each score was kept.

    Raises:
        ValueError: the window has no length.
    """
    if not until > since:
        raise ValueError(f"a baseline is learned from some time: its end {until} is not after its beginning {since}")
    streams = _streams(seen.routes)
    days = (until - since) / DAY
    blocks = ((np.asarray(seen.times, dtype=np.float64) - since) // BLOCK).astype(np.int64)
    values, zeros = seen.clipped(), seen.zero()
    names = np.array([streams.get(route, "") for route in seen.routes], dtype=object)
    parts = {name: np.flatnonzero(names == name) for name in sorted(set(streams.values()))}
    routes = {name: _route(values[part], zeros[part], blocks[part], days) for name, part in parts.items()}
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
        keep=keep,
        routes=routes,
        pooled=frozenset(route for route, stream in streams.items() if stream == OTHER),
    )


def wander(values: FloatArray, blocks: IntArray) -> float:
    """Return the standard deviation of the level between blocks, beyond what chance explains; 0 where none is seen.

    Blocks with fewer than 3 values do not count; fewer than 6 blocks show nothing.

    Args:
        values: At any places in time.
        blocks: The number of the block that each of them fell into.
    """
    sizes, means, squares = _by_block(values, blocks)
    n = sizes.sum()
    within = squares.sum() / (n - len(sizes)) if len(sizes) >= LEAST_BLOCKS else 0.0
    if within <= 0:
        return 0.0
    mean = (sizes * means).sum() / n
    between = (sizes * (means - mean) ** 2).sum() / within
    weight = (n - (sizes**2).sum() / n) / within
    return math.sqrt(max(0.0, (between - (len(sizes) - 1)) / weight))


def _by_block(values: FloatArray, blocks: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return size, mean and sum of squares about the mean of the blocks that count."""
    groups, sizes = np.unique(blocks, return_inverse=True, return_counts=True)[1:]
    means = np.bincount(groups, values, len(sizes)).astype(np.float64) / sizes
    squares = np.bincount(groups, (values - means[groups]) ** 2, len(sizes)).astype(np.float64)
    enough = sizes >= LEAST_IN_BLOCK
    return sizes[enough].astype(np.float64), means[enough], squares[enough]


def _streams(routes: Sequence[str]) -> dict[str, str]:
    """Return the stream of each route that is to be watched: itself, or the pool."""
    counts = Counter(routes)
    alone = {route: route for route, count in counts.items() if count >= LEAST and route != OTHER}
    few = counts.keys() - alone.keys()
    pool = dict.fromkeys(few, OTHER) if sum(counts[route] for route in few) >= LEAST else {}
    return alone | pool


def _route(values: FloatArray, zeros: BoolArray, blocks: IntArray, days: float) -> RouteBaseline:
    committed = values[~zeros]
    return RouteBaseline(
        n=len(values),
        mean=_mean(values),
        deviation=_deviation(values),
        committed=len(committed),
        committed_mean=_mean(committed),
        committed_deviation=_deviation(committed),
        zero_rate=(int(zeros.sum()) + 0.5) / (len(values) + 1),
        committed_wander=wander(committed, blocks[~zeros]),
        zero_wander=wander(zeros.astype(np.float64), blocks),
        scores_per_day=len(values) / days,
        committed_per_day=len(committed) / days,
    )


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _deviation(values: FloatArray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0
