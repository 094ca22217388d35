"""The screen of one route: every metric over time, how scores are spread, and its worst answers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.desk import Desk
from germane.dashboard.rendering import render
from germane.dashboard.route_readings import known_routes, read_route
from germane.dashboard.sampling import sampling_rule
from germane.dashboard.screen import screen
from germane.dashboard.view import view_of
from germane.dashboard.words import route_path

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
