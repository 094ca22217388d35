"""All rules but ``drop``: when each looks, and what it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from germane.alerting.rule_result import Verdict
from germane.alerting.rules import budget_exhausted, mean_threshold, no_data, rates, scorer_error
from germane.settings import (
    AnyRule,
    Budget,
    BudgetExhausted,
    Floor,
    LowRate,
    NoData,
    NoncommittalRate,
    Rule,
    ScorerError,
    Windowed,
)
from germane.storage import RouteMean, Store

LONGEST: Final = 32
"""A window that holds too few scores is made longer, up to so many times."""
CLOSE: Final = 100
"""A window whose newest score is nearer to its end than this part of it need not be read again to end there."""
NEXT: Final = timedelta(microseconds=1)
Stream = tuple[str, str]
"""Service and route."""


@dataclass(slots=True)
class Windows:
    """Reads, for one rule, the mean of every route that has a newer score than at the last look.

    Of each route only the newest fingerprint counts: what another judge said is history.
    """

    store: Store
    rule: Windowed
    scorer: str
    _known: dict[Stream, datetime] = field(default_factory=dict)

    def forget(self) -> None:
        """Take all for news at the next look: of this one nothing came."""
        self._known.clear()

    def news(self, now: datetime) -> Iterator[tuple[RouteMean, timedelta]]:
        """Return the means that have changed, each with the time that it was made over."""
        window = timedelta(seconds=self.rule.window)
        for mean in self._newest(now - window, None):
            stream = (mean.service, mean.route)
            if self._known.get(stream) != mean.latest:
                yield self._as_of_its_newest(mean, now, window)
                self._known[stream] = mean.latest

    def _as_of_its_newest(self, mean: RouteMean, now: datetime, window: timedelta) -> tuple[RouteMean, timedelta]:
        if now - mean.latest > window / CLOSE:
            mean = self._read(mean, window)
        times = 1
        while mean.n < self.rule.min_count and times < LONGEST:
            times *= 2
            mean = self._read(mean, times * window)
        return mean, times * window

    def _read(self, mean: RouteMean, length: timedelta) -> RouteMean:
        found = self._newest(mean.latest - length, mean.latest + NEXT, mean.service, mean.route)
        return next(found, mean)

    def _newest(
        self, since: datetime, until: datetime | None, service: str | None = None, route: str | None = None
    ) -> Iterator[RouteMean]:
        chosen: dict[str, Any] = {
            "scorer": self.scorer,
            "since": since,
            "until": until,
            "service": service,
            "route": route,
        }
        if self.rule.attributes:
            found = self.store.means_with(self.rule.attributes, **chosen)
        else:
            found = self.store.means(**chosen, histograms=False)
        return (mean for mean in found if mean.newest and self.rule.takes(mean.route))


SELDOM: Final = 10.0
"""Seconds after which every rule looks again."""
PARTS: Final = 360
"""A rule over a window looks so often in it, if that is more often."""
PARTS_OF_GAP: Final = 60
"""A rule that waits for a gap looks so often in it, if that is more often."""
BACK: Final = timedelta(days=14)
"""How far back it is looked for how long scores usually take."""
SHORTEST: Final = timedelta(hours=2)
"""Back from now, in which answers are looked for that are not scored."""
LEARN_AGAIN: Final = timedelta(hours=1)
Pair = tuple[str, str]
"""Service and scorer."""


class Looks:
    """Looks at the database for each rule, now and then.

    Args:
        store: what they look at.
        rules: all that are in force.
        budget: of which ``budget_exhausted`` speaks.
        scorers: names of those that score here, for a rule over a window that names none.
        tick: seconds between two looks, at least.
    """

    def __init__(
        self, store: Store, rules: Sequence[AnyRule], *, budget: Budget | None, scorers: Collection[str], tick: float
    ) -> None:
        self._store = store
        self._budget = budget
        self._tick = tick
        self._rules = [rule for rule in rules if rule.kind != "drop"]
        self._windows = {
            id(rule): [Windows(store, rule, name) for name in ([rule.scorer] if rule.scorer else sorted(scorers))]
            for rule in rules
            if isinstance(rule, Windowed)
        }
        self._looked_at: dict[int, datetime] = {}
        self._usual: dict[Pair, tuple[datetime, timedelta | None]] = {}

    def look(self, now: datetime) -> list[Verdict]:
        """Return what those rules say whose time it is. Calls the database."""
        due = [rule for rule in self._rules if self._is_due(rule, now)]
        found = [verdict for rule in due for verdict in self._verdicts(rule, now)]
        self._looked_at |= {id(rule): now for rule in due}
        return found

    def forget(self) -> None:
        """Look at everything anew the next time: of what was found nothing came, or others have looked since."""
        self._looked_at.clear()
        for windows in self._windows.values():
            for each in windows:
                each.forget()

    def _is_due(self, rule: Rule, now: datetime) -> bool:
        last = self._looked_at.get(id(rule))
        return last is None or not timedelta() <= now - last < timedelta(seconds=self._every(rule))

    def _every(self, rule: Rule) -> float:
        often = SELDOM
        if isinstance(rule, (Windowed, ScorerError)):
            often = rule.window / PARTS
        elif isinstance(rule, NoData):
            often = rule.at_least / PARTS_OF_GAP
        return max(self._tick, min(SELDOM, often))

    def _verdicts(self, rule: AnyRule, now: datetime) -> Iterable[Verdict]:
        if isinstance(rule, NoData):
            return self._no_data(rule, now)
        if isinstance(rule, ScorerError):
            return self._scorer_error(rule, now)
        if isinstance(rule, BudgetExhausted):
            return [budget_exhausted.judge(rule, self._budget, self._store.spent(), now)]
        news = (one for windows in self._windows[id(rule)] for one in windows.news(now))
        return [replace(judged(rule, mean), window=length.total_seconds()) for mean, length in news]

    def _no_data(self, rule: NoData, now: datetime) -> Iterator[Verdict]:
        usual = [wait for _, wait in self._usual.values() if wait is not None]
        longest = no_data.patience(rule, max(usual, default=None))
        for flow in self._store.flows(since=now - max(SHORTEST, 2 * longest), takes=rule.takes):
            if rule.scorer in {None, flow.scorer}:
                wait = self._usual_wait((flow.service, flow.scorer), now)
                yield no_data.judge(rule, flow, now, wait)

    def _usual_wait(self, pair: Pair, now: datetime) -> timedelta | None:
        learned_at, wait = self._usual.get(pair, (None, None))
        if learned_at is None or not timedelta() <= now - learned_at < LEARN_AGAIN:
            wait = self._store.usual_wait(*pair, since=now - BACK)
            self._usual[pair] = (now, wait)
        return wait

    def _scorer_error(self, rule: ScorerError, now: datetime) -> Iterator[Verdict]:
        scored: Counter[Pair] = Counter()
        reasons: dict[Pair, Counter[str]] = {}
        for one in self._store.coverage(since=now - timedelta(seconds=rule.window)):
            if rule.takes(one.route) and rule.scorer in {None, one.scorer}:
                pair = (one.service, one.scorer)
                scored[pair] += one.scored
                reasons.setdefault(pair, Counter()).update(one.failed)
        for waiting in self._store.failing():
            pair = (waiting.service, waiting.scorer)
            if rule.takes(waiting.route) and pair in reasons:
                reasons[pair][waiting.reason] += waiting.tasks
        for pair, failed in sorted(reasons.items()):
            yield scorer_error.judge(rule, *pair, scored[pair], failed)


def judged(rule: AnyRule, mean: RouteMean) -> Verdict:
    """Return what a rule over a window says of a mean."""
    if isinstance(rule, Floor):
        return mean_threshold.judge(rule, mean)
    if isinstance(rule, LowRate):
        return rates.judge(rule, mean)
    if isinstance(rule, NoncommittalRate):
        return rates.judge_noncommittal_rate(rule, mean)
    raise TypeError(f"{rule.kind} looks at no window")
