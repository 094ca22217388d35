"""The page of a session, whose id may contain any character."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.web.parameters import MAX_VALUE_LENGTH, Parameter
from germane.dashboard.web.preferences import VIEW_PARAMETERS, parse_view_params
from germane.dashboard.web.routing import http_error, page_route
from germane.dashboard.web.templates import render
from germane.insights import InsightContext, load_session, session_path
from germane.storage import AnswerCursor


def session(request: Request, context: InsightContext) -> Response:
    """Show a session as a conversation in time order."""
    view = parse_view_params(request, context)
    name = request.query_params.get("name") or str(request.path_params["session"])
    if not name or len(name) > MAX_VALUE_LENGTH or "\0" in name:
        step = "Open a session from one of its answers."
        raise http_error(404, "There is no session with this id.", step)
    insight = load_session(context, view, name, AnswerCursor.parse(request.query_params.get("after", "")))
    return render(
        request,
        context,
        view,
        "session.html",
        here=session_path(name),
        session=insight,
        scorer=insight.scorer,
        scorers=insight.scorers,
    )


ROUTES: Final = (
    page_route(
        "/sessions/{session:path}",
        session,
        parameters=(
            *VIEW_PARAMETERS,
            Parameter("name"),
            Parameter("after", "a position from a link", lambda text: AnswerCursor.parse(text) is not None),
        ),
    ),
)
