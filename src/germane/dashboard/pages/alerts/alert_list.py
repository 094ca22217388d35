"""What is wrong, what was, what nobody is told of, and what drops are measured against."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from germane.alert import SEVERITIES, Alert, Severity, Silence
from germane.dashboard.pages.alerts import actions, alert_detail, backtest_page
from germane.dashboard.pages.alerts.models import ShownAlert, shown_alerts
from germane.dashboard.web.display_name import name_of
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import screen
from germane.insights.context import Desk
from germane.insights.window import View, view_of
from germane.settings import AnyRule
from germane.storage import BaselineVersion, Store

WHY: Final = {
    "first": "the first of this judge",
    "judge_changed": "the judge changed",
    "route_joined": "routes joined",
    "accepted": "somebody accepted it",
    "imported": "it was imported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBaseline:
    """One version of a baseline as it is shown."""

    version: BaselineVersion
    in_use: bool
    """Whether drops are found by it now."""

    @property
    def why(self) -> str:
        """Why it is there."""
        return WHY.get(self.version.reason, self.version.reason)

    @property
    def scope(self) -> str:
        """Which exchanges it is of; empty of all."""
        patterns: dict[str, str] = json.loads(self.version.key.scope) if self.version.key.scope else {}
        return ", ".join(f"{name}={pattern}" for name, pattern in patterns.items())

    @property
    def routes(self) -> int:
        """How many routes it tells apart."""
        return 0 if self.version.baseline is None else len(self.version.baseline.routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines:
    """All that are in force or learned."""

    used: Sequence[ShownBaseline]
    """By service and scorer."""
    earlier: Sequence[ShownBaseline]
    """Of judges that do not score any more."""
    learning: Sequence[ShownBaseline]
    overdue: bool
    """Whether learning should be over, and nobody has looked since."""


def baselines_of(store: Store, now: datetime) -> Baselines:
    """Read what is in force, and what is learned of the judges that score now."""
    used = {one.baseline_id for one in store.detectors()}
    active = [one for one in store.baselines() if one.status == "active"]
    shown = [ShownBaseline(version=one, in_use=one.id in used) for one in active]
    learning = [ShownBaseline(version=one, in_use=False) for one in store.learning()]
    return Baselines(
        used=[one for one in shown if one.in_use],
        earlier=[one for one in shown if not one.in_use],
        learning=learning,
        overdue=any(one.version.until <= now for one in learning),
    )


PAGE: Final = 25
"""Alerts that are over, on one page."""
OPEN: Final = 100
"""Alerts that are open, the newest first: of more only the number is told."""
SCHEMA_VERSION: Final = 1
STATES: Final = ("open", "over")
Which = Literal["open", "over"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which alerts are wanted; all of it stands in the address."""

    state: Which | None = None
    rule: str | None = None
    severity: Severity | None = None
    service: str | None = None
    after: tuple[datetime, str] | None = None
    """Beginning and id of the last one of the page before."""

    def takes(self, alert: Alert) -> bool:
        """Whether an alert is wanted, whatever its state."""
        wanted = {alert.rule: self.rule, alert.severity: self.severity, alert.service: self.service}
        return all(asked in {None, value} for value, asked in wanted.items())

    @property
    def query(self) -> Mapping[str, str | None]:
        """The parts of the address beside those of a view."""
        return {"state": self.state, "rule": self.rule, "severity": self.severity}

    def __bool__(self) -> bool:
        return any((self.state, self.rule, self.severity, self.service))


def filter_of(request: Request, view: View) -> Filter:
    """Return what the address asks for; what cannot be read is taken as not given."""
    asked = request.query_params
    state, severity = asked.get("state"), asked.get("severity")
    return Filter(
        state=cast(Which, state) if state in STATES else None,
        rule=asked.get("rule") or None,
        severity=severity if severity in SEVERITIES else None,
        service=view.service,
        after=_place(asked.get("after", "")),
    )


