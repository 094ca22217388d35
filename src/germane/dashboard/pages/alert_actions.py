"""Form handlers for alert actions: acknowledge, resolve, silence, and accept as new baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from germane import alerting
from germane.dashboard.web.forms import form
from germane.dashboard.web.preferences import parse_view_params, redirect_after_form, submitted_name
from germane.dashboard.web.routing import http_error, page_route, usage_errors_as_conflict
from germane.errors import UsageError
from germane.insights import InsightContext, quote_segment

SILENCE_DURATIONS: Final[Mapping[str, tuple[str, timedelta]]] = {
    "1h": ("1 hour", timedelta(hours=1)),
    "8h": ("8 hours", timedelta(hours=8)),
    "1d": ("1 day", timedelta(days=1)),
    "1w": ("1 week", timedelta(weeks=1)),
}
MATCHERS: Final = ("rule", "service", "route", "scorer")
_RELOAD: Final = "Go back and reload the page: someone else may have changed it."
"""What to do if an action does not apply to an alert."""
MAX_FIELD_LENGTH: Final = 500
"""Maximum length of a comment or pattern in characters."""
MAX_SILENCE: Final = timedelta(days=366)
"""Maximum duration of a silence. To silence a rule for longer, disable it in the settings."""
MESSAGES: Final[Mapping[str, str]] = {
    "ack": "Acknowledged. No reminders will be sent until the alert resolves.",
    "resolve": "Resolved. Channels that received the alert are notified. It fires again if its rule still matches.",
    "silence": "Silenced. Matching alerts will still fire and resolve, but no notifications will be sent.",
    "accept": "Accepted. Scores since the onset are the new baseline. The alert will resolve at the next evaluation.",
}
"""Messages shown after an action, by the action's name in the URL."""
AlertAction = Callable[[Request, InsightContext, str], object]


def _acknowledge(request: Request, context: InsightContext, alert_id: str) -> object:
    return alerting.acknowledge_alert(context.store, alert_id, submitted_name(request))


def _resolve(request: Request, context: InsightContext, alert_id: str) -> object:
    return alerting.resolve_alert(context.store, context.settings, alert_id, submitted_name(request))


def _accept(request: Request, context: InsightContext, alert_id: str) -> object:
    """Accept the scores since a drop as the new baseline, and acknowledge the alert under the submitted name."""
    by = submitted_name(request)
    alert = alerting.accept_alert_baseline(context.store, alert_id, by)
    if by not in {None, alert.acknowledged_by}:
        with suppress(UsageError):  # a worker may have resolved it in the meantime
            alerting.acknowledge_alert(context.store, alert_id, by)
    return alert


def _silence(request: Request, context: InsightContext, alert_id: str) -> object:
    matchers = alerting.matchers_for(alerting.find_alert(context.store, alert_id))
    if form(request).get("what") == "rule":
        matchers = {name: pattern for name, pattern in matchers.items() if name in {"rule", "service"}}
    until, comment = _parse_end(request, context), _field(request, "comment")
    return alerting.silence_alerts(context.store, matchers, until=until, by=submitted_name(request), comment=comment)


def _alert_form(name: str, action: AlertAction) -> Callable[[Request, InsightContext], Response]:
    """Return a handler that applies an action to an alert and redirects to the alert's page."""

    def handle(request: Request, context: InsightContext) -> Response:
        alert_id = str(request.path_params["alert_id"])
        if context.store.alerts.get(alert_id) is None:
            step = "It may have been deleted under your retention settings."
            raise http_error(404, "There is no alert with this id.", step)
        with usage_errors_as_conflict(_RELOAD):
            action(request, context, alert_id)
        return redirect_after_form(request, f"/alerts/{quote_segment(alert_id)}?done={name}")

    return handle


def add_silence(request: Request, context: InsightContext) -> Response:
    """Add a silence from a submitted form."""
    matchers = {name: pattern for name in MATCHERS if (pattern := _field(request, name))}
    if not matchers and form(request).get("all") != "yes":
        step = "Enter a rule, service, route or scorer, or check the box to silence all alerts."
        raise http_error(400, "The silence has no matchers.", step)
    text = form(request).get("since", "").strip()
    since = _parse_local_time(text, parse_view_params(request, context).zone)
    if text and (since is None or since > context.store.now() + MAX_SILENCE):
        step = "Leave it empty to start now, or enter a time within the next year, such as 2030-01-31T18:00."
        raise http_error(400, "The silence's start time is invalid.", step)
    until = _parse_end(request, context)
    if since is not None and isinstance(until, datetime) and until <= since:
        raise http_error(400, "The silence ends before it starts.", "Enter an end after the start.")
    by, comment = submitted_name(request), _field(request, "comment")
    with usage_errors_as_conflict(_RELOAD):
        alerting.silence_alerts(context.store, matchers, since=since, until=until, by=by, comment=comment)
    return redirect_after_form(request, "/alerts#silences")


def end_silence(request: Request, context: InsightContext) -> Response:
    """End a silence now. A silence that has already ended is not changed."""
    context.store.alerts.end_silence(str(request.path_params["silence_id"]))
    return redirect_after_form(request, "/alerts#silences")


def _parse_end(request: Request, context: InsightContext) -> datetime | timedelta:
    """Return the duration or end time in a submitted silence form."""
    text, duration = form(request).get("until", "").strip(), SILENCE_DURATIONS.get(form(request).get("for", ""))
    if not text and duration is not None:
        return duration[1]
    until, now = _parse_local_time(text, parse_view_params(request, context).zone), context.store.now()
    if until is None or not now < until <= now + MAX_SILENCE:
        step = "Choose a duration, or enter a time within the next year, such as 2030-01-31T18:00."
        raise http_error(400, "The silence's end time is invalid or in the past.", step)
    return until


def _parse_local_time(text: str, zone: tzinfo | None) -> datetime | None:
    """Parse a time in the format that browsers send. If it has no time zone, the visitor's time zone applies."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else (moment.replace(tzinfo=zone) if zone else moment.astimezone())
    except (ValueError, OverflowError):
        return None


def _field(request: Request, name: str) -> str | None:
    return form(request).get(name, "").strip()[:MAX_FIELD_LENGTH] or None


ROUTES: Final = (
    page_route("/alerts/silences", add_silence, methods=("POST",)),
    page_route("/alerts/silences/{silence_id}/end", end_silence, methods=("POST",)),
    *(
        page_route(f"/alerts/{{alert_id}}/{name}", _alert_form(name, action), methods=("POST",), name=f"{name}_alert")
        for name, action in (("ack", _acknowledge), ("resolve", _resolve), ("silence", _silence), ("accept", _accept))
    ),
)
