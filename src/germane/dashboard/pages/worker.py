"""The worker page: workers, backlog, judge usage and failures, with retry buttons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.web.forms import form
from germane.dashboard.web.parameters import Parameter
from germane.dashboard.web.preferences import VIEW_PARAMETERS, parse_view_params, redirect_after_form
from germane.dashboard.web.routing import http_error, page_route
from germane.dashboard.web.templates import render
from germane.insights import (
    WINDOWS,
    InsightContext,
    available_scorers,
    describe_limits,
    describe_sampling_outcomes,
    describe_sampling_settings,
    load_status_bar,
    load_worker,
    rescore_matching,
)
from germane.score import UnscoredReason
from germane.storage import BACKLOG_COUNT_LIMIT, AnswerFilter, AnswerState

DEFAULT_WINDOW: Final = "24h"
MAX_SCOPES: Final = 40
"""Maximum number of rows in each table of watched traces."""
MAX_RETRIED: Final = 2_000
"""Maximum number of answers that one form submission queues."""
_FAILURE_REASONS: Final = frozenset(reason.value for reason in UnscoredReason if reason.state == "failed")
_RESULTS: Final[Mapping[str, str]] = {
    "ready": "{:,} answers are queued for scoring.",
    "resent": "{:,} notifications are queued for delivery.",
}
"""Messages shown after a form is submitted, by the URL parameter with the count."""
_COUNT: Final = re.compile(r"[0-9]{1,6}")
_PARAMETERS: Final = (
    *VIEW_PARAMETERS,
    Parameter("process"),
    *(Parameter(name, "a count", lambda value: bool(_COUNT.fullmatch(value))) for name in _RESULTS),
)


def worker(request: Request, context: InsightContext) -> Response:
    """Show the worker page."""
    view = parse_view_params(request, context, DEFAULT_WINDOW)
    insight = load_worker(context, view, request.query_params.get("process"))
    message = None
    for name, template in _RESULTS.items():
        if count := request.query_params.get(name):
            message = template.format(int(count))
    budget = context.settings.budget
    content: dict[str, Any] = {
        "insight": insight,
        "sampling": describe_sampling_settings(context.settings),
        "outcomes": describe_sampling_outcomes(insight.storage.sampling),
        "limits": [] if budget is None else list(describe_limits(budget)),
        "message": message,
        "max_counted": BACKLOG_COUNT_LIMIT,
        "max_scopes": MAX_SCOPES,
        "status": load_status_bar(context, insight.health),
    }
    return render(request, context, view, "worker.html", with_status=False, **content)


def retry(request: Request, context: InsightContext) -> Response:
    """Requeue the answers that failed for a given reason. Without a reason, retry postponed tasks now."""
    fields = form(request)
    scorer, reason = fields.get("scorer", ""), fields.get("reason", "")
    fingerprints = available_scorers(context.store)
    if scorer not in fingerprints:
        raise http_error(409, "No worker runs this scorer.", "Start a worker that runs it, then try again.")
    if reason and reason not in _FAILURE_REASONS:
        raise http_error(400, "Unknown reason.", "Go back and use one of the buttons.")
    window = fields.get("window", DEFAULT_WINDOW)
    since = context.store.now() - WINDOWS.get(window, WINDOWS[DEFAULT_WINDOW])
    state: AnswerState = "failed" if reason else "waiting"
    wanted = AnswerFilter(since=since, scorer=scorer, state=state, reason=reason or None)
    queued = rescore_matching(context, wanted, fingerprints, limit=MAX_RETRIED)
    query = urlencode({"window": window, "ready": queued.ready + queued.waiting})
    return redirect_after_form(request, f"/worker?{query}#failures")


def resend(request: Request, context: InsightContext) -> Response:
    """Requeue a single undelivered notification, or all undelivered notifications of a channel."""
    notification_id, channel = form(request).get("id", ""), form(request).get("channel", "")
    if not notification_id and not channel:
        raise http_error(400, "No notification selected.", "Go back and use one of the buttons.")
    ids = [notification_id] if notification_id else []
    count = context.store.notifications.resend(channel=channel or None, ids=ids)
    return redirect_after_form(request, f"/worker?{urlencode({'resent': count})}#notifications")


ROUTES: Final = (
    page_route("/worker", worker, parameters=_PARAMETERS),
    page_route("/worker/retry", retry, methods=("POST",)),
    page_route("/worker/resend", resend, methods=("POST",)),
)
