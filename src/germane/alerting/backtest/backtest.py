"""What rules would have told over the stored history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Final, cast

from germane.alert import Alert, Event
from germane.alerting.backtest.baseline_history import Shelf
from germane.alerting.backtest.historical_store import Hindsight, Queue, Stream
from germane.alerting.evaluator import Lookout
from germane.sanitize import harmless
from germane.settings import AnyRule, Drop, NoData, Settings
from germane.settings.rules import BY_DEFAULT
from germane.storage import BaselineVersion, Store
from germane.storage.queue.detector_inbox import LATEST

_LATE: Final = "scores count from the time of their answers on, also where they were made later"
_ERRORS: Final = "failures count that were final; what was tried in vain and went well later is not kept"
_BUDGET: Final = "a day's budget counts as spent from its first answer on that was not paid for; the sums are the day's"
_NOTES: Final = {"no_data": (), "scorer_error": (_ERRORS,), "budget_exhausted": (_BUDGET,)}


def notes_of(rule: AnyRule, shelf: Shelf) -> tuple[str, ...]:
    """Return what is to be known of a rule's replay."""
    if isinstance(rule, Drop):
        return tuple(_baseline(one, made=one.id in shelf.made) for one in shelf.gone_by() if _is_told(one, rule))
    return _NOTES.get(rule.kind, (_LATE,))


def _is_told(one: BaselineVersion, rule: Drop) -> bool:
    mine = rule.scorer in {None, one.key.scorer}
    return mine and (one.baseline is not None or one.status == "learning")


def _baseline(one: BaselineVersion, *, made: bool) -> str:
    of = f"{harmless(one.key.scorer, 40)} of {harmless(one.key.service, 40)} ({harmless(one.key.fingerprint, 12)})"
    if one.baseline is None:
        return f"{of}: nothing is watched yet, learning would go on until {one.until:%Y-%m-%d %H:%M} UTC"
    learned = f"learned from {one.since:%Y-%m-%d %H:%M} to {one.until:%Y-%m-%d %H:%M} UTC"
    if made:
        return f"{of}: by a baseline {learned}, as the replay found none that was in force"
    begun = max(one.until, one.created_at)
    return f"{of}: by baseline version {one.number}, {learned}, in force from {begun:%Y-%m-%d %H:%M} UTC on"


