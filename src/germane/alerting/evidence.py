"""What a person needs to believe an alert about scores: the worst answers, where the shift sits, and what is behind it.

It is read once, when an alert begins to fire: means before it is likely to have begun, and since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from math import hypot
from typing import Any, Final

from germane.alert import Alert, Cause, Level, Shift
from germane.alerting.drop.scope import in_scope, scope_of
from germane.exchange import Exchange
from germane.storage import Past, RouteMean, Store

WORST: Final = 5
"""Exchanges that an alert names."""
BEFORE: Final = timedelta(days=7)
"""What is compared with, back from the beginning."""
LEAST: Final = 5
"""Fewer scores than this show no shift."""
MOVED: Final = 0.02
"""A smaller shift is none."""
NEAR: Final = timedelta(minutes=1)
"""Scores that arrived so shortly before or after a drop's onset are of the answers with which it began."""
MOST: Final = 3
"""Shifts of one kind that are named."""
RETRIEVAL: Final = "context_relevance"
WORSE: Final = 0.05
"""By so much contexts must be less relevant for retrieval to be behind it."""
REFUSALS: Final = "refusals"
"""In an alert's details: shares of noncommittal answers before and since."""
ABOUT_SCORES: Final = ("drop", "floor", "low_rate", "noncommittal_rate")
AMONG: Final = 500
"""Low answers among which those are looked for that a rule is about."""
_DIMENSIONS: Final = ("route",)
"""Of ``trend_by``: what has a kind of its own."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The same scores before and since."""

    before: RouteMean
    since: RouteMean


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Which answers a rule looks at."""

    routes: tuple[str, ...] = ()
    """Patterns; none for all."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Patterns by name."""

    def takes(self, route: str) -> bool:
        """Whether a route is among them."""
        return not self.routes or any(fnmatchcase(route, pattern) for pattern in self.routes)

    def has(self, exchange: Exchange) -> bool:
        """Whether an answer is."""
        return self.takes(exchange.route) and in_scope(scope_of(self.attributes), exchange.attributes)


EVERYTHING: Final = About()


class Evidence:
    """Reads what goes with an alert.

    Args:
        store: what it reads.
        trend_by: dimensions that shifts are looked for in.
    """

    def __init__(self, store: Store, trend_by: Sequence[str] = ()) -> None:
        self._store = store
        self._trend_by = [name for name in trend_by if name not in _DIMENSIONS]

    def of(self, alert: Alert, about: About = EVERYTHING) -> Alert:
        """Return the alert with worst exchanges, shifts and cause. Of one that is not about scores nothing is read.

        Args:
            about: which answers its rule looks at.
        """
        if alert.kind not in ABOUT_SCORES or alert.scorer is None:
            return alert
        since = self._since(alert)
        pairs = self._pairs(alert, since, about)
        scorers = _shifts("scorer", pairs, lambda pair: pair.since.scorer)
        mine = [pair for pair in pairs if pair.since.scorer == alert.scorer]
        routes = _shifts("route", mine, lambda pair: pair.since.route) if alert.route is None else []
        attributes = [shift for name in self._trend_by for shift in self._by(name, alert, since, about)]
        refusals = _share(mine)
        baseline = alert.baseline or _level_before(alert, mine)
        return replace(
            alert,
            baseline=baseline,
            exchange_ids=self._worst(alert, since, about),
            shifts=tuple(routes[:MOST] + attributes[:MOST] + scorers[:MOST]),
            cause=_cause(alert, mine, scorers, refusals),
            details={**alert.details, **({REFUSALS: list(refusals)} if refusals else {})},
        )

    def _since(self, alert: Alert) -> datetime:
        """Return since when answers count: an onset is when a score arrived, with a budget long after its answer."""
        onset = alert.onset
        if onset is None:
            return alert.evaluated_at - timedelta(seconds=alert.window or 0.0)
        names = alert.service, alert.scorer, alert.fingerprint
        if None in names:
            return onset
        service, scorer, fingerprint = map(str, names)
        near = Past(service=service, scorer=scorer, fingerprint=fingerprint, since=onset - NEAR, until=onset + NEAR)
        found = self._store.earliest(near)
        return onset if found is None else min(onset, found[0])

    def _worst(self, alert: Alert, since: datetime, about: About) -> tuple[str, ...]:
        found = self._store.worst(
            scorer=alert.scorer,
            since=since,
            service=alert.service,
            route=alert.route,
            fingerprint=alert.fingerprint,
            limit=WORST if about == EVERYTHING else AMONG,
        )
        return tuple(one.exchange.id for one in found if about.has(one.exchange))[:WORST]

    def _pairs(self, alert: Alert, since: datetime, about: About) -> list[Pair]:
        """Return all means of the alert's service and routes, of every scorer; by attributes those of its own."""
        if about.attributes:
            chosen: dict[str, Any] = {"scorer": alert.scorer, "service": alert.service, "route": alert.route}
            before = self._store.means_with(about.attributes, **chosen, since=since - _stretch(alert), until=since)
            after = self._store.means_with(about.attributes, **chosen, since=since)
            return _matched(_within(before, alert, about), _within(after, alert, about))
        earlier = self._store.summary(since=since - _stretch(alert), until=since, histograms=False)
        later = self._store.summary(since=since, histograms=False)
        return _matched(_within(earlier, alert, about), _within(later, alert, about))

    def _by(self, dimension: str, alert: Alert, since: datetime, about: About) -> list[Shift]:
        """Return the shifts by label; none where there is but one, or where attributes have chosen already."""
        if about.attributes:
            return []
        chosen: dict[str, Any] = {"scorer": alert.scorer, "service": alert.service, "route": alert.route}
        before = self._store.means(**chosen, since=since - _stretch(alert), until=since, by=dimension, histograms=False)
        after = self._store.means(**chosen, since=since, by=dimension, histograms=False)
        pairs = _matched(_within(before, alert, about), _within(after, alert, about))
        if len({pair.since.label for pair in pairs}) < 2:
            return []
        name = dimension.removeprefix("attributes.")
        return _shifts("attribute", pairs, lambda pair: f"{name}={pair.since.label}")


