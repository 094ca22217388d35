"""The page of an unreadable trace, which shows its spans without values."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.web.preferences import VIEW_PARAMETERS, parse_view_params
from germane.dashboard.web.routing import http_error, page_route
from germane.dashboard.web.templates import render
from germane.insights import InsightContext, load_unreadable_trace

MAX_OPEN_ATTRIBUTES: Final = 20
"""Maximum number of attributes of a span that are shown without a click."""


def unreadable_trace(request: Request, context: InsightContext) -> Response:
    """Show an unreadable trace of the sample."""
    view = parse_view_params(request, context)
    insight = load_unreadable_trace(context, request.path_params["trace_id"])
    if insight is None:
        cause = "The spans of this trace are not stored, or have been deleted."
        step = "Only the newest unreadable traces are kept, for a week. Open one from the worker page."
        raise http_error(404, cause, step)
    return render(
        request,
        context,
        view,
        "trace.html",
        insight=insight,
        max_open=MAX_OPEN_ATTRIBUTES,
    )


ROUTES: Final = (page_route("/traces/{trace_id}", unreadable_trace, parameters=VIEW_PARAMETERS),)
