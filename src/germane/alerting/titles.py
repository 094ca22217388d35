"""Titles of alerts and subject lines of notifications, for readers who do not know germane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane import sanitize
from germane.alert import IMPROVEMENT, Alert, Notification
from germane.alerting.formatting import format_change, format_percent, format_score
from germane.alerting.messages import is_back, is_new_route, rise_of_refusals
from germane.alerting.wording import RESOLVE_REASONS
from germane.settings import SHARE_RULES

MAX_TITLE_LENGTH: Final = 140
MAX_HEADLINE_LENGTH: Final = 150
"""Slack accepts 150 characters in a header."""
MAX_NAME_LENGTH: Final = 60
MAX_SHOWN_ALERTS: Final = 3
"""Maximum number of alerts that a subject line names."""
MAX_SHORT_NAME_LENGTH: Final = 30
"""Maximum number of characters of a name in a subject line about several alerts."""
_TYPES: Final[Mapping[str, str]] = {
    "firing": "Firing",
    "escalated": "Escalated to critical",
    "repeated": "Still firing",
    "resolved": "Resolved",
}
_PROBLEMS: Final[Mapping[str, str]] = {
    "no_data": "no scores",
    "budget_exhausted": "budget exhausted",
}
_FAILING: Final[Mapping[str, str]] = {
    "embedder_error": "embedder failing",
    "out_of_range": "scorer failing",
    "scorer_error": "scorer failing",
}
"""Component that fails, by the most common reason. For other reasons, it is the judge."""


def headline(notification: Notification) -> str:
    """Return a subject line: the notification's type, and its alert's title or the names of up to three alerts."""
    prefix, first = _TYPES[notification.type], notification.alerts[0]
    alerts = [alert for alert in notification.alerts if alert.is_open == first.is_open]
    others = len(notification.alerts) - len(alerts)
    more = f"; {others} resolved" if others else ""
    width = MAX_HEADLINE_LENGTH - len(more)
    if len(alerts) == 1:
        title = alert_title(first)
        is_proposal = first.type == IMPROVEMENT and not others
        return sanitize.line(title[:1].upper() + title[1:] if is_proposal else f"{prefix}: {title}", width) + more
    kinds = {_problem(alert) for alert in alerts}
    noun = kinds.pop() if kinds in ({"drop"}, {IMPROVEMENT}) else "alert"
    names = []
    for alert in alerts:  # the route or scorer, and the size of the problem
        name = sanitize.line(alert.route or alert.scorer or "", MAX_SHORT_NAME_LENGTH)
        if noun == "alert":
            name = f"{_problem(alert)} on {name}" if name else _problem(alert)
        size = _size(alert) if alert.is_open else None
        names.append(name if size is None else f"{name} ({size})")
    place = f" in {sanitize.line(first.service, MAX_SHORT_NAME_LENGTH)}" if first.service else ""
    text = f"{prefix}: {sanitize.count_noun(len(alerts), noun)}{place}"
    for shown in range(min(len(alerts), MAX_SHOWN_ALERTS), 0, -1):
        rest = f" and {len(alerts) - shown} more" if len(alerts) > shown else ""
        complete = f"{text}: {', '.join(names[:shown])}{rest}"
        if len(complete) <= width:
            return complete + more
    return sanitize.line(text, width) + more


def alert_title(alert: Alert) -> str:
    """Describe what happened, where, and the size, such as ``drop in shop, docs (0.82 to 0.71)``.

    If the rule has a name chosen by the user, the name comes first.
    """
    service = sanitize.line(alert.service, MAX_NAME_LENGTH)
    route = None if alert.route is None else sanitize.line(alert.route, MAX_NAME_LENGTH)
    problem = _problem(alert)
    if is_new_route(alert):
        problem, route = f"{problem} {route}", None
    place = ", ".join(filter(None, (service, route)))
    title = f"{problem} in {place}" if place else problem
    reason = alert.resolve_reason
    note = _size(alert) if reason is None else None if reason == "recovered" else RESOLVE_REASONS[reason]
    if reason == "judge_changed" and not is_back(alert):
        note = f"not recovered, but {note}"
    if note is not None:
        title += f" ({note})"
    if alert.rule not in {problem, alert.type} and not (alert.type == IMPROVEMENT and alert.rule == "drop"):
        title = f"{sanitize.line(alert.rule, MAX_NAME_LENGTH)}: {title}"
    return sanitize.line(title, MAX_TITLE_LENGTH)


def _problem(alert: Alert) -> str:
    if is_new_route(alert):
        return "low scores on new route"
    if alert.type == "scorer_error":
        return _FAILING.get(alert.details.get("reason") or "", "judge failing")
    if alert.type == "mean_threshold":
        return f"mean below {alert.threshold:g}" if alert.threshold is not None else "low mean"
    if alert.type in SHARE_RULES:
        answers = "low scores" if alert.type == "low_score_rate" else "noncommittal answers"
        return answers if alert.threshold is None else f"{answers} above {format_percent(alert.threshold)}"
    if alert.type == "drop" and alert.is_open and rise_of_refusals(alert) is not None:
        return "more noncommittal answers"
    return _PROBLEMS.get(alert.type, alert.type)


def _size(alert: Alert) -> str | None:
    """Describe the current size of a problem, without units that the problem's name implies."""
    if alert.type == "scorer_error" and "failed" in alert.details:
        return f"{alert.details['failed']} of {sanitize.count_noun(alert.details['tried'], 'answer')} unscored"
    if alert.details.get("waiting"):
        return f"{sanitize.count_noun(alert.details['waiting'], 'answer')} unscored"
    if alert.current is None:
        return None
    if alert.type in SHARE_RULES:
        return format_percent(alert.current.mean)
    if alert.type == "drop" and not is_new_route(alert):
        refusals = rise_of_refusals(alert)
        if refusals is None and is_back(alert):
            baseline = None if alert.baseline is None else alert.baseline.mean
            return f"back at {format_score(alert.current.mean, baseline)}, still being watched"
        return refusals or format_change(alert)
    return format_change(alert) if alert.type == IMPROVEMENT else format_score(alert.current.mean, alert.threshold)