def _stretch(alert: Alert) -> timedelta:
    return max(BEFORE, timedelta(seconds=alert.window or 0.0))


def _within(means: Iterable[RouteMean], alert: Alert, about: About) -> list[RouteMean]:
    mine = [mean for mean in means if mean.service == alert.service and about.takes(mean.route) and mean.newest]
    return [mean for mean in mine if alert.route in {None, mean.route}]


def _matched(before: Iterable[RouteMean], since: Iterable[RouteMean]) -> list[Pair]:
    """Pair what has the same names, label and fingerprint: another judge's scores are no comparison."""
    known = {_key(mean): mean for mean in before}
    return [Pair(known[_key(mean)], mean) for mean in since if _key(mean) in known]


def _key(mean: RouteMean) -> tuple[str | None, ...]:
    return mean.service, mean.route, mean.scorer, mean.fingerprint, mean.label


def _shifts(kind: str, pairs: Iterable[Pair], name: Callable[[Pair], str]) -> list[Shift]:
    """Return what fell, the largest shift first."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(name(pair), []).append(pair)
    found = [
        Shift(kind=kind, name=key, before=_before(group), since=_since(group))  # type: ignore[arg-type]  # one of three
        for key, group in groups.items()
    ]
    fell = [one for one in found if min(one.before.n, one.since.n) >= LEAST and _fell(one) >= MOVED]
    return sorted(fell, key=_fell, reverse=True)


def _fell(shift: Shift) -> float:
    return shift.before.mean - shift.since.mean


def _before(pairs: Sequence[Pair]) -> Level:
    """Return what these routes had before, each as often as it is asked now: another mix is no shift."""
    return _level([pair.before for pair in pairs], [pair.since.n for pair in pairs])


def _since(pairs: Sequence[Pair]) -> Level:
    return _level([pair.since for pair in pairs], [pair.since.n for pair in pairs])


def _level(means: Sequence[RouteMean], counts: Sequence[int]) -> Level:
    """Return the mean of means, of which each stands for so many answers."""
    if len(means) == 1:
        return Level(mean=means[0].mean, n=means[0].n, interval=means[0].interval)
    shares = [count / sum(counts) for count in counts]
    mean = sum(share * one.mean for share, one in zip(shares, means, strict=True))
    return Level(mean=mean, n=sum(one.n for one in means), interval=_around(mean, shares, means))


def _around(mean: float, shares: Sequence[float], means: Sequence[RouteMean]) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean of independent means; None where one of them has none.

    Source: G. Zou, A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27, 2008.
    """
    known = [(share, one.mean, one.interval) for share, one in zip(shares, means, strict=True) if one.interval]
    if len(known) < len(means):
        return None
    below = hypot(*(share * (middle - ends[0]) for share, middle, ends in known))
    above = hypot(*(share * (middle - ends[1]) for share, middle, ends in known))
    return mean - below, mean + above


def _mixed(pairs: Sequence[Pair], value: Callable[[Pair], float]) -> float:
    n = sum(pair.since.n for pair in pairs)
    return sum(pair.since.n * value(pair) for pair in pairs) / n


def _level_before(alert: Alert, pairs: Sequence[Pair]) -> Level | None:
    """Return the value before, in the rule's own measure."""
    if not pairs:
        return None
    shares = {"low_rate": "low_share", "noncommittal_rate": "noncommittal_share"}
    if alert.kind not in shares:
        return _before(pairs)
    share = _mixed(pairs, lambda pair: getattr(pair.before, shares[alert.kind]))
    return Level(mean=share, n=sum(pair.before.n for pair in pairs))


def _share(pairs: Sequence[Pair]) -> tuple[float, float] | None:
    """Return the shares of noncommittal answers before and since."""
    if not pairs:
        return None
    before = _mixed(pairs, lambda pair: pair.before.noncommittal_share)
    return before, _mixed(pairs, lambda pair: pair.since.noncommittal_share)


def _cause(
    alert: Alert, pairs: Sequence[Pair], scorers: Iterable[Shift], refusals: tuple[float, float] | None
) -> Cause | None:
    """Say what is likely behind it: contexts that fit worse, more refusals, or answers that drift.

    Refusals are, where they make up at least half of the drop: a refusal takes as much as a committed answer has.
    """
    if any(one.name == RETRIEVAL and _fell(one) >= WORSE for one in scorers):
        return "retrieval_worse"
    if alert.cause is not None or not pairs or refusals is None:
        return alert.cause
    before, since = refusals
    fell = _mixed(pairs, lambda pair: pair.before.mean - pair.since.mean)
    if alert.kind == "noncommittal_rate":
        return "refusals_rising"
    if fell < MOVED:
        return None
    by_refusals = (since - before) * _mixed(pairs, lambda pair: pair.before.mean) / max(1e-9, 1 - before)
    return "refusals_rising" if by_refusals >= fell / 2 else "answers_drifting"
