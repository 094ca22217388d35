"""The page of one route."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.web.preferences import parse_view_params
from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import page_route, root_of
from germane.insights import InsightContext, describe_sampling, list_routes, load_route, route_path


def route(request: Request, context: InsightContext) -> Response:
    """Show everything about a route. Its name may contain any character."""
    view = parse_view_params(request, context.now())
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
        scorers=insight.scorers,
        services=insight.services,
        sampling=describe_sampling(context.settings, None if insight.first is None else insight.first.summary.coverage),
    )


ROUTES: Final = (page_route("/r/{route:path}", route),)
