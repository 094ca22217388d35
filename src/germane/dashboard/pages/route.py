"""The screen of one route: every metric over time, how scores are spread, and its worst answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from germane.alert import Alert
from germane.annotation import Mark
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import screen
from germane.insights.baseline_level import baseline_of, level_of
from germane.insights.charts import ChartMark, Trend, points_of, spread_figure, trend_figure
from germane.insights.context import Desk
from germane.insights.defaults import known, scorer_on_show, service_on_show
from germane.insights.events import began, chart_marks, concerns
from germane.insights.sampling_summary import sampling_rule
from germane.insights.sentences import before_named
from germane.insights.situation import Before
from germane.insights.text import plain, route_path
from germane.insights.window import View, view_of
from germane.insights.worst_answers import Worst, disagreement_of, worst_answers
from germane.storage import BaselineVersion, Coverage, Disagreement, Overall, RouteMean, RouteSummary

CHARTS: Final = 12
"""Scorers that have a chart."""
LABELS: Final = 12
"""Lines of a table by model or the like."""
ALERTS: Final = 200
"""Alerts that are looked through."""
_NOTHING: Final = Markup()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What a mean is compared with."""

    mean: float
    n: int
    since: datetime
    """UTC; of what it was learned from."""
    until: datetime
    name: str
    """The same in words: "baseline 2, 13 Nov to 18 Nov"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One scorer on this route."""

    scorer: str
    summary: RouteSummary
    """Of the newest fingerprint."""
    earlier: Sequence[RouteSummary] = ()
    """Of others in this window, which are not averaged with it."""
    usual: Usual | None = None
    chart: Markup = _NOTHING

    @property
    def change(self) -> float | None:
        """Mean less that of the baseline; None without one, or where there are too few scores."""
        return self.summary.mean - self.usual.mean if self.usual is not None and self.summary.enough else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The means of one scorer by model, by version of the prompt, or by an attribute."""

    name: str
    means: Sequence[RouteMean]
    """By the newest fingerprint; the one with most scores first."""
    more: int = 0
    """Labels that are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePage:
    """All that is shown of one route."""

    route: str
    service: str | None
    services: Sequence[str] = ()
    scorer: str | None = None
    """Whose scores are on show."""
    scorers: Sequence[str] = ()
    lines: Sequence[Line] = ()
    """One per scorer, that on show first."""
    coverage: Sequence[Coverage] = ()
    """One per scorer, in the same order; also of what has no score."""
    spread: Markup = _NOTHING
    breakdowns: Sequence[Breakdown] = ()
    worst: Sequence[Worst] = ()
    disagreement: Disagreement | None = None
    """Between people and the judge, of the answers in this window; None where nobody has labelled one."""
    alerts: Sequence[Alert] = ()
    marks: Sequence[Mark] = ()
    others: Sequence[str] = field(default_factory=list)
    """Routes of the same window."""

    @property
    def first(self) -> Line | None:
        """The scorer on show; None where it has no score in this window."""
        return next((one for one in self.lines if one.scorer == self.scorer), None)

    @property
    def seen(self) -> int:
        """Exchanges of the window, by the counts of whichever scorer saw most."""
        return max((one.seen for one in self.coverage), default=0)


def read_route(desk: Desk, view: View, route: str, root: str = "") -> RoutePage | None:
    """Return what is known of a route; None where nobody has ever heard of it.

    Args:
        desk: What screens work with.
        view: The window, and perhaps scorer and service.
        route: Its name.
        root: Before every link.
    """
    overall = desk.store.overall(since=view.since, until=view.until)
    summaries = [one for one in overall.routes if one.route == route]
    counted = [one for one in overall.coverage if one.route == route]
    if not summaries and not counted and not _is_known(desk, route):
        return None
    service = service_on_show(summaries, view.service)
    mine = [one for one in summaries if service in {None, one.service}]
    scorer = scorer_on_show(mine, known(view.scorer, (one.scorer for one in mine)))
    happened = _happened(desk, view, service, route)
    flags = chart_marks(*happened, route=route)
    lines = _lines(desk, view, mine, scorer, flags, root)
    first = next((one for one in lines if one.scorer == scorer), None)
    return RoutePage(
        route=route,
        service=service,
        services=sorted({one.service for one in summaries} | {one.service for one in counted}),
        scorer=scorer,
        scorers=sorted({one.scorer for one in mine}),
        lines=lines,
        coverage=_counted(counted, service, scorer),
        spread=_NOTHING if first is None else _spread(desk, view, first),
        breakdowns=[] if first is None else list(_breakdowns(desk, view, first)),
        worst=[] if first is None else worst_answers(desk.store, first.summary, view.since, view.until),
        disagreement=None if first is None else disagreement_of(desk.store, first.summary, view.since, view.until),
        alerts=happened[0],
        marks=happened[1],
        others=_others(overall, route),
    )


def known_routes(desk: Desk, limit: int = 100) -> list[str]:
    """Return routes by name: all that were ever declared or seen."""
    return sorted({one.route for one in desk.store.coverage()})[:limit]


def _is_known(desk: Desk, route: str) -> bool:
    return any(one.route == route for one in desk.store.coverage())


def _others(overall: Overall, route: str) -> list[str]:
    return sorted({one.route for one in overall.coverage} - {route})


def _counted(counted: Iterable[Coverage], service: str | None, scorer: str | None) -> list[Coverage]:
    """Return counts, those of the scorer on show first; an empty name is no scorer's."""
    mine = [one for one in counted if service in {None, one.service} and one.seen]
    named = [one for one in mine if one.scorer] or mine
    return sorted(named, key=lambda one: (one.scorer != scorer, one.scorer))