def _place(text: str) -> tuple[datetime, str] | None:
    moment, _, id_ = text.partition("~")
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)), id_


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsPage:
    """What the list shows."""

    filter: Filter
    open: Sequence[ShownAlert]
    """The newest first; a hundred at most."""
    more_open: int
    """How many are open beside these."""
    over: Sequence[ShownAlert]
    """The newest first; one page of them."""
    onward: str | None
    """Where the next page of these begins; None where there is none."""
    silences: Sequence[Silence]
    """Those that last or are to come."""
    baselines: Baselines
    rules: Sequence[AnyRule]
    """Those of this process's settings that are in force."""
    others: Sequence[AnyRule]
    """Those that are switched off."""

    @property
    def firing(self) -> int:
        """How many of those that are shown have fired, and are not over."""
        return sum(one.alert.fired_at is not None for one in self.open)


def read(desk: Desk, wanted: Filter) -> AlertsPage:
    """Read the list."""
    now, store = desk.store.now(), desk.store
    silences = store.silences()
    open_ = [one for one in store.open_alerts() if wanted.takes(one)] if wanted.state != "over" else []
    over = _over(desk, wanted) if wanted.state != "open" else []
    shown = shown_alerts(store, [*open_[: -OPEN - 1 : -1], *over[:PAGE]], silences, now)
    onward = over[PAGE - 1] if len(over) > PAGE else None
    watched = desk.settings.watched
    return AlertsPage(
        filter=wanted,
        open=[one for one in shown if one.alert.is_open],
        more_open=max(0, len(open_) - OPEN),
        over=[one for one in shown if not one.alert.is_open],
        onward=None if onward is None else f"{onward.starts_at.isoformat()}~{onward.id}",
        silences=silences,
        baselines=baselines_of(store, now),
        rules=list(watched),
        others=[one for one in desk.settings.rules if one not in watched],
    )


def _over(desk: Desk, wanted: Filter) -> list[Alert]:
    return desk.store.alerts(
        state="resolved",
        rule=wanted.rule,
        severity=wanted.severity,
        service=wanted.service,
        after=wanted.after,
        limit=PAGE + 1,
    )


def alerts(request: Request, desk: Desk) -> Response:
    """Answer with the list of alerts, silences and baselines."""
    view = view_of(request, desk.now())
    page = read(desk, filter_of(request, view))
    rules = sorted({one.name for one in (*page.rules, *page.others)} | {one.alert.rule for one in page.open})
    told: dict[str, Any] = {"page": page, "rule_names": rules, "severities": SEVERITIES, "spans": actions.SPANS}
    return render(request, desk, view, "alerts.html", person=name_of(request), **told)


def alerts_as_json(request: Request, desk: Desk) -> Response:
    """Answer with the same as JSON."""
    page = read(desk, filter_of(request, view_of(request, desk.now())))
    return JSONResponse(
        {
            "schema_version": SCHEMA_VERSION,
            "open": list(map(_as_dict, page.open)),
            "over": list(map(_as_dict, page.over)),
            "more_open": page.more_open,
            "after": page.onward,
            "silences": list(map(_silence_as_dict, page.silences)),
            "learning": [
                {**one.version.key._asdict(), "reason": one.version.reason, "until": one.version.until.isoformat()}
                for one in page.baselines.learning
            ],
        }
    )


def _as_dict(shown: ShownAlert) -> dict[str, Any]:
    told = [
        {"channel": one.channel, "what": one.what, "state": one.state, "at": one.at.isoformat(), "problem": one.problem}
        for one in shown.told
    ]
    return {**shown.alert.as_dict(), "told": told, "silenced": shown.silence is not None}


def _silence_as_dict(silence: Silence) -> dict[str, Any]:
    return {
        "id": silence.id,
        "matchers": dict(silence.matchers),
        "starts_at": silence.starts_at.isoformat(),
        "ends_at": silence.ends_at.isoformat(),
        "created_by": silence.created_by,
        "comment": silence.comment,
    }


ROUTES = (
    screen("/alerts", alerts),
    screen("/alerts.json", alerts_as_json),
    *backtest_page.ROUTES,
    *actions.ROUTES,
    *alert_detail.ROUTES,
)
