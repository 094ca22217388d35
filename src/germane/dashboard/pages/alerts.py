"""The alert pages: the list, a single alert, accepting a baseline, and the rule diagnosis."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, cast

from starlette.requests import Request
from starlette.responses import Response

from germane import alerting, records
from germane.alert import IMPROVEMENT, SEVERITIES, Alert, Severity
from germane.dashboard.pages import alert_actions
from germane.dashboard.web.parameters import Parameter, one_of, unknown_name_error
from germane.dashboard.web.preferences import VIEW_PARAMETERS, check_names, parse_view_params, stored_name
from germane.dashboard.web.routing import RecordsResponse, http_error, page_route, root_of
from germane.dashboard.web.templates import render
from germane.insights import (
    AlertFilter,
    AlertSummary,
    BacktestBusy,
    BacktestTooLarge,
    DiagnosisScope,
    InsightContext,
    ViewParams,
    can_accept_baseline,
    diagnose_rules,
    format_level,
    load_alert_detail,
    load_alert_list,
    run_rule_backtest,
)
from germane.records import select
from germane.score import MIN_SAMPLES

SCHEMA_VERSION: Final = 1


def parse_alert_filter(request: Request, view: ViewParams) -> AlertFilter:
    """Parse the alert filter in the URL."""
    parameters = request.query_params
    state, severity = parameters.get("state"), parameters.get("severity")
    return AlertFilter(
        state=cast("Literal['open', 'resolved']", state) if state else None,
        rule=parameters.get("rule") or None,
        severity=cast("Severity", severity) if severity else None,
        service=view.service,
        after=_parse_position(parameters.get("after", "")),
    )


def _parse_position(text: str) -> tuple[datetime, str] | None:
    """Parse the position at which a page of alerts ended. Returns None if it is malformed."""
    moment, _, alert_id = text.partition("~")
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)), alert_id


def alerts(request: Request, context: InsightContext) -> Response:
    """Show the list of alerts, with silences, baselines and rules."""
    view = parse_view_params(request, context)
    alert_list = load_alert_list(context, parse_alert_filter(request, view))
    rules = {rule.name for rule in (*alert_list.rules, *alert_list.disabled_rules)}
    content: dict[str, Any] = {
        "list": alert_list,
        "rule_names": sorted(rules | {summary.alert.rule for summary in alert_list.open}),
        "severities": SEVERITIES,
        "durations": alert_actions.SILENCE_DURATIONS,
        "display_name": stored_name(request),
    }
    return render(request, context, view, "alerts.html", **content)


def alerts_json(request: Request, context: InsightContext) -> Response:
    """Return the alert list as JSON."""
    alert_list = load_alert_list(context, parse_alert_filter(request, parse_view_params(request, context)))
    learning = [
        {
            **summary.version.key._asdict(),
            **select(summary.version, "reason", "until"),
            "provisional": summary.version.provisional is not None,
        }
        for summary in alert_list.baselines.learning
    ]
    return RecordsResponse(
        {
            "schema_version": SCHEMA_VERSION,
            "open": list(map(_summary_as_dict, alert_list.open)),
            "resolved": list(map(_summary_as_dict, alert_list.resolved)),
            "open_hidden": alert_list.open_hidden,
            "after": alert_list.next_page,
            "silences": alert_list.silences,
            "learning": learning,
        }
    )


def _summary_as_dict(summary: AlertSummary) -> dict[str, Any]:
    notifications = [
        {
            **select(record.notification, "channel", "type", "created_at"),
            "state": record.status,
            "problem": record.error,
        }
        for record in summary.notifications
    ]
    return {**records.encode(summary.alert), "notifications": notifications, "silenced": summary.silence is not None}


def _find_alert(request: Request, context: InsightContext) -> Alert:
    alert = context.store.alerts.get(request.path_params["alert_id"])
    if alert is None:
        step = "It may have been deleted under your retention settings. See the list of alerts."
        raise http_error(404, "There is no alert with this id.", step)
    return alert


def alert(request: Request, context: InsightContext) -> Response:
    """Show a single alert."""
    view = parse_view_params(request, context)
    detail = load_alert_detail(context, _find_alert(request, context), view, root_of(request.scope))
    content: dict[str, Any] = {
        "detail": detail,
        "display_name": stored_name(request),
        "durations": alert_actions.SILENCE_DURATIONS,
        "message": alert_actions.MESSAGES.get(request.query_params.get("done", "")),
        "format_level": format_level,
        "format_contribution": partial(format_level, "drop", min_samples=MIN_SAMPLES),
    }
    return render(request, context, view, "alert.html", **content)


def confirm_accept(request: Request, context: InsightContext) -> Response:
    """Show the consequences of accepting a drop as the new baseline, and ask for confirmation."""
    alert, now = _find_alert(request, context), context.store.now()
    if alert.type not in {"drop", IMPROVEMENT} or not alert.is_open:
        raise http_error(
            409,
            "Only an open drop or improvement can be accepted as the new baseline.",
            "For other rules, change the settings.",
        )
    if not can_accept_baseline(context, alert):
        step = "A new baseline was accepted, or the judge changed. The alert will resolve at the next evaluation."
        raise http_error(409, "The baseline of this drop is no longer active.", step)
    since = alert.onset or alert.starts_at
    learned_at = None
    if now - since < alerting.MIN_BASELINE_SPAN:
        learned_at = max(since + alerting.LEARNING_PERIOD, now + timedelta(days=1))
    content: dict[str, Any] = {
        "alert": alert,
        "since": since,
        "learned_at": learned_at,
        "display_name": stored_name(request),
        "format_level": format_level,
    }
    return render(request, context, parse_view_params(request, context), "accept.html", **content)


def backtest_page(request: Request, context: InsightContext) -> Response:
    """Show the diagnosis of all rules and, if requested, a backtest of one rule."""
    view = parse_view_params(request, context)
    route = request.query_params.get("route") or None
    check_names(request, context, {"route": route} if route else {})
    scope = DiagnosisScope(since=view.since, until=view.until, service=view.service, route=route, scorer=view.scorer)
    facts, diagnoses = diagnose_rules(context, scope)
    name = request.query_params.get("replay")
    rule = next((diagnosis.rule for diagnosis in diagnoses if diagnosis.rule.name == name), None)
    report = None
    if name and rule is None:
        raise unknown_name_error("rule", name, [diagnosis.rule.name for diagnosis in diagnoses])
    if rule is not None:
        try:
            report = run_rule_backtest(context, rule, scope)
        except BacktestTooLarge as error:
            step = f"Choose a shorter window, or run germane alerts backtest --rule {rule.type}"
            raise http_error(413, str(error), step) from None
        except BacktestBusy as error:
            step = "Try again in a few seconds. Only one backtest runs at a time, because of the load on the database."
            raise http_error(503, str(error), step, headers={"Retry-After": "10"}) from None
    content: dict[str, Any] = {
        "scope": scope,
        "diagnoses": diagnoses,
        "routes": sorted({group.route for group in facts.means} | ({route} if route else set())),
        "report": report,
    }
    return render(request, context, view, "backtest.html", **content)


_LIST_PARAMETERS: Final = (
    *VIEW_PARAMETERS,
    one_of("state", ("open", "resolved")),
    Parameter("rule"),
    one_of("severity", SEVERITIES),
    Parameter("after", "a position from a link to the next page", lambda text: _parse_position(text) is not None),
)
ROUTES: Final = (
    page_route("/alerts", alerts, parameters=_LIST_PARAMETERS),
    page_route("/alerts.json", alerts_json, parameters=_LIST_PARAMETERS),
    page_route(
        "/alerts/backtest", backtest_page, parameters=(*VIEW_PARAMETERS, Parameter("route"), Parameter("replay"))
    ),
    *alert_actions.ROUTES,
    page_route("/alerts/{alert_id}/accept", confirm_accept, parameters=VIEW_PARAMETERS),
    page_route("/alerts/{alert_id}", alert, parameters=(*VIEW_PARAMETERS, one_of("done", alert_actions.MESSAGES))),
)
