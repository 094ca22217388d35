"""The overview, the getting-started page that is shown until an exchange is captured, the route pages, and usage."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.pages.saved_views import list_saved_views
from germane.dashboard.web.parameters import Parameter
from germane.dashboard.web.preferences import VIEW_PARAMETERS, parse_view_params
from germane.dashboard.web.routing import page_route, root_of
from germane.dashboard.web.templates import render
from germane.insights import (
    InsightContext,
    TrendChart,
    chart_points,
    describe_period,
    describe_sampling,
    has_exchanges,
    humanize,
    labeled_band,
    list_routes,
    load_onboarding,
    load_overview,
    load_route,
    load_service_usage,
    load_status_bar,
    route_path,
    scorer_title,
    shared_scale,
    sparkline_svg,
    trend_figure,
)


def overview(request: Request, context: InsightContext) -> Response:
    """Show the overview: verdict, trend, routes and worst answers. Before the first exchange, show the first steps."""
    # Once an exchange has been captured, the database is not queried for exchanges again.
    application = request.app.state
    application.is_started = getattr(application, "is_started", False) or has_exchanges(context)
    if not application.is_started:
        return start(request, context)
    view = parse_view_params(request, context)
    overview = load_overview(context, view)
    fleet = overview.fleet
    day = fleet.day
    reference, period = (None, None) if day is None else (day.reference, day.reference_period)
    # With a single route, the route's line would hide the service's line.
    has_others = len(overview.cards) + len(overview.routes_without_card) > 1
    failing = next((card for card in overview.cards if card.dropped and has_others), None)
    names = {"scorer": fleet.scorer, "service": fleet.service}
    trend = TrendChart(
        points=chart_points(overview.buckets),
        since=view.since,
        until=view.until,
        bucket=overview.bucket,
        zone=view.zone,
        baseline=reference.mean if reference is not None and reference.has_min_samples else None,
        baseline_name="" if period is None else describe_period(period, view),
        markers=overview.markers,
        title=f"{humanize(fleet.scorer or 'scores')} over time",
        name="trend",
        root=root_of(request.scope),
        answers=view.link_without_range("/answers", **names),
        failing=chart_points(failing.buckets) if failing else (),
        failing_name=failing.route if failing else "",
        labeled=labeled_band(overview.labeled, fleet.scorer),
    )
    charts = [
        TrendChart(
            points=chart_points(card.buckets),
            since=view.since,
            until=view.until,
            bucket=overview.bucket,
            baseline=card.reference_mean,
            baseline_name=overview.reference_name,
            title=f"Scores of {card.route}",
            name=f"route-{index}",
        )
        for index, card in enumerate(overview.cards)
    ]
    scale = shared_scale(charts)
    cards = [(card, sparkline_svg(chart, scale=scale)) for card, chart in zip(overview.cards, charts, strict=True)]
    content: dict[str, Any] = {
        "overview": overview,
        "fleet": fleet,
        "scorer_title": scorer_title(fleet.scorer),
        "sampling": describe_sampling(context.settings, overview.coverage),
        "trend": trend_figure(trend),
        "cards": cards,
        "scorers": fleet.scorers,
        "services": fleet.services,
        "scorer": fleet.scorer,
        "status": overview.status,
        "saved_views": list_saved_views(context),
    }
    return render(request, context, view, "overview.html", with_status=False, **content)


def start(request: Request, context: InsightContext) -> Response:
    """Show the getting-started page."""
    onboarding = load_onboarding(context)
    return render(request, context, None, "start.html", with_status=onboarding.exists, onboarding=onboarding)


def route(request: Request, context: InsightContext) -> Response:
    """Show the page for a route, whose name may contain any character."""
    view = parse_view_params(request, context)
    name = request.query_params.get("name", request.path_params["route"])
    insight = load_route(context, view, name, root_of(request.scope))
    if insight is None:
        return render(request, context, view, "no_route.html", status_code=404, route=name, routes=list_routes(context))
    return render(
        request,
        context,
        view,
        "route.html",
        here=route_path(name),
        insight=insight,
        scorer=insight.scorer,
        status=insight.status or load_status_bar(context),
        with_status=False,
        scorers=insight.scorers,
        services=insight.services,
        shown_service=insight.service,
        sampling=describe_sampling(context.settings, insight.coverage_of_day),
    )


def usage(request: Request, context: InsightContext) -> Response:
    """Show the response times and the costs of the judge on all routes."""
    view = parse_view_params(request, context)
    service = load_service_usage(context, view, root_of(request.scope))
    content: dict[str, Any] = {
        "service": service,
        "scorer": service.scorer,
        "scorers": service.scorers,
        "services": service.services,
        "shown_service": service.service,
    }
    return render(request, context, view, "usage.html", **content)


ROUTES: Final = (
    page_route("/", overview, parameters=VIEW_PARAMETERS),
    page_route("/start", start, parameters=()),
    page_route("/usage", usage, parameters=VIEW_PARAMETERS),
    page_route("/r/{route:path}", route, parameters=(*VIEW_PARAMETERS, Parameter("name"))),
)
