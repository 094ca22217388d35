"""Titles of alerts and subject lines of notifications, for readers who do not know germane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane import sanitize
from germane.alert import IMPROVEMENT, Alert, Notification
from germane.alerting.facts import AlertFacts, alert_facts, is_back, is_new_route
from germane.alerting.formatting import format_change, format_percent, format_refusals, format_score
from germane.alerting.wording.words import RESOLVE_REASONS
from germane.phrasing import fill
from germane.settings import SHARE_RULES

MAX_TITLE_LENGTH: Final = 140
MAX_HEADLINE_LENGTH: Final = 150
"""Slack accepts 150 characters in a header."""
MAX_NAME_LENGTH: Final = 60
MAX_SHOWN_ALERTS: Final = 3
"""Maximum number of alerts that a subject line names."""
MAX_SHORT_NAME_LENGTH: Final = 30
"""Maximum number of characters of a name in a subject line about several alerts."""
TITLE: Final = "[{rule}: ]{problem}[ {new_route}][ in {place}][ ({note})]"
PROBLEMS: Final[Mapping[str, str]] = {
    "new_route": "low scores on new route",
    "low": "low scores",
    "refusals_rose": "more noncommittal answers",
    "mean_threshold": "mean[ below {threshold}]",
    "low_score_rate": "low scores[ above {threshold}]",
    "noncommittal_rate": "noncommittal answers[ above {threshold}]",
    "no_data": "no scores",
    "scorer_error": "{component} failing",
    "budget_exhausted": "budget exhausted",
    "judge_drift": "judge scores {direction}",
}
"""Names of problems, by type of the alert."""
COMPONENTS: Final[Mapping[str, str]] = {
    "embedder_error": "embedder", "out_of_range": "scorer", "scorer_error": "scorer",
}  # fmt: skip
"""Component that fails, by the most common reason. For other reasons, it is the judge."""
HEADLINES: Final[Mapping[str, str]] = {
    "firing": "Firing",
    "escalated": "Escalated to critical",
    "repeated": "Still firing",
    "resolved": "Resolved",
}
HEADLINE: Final = "{type}: {count}[ in {service}][: {names}][ and {rest} more]"
FAILED: Final = "{failed} of {tried} unscored"
WAITING: Final = "{waiting} unscored"
STILL_WATCHED: Final = "back at {now}, still being watched"
NOT_RECOVERED: Final = "not recovered, but {reason}"


def alert_title(alert: Alert) -> str:
    """Describe what happened, where, and the size, such as ``drop in shop, docs (0.82 to 0.71)``.

    If the rule has a name chosen by the user, the name comes first.
    """
    facts, service = alert_facts(alert), sanitize.line(alert.service, MAX_NAME_LENGTH)
    problem, route = _problem(facts), None if alert.route is None else sanitize.line(alert.route, MAX_NAME_LENGTH)
    is_named = alert.rule not in {problem, alert.type} and (alert.type, alert.rule) != (IMPROVEMENT, "drop")
    title = fill(
        TITLE,
        rule=sanitize.line(alert.rule, MAX_NAME_LENGTH) if is_named else None,
        problem=problem,
        new_route=route if is_new_route(alert) else None,
        place=", ".join(filter(None, (service, None if is_new_route(alert) else route))) or None,
        note=_note(facts),
    )
    return sanitize.line(title, MAX_TITLE_LENGTH)


def headline(notification: Notification) -> str:
    """Return a subject line: the notification's type, and its alert's title or the names of up to three alerts."""
    first = notification.alerts[0]
    alerts = [alert for alert in notification.alerts if alert.is_open == first.is_open]
    others = len(notification.alerts) - len(alerts)
    more = f"; {others} resolved" if others else ""
    width = MAX_HEADLINE_LENGTH - len(more)
    kind = HEADLINES[notification.type]
    if len(alerts) == 1:
        title = alert_title(first)
        is_proposal = first.type == IMPROVEMENT and not others
        return sanitize.line(title[:1].upper() + title[1:] if is_proposal else f"{kind}: {title}", width) + more
    facts = [alert_facts(alert) for alert in alerts]
    problems = {_problem(each) for each in facts}
    noun = problems.pop() if problems in ({"drop"}, {IMPROVEMENT}) else "alert"
    names = [_short_name(each, names_problem=noun == "alert") for each in facts]
    service = sanitize.line(first.service, MAX_SHORT_NAME_LENGTH) or None
    count = sanitize.count_noun(len(alerts), noun)
    for shown in range(min(len(alerts), MAX_SHOWN_ALERTS), -1, -1):
        rest = len(alerts) - shown if shown else None
        listed = ", ".join(names[:shown]) or None
        text = fill(HEADLINE, type=kind, count=count, service=service, names=listed, rest=rest or None)
        if len(text) <= width:
            break
    return sanitize.line(text, width) + more


def _short_name(facts: AlertFacts, *, names_problem: bool) -> str:
    """Return the route or scorer of an alert, and the size of the problem."""
    alert = facts.alert
    name = sanitize.line(alert.route or alert.scorer or "", MAX_SHORT_NAME_LENGTH)
    size = _size(facts) if alert.is_open else None
    if names_problem:
        return fill("{problem}[ on {name}][ ({size})]", problem=_problem(facts), name=name or None, size=size)
    return fill("{name}[ ({size})]", name=name, size=size)


def _problem(facts: AlertFacts) -> str:
    alert, threshold = facts.alert, facts.alert.threshold
    name = "refusals_rose" if facts.kind == "refusals_rose" else alert.type
    if is_new_route(alert):
        name = "new_route" if alert.route is not None else "low"
    if facts.cause == "judge_drift":
        name = "judge_drift"
    template = PROBLEMS.get(name, alert.type)
    shown = None if threshold is None else format_percent(threshold) if alert.type in SHARE_RULES else f"{threshold:g}"
    component = COMPONENTS.get(alert.details.get("reason") or "", "judge")
    direction = "higher" if alert.type == "judge_drift" and (alert.value or 0.0) > 0 else "lower"
    return fill(template, threshold=shown, component=component, direction=direction)


def _note(facts: AlertFacts) -> str | None:
    """Return the size of an open problem, or why it was resolved unless it recovered."""
    reason = facts.alert.resolve_reason
    if reason is None:
        return _size(facts)
    if reason == "judge_changed" and not is_back(facts.alert):
        return NOT_RECOVERED.format(reason=RESOLVE_REASONS[reason])
    return None if reason == "recovered" else RESOLVE_REASONS[reason]


def _size(facts: AlertFacts) -> str | None:
    """Describe the current size of an open problem, without units that the problem's name implies."""
    alert, current, details = facts.alert, facts.alert.current, facts.alert.details
    if alert.type == "scorer_error" and "failed" in details:
        return FAILED.format(failed=details["failed"], tried=sanitize.count_noun(details["tried"], "answer"))
    if details.get("waiting"):
        return WAITING.format(waiting=sanitize.count_noun(details["waiting"], "answer"))
    if facts.kind == "judge_drifted" and alert.value is not None:
        return f"{alert.scorer} by {format_score(abs(alert.value))}"
    if current is None:
        return None
    if facts.kind == "refusals_rose" and facts.refusals is not None:
        return format_refusals(facts.refusals)
    if facts.kind == "still_watched":
        baseline = None if alert.baseline is None else alert.baseline.mean
        return STILL_WATCHED.format(now=format_score(current.mean, baseline))
    if facts.kind == "dropped" or alert.type == IMPROVEMENT:
        return format_change(alert)
    return format_percent(current.mean) if alert.type in SHARE_RULES else format_score(current.mean, alert.threshold)
