"""The message of an alert: one sentence that states what happened, when it began, where, and how certain it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from germane import sanitize
from germane.alert import IMPROVEMENT, Alert, ScoreLevel
from germane.alerting.changes import MAX_NAME_LENGTH, list_changes
from germane.alerting.formatting import format_level, format_percent, format_score
from germane.alerting.intervals import is_higher
from germane.alerting.wording import RESOLVE_REASONS

MomentFormat = Callable[[datetime], str]
FAILURES: Final[Mapping[str, str]] = {
    "judge_timeout": "the judge times out",
    "judge_rate_limited": "the judge is rate limited",
    "judge_refused": "the judge refuses to answer",
    "judge_unreachable": "the judge is unreachable",
    "judge_rejected": "the judge rejects the key, quota or model",
    "unparsable": "the judge's replies cannot be parsed",
    "no_usable_question": "the judge generates no usable question",
    "embedder_error": "the embedder fails",
    "out_of_range": "values are out of range",
    "scorer_error": "the scorer raises an exception",
}


def utc_moment(moment: datetime) -> str:
    """Format a time in UTC, such as ``Mon 2026-11-23 03:10 UTC``."""
    return f"{moment.astimezone(UTC):%a %Y-%m-%d %H:%M} UTC"


def alert_message(alert: Alert, moment: MomentFormat = utc_moment) -> str:
    """Return an alert's message. Names in it are sanitized.

    Args:
        alert: The alert.
        moment: Formats times.
    """
    if alert.type in _MESSAGES:
        text = _MESSAGES[alert.type](alert, moment)
    else:
        text = f"{sanitize.line(alert.rule, MAX_NAME_LENGTH)} for {_place(alert)}"
    if alert.resolve_reason is not None:
        return f"Resolved ({RESOLVE_REASONS[alert.resolve_reason]}): {text}."
    return f"{'T' + text[1:] if text.startswith('the ') else text}."


def _drop(alert: Alert, moment: MomentFormat) -> str:
    subject = f"{_scorer(alert)} for {_place(alert)}"
    since = "" if alert.onset is None else f" since about {moment(alert.onset)}"
    is_judge_changed = alert.resolve_reason == "judge_changed"
    if is_new_route(alert):
        # Once the alert has recovered, the level is known only if the route has a baseline by then.
        if alert.resolve_reason == "recovered":
            return f"{subject} is no longer low" if alert.baseline is None else f"{subject} is {_back(alert)}"
        low, high = alert.details.get("other_routes") or (0.0, 1.0)
        now = "" if alert.current is None else f": {format_level(alert, alert.current)}"
        text = f"{subject} {'has' if alert.is_open else 'had'} been low{since}{now}"
        others = f"at {format_score(low)}" if low == high else f"at {format_score(low)} to {format_score(high)}"
        return f"{text}; the route is new, and the other routes are {others}"
    if alert.resolve_reason == "recovered":
        return f"{subject} is {_back(alert)}" if alert.current is not None else f"{subject} has recovered"
    if alert.is_open and (refusals := rise_of_refusals(alert)) is not None:
        text = f"noncommittal answers from {_place(alert)} have risen from {refusals}{since}"
        return "; ".join([text, *_explanations(alert, moment)])
    if is_back(alert):
        if alert.is_open:
            return f"{subject} is {_back(alert)}, and is still being watched"
        return f"{subject} was {_back(alert)}{' when the judge changed' if is_judge_changed else ''}"
    text = f"{subject} {'has' if alert.is_open else 'had'} dropped{_from_to(alert)}{since}"
    if is_judge_changed:
        return f"{text}, and had not recovered when the judge changed"
    return "; ".join([text, *_explanations(alert, moment)])


def _from_to(alert: Alert) -> str:
    """Describe the change, for example `` from 0.74 to 0.48 (mean of 25 answers)``."""
    current, baseline = alert.current, alert.baseline
    before = "" if baseline is None else f" from {format_score(baseline.mean, current.mean if current else None)}"
    now = "" if current is None else f" to {format_level(alert, current, baseline.mean if baseline else None)}"
    return before + now


def _back(alert: Alert) -> str:
    """Describe the recovered level, for example ``back at 0.81 (mean of 212 answers), baseline 0.82``."""
    if alert.current is None:
        return "back"
    if alert.baseline is None:
        return f"back at {format_level(alert, alert.current)}"
    baseline = alert.baseline.mean
    level = format_level(alert, alert.current, baseline)
    return f"back at {level}, baseline {format_score(baseline, alert.current.mean)}"


def is_new_route(alert: Alert) -> bool:
    """Return whether an alert is about a route that is too new to have dropped."""
    return bool(alert.details.get("new_route"))


def is_back(alert: Alert) -> bool:
    """Return whether the level after a drop has returned to the baseline, or nearly so."""
    return alert.state == "recovering" or not _may_have_fallen(alert)


def _may_have_fallen(alert: Alert) -> bool:
    return alert.current is None or alert.baseline is None or alert.current.mean < alert.baseline.mean


def rise_of_refusals(alert: Alert) -> str | None:
    """Return the change in the noncommittal rate, such as ``2% to 15%``, if it rose significantly but the mean does
    not show it.

    Otherwise, return None.
    """
    contributors = alert.details.get("contributors") or ()
    if not contributors or contributors[0]["half"] != "zero" or _may_have_fallen(alert):
        return None
    before, since = (ScoreLevel.from_dict(contributors[0][name]) for name in ("before", "since"))
    if not is_higher(since.mean, since.n, before.mean, before.n):
        return None
    return f"{format_percent(before.mean)} to {format_percent(since.mean)}"


def _explanations(alert: Alert, moment: MomentFormat) -> list[str]:
    """Explain a drop in words: where it is largest, whether refusals cause it, and what changed around its onset."""
    if not alert.is_open:
        return []
    parts = []
    for dimension, label in (("route", "the drop is largest on route "), ("attribute", "the drop is largest where ")):
        names = [shift.name for shift in alert.shifts if shift.dimension == dimension]
        if names:
            parts.append(label + sanitize.line(names[0], MAX_NAME_LENGTH))
    others = [shift.name for shift in alert.shifts if shift.dimension == "scorer" and shift.name != alert.scorer]
    if others:
        parts.append(f"{' and '.join(sanitize.line(name, MAX_NAME_LENGTH) for name in others)} fell too")
    if alert.cause == "refusals_rising" and rise_of_refusals(alert) is None:
        parts.append("mostly because of more refusals")
    return [*parts, *(f"{when}: {changes}" for when, changes in describe_changes(alert, moment).items())]


def describe_changes(alert: Alert, moment: MomentFormat) -> dict[str, str]:
    """Return what changed in the application: around the onset, earlier, and since the baseline at an unknown time.

    Only what changed around the onset may have caused the problem, so the rest is never listed with it.
    """
    onset = alert.onset or alert.starts_at
    near: list[str] = []
    far: list[str] = []
    undated: list[str] = []
    for change in list_changes(alert, onset):
        if change.at is None:
            undated.append(change.name)
        elif alert.onset is None:
            (near if change.is_near(onset) else far).append(f"{change.name} at {moment(change.at)}")
        elif not change.is_near(onset):
            far.append(f"{change.name} ({change.distance(onset)})")
        else:
            # Only the first distance says what it is measured from. The onset is an estimate, so a change that seems to
            # follow it may have caused the problem.
            event = "the drop began" if alert.type == "drop" else "it began"
            end = "" if near else f" {event}" if change.at <= onset else " the estimated onset"
            near.append(f"{change.name} ({change.distance(onset)}{end})")
    groups = {"changes around that time": near, "earlier": far, "changed since the baseline": undated}
    return {when: ", ".join(changes) for when, changes in groups.items() if changes}


def _improvement(alert: Alert, moment: MomentFormat) -> str:
    subject = f"{_scorer(alert)} for {_place(alert)}"
    current, baseline = alert.current, alert.baseline
    if current is not None and baseline is not None and current.mean <= baseline.mean:
        return f"{subject} is {_back(alert)}: the improvement did not last"
    since = "" if alert.onset is None else f" since about {moment(alert.onset)}"
    text = f"{subject} has improved{_from_to(alert)}{since}"
    if not alert.is_open:
        return text
    if alert.details.get("accepts"):
        return f"{text}; the new level becomes the baseline"
    return f"{text}; until you accept the new level as the baseline, a return to the old level does not count as a drop"


def _mean_threshold(alert: Alert, moment: MomentFormat) -> str:
    is_below = alert.value is not None and alert.threshold is not None and alert.value < alert.threshold
    state = "below" if is_below else "no longer below"
    level = "" if alert.current is None else f": {format_level(alert, alert.current, alert.threshold)}{_window(alert)}"
    text = f"{_scorer(alert)} for {_place(alert)} is {state} {alert.threshold or 0:g}{level}"
    return "; ".join([text, *_before(alert), *_explanations(alert, moment)])


def _rate(alert: Alert, moment: MomentFormat) -> str:
    if alert.type == "low_score_rate":
        subject = f"the share of low {_scorer(alert)} scores for {_place(alert)}"
    else:
        subject = f"the share of noncommittal answers from {_place(alert)} (by {_scorer(alert)})"
    is_above = alert.value is not None and alert.threshold is not None and alert.value > alert.threshold
    state = "above" if is_above else "no longer above"
    share = "" if alert.current is None else f": {format_level(alert, alert.current)}{_window(alert)}"
    text = f"{subject} is {state} {format_percent(alert.threshold or 0)}{share}"
    return "; ".join([text, *_before(alert), *_explanations(alert, moment)])


def _no_data(alert: Alert, moment: MomentFormat) -> str:
    waiting = alert.details.get("waiting", 0)
    if not waiting:
        return f"{_scorer(alert)} is scoring answers from {_place(alert)} again"
    since = "" if alert.onset is None else f" since {moment(alert.onset)}"
    unscored = sanitize.count_noun(waiting, "answer")
    text = f"{_scorer(alert)} has not scored any answers from {_place(alert)}{since}; {unscored} unscored"
    usual = alert.details.get("usual")
    if usual is None:
        return text
    # Rounded up: "1 hour" or "12 minutes", at least a minute.
    minutes = max(1, math.ceil(usual / 60))
    duration = sanitize.count_noun(minutes, "minute")
    if minutes >= 120:
        duration = sanitize.count_noun(math.ceil(minutes / 60), "hour")
    return f"{text}; the next score usually follows within {duration}"


def _scorer_error(alert: Alert, moment: MomentFormat) -> str:
    attempts, failed = alert.details.get("tried", 0), alert.details.get("failed", 0)
    since = f"since about {moment(alert.starts_at)}"
    if alert.resolve_reason == "recovered":
        share = f"{attempts - failed} of {sanitize.count_noun(attempts, 'answer')}{_window(alert)}"
        return f"{_scorer(alert)} scores answers from {_place(alert)} again: {share}, after failures {since}"
    of_answers = f"{failed} of {sanitize.count_noun(attempts, 'answer')}"
    text = f"{_scorer(alert)} has failed for {of_answers} from {_place(alert)}{_window(alert)}, {since}"
    reason = alert.details.get("reason")
    if reason:
        text += f", mostly because {FAILURES.get(reason, reason)} ({reason})"
    return f"{text}; this says nothing about the quality of the answers" if alert.is_open else text


def _budget_exhausted(alert: Alert, moment: MomentFormat) -> str:
    until, spent = alert.details.get("until"), alert.details.get("spent", ())
    if until is None:
        return "the budget is no longer exhausted"
    usage = f" ({'; '.join(spent)})" if spent else ""
    return f"the budget is exhausted until {moment(datetime.fromisoformat(until))}{usage}; answers are not scored"


_MESSAGES: Final[Mapping[str, Callable[[Alert, MomentFormat], str]]] = {
    "drop": _drop,
    IMPROVEMENT: _improvement,
    "mean_threshold": _mean_threshold,
    "low_score_rate": _rate,
    "noncommittal_rate": _rate,
    "no_data": _no_data,
    "scorer_error": _scorer_error,
    "budget_exhausted": _budget_exhausted,
}


def _scorer(alert: Alert) -> str:
    return sanitize.line(alert.scorer or "the score", MAX_NAME_LENGTH)


def _place(alert: Alert) -> str:
    service = sanitize.line(alert.service, MAX_NAME_LENGTH)
    if alert.route is None:
        return f"service {service}"
    return f"route {sanitize.line(alert.route, MAX_NAME_LENGTH)} in {service}"


def _before(alert: Alert) -> list[str]:
    if alert.baseline is None or not alert.is_open:
        return []
    return [f"before that, it was {format_level(alert, replace(alert.baseline, interval=None))}"]


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
