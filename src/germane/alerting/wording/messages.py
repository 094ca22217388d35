"""The message of an alert: one sentence that states what happened, when it began, where, and how certain it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from germane import sanitize
from germane.alert import Alert
from germane.alerting.changes import DEPLOY, Change
from germane.alerting.evidence import JUDGE
from germane.alerting.facts import AlertFacts, AlertKind, alert_facts
from germane.alerting.formatting import (
    format_current,
    format_level,
    format_percent,
    format_refusals,
    format_score,
    format_shift,
    format_shift_interval,
)
from germane.alerting.onset import MAX_NAME_LENGTH, Onset
from germane.alerting.wording.words import CAUSES, FAILURES, RESOLVE_REASONS
from germane.phrasing import fill
from germane.settings import SHARE_RULES

MomentFormat = Callable[[datetime], str]
_SCORE: Final = "{scorer} for {place}"
_SIZE: Final = "[ from {baseline}][ to {now}][ since about {onset}]"
_BACK: Final = "back[ at {now}[, baseline {baseline}]]"
_LOW: Final = (
    "low[ since about {onset}][: {now}][; the route is new, and the other routes are at {others}][; {first_answers}]"
)
_WHY: Final = (
    "[; {judge_check}][; compared with {replaced}, which it replaces]"
    "[; the answers until {late} were scored late][; newer answers are "
    "back at {newer}][; {deploy}]["
    "; the drop is largest on route {largest_route}][; the drop is largest where {attribute}][; {scorers} fell too]"
    "[; mostly because of {cause}][; changes around that time: {near}][; earlier: {far}]"
)
_SHARE: Final = (
    " is [{no_longer} ]above {threshold}[: {now}{window}][, since about {began}][; before that, it was {before}]" + _WHY
)
MESSAGES: Final[Mapping[AlertKind, str]] = {
    "dropped": f"{_SCORE} has dropped{_SIZE}{_WHY}",
    "had_dropped": f"{_SCORE} had dropped{_SIZE}",
    "not_recovered": f"{_SCORE} had dropped{_SIZE}, and had not recovered when the judge changed",
    "refusals_rose": "noncommittal answers from {place} have risen from {refusals}[ since about {onset}]" + _WHY,
    "still_watched": f"{_SCORE} is {_BACK}, and is still being watched",
    "was_back": f"{_SCORE} was {_BACK}",
    "was_back_with_judge": f"{_SCORE} was {_BACK} when the judge changed",
    "back": f"{_SCORE} is {_BACK}",
    "recovered": f"{_SCORE} has recovered",
    "low": f"{_SCORE} has been {_LOW}",
    "was_low": f"{_SCORE} had been {_LOW}",
    "no_longer_low": f"{_SCORE} is no longer low",
    "proposed": (
        f"{_SCORE} has improved{_SIZE}; the new level is watched for drops even if you do not accept it as the "
        "baseline, unless you decline it"
    ),
    "accepted": f"{_SCORE} has improved{_SIZE}; the new level becomes the baseline",
    "improved": f"{_SCORE} has improved{_SIZE}",
    "improvement_lost": f"{_SCORE} is {_BACK}: the improvement did not last",
    "mean_threshold": (
        f"{_SCORE} is [{{no_longer}} ]below {{threshold}}[: {{now}}{{window}}][, since about {{began}}]"
        f"[; before that, it was {{before}}]{_WHY}"
    ),
    "low_score_rate": "the share of low {scorer} scores for {place}" + _SHARE,
    "noncommittal_rate": "the share of noncommittal answers from {place} (by {scorer})" + _SHARE,
    "no_data": (
        "{scorer} has not scored any answers from {place}[ since {onset}]; {unscored} unscored"
        "[; the next score usually follows within {usual}]"
    ),
    "scored_again": "{scorer} is scoring answers from {place} again",
    "scorer_error": (
        "{scorer} has failed for {failed} of {tried} from {place}{window}, since about {starts_at}"
        "[, mostly because {failure} ({reason})][; {disclaimer}]"
    ),
    "works_again": (
        "{scorer} scores answers from {place} again: {scored} of {tried}{window}, after failures since about "
        "{starts_at}"
    ),
    "budget_exhausted": "the budget is exhausted until {until}[ ({spent})]; answers are not scored",
    "budget_available": "the budget is no longer exhausted",
    "judge_drifted": (
        "the judge[ {judge}] scores {scorer} {shift} than before (95% confidence {ends})[, since about {onset}], "
        "measured on {anchors} that it scores again every day"
    ),
    "judge_steady": "the judge[ {judge}] scores {scorer} as before again",
    "other": "{rule} for {place}",
}
_UNDECIDED: Final = "before or after it began: cannot be decided"
_ORIGINS: Final = {"drop": "the drop began"}
_FIRST_ANSWERS: Final = "there was no better level before"
_JUDGE_FELL: Final = "the judge scores {shift} than before (95% confidence {ends}), also for the same answers"
_JUDGE_UNKNOWN: Final = "whether the judge has changed is being measured"
_DISCLAIMER: Final = "this says nothing about the quality of the answers"


def utc_moment(moment: datetime) -> str:
    """Format a time in UTC, such as ``Mon 2026-11-23 03:10 UTC``."""
    return f"{moment.astimezone(UTC):%a %Y-%m-%d %H:%M} UTC"


def alert_message(alert: Alert, moment: MomentFormat = utc_moment) -> str:
    """Return an alert's message. Names in it are sanitized.

    Args:
        alert: The alert.
        moment: Formats times.
    """
    facts = alert_facts(alert)
    values = {**_names(alert), **_levels(facts), **_explanations(facts, moment), **_counts(alert, moment)}
    text = fill(MESSAGES[facts.kind], **values)
    if alert.resolve_reason is not None:
        return f"Resolved ({RESOLVE_REASONS[alert.resolve_reason]}): {text}."
    return f"{'T' + text[1:] if text.startswith('the ') else text}."


def describe_changes(facts: AlertFacts, moment: MomentFormat) -> dict[str, str | None]:
    """List the changes of the application, by name of the attribute of the facts."""

    def listed(changes: Sequence[Change], *, names_origin: bool = False) -> str | None:
        texts: list[str] = []
        for change in changes:
            onset, interval = facts.alert.onset, facts.alert.onset_interval
            if onset is None:
                texts.append(f"{change.name} at {moment(change.at)}")
                continue
            if Onset(onset, interval).side_of(change.at) == "undecided":
                texts.append(f"{change.name} ({_UNDECIDED})")
                continue
            # Only the first distance says what it is measured from. The onset is an estimate, so a change that seems to
            # follow it may have caused the problem.
            origin = _ORIGINS.get(facts.alert.type, "it began") if change.at <= onset else "the estimated onset"
            shown = origin if names_origin and not texts else None
            texts.append(
                fill("{name} ({time}[ {origin}])", name=change.name, time=change.distance(onset), origin=shown)
            )
        return ", ".join(texts) or None

    return {"near": listed(facts.near, names_origin=True), "far": listed(facts.far)}


def _names(alert: Alert) -> dict[str, object]:
    names = {"rule": alert.rule, "scorer": alert.scorer or "the score", "service": alert.service, "route": alert.route}
    shown = {name: sanitize.line(text, MAX_NAME_LENGTH) for name, text in names.items()}
    place = "service {service}" if alert.route is None else "route {route} in {service}"
    return {**shown, "place": place.format(**shown)}


def _levels(facts: AlertFacts) -> dict[str, object]:
    alert, current, baseline = facts.alert, facts.alert.current, facts.alert.baseline
    low, high = alert.details.get("other_routes") or (None, None)
    threshold = alert.threshold or 0
    is_share = alert.type in SHARE_RULES
    before = replace(baseline, interval=None) if baseline is not None and alert.is_open else None
    return {
        "now": format_current(alert),
        "baseline": baseline and format_score(baseline.mean, current.mean if current else None),
        "before": before and format_level(alert, before),
        "refusals": facts.refusals and format_refusals(facts.refusals),
        "others": _range(low, high),
        "threshold": format_percent(threshold) if is_share else f"{threshold:g}",
        "no_longer": "no longer" if facts.is_cleared else None,
        "window": _window(alert),
    }


def _range(low: float | None, high: float | None) -> str | None:
    if low is None or high is None:
        return None
    return format_score(low) if low == high else f"{format_score(low)} to {format_score(high)}"


def _explanations(facts: AlertFacts, moment: MomentFormat) -> dict[str, object]:
    """Return the parts that explain an open problem. A resolved problem needs no explanation."""
    alert = facts.alert
    if not alert.is_open:
        return {}
    names: dict[str, list[str]] = {"route": [], "attribute": [], "scorer": []}
    for shift in facts.named_shifts:
        names[shift.dimension].append(sanitize.line(shift.name, MAX_NAME_LENGTH))
    late, replaced = alert.details.get("late") or {}, alert.details.get("replaces") or ()
    deploy = alert.details.get(DEPLOY) or {}
    others_near = tuple(change for change in facts.near if change.name != deploy.get("name"))
    return {
        "replaced": " and ".join(sanitize.line(name, MAX_NAME_LENGTH) for name in replaced) or None,
        "late": moment(datetime.fromisoformat(late["until"])) if late else None,
        "newer": format_score(late["newer"]) if late and late["newer"] is not None else None,
        "first_answers": None if "other_routes" in alert.details else _FIRST_ANSWERS,
        "largest_route": next(iter(names["route"]), None),
        "attribute": next(iter(names["attribute"]), None),
        "scorers": " and ".join(names["scorer"]) or None,
        "cause": CAUSES["refusals_rising"] if facts.is_about_refusals else None,
        "disclaimer": _DISCLAIMER,
        "began": None if facts.is_cleared or alert.onset is None else moment(alert.onset),
        "deploy": deploy.get("words"),
        "judge_check": _judge_check(alert),
        **describe_changes(replace(facts, near=others_near), moment),
    }


def _judge_check(alert: Alert) -> str | None:
    """Say whether the judge explains a drop, or that this is being measured."""
    check = alert.details.get(JUDGE) or {}
    if alert.cause == "judge_drift" and check:
        shift, ends = format_shift(check["size"]), format_shift_interval(check["size"], check["interval"])
        return fill(_JUDGE_FELL, shift=shift, ends=ends)
    return _JUDGE_UNKNOWN if check and check["round"] is None else None


def _counts(alert: Alert, moment: MomentFormat) -> dict[str, object]:
    """Return the values about missing scores, failures and the budget."""
    details = alert.details
    tried, failed, reason = details.get("tried", 0), details.get("failed", 0), details.get("reason")
    until, usual = details.get("until"), details.get("usual")
    return {
        "onset": alert.onset and moment(alert.onset),
        "starts_at": moment(alert.starts_at),
        "unscored": sanitize.count_noun(details.get("waiting", 0), "answer"),
        "usual": None if usual is None else _round_up(usual),
        "failed": failed,
        "scored": tried - failed,
        "tried": sanitize.count_noun(tried, "answer"),
        "reason": reason or None,
        "failure": reason and FAILURES.get(reason, reason),
        "until": until and moment(datetime.fromisoformat(until)),
        "spent": "; ".join(details.get("spent", ())) or None,
        "judge": details.get("judge") and sanitize.line(details["judge"], MAX_NAME_LENGTH),
        "shift": None if alert.value is None else format_shift(alert.value),
        "ends": details.get("interval") and format_shift_interval(alert.value or 0.0, details["interval"]),
        "anchors": sanitize.count_noun(details.get("anchors", 0), "answer"),
    }


def _round_up(seconds: float) -> str:
    """Format a duration of at least a minute, such as "1 hour" or "12 minutes"."""
    minutes = max(1, math.ceil(seconds / 60))
    return (
        sanitize.count_noun(math.ceil(minutes / 60), "hour")
        if minutes >= 120
        else sanitize.count_noun(minutes, "minute")
    )


def _window(alert: Alert) -> str:
    """Describe the window, such as ``over the last 90 minutes``, in the largest unit that gives a whole number."""
    if alert.window is None:
        return ""
    length = timedelta(seconds=round(alert.window))
    for unit, name in ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute")):
        if length == unit:
            return f" over the last {name}"
        if length > unit and not length % unit:
            return f" over the last {sanitize.count_noun(length // unit, name)}"
    return f" over the last {sanitize.count_noun(round(alert.window), 'second')}"
