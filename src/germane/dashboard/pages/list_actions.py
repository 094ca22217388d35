"""Actions on the answer list: labels for selected answers, and new rows for an open page."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane.dashboard.pages.answers import LABEL_SCORES, LIST_PARAMETERS, MAX_SELECTED, new_label, parse_list
from germane.dashboard.web.forms import form_values
from germane.dashboard.web.routing import http_error, page_route, root_of
from germane.dashboard.web.templates import render
from germane.insights import InsightContext, load_newest_rows


def new_answers(request: Request, context: InsightContext) -> Response:
    """Return the rows of the newest answers, which an open page inserts into its list."""
    query = parse_list(request, context)
    rows = load_newest_rows(context, query.search)
    view = query.search.view
    return render(request, context, view, "new_answers.html", with_status=False, query=query, rows=rows)


def label_selected(request: Request, context: InsightContext) -> Response:
    """Store the same label for all selected answers, and redirect to the list."""
    query, verdict = parse_list(request, context), str(request.path_params["verdict"])
    ids = form_values(request, "id")
    if verdict not in LABEL_SCORES:
        raise http_error(404, "There is no label with this name.", "Go back and use one of the buttons.")
    if not 0 < len(ids) <= MAX_SELECTED:
        step = f"Go back and select 1 to {MAX_SELECTED} answers."
        raise http_error(400, "No answers are selected." if not ids else "Too many answers are selected.", step)
    known = context.store.answers.get_exchanges([id_.replace("\0", "") for id_ in ids])
    context.store.labels.add_feedback([new_label(context, id_, verdict) for id_ in known])
    after = str(query.search.after) if query.search.after else None
    path = query.link("/answers", after=after, **{verdict: str(len(known))})
    return RedirectResponse(f"{root_of(request.scope)}{path}#list", 303)


ROUTES: Final = (
    page_route("/answers/new", new_answers, parameters=LIST_PARAMETERS),
    page_route("/answers/label/{verdict}", label_selected, methods=("POST",), parameters=LIST_PARAMETERS),
)
