"""One plain sentence of an alert: what, since when, where, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from germane.alert import Alert, Level, ResolveReason, Shift
from germane.alerting.evidence import REFUSALS
from germane.sanitize import counted, harmless

_OVER: Final[Mapping[ResolveReason, str]] = {
    "recovered": "it has recovered",
    "passed": "it passed before anybody was told",
    "judge_changed": "the judge has changed, and its scores are not those of the one before",
    "by_hand": "somebody has closed it",
    "new_baseline": "this level was accepted as the new baseline",
    "rule_removed": "its rule is gone",
}
_REASONS: Final[Mapping[str, str]] = {
    "judge_timeout": "the judge takes too long",
    "judge_rate_limited": "the judge limits requests",
    "judge_refused": "the judge refuses to judge",
    "judge_unreachable": "the judge cannot be reached",
    "judge_rejected": "the judge's server rejects key, quota or model",
    "unparsable": "nobody can read what the judge replies",
    "no_usable_question": "the judge writes no usable question",
    "embedder_error": "the embedder fails",
    "out_of_range": "values are out of range",
    "scorer_error": "the scorer raises",
}
_NAME: Final = 100
"""Characters of a name."""


def sentence(alert: Alert) -> str:
    """Return what is told of an alert, with the names in it made harmless."""
    said = _SENTENCES.get(alert.kind, _other)(alert)
    return f"{said}." if alert.resolve_reason is None else f"Over, {_OVER[alert.resolve_reason]}: {said}."


def _drop(alert: Alert) -> str:
    if alert.resolve_reason == "recovered" and alert.current is not None:
        usual = "" if alert.baseline is None else f", {_score(alert.baseline.mean)} is usual"
        now = f"{_score(alert.current.mean)} ({_sure(alert.current, _score)})"
        return f"{_scorer(alert)} of {_place(alert)} is at {now}{usual}"
    said = [f"{_scorer(alert)} of {_place(alert)} dropped{_from_to(alert)}"]
    said[0] += "" if alert.onset is None else f" since about {_moment(alert.onset)}"
    said += _where(alert)
    if alert.evidence is not None:
        said.append(f"as rare as {_number(alert.evidence)} false alarms a year")
    return "; ".join(said)


def _floor(alert: Alert) -> str:
    is_under = alert.value is not None and alert.threshold is not None and alert.value < alert.threshold
    verdict = "below" if is_under else "no longer below"
    said = f"{_scorer(alert)} of {_place(alert)} is {verdict} {alert.threshold:g}{_now(alert, _score)}"
    return "; ".join([said, *_before(alert, _score), *_where(alert)])


def _low_rate(alert: Alert) -> str:
    return _rate(alert, f"the share of low scores of {_scorer(alert)}")


def _noncommittal_rate(alert: Alert) -> str:
    return _rate(alert, f"the share of noncommittal answers, by {_scorer(alert)},")


def _rate(alert: Alert, what: str) -> str:
    is_above = alert.value is not None and alert.threshold is not None and alert.value > alert.threshold
    verdict = "above" if is_above else "no longer above"
    said = f"{what} of {_place(alert)} is {verdict} {_percent(alert.threshold or 0)}{_now(alert, _percent)}"
    return "; ".join([said, *_before(alert, _percent), *_where(alert)])


def _no_data(alert: Alert) -> str:
    waiting = alert.details.get("waiting", 0)
    if not waiting:
        return f"answers of {_place(alert)} are scored by {_scorer(alert)} again"
    since = "" if alert.onset is None else f" since {_moment(alert.onset)}"
    said = (
        f"no answer of {_place(alert)} was scored by {_scorer(alert)}{since}, and {counted(waiting, 'answer')} came in"
    )
    usual = alert.details.get("usual")
    return said if usual is None else f"{said}; the next one is usually scored within {_length(usual)}"


def _scorer_error(alert: Alert) -> str:
    tried, failed = alert.details.get("tried", 0), alert.details.get("failed", 0)
    said = f"{_scorer(alert)} failed for {failed} of {counted(tried, 'answer')} of {_place(alert)}{_over(alert)}"
    reason = alert.details.get("reason")
    why = f", most often because {_REASONS.get(reason, reason)} ({reason})" if reason else ""
    broke = "; the judge broke, which says nothing of the answers" if alert.is_open else ""
    return f"{said}{why}{broke}"


def _budget(alert: Alert) -> str:
    until, spent = alert.details.get("until"), alert.details.get("spent", ())
    if until is None:
        return "there is room in the budget again"
    told = f" ({'; '.join(spent)})" if spent else ""
    return f"the budget is spent until {_moment(datetime.fromisoformat(until))}{told}: answers go unscored"


def _other(alert: Alert) -> str:
    return f"{harmless(alert.rule, _NAME)} of {_place(alert)}"


_SENTENCES: Final[Mapping[str, Callable[[Alert], str]]] = {
    "drop": _drop,
    "floor": _floor,
    "low_rate": _low_rate,
    "noncommittal_rate": _noncommittal_rate,
    "no_data": _no_data,
    "scorer_error": _scorer_error,
    "budget_exhausted": _budget,
}


def _scorer(alert: Alert) -> str:
    return harmless(alert.scorer or "the score", _NAME)


def _place(alert: Alert) -> str:
    service = harmless(alert.service, _NAME)
    return f"service {service}" if alert.route is None else f"route {harmless(alert.route, _NAME)} in {service}"


def _from_to(alert: Alert) -> str:
    before = "" if alert.baseline is None else f" from {_score(alert.baseline.mean)} (n = {alert.baseline.n})"
    return (
        before
        if alert.current is None
        else f"{before} to {_score(alert.current.mean)} ({_sure(alert.current, _score)})"
    )


def _now(alert: Alert, form: Callable[[float], str]) -> str:
    if alert.current is None:
        return ""
    what = "mean " if form is _score else ""
    return f": {what}{form(alert.current.mean)} ({_sure(alert.current, form)}){_over(alert)}"


def _sure(level: Level, form: Callable[[float], str]) -> str:
    between = (
        "" if level.interval is None else f"95 % interval {form(level.interval[0])} to {form(level.interval[1])}, "
    )
    return f"{between}n = {level.n}"


def _before(alert: Alert, form: Callable[[float], str]) -> list[str]:
    known = alert.baseline
    return [] if known is None or not alert.is_open else [f"before {form(known.mean)} (n = {known.n})"]


def _where(alert: Alert) -> list[str]:
    """Say of each kind which shift is the largest, and what refusals do: only of what lasts."""
    found: list[str] = []
    if not alert.is_open:
        return found
    for kind, told in (("route", "most on route"), ("attribute", "most where"), ("scorer", "")):
        shifts = [one for one in alert.shifts if one.kind == kind]
        others = [one for one in shifts if kind != "scorer" or one.name != alert.scorer]
        found += [_shift(one, told) for one in others[: 1 if kind != "scorer" else None]]
    refusals = alert.details.get(REFUSALS)
    if refusals and alert.kind != "noncommittal_rate" and refusals[1] - refusals[0] >= 0.02:
        found.append(f"refusals {_percent(refusals[0])} -> {_percent(refusals[1])}")
    return found


def _shift(shift: Shift, told: str) -> str:
    name = " ".join(filter(None, (told, harmless(shift.name, _NAME))))
    return f"{name} {_score(shift.before.mean)} -> {_score(shift.since.mean)}"


def _over(alert: Alert) -> str:
    return "" if alert.window is None else f" over the last {_span(alert.window)}"


def _score(value: float) -> str:
    return f"{value:.3f}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _number(value: Any) -> str:
    return f"{value:.2g}"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%a %Y-%m-%d %H:%M} UTC"


def _length(seconds: float) -> str:
    """Return ``1 hour`` or ``12 minutes``: about, and never less than a minute."""
    minutes = max(1, math.ceil(seconds / 60))
    return counted(minutes, "minute") if minutes < 120 else counted(math.ceil(minutes / 60), "hour")


def _span(seconds: float) -> str:
    """Return ``90 minutes`` or ``hour``, in the largest unit that leaves a whole number."""
    length = timedelta(seconds=round(seconds))
    for unit, name in ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute")):
        if length >= unit and not length % unit:
            count = length // unit
            return name if count == 1 else counted(count, name)
    return counted(round(seconds), "second")
