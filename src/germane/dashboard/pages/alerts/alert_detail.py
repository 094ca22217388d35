"""One alert: what it says, where it sits, what happened to it, who was told, and what one may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from germane.alert import Alert, Event, Level, Shift
from germane.dashboard.pages.alerts.actions import DONE, SPANS
from germane.dashboard.pages.alerts.charts import ShownChart, charts_of
from germane.dashboard.pages.alerts.models import ShownAlert, Told, amount, level, posted_of, shown_alerts, span_of
from germane.dashboard.web.display_name import name_of
from germane.dashboard.web.http_error import Refusal
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import root_of, screen
from germane.exchange import Exchange
from germane.insights.context import Desk
from germane.insights.sentences import few
from germane.insights.window import View, view_of
from germane.score import Score
from germane.storage.stats.estimate import ENOUGH

WORST: Final = 10
"""Exchanges that are shown."""
HAPPENED: Final[Mapping[str, str]] = {
    "pending": "found, and waited for",
    "fired": "fired",
    "escalated": "became critical",
    "eased": "eased to a warning",
    "recovering": "began to recover",
    "relapsed": "fell back",
    "resolved": "is over",
    "repeated": "told again",
    "acknowledged": "acknowledged",
}
OVER: Final[Mapping[str, str]] = {
    "recovered": "it recovered",
    "passed": "it passed before anybody was told",
    "judge_changed": "the judge changed",
    "by_hand": "somebody closed it",
    "new_baseline": "this level was accepted as the new baseline",
    "rule_removed": "its rule is gone",
}
CAUSES: Final[Mapping[str, str]] = {
    "answers_drifting": "answers drift away from their questions",
    "refusals_rising": "more answers refuse",
    "retrieval_worse": "retrieval finds less that fits",
    "judge_broken": "the judge broke, which says nothing of the answers",
    "no_data": "scores do not come any more",
    "budget": "the budget is spent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEvent:
    """Something that happened."""

    event: Event
    words: str
    detail: str
    """What else is known of it; empty where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownShift:
    """Where a drop sits."""

    kind: str
    name: str
    before: str
    since: str
    change: float | None
    """None where there is too little to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPage:
    """What the page of one alert shows."""

    shown: ShownAlert
    told: Sequence[Told]
    """The newest first."""
    events: Sequence[ShownEvent]
    """The first first."""
    worst: Sequence[tuple[Exchange, Score | None]]
    """The worst first."""
    gone: int
    """How many of the worst are not stored any more."""
    shifts: Sequence[ShownShift]
    """The largest first."""
    acceptable: bool
    """Whether it may be taken for normal: a drop that lasts, whose baseline is in force."""
    charts: Sequence[ShownChart]
    """Of what it is about, and of the route where most of a drop sits; none of what no score belongs to."""

    @property
    def alert(self) -> Alert:
        """The alert itself."""
        return self.shown.alert

    @property
    def cause(self) -> str | None:
        """What is likely behind it, in words."""
        return None if self.alert.cause is None else CAUSES.get(self.alert.cause, self.alert.cause)

    @property
    def ended(self) -> str | None:
        """Why it is over."""
        reason = self.alert.resolve_reason
        return None if reason is None else OVER.get(reason, reason)

    @property
    def release(self) -> Sequence[tuple[str, str, str]]:
        """What of the application is not what it was when the baseline was learned: name, before, now."""
        changed: Mapping[str, Any] = self.alert.details.get("release") or {}
        return [(name, str(pair[0] or "unknown"), str(pair[1])) for name, pair in changed.items()]

    @property
    def version(self) -> int | None:
        """Of the baseline that a drop was found by."""
        found: Mapping[str, Any] = self.alert.details.get("baseline") or {}
        return found.get("version")


def read(desk: Desk, alert: Alert, view: View, root: str) -> AlertPage:
    """Read all that is known of an alert."""
    now, store = desk.store.now(), desk.store
    (shown,) = shown_alerts(store, [alert], store.silences(), now)
    worst = _worst(desk, alert)
    return AlertPage(
        shown=shown,
        told=posted_of(store, alert, now),
        events=[_event(one, alert) for one in store.alert_events(alert.id)],
        worst=worst,
        gone=len(alert.exchange_ids[:WORST]) - len(worst),
        shifts=[_shift(one) for one in alert.shifts],
        acceptable=_is_acceptable(desk, alert),
        charts=charts_of(store, alert, now, view.zone, root),
    )


def _is_acceptable(desk: Desk, alert: Alert) -> bool:
    from germane.alerting import actions

    return alert.kind == "drop" and alert.is_open and actions.baseline_of(desk.store, alert) is not None


def _shift(shift: Shift) -> ShownShift:
    enough = min(shift.before.n, shift.since.n) >= ENOUGH
    change = shift.since.mean - shift.before.mean if enough else None
    return ShownShift(
        kind=shift.kind, name=shift.name, before=_mean(shift.before), since=_mean(shift.since), change=change
    )


def _mean(found: Level) -> str:
    return level("drop", found) if found.n >= ENOUGH else few(found)


def _worst(desk: Desk, alert: Alert) -> list[tuple[Exchange, Score | None]]:
    ids = alert.exchange_ids[:WORST]
    exchanges, scores = desk.store.exchanges_of(ids), desk.store.scores_of(ids)
    return [(exchanges[id_], _score(scores.get(id_, ()), alert)) for id_ in ids if id_ in exchanges]


def _score(scores: Sequence[Score], alert: Alert) -> Score | None:
    """Return the score by the judge that the alert is of, or else the newest one of its scorer."""
    mine = [one for one in scores if one.scorer == alert.scorer]
    same = [one for one in mine if one.fingerprint == alert.fingerprint]
    return next(reversed(same or mine), None)


def _event(event: Event, alert: Alert) -> ShownEvent:
    detail, said = event.detail, []
    if detail.get("by"):
        said.append(f"by {detail['by']}")
    if detail.get("reason"):
        said.append(OVER.get(str(detail["reason"]), str(detail["reason"])))
    if isinstance(detail.get("value"), (int, float)):
        said.append(f"at {amount(alert.kind, detail['value'])}")
    if event.what in {"fired", "escalated"} and detail.get("severity"):
        said.append(str(detail["severity"]))
    return ShownEvent(event=event, words=HAPPENED.get(event.what, event.what), detail=", ".join(said))


def found(desk: Desk, request: Request) -> Alert:
    """Return the alert of the address.

    Raises:
        Refusal: there is none.
    """
    alert = desk.store.alert(request.path_params["alert_id"])
    if alert is None:
        step = "It may be older than what is kept, or the address mistyped. All that are known are under Alerts."
        raise Refusal(404, "There is no such alert.", step)
    return alert


def alert_page(request: Request, desk: Desk) -> Response:
    """Answer with one alert."""
    view = view_of(request, desk.now())
    page = read(desk, found(desk, request), view, root_of(request.scope))
    told: dict[str, Any] = {
        "page": page,
        "person": name_of(request),
        "spans": SPANS,
        "done": DONE.get(request.query_params.get("done", "")),
        "its_level": level,
        "length": span_of,
    }
    return render(request, desk, view, "alert.html", **told)


def ask_whether_normal(request: Request, desk: Desk) -> Response:
    """Ask once more, and say what follows, before a drop is taken for normal."""
    from germane.alerting.drop import LEARN_FOR
    from germane.alerting.drop.adopting import LEAST_TO_ACCEPT

    alert, now = found(desk, request), desk.store.now()
    if alert.kind != "drop" or not alert.is_open:
        step = "Other rules are changed in the settings."
        raise Refusal(409, "Only a drop that lasts can be taken for normal.", step)
    if not _is_acceptable(desk, alert):
        step = "Somebody has accepted a new one, or the judge changed: the alert is over at the next look."
        raise Refusal(409, "The baseline of this drop is no longer in force.", step)
    since = alert.onset or alert.starts_at
    until = None if now - since >= LEAST_TO_ACCEPT else _learnt(since, now, LEARN_FOR)
    view = view_of(request, desk.now())
    told: dict[str, Any] = {"alert": alert, "since": since, "until": until, "person": name_of(request), "level": level}
    return render(request, desk, view, "accept.html", **told)


def _learnt(since: datetime, now: datetime, learn_for: timedelta) -> datetime:
    return max(since + learn_for, now + timedelta(days=1))


ROUTES = (
    screen("/alerts/{alert_id}/accept", ask_whether_normal),
    screen("/alerts/{alert_id}", alert_page),
)
