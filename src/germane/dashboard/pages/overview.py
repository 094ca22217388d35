"""The first screen: is it worse, where, and since when."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.pages.start import is_first_run, start
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import root_of, screen
from germane.insights.charts import Trend, points_of, small_chart, trend_figure
from germane.insights.context import Desk
from germane.insights.defaults import called
from germane.insights.overview import Card, Overview, read
from germane.insights.sampling_summary import sampling_rule
from germane.insights.sentences import before_named
from germane.insights.text import plain
from germane.insights.window import View, view_of


def overview(request: Request, desk: Desk) -> Response:
    """Answer with the verdict, the trend, the routes and the worst answers."""
    if is_first_run(request, desk):
        return start(request, desk)
    view = view_of(request, desk.now())
    found = read(desk, view)
    floor = -1.0 if any(one.mean < 0 for one in found.buckets) else 0.0
    content: dict[str, Any] = {
        "found": found,
        "recent": found.recent,
        "called": called(found.recent.scorer),
        "before": before_of(found, view),
        "sampling": sampling_rule(desk.settings, found.coverage),
        "trend": _trend(found, view, root_of(request.scope)),
        "cards": [
            (card, _small(card, view, number, floor, found.usual_name)) for number, card in enumerate(found.cards)
        ],
        "scorers": found.recent.scorers,
        "scorer": found.recent.scorer,
    }
    return render(request, desk, view, "overview.html", framed=False, frame=found.frame, **content)


def before_of(found: Overview, view: View) -> str:
    """Return what the last day is compared with: "baseline 2, 13 Nov to 18 Nov"."""
    return "" if found.recent.before is None else before_named(found.recent.before, view)


def _trend(found: Overview, view: View, root: str) -> Markup:
    usual = found.recent.usual
    return trend_figure(
        Trend(
            points=points_of(found.buckets),
            since=view.since,
            until=view.until,
            bucket=view.bucket,
            zone=view.zone,
            baseline=usual.mean if usual is not None and usual.enough else None,
            baseline_name=before_of(found, view),
            marks=found.marks,
            title=f"{plain(found.recent.scorer or 'scores')} over time",
            name="trend",
            root=root,
        )
    )


def _small(card: Card, view: View, number: int, floor: float, name: str) -> Markup:
    return small_chart(
        points_of(card.buckets),
        since=view.since,
        until=view.until,
        bucket=view.bucket,
        baseline=card.usual,
        baseline_name=name,
        title=f"Scores of {card.route}",
        name=f"route-{number}",
        floor=floor,
    )


ROUTES = (screen("/", overview),)
