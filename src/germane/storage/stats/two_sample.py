"""Two stretches of time compared: by how much means differ, and how sure that is.

The interval of a difference is made from the intervals of both means, and keeps their shape (MOVER)::

    d = after - before
    d - sqrt((after - its lower end)^2 + (before's upper end - before)^2)    and upwards likewise

Source: G. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27, 2008. The
size of the effect is Hedges' g: the difference in standard deviations of single scores, without the bias that few of
them give it (L. Hedges, Distribution theory for Glass's estimator of effect size, Journal of Educational Statistics 6,
1981); its names are J. Cohen's.

A service's line weighs its routes as the earlier stretch had them, before and after (direct standardisation): that
traffic has moved to a route with lower scores is no drop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from germane.storage.stats.estimate import Estimate, Interval, Z

Finding = Literal["dropped", "lower", "unclear", "higher", "not_enough_data", "judge_changed"]
"""``dropped``: for sure, also among so many comparisons. ``lower``, ``higher``: 0 is outside the interval, which one in
twenty is without any change. ``judge_changed``: there is nothing of the same fingerprint to compare with."""
Window = tuple[datetime, datetime]
LEVEL = 0.0125
"""How often a drop may be found among all comparisons where there is none, as the intervals have it.

Twice as often at most in fact, one time in forty: where few scores with rare refusals are compared with many, intervals
miss more at one side than at the other.
"""
_NAMES = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"), (math.inf, "large"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The scores of one scorer and fingerprint, before and after."""

    service: str
    route: str | None
    """None for the whole service, its routes weighed as they were before."""
    scorer: str
    fingerprint: str
    before: Estimate | None
    """None where it has no scores then."""
    after: Estimate | None
    finding: Finding
    difference: float | None = None
    """After minus before, -2 to 2; None where it cannot be told. The same holds for what follows."""
    interval: Interval | None = None
    """95 %, lower and upper end of the difference."""
    effect: float | None = None
    """Hedges' g; None also where all scores are alike."""
    share: float | None = None
    """For a service: the share of its earlier traffic that went to the routes compared, in (0, 1]."""

    @property
    def compared(self) -> bool:
        """Whether there is enough on both sides to compare."""
        return self.interval is not None

    @property
    def effect_name(self) -> str | None:
        """The size of the effect in a word: negligible, small (from .2), medium (.5) or large (.8)."""
        size = self.effect
        return None if size is None else next(name for end, name in _NAMES if abs(size) < end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """All that two stretches of time have in common, and what only one of them has."""

    before: Window
    """From, and up to but without."""
    after: Window
    min_drop: float
    routes: Sequence[Comparison]
    services: Sequence[Comparison]
    """Only of services of which two routes or more are compared."""

    @property
    def dropped(self) -> list[Comparison]:
        """What dropped for sure."""
        return [one for one in (*self.services, *self.routes) if one.finding == "dropped"]

    @property
    def compared(self) -> bool:
        """Whether anything could be compared."""
        return any(one.compared for one in (*self.services, *self.routes))


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides of one line."""

    before: Estimate
    after: Estimate

    @property
    def enough(self) -> bool:
        """Whether both sides have enough scores, with an interval each."""
        return self.before.enough and self.after.enough and self.has_intervals

    @property
    def has_intervals(self) -> bool:
        """Whether both sides have two scores or more."""
        return self.before.interval is not None and self.after.interval is not None


def difference(pair: Pair) -> tuple[float, Interval]:
    """Return after minus before, and the interval of that; both sides have an interval."""
    before, after = pair.before.mean, pair.after.mean
    (before_low, before_high), (after_low, after_high) = pair.before.interval, pair.after.interval  # type: ignore[misc]  # see above
    found = after - before
    down = math.hypot(after - after_low, before_high - before)
    up = math.hypot(after_high - after, before - before_low)
    return found, (max(-2.0, found - down), min(2.0, found + up))


def effect(pair: Pair) -> float | None:
    """Return Hedges' g; None where there is no spread, or too few scores to know it."""
    before, after = pair.before, pair.after
    freedom = before.n + after.n - 2
    if before.deviation is None or after.deviation is None or freedom < 1:
        return None
    squares = (before.n - 1) * before.deviation**2 + (after.n - 1) * after.deviation**2
    deviation = math.sqrt(squares / freedom)
    return (1 - 3 / (4 * freedom - 1)) * (after.mean - before.mean) / deviation if deviation > _NONE else None


_NONE = 1e-9
"""A deviation that rounding may leave of scores that are all alike."""


def standardised(sides: Sequence[Estimate], shares: Sequence[float]) -> Estimate:
    """Return the estimate of a service from those of its routes, each with an interval, by shares that sum to 1.

    Its deviation is that of scores within their routes.
    """
    parts = list(zip(shares, sides, strict=True))
    mean = sum(share * one.mean for share, one in parts)
    ends = [(one.interval or (one.mean, one.mean), share, one.mean) for share, one in parts]
    down = math.hypot(*(share * (middle - low) for (low, _), share, middle in ends))
    up = math.hypot(*(share * (high - middle) for (_, high), share, middle in ends))
    return Estimate(
        n=sum(one.n for one in sides),
        mean=mean,
        deviation=math.sqrt(sum(share * (one.deviation or 0.0) ** 2 for share, one in parts)),
        low_share=sum(share * one.low_share for share, one in parts),
        noncommittal_share=sum(share * one.noncommittal_share for share, one in parts),
        interval=(max(-1.0, mean - down), min(1.0, mean + up)),
    )


def judged(lines: Iterable[Comparison], min_drop: float) -> list[Comparison]:
    """Return the lines, those that dropped for sure named so: also among as many comparisons as there are.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6,
    1979.
    """
    made = list(lines)
    chances = sorted(
        (_chance(one.difference, one.interval, min_drop), place)
        for place, one in enumerate(made)
        if one.difference is not None and one.interval is not None
    )
    for rank, (chance, place) in enumerate(chances):
        if chance > LEVEL / (len(chances) - rank) * (1 + 1e-9):
            break
        made[place] = replace(made[place], finding="dropped")
    return made


def _chance(found: float, interval: Interval, min_drop: float) -> float:
    """Return how probable so low a difference is where there is no drop larger than that."""
    half = interval[1] - found
    beyond = -min_drop - found
    if half <= 0:
        return 0.0 if beyond > 0 else 1.0
    return 0.5 * math.erfc(Z * beyond / half / math.sqrt(2))


def finding_of(interval: Interval) -> Finding:
    """Return what a difference says by itself."""
    if interval[1] < 0:
        return "lower"
    return "higher" if interval[0] > 0 else "unclear"
