"""What happened in a window: alerts and marks, as a chart shows them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from germane.alert import Alert
from germane.annotation import Mark
from germane.insights.charts import ChartMark
from germane.insights.sentences import quoted
from germane.insights.text import cut, plain


def chart_marks(alerts: Iterable[Alert], marks: Iterable[Mark], *, route: str | None = None) -> tuple[ChartMark, ...]:
    """Return what is marked on a chart, the oldest first; on the chart of one route its name is left out."""
    found = [ChartMark(began(one), _label(one, route), "alert", f"/alerts/{quoted(one.id)}") for one in alerts]
    found += [ChartMark(one.at, cut(one.name, 60), "deploy") for one in marks]
    return tuple(sorted(found, key=lambda one: one.at))


def began(alert: Alert) -> datetime:
    """Return when it is likely to have begun."""
    return alert.onset or alert.starts_at


def routes_of(alert: Alert) -> list[str]:
    """Return the routes that an alert is about: its own, or those that most of it sits on."""
    if alert.route is not None:
        return [alert.route]
    return [one.name for one in alert.shifts if one.kind == "route" and one.since.mean < one.before.mean]


def concerns(alert: Alert, service: str | None, route: str) -> bool:
    """Whether an alert is about a route, or about its service as a whole."""
    named = routes_of(alert)
    return service in {None, alert.service} and (route in named or not named)


def _label(alert: Alert, route: str | None) -> str:
    named = [cut(one, 60) for one in routes_of(alert)[:1] if one != route]
    return " on ".join([f"alert: {cut(plain(alert.rule), 60).lower()}", *named])