def _happened(desk: Desk, view: View, service: str | None, route: str) -> tuple[list[Alert], list[Mark]]:
    """Return the alerts that began in the window or are open, and the marks in it."""
    recent = desk.store.alerts(since=view.since, limit=ALERTS)
    known = {one.id for one in recent}
    alerts = [*recent, *(one for one in desk.store.open_alerts() if one.id not in known)]
    mine = [one for one in alerts if concerns(one, service, route) and began(one) < view.until]
    marks = desk.store.marks(since=view.since, until=view.until, service=service)
    return sorted(mine, key=lambda one: (not one.is_open, -one.starts_at.timestamp())), marks


def _lines(
    desk: Desk,
    view: View,
    summaries: Sequence[RouteSummary],
    scorer: str | None,
    flags: Sequence[ChartMark],
    root: str,
) -> list[Line]:
    versions = desk.store.baselines()
    newest = sorted(
        (one for one in summaries if one.newest), key=lambda one: (one.scorer != scorer, one.scorer, one.service)
    )
    found = []
    for number, summary in enumerate(newest[:CHARTS]):
        usual = usual_of(versions, summary, view)
        chart = _chart(desk, view, summary, usual, flags, f"trend-{number}", root)
        earlier = [one for one in summaries if _is_earlier(one, summary)]
        found.append(Line(scorer=summary.scorer, summary=summary, earlier=earlier, usual=usual, chart=chart))
    return found


def _is_earlier(one: RouteSummary, newest: RouteSummary) -> bool:
    return not one.newest and (one.service, one.scorer) == (newest.service, newest.scorer)


def usual_of(versions: Iterable[BaselineVersion], mean: RouteMean, view: View) -> Usual | None:
    """Return what the baseline in force knows of a route; None where it knows nothing of it."""
    version = baseline_of(versions, mean.service, mean.scorer, mean.fingerprint)
    level = None if version is None or version.baseline is None else level_of(version.baseline, mean.route)
    if version is None or level is None:
        return None
    name = before_named(Before(since=version.since, until=version.until, baseline=version.number), view)
    return Usual(mean=level[0], n=level[1], since=version.since, until=version.until, name=name)


def _chart(
    desk: Desk,
    view: View,
    mean: RouteSummary,
    usual: Usual | None,
    flags: Sequence[ChartMark],
    name: str,
    root: str,
) -> Markup:
    buckets = desk.store.trend(
        scorer=mean.scorer,
        bucket=view.bucket,
        since=view.since,
        until=view.until,
        route=mean.route,
        service=mean.service,
        histograms=False,
    )
    trend = Trend(
        points=points_of(buckets),
        since=view.since,
        until=view.until,
        bucket=view.bucket,
        title=f"{plain(mean.scorer)} of {mean.route}, mean over time",
        name=name,
        zone=view.zone,
        baseline=None if usual is None else usual.mean,
        baseline_name="" if usual is None else usual.name,
        marks=flags,
        root=root,
    )
    return trend_figure(trend)


def _spread(desk: Desk, view: View, line: Line) -> Markup:
    """Return how scores are spread in the window, and in the time of the baseline, or the stretch before."""
    now = _weights(desk, line.summary, view.since, view.until)
    since, until = view.since - (view.until - view.since), view.since
    name = before_named(Before(since=since, until=until), view)
    if line.usual is not None:
        since, until, name = line.usual.since, line.usual.until, line.usual.name
    before = _weights(desk, line.summary, since, until)
    title = f"How {plain(line.scorer).lower()} is spread on {line.summary.route}"
    shown = "this window" if not view.span else f"last {view.span.removesuffix('h').removesuffix('d')} {view.span[-1]}"
    return spread_figure(now, before, title=title, name="spread", names=(shown, name))


def _weights(desk: Desk, mean: RouteMean, since: datetime, until: datetime) -> Sequence[float]:
    found = desk.store.means(scorer=mean.scorer, since=since, until=until, route=mean.route, service=mean.service)
    same = (one.histogram for one in found if one.fingerprint == mean.fingerprint)
    histogram = next(same, None)
    return () if histogram is None else histogram.weights


def _breakdowns(desk: Desk, view: View, line: Line) -> Iterable[Breakdown]:
    mean = line.summary
    for name in desk.settings.trend_by:
        found = desk.store.means(
            scorer=mean.scorer,
            since=view.since,
            until=view.until,
            route=mean.route,
            service=mean.service,
            by=name,
            histograms=False,
        )
        same = sorted((one for one in found if one.fingerprint == mean.fingerprint), key=lambda one: -one.n)
        if any(one.label for one in same):
            yield Breakdown(name=name, means=same[:LABELS], more=max(0, len(same) - LABELS))


NOT_FOUND = 404


def route(request: Request, desk: Desk) -> Response:
    """Answer with what is known of a route; its name may hold anything."""
    view = view_of(request, desk.now())
    name = request.query_params.get("name", request.path_params["route"])
    shown = read_route(desk, view, name, str(request.scope.get("root_path", "")).rstrip("/"))
    if shown is None:
        return render(request, desk, view, "no_route.html", status=NOT_FOUND, route=name, routes=known_routes(desk))
    return render(
        request,
        desk,
        view,
        "route.html",
        here=route_path(name),
        shown=shown,
        scorer=shown.scorer,
        scorers=shown.scorers,
        services=shown.services,
        rule=sampling_rule(desk.settings, None if shown.first is None else shown.first.summary.coverage),
    )


ROUTES = (screen("/r/{route:path}", route),)
