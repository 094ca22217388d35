"""What drop would be noticed, of everything that is scored here, at today's rate or another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from germane.alerting.detector import Power, power
from germane.alerting.detector.power import DROPS
from germane.alerting.detector.seen import MOST_PER_DAY
from germane.alerting.drop.history import DAY, heard, learned, past_of
from germane.alerting.drop.scope import narrowed, scope_of
from germane.baseline import OTHER, Baseline
from germane.settings import Drop
from germane.storage import Arrival, BaselineVersion, Key, Store

SEED: Final = 20_260_914
RUNS: Final = 60
"""Of each size: a chance near .8 is told with a standard error of .05."""
LATELY: Final = timedelta(days=7)
"""What today's rate is taken over."""
HISTORY: Final = timedelta(days=14)
"""What is learned from where nobody has begun to learn."""
LEAST_TIME: Final = timedelta(hours=1)
"""A shorter time says nothing of a day; it is taken for an hour."""
Source = Literal["active", "learning", "stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for."""

    days: tuple[float, ...] = (1.0, 7.0)
    """How soon."""
    per_day: float | None = None
    """Scores a day that reach the detector; None for as many as lately."""
    service: str | None = None
    scorer: str | None = None
    runs: int = RUNS
    """Of the simulation, for each size of drop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What one rule would notice of one service and scorer."""

    rule: str
    service: str
    scorer: str
    fingerprint: str
    source: Source
    """What it goes by: the baseline in force, what has been learned so far, or the scores of the last two weeks."""
    since: datetime
    """UTC: beginning of what that was learned from."""
    until: datetime
    n: int
    """Scores that it was learned from."""
    per_day: float
    """Scores that reach the detector."""
    asked_for: bool
    """Whether that rate was asked for; otherwise it is that of the last 7 days."""
    made_per_day: float | None
    """All scores that were made a day; None where only some of a rule's attributes count."""
    min_drop: float
    false_alarms_per_year: float
    """At most so many on average, at this rate, while all is well."""
    unsteady: tuple[str, ...]
    """Routes whose days differed by so much that a drop of ``min_drop`` was nothing unusual."""
    power: Power
    doubled_per_day: float
    doubled: Power | None
    """With twice the scores; None where they would not reach the detector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """What there is too little of to say anything."""

    rule: str
    service: str
    scorer: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Basis:
    """What is known of one stream."""

    key: Key
    source: Source
    baseline: Baseline
    began: datetime
    """When scores began to come, as far as that matters."""


def prospects(
    store: Store, rules: Sequence[Drop], asked: Asked, *, now: datetime
) -> tuple[list[Prospect], list[Unknown]]:
    """Return what each rule would notice of each service and scorer, and of which it cannot be said.

    By simulation with the detector itself, always with the same seed: some seconds for each.
    """
    found, unknown = list[Prospect](), list[Unknown]()
    for rule in rules:
        for names, version, fingerprint in _streams(store, rule, asked, now):
            one = _prospect(store, rule, _basis(store, rule, names, version, fingerprint, now), asked, now)
            if isinstance(one, str):
                unknown.append(Unknown(rule=rule.name, service=names[0], scorer=names[1], why=one))
            else:
                found.append(one)
    return found, unknown


def _streams(
    store: Store, rule: Drop, asked: Asked, now: datetime
) -> list[tuple[tuple[str, str], BaselineVersion | None, str]]:
    """Return service and scorer of what a rule watches, with the version of the judge that scores now."""
    newest = {
        (mean.service, mean.scorer): mean.fingerprint
        for mean in sorted(store.summary(since=now - HISTORY, histograms=False), key=lambda mean: mean.latest)
        if rule.takes(mean.route)
    }
    versions = [one for one in store.baselines() if one.key.scope == scope_of(rule.attributes)]
    at_work = {(one.service, one.scorer): one.baseline_id for one in store.detectors() if one.rule == rule.name}
    names = sorted(newest.keys() | {(one.key.service, one.key.scorer) for one in versions})
    found = []
    for service, scorer in names:
        mine = [one for one in versions if (one.key.service, one.key.scorer) == (service, scorer)]
        version = _followed(mine, at_work.get((service, scorer)), newest.get((service, scorer)))
        if asked.service in {None, service} and {rule.scorer, asked.scorer} <= {None, scorer}:
            found.append(((service, scorer), version, newest.get((service, scorer), "")))
    return found


def _followed(versions: Sequence[BaselineVersion], at_work: int | None, newest: str | None) -> BaselineVersion | None:
    """Return the version that its detector goes by, or would: one that is active before one that is learned."""
    key = next((one.key for one in versions if one.id == at_work), None)
    if key is None:
        ours = [one for one in versions if one.key.fingerprint == newest] or list(versions)
        key = max(ours, key=lambda one: one.created_at).key if ours else None
    mine = [one for one in versions if one.key == key]
    return next((one for one in mine if one.status == "active"), mine[0] if mine else None)


def _basis(
    store: Store, rule: Drop, names: tuple[str, str], version: BaselineVersion | None, fingerprint: str, now: datetime
) -> _Basis:
    if version is not None and version.baseline is not None:
        baseline = narrowed(version.baseline, rule.takes)
        return _Basis(key=version.key, source="active", baseline=baseline, began=version.since)
    key = version.key if version else Key(*names, fingerprint, scope_of(rule.attributes))
    began = version.since if version else _first(store, key, now)
    baseline = narrowed(learned(store, key, began, max(now, began + LEAST_TIME)), rule.takes)
    return _Basis(key=key, source="learning" if version else "stored", baseline=baseline, began=began)


def _first(store: Store, key: Key, now: datetime) -> datetime:
    """Return when the first score of the last two weeks came."""
    for since in (now - HISTORY + day * DAY for day in range(HISTORY // DAY)):
        # Counting is much faster than reading.
        found = heard(store, key, since, since + DAY, 1.0) if store.count_past(past_of(key, since, since + DAY)) else []
        if found:
            return found[0].arrived_at
    return now - HISTORY


def _prospect(store: Store, rule: Drop, basis: _Basis, asked: Asked, now: datetime) -> Prospect | str:
    """Return what would be noticed, or why that cannot be said."""
    baseline = basis.baseline
    if not baseline.routes:
        return "no route has 30 scores yet, and all together have not either"
    arrivals = [one for one in heard(store, basis.key, now - LATELY, now, baseline.keep) if _watched(baseline, one)]
    began = min([basis.began, *(one.arrived_at for one in arrivals[:1])])
    time = max(min(LATELY, now - began), LEAST_TIME)
    per_day = len(arrivals) / (time / DAY) if asked.per_day is None else min(asked.per_day, MOST_PER_DAY)
    if not per_day:
        return "no score has reached the detector in the last 7 days; --per-day says what would be noticed if some did"
    if asked.per_day is not None:
        baseline = _at_rate(baseline, per_day)
    doubled_per_day = min(2 * per_day, max(per_day, MOST_PER_DAY))
    more = doubled_per_day > 1.05 * per_day
    return Prospect(
        rule=rule.name,
        service=basis.key.service,
        scorer=basis.key.scorer,
        fingerprint=basis.key.fingerprint,
        source=basis.source,
        since=baseline.since,
        until=baseline.until,
        n=baseline.n,
        per_day=per_day,
        asked_for=asked.per_day is not None,
        made_per_day=_made(store, rule, basis.key, now) / (time / DAY) if not basis.key.scope else None,
        min_drop=rule.min_drop,
        false_alarms_per_year=rule.false_alarms_per_year * per_day / baseline.scores_per_day,
        unsteady=tuple(name for name, one in baseline.routes.items() if 2 * one.committed_wander > rule.min_drop),
        power=_power(rule, baseline, per_day, asked),
        doubled_per_day=doubled_per_day,
        doubled=_power(rule, _at_rate(baseline, doubled_per_day), doubled_per_day, asked) if more else None,
    )


def _power(rule: Drop, baseline: Baseline, per_day: float, asked: Asked) -> Power:
    return power(
        baseline,
        per_day,
        seed=SEED,
        days=asked.days,
        min_drop=rule.min_drop,
        false_alarms_per_year=rule.false_alarms_per_year,
        drops=[drop for drop in DROPS if drop < baseline.mean] or DROPS[:1],  # a mean cannot fall by more than itself
        runs=asked.runs,
    )


def _made(store: Store, rule: Drop, key: Key, now: datetime) -> int:
    found = store.summary(since=now - LATELY, histograms=False)
    names = (key.service, key.scorer, key.fingerprint)
    return sum(one.n for one in found if (one.service, one.scorer, one.fingerprint) == names and rule.takes(one.route))


def _watched(baseline: Baseline, one: Arrival) -> bool:
    return one.route in baseline.routes or (one.route in baseline.pooled and OTHER in baseline.routes)


def _at_rate(baseline: Baseline, per_day: float) -> Baseline:
    """Return a baseline as it would have been learned at another rate: from the same scores, so many a day."""
    times = per_day / baseline.scores_per_day
    routes = {
        name: replace(one, scores_per_day=one.scores_per_day * times, committed_per_day=one.committed_per_day * times)
        for name, one in baseline.routes.items()
    }
    committed = baseline.committed_per_day * times
    return replace(baseline, scores_per_day=per_day, committed_per_day=committed, routes=routes)
