"""Saved views: a page that lists them, and forms to save and delete them."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from germane.annotation import SavedView
from germane.dashboard.web.forms import form
from germane.dashboard.web.parameters import MAX_VALUE_LENGTH, Parameter
from germane.dashboard.web.preferences import (
    VIEW_PARAMETERS,
    parse_view_params,
    redirect_after_form,
    stored_name,
    submitted_name,
)
from germane.dashboard.web.routing import http_error, is_local_path, page_route, usage_errors_as_conflict
from germane.dashboard.web.templates import render
from germane.insights import InsightContext

MAX_NAME_LENGTH: Final = 80
"""Maximum length of a view's name in characters."""


def list_saved_views(context: InsightContext) -> list[SavedView]:
    """Return the saved views whose paths are local. Other paths can only come from an imported file."""
    return [view for view in context.store.views.list_views() if is_local_path(view.path)]


def saved_views(request: Request, context: InsightContext) -> Response:
    """Show all saved views and, for a path, the form to save it."""
    content: dict[str, Any] = {
        "saved_views": list_saved_views(context),
        "new_path": request.query_params.get("path") or None,
        "max_name_length": MAX_NAME_LENGTH,
        "display_name": stored_name(request),
    }
    return render(request, context, parse_view_params(request, context), "views.html", **content)


def save_view(request: Request, context: InsightContext) -> Response:
    """Save a view from a submitted form."""
    fields = form(request)
    name, path = " ".join(fields.get("name", "").split()), fields.get("path", "")
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        step = f"Go back and enter a name of at most {MAX_NAME_LENGTH} printable characters."
        raise http_error(400, "The name of the view is missing or invalid.", step)
    if not is_local_path(path) or len(path) > MAX_VALUE_LENGTH:
        step = "Open the page that you want to save, and use its link Save view."
        raise http_error(400, "The path of the view is not a page of this dashboard.", step)
    view = SavedView(name=name, path=path, created_at=context.now(), created_by=submitted_name(request))
    with usage_errors_as_conflict("Go back and enter another name, or delete a view first."):
        context.store.views.add_view(view)
    return redirect_after_form(request, "/views")


def delete_view(request: Request, context: InsightContext) -> Response:
    """Delete a saved view. A view that has already been deleted is not an error."""
    context.store.views.delete_view(form(request).get("name", ""))
    return redirect_after_form(request, "/views")


ROUTES: Final = (
    page_route(
        "/views",
        saved_views,
        parameters=(*VIEW_PARAMETERS, Parameter("path", "a path such as /answers?sort=newest", is_local_path)),
    ),
    page_route("/views/save", save_view, methods=("POST",)),
    page_route("/views/delete", delete_view, methods=("POST",)),
)