HOUR: Final = timedelta(hours=1)
PARTS: Final = 12
"""A rule over a window is looked at so often in it, if that is more often than hourly."""
PARTS_OF_A_WAIT: Final = 3
"""And so often in the time that scores may take at least."""
ME: Final = ("preview", "preview")


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One alert that fired."""

    fired: Alert
    """As it was then."""
    last: Alert
    """As it was when it was over, or at the end."""
    events: tuple[Event, ...]
    """What happened to it, in order."""
    until: datetime
    """UTC: when it was over, or the end of what was replayed."""

    @property
    def seconds(self) -> float:
        """For how long it was fired."""
        return (self.until - (self.fired.fired_at or self.until)).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What one rule would have done."""

    rule: AnyRule
    step: timedelta
    """Between two looks: when something began and ended is known to within that."""
    episodes: tuple[Episode, ...]
    """The first first."""
    passed: int
    """Alerts that were over before they had lasted long enough to fire."""
    notifications: Counter[str]
    """How often each channel would have been told something, by what: firing, escalated, resolved, repeated."""
    notes: tuple[str, ...]
    """What this goes by, and what could not be known."""

    @property
    def resolved(self) -> int:
        """How many of the alerts are over."""
        return sum(not one.last.is_open for one in self.episodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreplayed:
    """A rule of which nothing can be said."""

    rule: AnyRule
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What all of them would have done, each by itself."""

    since: datetime
    """UTC."""
    until: datetime
    scores: int
    """Stored, of that time."""
    replayed: tuple[Replayed, ...] = ()
    unreplayed: tuple[Unreplayed, ...] = ()

    @property
    def notifications(self) -> int:
        """How often each channel would have been told something."""
        return sum(one.notifications.total() for one in self.replayed)


@dataclass(slots=True)
class _Moment:
    """A clock that is set."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class _Range:
    """What is replayed."""

    store: Store
    settings: Settings
    since: datetime
    until: datetime
    streams: Collection[Stream] = field(default=())


def run_backtest(
    store: Store,
    settings: Settings,
    rules: Sequence[AnyRule],
    *,
    since: datetime,
    until: datetime,
    step: timedelta | None = None,
) -> Preview:
    """Replay rules over the answers given since then, each by itself, and write nothing.

    The code is that which watches: it looks at the database as it was at one moment after another, every hour or twelve
    times in a rule's window. What people did then is not done again: no silence, acknowledgement or resolution by hand.

    Args:
        store: where the history is.
        settings: budget and tick.
        rules: also such as are in no settings.
        since: UTC.
        until: UTC; not after now.
        step: between two looks; by default as :func:`step_of` says.

    Raises:
        ValueError: the time or the step has no length.
    """
    if since >= until or (step is not None and step <= timedelta()):
        raise ValueError(f"there is nothing to replay from {since} to {until} in steps of {step}")
    found = store.summary(since=since - LATEST, until=until, histograms=False)
    streams = {(one.service, one.scorer, one.fingerprint) for one in found}
    scores = sum(one.n for one in store.summary(since=since, until=until, histograms=False))
    range_ = _Range(store, settings, since, until, streams)
    replayed, unreplayed = list[Replayed](), list[Unreplayed]()
    for rule in rules:
        why = _hindrance(rule, range_)
        if why is None:
            replayed.append(_replay(rule, range_, step or step_of(rule)))
        else:
            unreplayed.append(Unreplayed(rule=rule, why=why))
    return Preview(since=since, until=until, scores=scores, replayed=tuple(replayed), unreplayed=tuple(unreplayed))


def step_of(rule: AnyRule) -> timedelta:
    """Return how often a rule is looked at: every hour, or more often where it looks at less than twelve hours."""
    if isinstance(rule, NoData):
        return min(HOUR, timedelta(seconds=rule.at_least / PARTS_OF_A_WAIT))
    length = getattr(rule, "window", None)
    return HOUR if length is None else min(HOUR, timedelta(seconds=length / PARTS))


def _hindrance(rule: AnyRule, range_: _Range) -> str | None:
    """Return why a rule cannot be replayed, if it cannot."""
    if rule.kind == "budget_exhausted" and range_.settings.budget is None:
        return "there is no budget in the settings that could be spent"
    if rule.kind != "budget_exhausted" and not any(rule.scorer in {None, scorer} for _, scorer, _ in range_.streams):
        return "no score of that time is stored" + ("" if rule.scorer is None else f" of {rule.scorer}")
    return None


def _replay(rule: AnyRule, range_: _Range, step: timedelta) -> Replayed:
    clock = _Moment(range_.since)
    shelf = Shelf(range_.store.baselines(superseded=True), range_.since, clock)
    hindsight = Hindsight(range_.store, clock, shelf, _queue(rule, range_, shelf))
    lookout = _lookout(rule, range_, hindsight, clock)
    for clock.now in _moments(range_, step):
        lookout.look()
    return Replayed(
        rule=rule,
        step=step,
        episodes=tuple(_episode(alert, hindsight, range_.until) for alert in hindsight.fired.values()),
        passed=len(hindsight.alerts) - len(hindsight.fired),
        notifications=Counter(one.what for one in hindsight.notifications),
        notes=notes_of(rule, shelf),
    )


def _episode(fired: Alert, hindsight: Hindsight, until: datetime) -> Episode:
    last = hindsight.alerts[fired.id]
    events = tuple(event for event in hindsight.events if event.alert_id == fired.id)
    return Episode(fired=fired, last=last, events=events, until=last.resolved_at or until)


def _queue(rule: AnyRule, range_: _Range, shelf: Shelf) -> Queue:
    """Return what a detector is fed; nothing for other rules."""
    watched = range_.streams if isinstance(rule, Drop) else ()
    streams = [one for one in watched if rule.scorer in {None, one[1]}]
    attributes = bool(getattr(rule, "attributes", None))
    window = {"since": range_.since, "until": range_.until}
    return Queue(range_.store, streams, **window, attributes=attributes, keep=shelf.keep)


def _lookout(rule: AnyRule, range_: _Range, hindsight: Hindsight, clock: _Moment) -> Lookout:
    alone = [other.model_copy(update={"enabled": False}) for other in BY_DEFAULT if other.kind != rule.kind]
    settings = range_.settings.model_copy(update={"rules": (rule.model_copy(update={"enabled": True}), *alone)})
    numbers = count(1)
    return Lookout(
        cast(Store, hindsight),  # which has all that is asked of one here
        settings,
        holder=ME,
        scorers=sorted({scorer for _, scorer, _ in range_.streams}),
        channels={"preview": lambda _: True},
        clock=clock,
        new_id=lambda: f"{next(numbers):032x}",
    )


def _moments(range_: _Range, step: timedelta) -> Iterator[datetime]:
    moment = range_.since + step
    while moment < range_.until:
        yield moment
        moment += step
    yield range_.until
