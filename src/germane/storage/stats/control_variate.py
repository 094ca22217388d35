"""A mean of scores that makes use of the proxy, which many more exchanges have than have a score.

Where the scored exchanges happen to have higher proxies than all others, their scores are higher too by as much as both
go together, and the mean is corrected by it. It gains about the square of their correlation.

With w = 1 / sampling probability, and X the mean of the proxies of all exchanges that have one, each weighted by
1 / (its probability of having one x that of being kept)::

    y_H = sum w y / sum w              x_H likewise, over the scores with a proxy
    b   = sum w (x - x_H)(y - y_H) / sum w (x - x_H)^2
    y_R = y_H + b (X - x_H)

Source: W. G. Cochran, Sampling Techniques, 3rd edition, chapter 7, with the weights of an unequal design. The interval
is, as that of :mod:`germane.storage.stats.estimate`, for the mean of the process that gives the answers; that module's has
the shape that fits scores with refusals among them, and is what :func:`sharpened` narrows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from germane.score import Reason
from germane.storage.stats.estimate import Estimate, Interval, Sums, estimate, interval_of, quantile

LEAST = 30
"""Fewer scores with a proxy than this tell too little of how both go together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSums:
    """Sums over a group of scores y with weights w, and over those of them whose exchange has a proxy x.

    Only sums, so that a database can make them.
    """

    w: float
    ww: float
    wy: float
    wwy: float
    wwyy: float
    n_x: int
    """Scores with a proxy; the sums below are of these alone."""
    w_x: float
    ww_x: float
    wx: float
    wy_x: float
    wxx: float
    wxy: float
    wyy_x: float
    wwx: float
    wwy_x: float
    wwxx: float
    wwxy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySums:
    """Sums over the exchanges with a proxy x, scored or not, with weights v = 1 / probability of having one."""

    n: int
    v: float
    vv: float
    vx: float
    vxx: float
    vvx: float
    vvxx: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A mean of scores, corrected by their proxies."""

    mean: float
    variance: float
    interval: Interval
    """95 %, lower and upper end, within what a score can be."""
    slope: float
    """By how much the score is higher where the proxy is higher by 1."""
    correlation: float
    """Of score and proxy, from -1 to 1: the square of it is about what the correction gains."""


def corrected(scores: ScoreSums, proxies: ProxySums) -> Corrected | None:
    """Return the mean and its interval; None where scores with a proxy are fewer than 30 or their proxies all alike."""
    if scores.n_x < LEAST or not proxies.n:
        return None
    y, x, y_x = scores.wy / scores.w, scores.wx / scores.w_x, scores.wy_x / scores.w_x
    spread = scores.wxx / scores.w_x - x * x
    if spread <= 1e-12:
        return None
    common, spread_y = scores.wxy / scores.w_x - x * y_x, max(0.0, scores.wyy_x / scores.w_x - y_x * y_x)
    slope = common / spread
    mean = y + slope * (proxies.vx / proxies.v - x)
    variance = _variance(scores, y, x, slope) + slope**2 * _variance_of_proxies(proxies)
    half = quantile(scores.n_x - 2) * math.sqrt(variance)
    return Corrected(
        mean=mean,
        variance=variance,
        interval=(max(-1.0, mean - half), min(1.0, mean + half)),
        slope=slope,
        correlation=max(-1.0, min(1.0, common / math.sqrt(spread * spread_y))) if spread_y else 0.0,
    )


def sharpened(sums: Sums, scores: ScoreSums, proxies: ProxySums) -> Corrected | None:
    """Return the corrected mean with the interval of the scores alone, narrowed by what the correction gains.

    None where there is nothing to correct by, or nothing is gained: then the scores alone say more. The interval of
    :func:`corrected` is that of a mean around which all is symmetric, and misses too often where refusals are rare.
    """
    found = corrected(scores, proxies) if sums.n - sums.n_zero > 1 else None
    if found is None:
        return None
    mean = scores.wy / scores.w
    squares = scores.wwyy - 2 * mean * scores.wwy + mean * mean * scores.ww
    alone = squares * sums.n / (sums.n - 1) / scores.w**2
    if found.variance >= alone:
        return None
    mean = max(-1.0, min(1.0, found.mean))
    return replace(found, mean=mean, interval=interval_of(sums, mean, found.variance / alone))


def _variance(sums: ScoreSums, y: float, x: float, slope: float) -> float:
    """Return the sum of squares of what each score adds to y_H - b x_H; a score without a proxy adds to y_H alone."""
    of_y = sums.wwyy - 2 * y * sums.wwy + y * y * sums.ww
    both = sums.wwxy - y * sums.wwx - x * sums.wwy_x + x * y * sums.ww_x
    of_x = sums.wwxx - 2 * x * sums.wwx + x * x * sums.ww_x
    total = of_y / sums.w**2 - 2 * slope * both / (sums.w * sums.w_x) + slope**2 * of_x / sums.w_x**2
    return max(0.0, total) * sums.n_x / (sums.n_x - 2)  # two figures were fitted to them


def _variance_of_proxies(sums: ProxySums) -> float:
    """Return var(x) / n of their mean, where weights differ with what n they are worth."""
    mean = sums.vx / sums.v
    return max(0.0, sums.vvxx - 2 * mean * sums.vvx + mean * mean * sums.vv) / sums.v**2


TOLERANCE: Final = 0.01
"""Share of what was seen that may have been left out for what it was: the proxies are those of all exchanges."""
SAME: Final = 0.1
"""How far what was seen and what the proxies stand for may lie apart."""
LUCK: Final = frozenset({Reason.NOT_DRAWN, Reason.BUDGET, Reason.QUEUE_FULL, Reason.CAPTURE_LIMIT, Reason.EXPIRED})
"""Why an exchange is not scored whatever it is like."""
_LEFT_OUT: Final = frozenset({"skipped", "failed"})
_OF_SCORES: Final = tuple(one.name for one in fields(ScoreSums))
_PLAIN: Final = tuple(one.name for one in fields(Sums))


def estimated(
    sums: Mapping[str, float], proxies: Mapping[str, float] | None, outcomes: Mapping[tuple[str, str], int]
) -> Estimate:
    """Return the estimate of a group of scores, all of one fingerprint.

    Args:
        sums: Over its scores.
        proxies: Over the proxies of all exchanges of the same window and group; None where they are not comparable.
        outcomes: What became of these exchanges by outcome and reason.
    """
    of_scores = Sums(**{name: sums[name] for name in _PLAIN})  # type: ignore[arg-type]  # counts are whole
    plain = estimate(of_scores)
    if proxies is None or plain.interval is None or sums["n_x"] < LEAST or not _is_fair(proxies, outcomes):
        return plain
    found = sharpened(
        of_scores,
        ScoreSums(**{name: sums[name] for name in _OF_SCORES}),  # type: ignore[arg-type]  # likewise
        ProxySums(**proxies),  # type: ignore[arg-type]  # likewise
    )
    if found is None:
        return plain
    return replace(plain, mean=found.mean, interval=found.interval, correlation=found.correlation)


def _is_fair(proxies: Mapping[str, float], outcomes: Mapping[tuple[str, str], int]) -> bool:
    """Whether the proxies are of the very exchanges that the scorer was to score: a filter may leave some out."""
    seen = for_what_it_was = 0
    for (outcome, reason), count in outcomes.items():
        if outcome == "seen":
            seen += count
        elif outcome in _LEFT_OUT and reason not in LUCK:
            for_what_it_was += count
    lost = outcomes.get(("skipped", Reason.QUEUE_FULL.value), 0)
    same = abs(proxies["v"] - (seen - lost)) <= SAME * seen
    return same and for_what_it_was <= TOLERANCE * seen
