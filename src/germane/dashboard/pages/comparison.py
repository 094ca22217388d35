"""The comparison page: two periods, prompt versions or models side by side."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from germane.dashboard.web.parameters import Parameter, one_of, query_error, unknown_name_error
from germane.dashboard.web.preferences import (
    VIEW_PARAMETERS,
    check_names,
    moment_parameter,
    parse_moment,
    parse_view_params,
    with_zone,
)
from germane.dashboard.web.routing import http_error, page_route, root_of
from germane.dashboard.web.templates import render
from germane.insights import (
    COMPARED_BY,
    MAX_ANSWERS_PER_SIDE,
    MAX_LABELS_SHOWN,
    ComparedBy,
    ComparisonRequest,
    InsightContext,
    UnknownLabel,
    UnknownQuestion,
    draw_comparison,
    load_comparison,
)

_PERIOD_FIELDS: Final = ("since", "until", "old_since", "old_until")


def comparison(request: Request, context: InsightContext) -> Response:
    """Show the comparison page."""
    view = parse_view_params(request, context)
    wanted = _parse_comparison(request, context)
    try:
        insight = load_comparison(context, view, wanted)
    except UnknownLabel as error:
        if not error.known:
            step = "Choose a longer window, another service or another scorer."
            raise query_error(f"No {COMPARED_BY[wanted.by]} has scores in this window", "", (), step) from None
        raise unknown_name_error(f"{COMPARED_BY[wanted.by]} in this window named", error.given, error.known) from None
    except UnknownQuestion:
        step = "Its answers may have been deleted, or are older than the answers that were searched. Choose a question."
        raise http_error(404, "There is no answer to this question on either side.", step) from None
    exchanges = {}
    if wanted.question is not None:
        (question,) = insight.questions
        listed = [score.exchange_id for side in question.answers for score in side[:MAX_ANSWERS_PER_SIDE]]
        exchanges = context.store.answers.get_exchanges(listed)
    own = {name: value for name in _OWN_PARAMETERS if (value := request.query_params.get(name))}
    content: dict[str, Any] = {
        "insight": insight,
        "chart": None if wanted.question else draw_comparison(context, view, insight, root_of(request.scope)),
        "own": own,
        "kinds": COMPARED_BY,
        "exchanges": exchanges,
        "max_answers": MAX_ANSWERS_PER_SIDE,
        "max_labels": MAX_LABELS_SHOWN,
        "scorer": insight.scorer,
        "scorers": insight.scorers,
        "services": insight.services,
        "shown_service": insight.service,
    }
    return render(request, context, view, "comparison.html", **content)


def _parse_comparison(request: Request, context: InsightContext) -> ComparisonRequest:
    """Parse the parameters that select the two sides."""
    given = {name: value.strip() or None for name, value in request.query_params.items()}
    by: ComparedBy = next((name for name in COMPARED_BY if name == given.get("by")), "period")
    route, old, new = given.get("route"), given.get("old"), given.get("new")
    check_names(request, context, {} if route is None else {"route": route})
    if by == "period" and (old or new):
        step = "Add by=prompt_version or by=model. To compare periods, use since, until, old_since and old_until."
        raise query_error("\u201cold\u201d and \u201cnew\u201d do not apply to periods", "", (), step)
    if old is not None and old == new:
        raise query_error("Both sides are the same", "", (), f"Choose another {COMPARED_BY[by]} for one of them.")
    window = None
    if given.get("old_since") or given.get("old_until"):
        begin, end = parse_moment(given.get("old_since")), parse_moment(given.get("old_until"))
        if begin is None or end is None:
            raise query_error("The earlier period is incomplete", "", (), "Give both old_since and old_until.")
        if begin >= end:
            raise query_error("The earlier period is empty", "", (), "Choose a start before the end.")
        window = (begin, end)
    return ComparisonRequest(by=by, old=old, new=new, old_window=window, route=route, question=given.get("question"))


def choose_periods(request: Request, context: InsightContext) -> Response:
    """Redirect to the comparison of the chosen periods. Times are in the visitor's time zone."""
    parameters = request.query_params
    zone = parse_view_params(request, context).zone
    _parse_comparison(request, context)  # reports errors before the redirect
    kept = [(name, value) for name, value in parameters.items() if value and name not in {*_PERIOD_FIELDS, "window"}]
    kept += [(name, with_zone(text, zone)) for name in _PERIOD_FIELDS if (text := parameters.get(name))]
    return RedirectResponse(f"{root_of(request.scope)}/compare?{urlencode(kept)}", 303)


_OWN_PARAMETERS: Final = ("by", "old", "new", "old_since", "old_until", "route")
_PARAMETERS: Final = (
    *VIEW_PARAMETERS,
    one_of("by", COMPARED_BY),
    Parameter("old"),
    Parameter("new"),
    moment_parameter("old_since"),
    moment_parameter("old_until"),
    Parameter("route"),
)
ROUTES: Final = (
    page_route(
        "/compare",
        comparison,
        parameters=(*_PARAMETERS, Parameter("question")),
    ),
    page_route("/compare/periods", choose_periods, parameters=_PARAMETERS),
)
