"""Why is this not alerting: what stands in a rule's way now, and what it would have told over a time that is past."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from germane.alert import Alert, Silence
from germane.dashboard.pages.alerts.models import length, span_of
from germane.dashboard.web.http_error import Refusal
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import screen
from germane.insights.context import Desk
from germane.insights.health import health_of
from germane.insights.text import clock, interval, number, percent
from germane.insights.window import View, view_of
from germane.settings import AnyRule, Drop, Floor, LowRate, NoncommittalRate, Windowed
from germane.storage import BaselineVersion, RouteMean, RouteSummary

if TYPE_CHECKING:
    from germane.alerting.backtest import Preview


Said = tuple[Literal["hindrance", "good", "bad"], str]
"""A sentence: of what stands in the way, or of what the rule sees there."""
ALARMING: Final = frozenset({"drop", "floor", "low_rate", "noncommittal_rate"})
"""Kinds that look at scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is asked about."""

    since: datetime
    until: datetime
    service: str | None = None
    route: str | None = None
    view: View | None = None
    """In whose zone moments are written."""

    def fits(self, service: str, route: str | None) -> bool:
        """Whether something of a service, or of one of its routes, is about it."""
        return self.service in {None, service} and (None in {self.route, route} or route == self.route)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known now of what rules look at."""

    means: Sequence[RouteSummary]
    """Of the time and place, by the newest judge."""
    versions: Sequence[BaselineVersion]
    learning: Sequence[BaselineVersion]
    silences: Sequence[Silence]
    alerts: Sequence[Alert]
    """Those that are open."""
    watching: bool
    """Whether any process is there that looks."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """One rule, and what stands in its way."""

    rule: AnyRule
    enabled: bool
    hindrances: Sequence[str]
    """Sentences; empty where nothing does."""
    sees: Sequence[str]
    """What it looks at, in sentences, as far as that is known at once."""
    bad: bool
    """Whether something of that is bad enough."""
    alert: Alert | None
    """Which is open by it."""

    @property
    def verdict(self) -> str:
        """A word: what it does."""
        if not self.enabled:
            return "off"
        if self.alert is not None:
            return self.alert.state
        if self.hindrances:
            return "held back"
        return "would fire" if self.bad else "all is well"


def read(desk: Desk, place: Place) -> tuple[Facts, list[Rehearsed]]:
    """Read what is known now, and what stands in the way of each rule."""
    store, now = desk.store, desk.store.now()
    found = store.summary(since=place.since, until=place.until, histograms=False)
    facts = Facts(
        means=[one for one in found if one.newest and place.fits(one.service, one.route)],
        versions=[one for one in store.baselines() if one.status == "active"],
        learning=store.learning(),
        silences=store.silences(),
        alerts=[one for one in store.open_alerts() if place.fits(one.service, one.route)],
        watching=health_of(desk).state in {"running", "held up"},
        now=now,
    )
    watched = desk.settings.watched
    others = [one for one in desk.settings.rules if one not in watched]
    rules = [(one, True) for one in watched] + [(one, False) for one in others]
    return facts, [_rehearsed(desk, rule, place, facts, enabled=enabled) for rule, enabled in rules]


def _rehearsed(desk: Desk, rule: AnyRule, place: Place, facts: Facts, *, enabled: bool) -> Rehearsed:
    said = [] if enabled else [_hindrance("It is switched off: enabled = false in the settings.")]
    said += [*_of_the_rule(desk, rule, place, facts), *map(_hindrance, _silenced(rule, place, facts))]
    if not facts.watching:
        said.append(_hindrance("No process watches now: rules are looked at by the processes that score."))
    open_ = next((one for one in facts.alerts if one.rule == rule.name), None)
    return Rehearsed(
        rule=rule,
        enabled=enabled,
        hindrances=[words for kind, words in said if kind == "hindrance"],
        sees=[words for kind, words in said if kind != "hindrance"],
        bad=any(kind == "bad" for kind, _ in said),
        alert=open_,
    )


def _hindrance(words: str) -> Said:
    return "hindrance", words


def _of_the_rule(desk: Desk, rule: AnyRule, place: Place, facts: Facts) -> Iterator[Said]:
    if place.route is not None and not rule.takes(place.route):
        yield _hindrance("It looks at other routes: its patterns leave this one out.")
        return
    means = [one for one in facts.means if rule.scorer in {None, one.scorer} and rule.takes(one.route)]
    if rule.kind == "budget_exhausted" and desk.settings.budget is None:
        yield _hindrance("There is no budget in the settings that could be spent.")
    elif rule.kind in ALARMING and not means:
        yield _hindrance(f"There is no score{f' of {rule.scorer}' if rule.scorer else ''} in this time.")
    elif isinstance(rule, Drop):
        yield from map(_hindrance, _drop(rule, means, place, facts))
    elif isinstance(rule, Windowed):
        yield from _windows(desk, rule, place)


def _drop(rule: Drop, means: Sequence[RouteSummary], place: Place, facts: Facts) -> Iterator[str]:
    for names in sorted({(one.service, one.scorer) for one in means}):
        routes = [one.route for one in means if (one.service, one.scorer) == names]
        known = [one for one in facts.versions if one.key[:2] == names and bool(one.key.scope) == bool(rule.attributes)]
        about = f"{names[1]} of {names[0]}"
        if known:
            watched = {route for one in known if one.baseline for route in (*one.baseline.routes, *one.baseline.pooled)}
            for route in sorted(set(routes) - watched):
                yield f"{about}: route {route} is not in its baseline yet; it joins once there is enough of it."
        else:
            yield f"{about}: {_unlearned(names, place, facts)}; drops are noticed from then on."


def _unlearned(names: tuple[str, str], place: Place, facts: Facts) -> str:
    until = max((one.until for one in facts.learning if one.key[:2] == names), default=None)
    if until is None:
        return "nothing is learned, as no process has watched it yet"
    return f"learning until {clock(until, place.view)}"


def _windows(desk: Desk, rule: Windowed, place: Place) -> Iterator[Said]:
    """Say of each route what its window holds."""
    window = timedelta(seconds=rule.window)
    if rule.scorer is None or rule.attributes:
        return
    found = desk.store.means(
        scorer=rule.scorer,
        since=place.until - window,
        until=place.until,
        route=place.route,
        service=place.service,
        histograms=False,
    )
    for mean in found:
        if mean.newest and rule.takes(mean.route):
            kind, said = _window(rule, mean, window)
            yield kind, f"Route {mean.route} of {mean.service}: {said}."


def _window(rule: Windowed, mean: RouteMean, window: timedelta) -> Said:
    """Say what one route's window holds, beside what the rule asks."""
    if mean.n < rule.min_count:
        longer = "it looks back further until it holds enough"
        return "hindrance", f"n={mean.n} in {length(window)}, and it needs {rule.min_count}: {longer}"
    if isinstance(rule, Floor):
        said = f"the mean is {number(mean.mean)} (95 % interval {interval(mean.interval)}, n={mean.n:,})"
        if mean.mean >= rule.threshold:
            return "good", f"{said}, not under {rule.threshold:g}"
        reaches = mean.interval is None or mean.interval[1] >= rule.threshold
        bad = "which may reach" if reaches else "under"
        return ("good" if reaches else "bad"), f"{said}, {bad} {rule.threshold:g}"
    if not isinstance(rule, (LowRate, NoncommittalRate)):
        return "good", f"n={mean.n:,}"
    share = mean.low_share if isinstance(rule, LowRate) else mean.noncommittal_share
    said, most = f"the share is {percent(share)} (n={mean.n:,})", percent(rule.threshold)
    return ("bad", f"{said}, above {most}") if share > rule.threshold else ("good", f"{said}, not above {most}")


