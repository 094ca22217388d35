"""What a verdict is made from: the last day beside the time before, open alerts, and what has no score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from germane.alert import Alert
from germane.storage import Bucket, Comparison, Comparisons, Coverage, Estimate, ServiceSummary
from germane.storage.stats.two_sample import judged

DAY: Final = timedelta(hours=24)
"""What is called now."""
MEANS: Final = frozenset({"drop", "floor"})
"""Kinds of alerts about means."""
RATES: Final = frozenset({"low_rate", "noncommittal_rate"})
"""Kinds of alerts about shares of answers."""
MIN_DROP: Final = 0.05
"""A mean that moved by less did not change, where no rule says otherwise."""
TOLD: Final = frozenset({"firing", "recovering"})
"""States of alerts that somebody was told of; what is pending may be nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the last day is compared with."""

    since: datetime
    """UTC."""
    until: datetime
    baseline: int | None = None
    """Its version, where it is the time that a baseline was learned from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that is known of one service and scorer, of the last 24 hours."""

    scorer: str | None
    """None where nothing has ever been scored."""
    now: datetime
    zone: ZoneInfo | None = None
    """In which moments are written."""
    current: ServiceSummary | None = None
    """By the newest fingerprint; None without a score."""
    usual: Estimate | None = None
    """The same service and fingerprint before."""
    before: Before | None = None
    comparisons: Comparisons | None = None
    """Of the newest fingerprint, and of what was measured by another one."""
    min_drop: float = MIN_DROP
    """A mean that moved by less did not change."""
    onsets: Mapping[str, datetime] = field(default_factory=dict)
    """By route, since when about its scores are lower."""
    onset_step: timedelta = timedelta(hours=1)
    """How exact these are."""
    alerts: Sequence[Alert] = ()
    """Open ones of the service, that somebody was told of."""
    coverage: Sequence[Coverage] = ()
    """Of the last day, the service's, by whichever scorer."""
    answered_at: datetime | None = None
    """When the newest answer was given; None where there is none."""
    scored_at: datetime | None = None
    """When the newest answer was given that has a score."""
    trouble: str | None = None
    """What tasks wait for that were tried in vain: a reason."""
    has_judge: bool = True
    """Whether this process's settings name a judge or scorers."""
    has_worker: bool = True

    @property
    def routes(self) -> list[Comparison]:
        """The routes by the newest fingerprint."""
        if self.comparisons is None or self.current is None:
            return []
        return [one for one in self.comparisons.routes if one.fingerprint == self.current.fingerprint]

    @property
    def whole(self) -> Comparison | None:
        """The service as a whole, its routes weighed as they were before; of a single route that one."""
        if self.comparisons is None or self.current is None:
            return None
        newest = [one for one in self.comparisons.services if one.fingerprint == self.current.fingerprint]
        compared = [one for one in self.routes if one.compared]
        return newest[0] if newest else compared[0] if len(compared) == 1 else None


def risen(found: Comparisons) -> list[Comparison]:
    """Return what rose for sure, also among as many comparisons: as a drop is found, with both sides exchanged."""
    turned = [_turned(one) for one in (*found.services, *found.routes)]
    return [_turned(one) for one in judged(turned, found.min_drop) if one.finding == "dropped"]


def _turned(one: Comparison) -> Comparison:
    difference = None if one.difference is None else -one.difference
    interval = None if one.interval is None else (-one.interval[1], -one.interval[0])
    return replace(one, before=one.after, after=one.before, difference=difference, interval=interval)


def onset_of(buckets: Iterable[Bucket], fingerprint: str, usual: float | None = None) -> datetime | None:
    """Return since when scores are lower: where two levels, split there, fit the means best; None if none is lower.

    Source: J. Bai, Least squares estimation of a shift in linear processes, Journal of Time Series Analysis 15, 1994.

    Args:
        buckets: Of one route.
        fingerprint: Only this one's.
        usual: The mean before. Where the level before the split is not nearer to it than the one behind, the drop is
            older than the buckets.
    """
    line = sorted((one for one in buckets if one.fingerprint == fingerprint), key=lambda one: one.start)
    splits = [(_gain(line[:place], line[place:]), place) for place in range(1, len(line))]
    gain, place = max(splits, default=(0.0, 0))
    if gain <= 0:
        return None
    before, after = _mean(line[:place]), _mean(line[place:])
    return None if usual is not None and before - after < usual - before else line[place].start


def _gain(earlier: Sequence[Bucket], later: Sequence[Bucket]) -> float:
    """Return how much of the squares a split takes away; 0 where the later part is not lower."""
    n, m = sum(one.n for one in earlier), sum(one.n for one in later)
    before, after = _mean(earlier), _mean(later)
    return 0.0 if after >= before else n * m / (n + m) * (before - after) ** 2


def _mean(buckets: Sequence[Bucket]) -> float:
    return sum(one.n * one.mean for one in buckets) / sum(one.n for one in buckets)