def _silenced(rule: AnyRule, place: Place, facts: Facts) -> Iterator[str]:
    """Say which silences would keep quiet what the rule finds there, by the labels that are known."""
    labels = {"service": place.service, "route": place.route, "scorer": rule.scorer}
    known = {name: value for name, value in labels.items() if value is not None}
    found = Alert(
        id="",
        key="",
        rule=rule.name,
        kind=rule.kind,
        labels=known,
        state="firing",
        starts_at=facts.now,
        evaluated_at=facts.now,
    )
    for silence in facts.silences:
        told_apart = {name: one for name, one in silence.matchers.items() if name in {"rule", *known}}
        if replace(silence, matchers=told_apart).covers(found, facts.now):
            some = "" if len(told_apart) == len(silence.matchers) else " of some of it"
            until = clock(silence.ends_at, place.view)
            yield f"Nobody is told{some}: silenced until {until}. It fires and ends as ever."


LOOKS: Final = 56
"""At so many moments of its time a rule is looked at again: every three hours of a week."""
LONGEST: Final = timedelta(days=31)
MOST: Final = 100_000
"""Scores that are replayed for a page; of more the command line tells."""
_one_at_a_time = threading.Lock()


def replay(desk: Desk, rule: AnyRule, place: Place, most: int = MOST) -> Preview:
    """Replay one rule over the time, at some moments of it.

    Raises:
        Refusal: there is too much of it for a page, or another one is being replayed.
    """
    from germane.alerting.backtest import run_backtest
    from germane.alerting.backtest.backtest import step_of

    since = max(place.since, place.until - LONGEST)
    scores = sum(one.n for one in desk.store.summary(since=since, until=place.until, histograms=False))
    if scores > most:
        step = f"Take a shorter window, or ask on the command line: germane alerts preview --rule {rule.kind}"
        raise Refusal(413, f"{scores:,} scores are too many to be replayed for a page.", step)
    if not _one_at_a_time.acquire(blocking=False):
        step = "Come again in a few seconds: replaying takes the database's time, so that only one is done at once."
        raise Refusal(503, "Another rule is being replayed.", step, headers={"Retry-After": "10"})
    try:
        looks = max(step_of(rule), (place.until - since) / LOOKS)
        return run_backtest(desk.store, desk.settings, [rule], since=since, until=place.until, step=looks)
    finally:
        _one_at_a_time.release()


def rehearsal(request: Request, desk: Desk) -> Response:
    """Answer why nothing alerts, for a route and a time."""
    view = view_of(request, desk.now())
    route, asked = request.query_params.get("route") or None, request.query_params.get("replay")
    place = Place(since=view.since, until=view.until, service=view.service, route=route, view=view)
    facts, rules = read(desk, place)
    chosen = next((one.rule for one in rules if one.rule.name == asked), None)
    told: dict[str, Any] = {
        "place": place,
        "facts": facts,
        "rules": rules,
        "routes": sorted({one.route for one in facts.means} | ({route} if route else set())),
        "replayed": None if chosen is None else replay(desk, chosen, place),
        "length": span_of,
    }
    return render(request, desk, view, "rehearsal.html", **told)


ROUTES = (screen("/alerts/preview", rehearsal),)
