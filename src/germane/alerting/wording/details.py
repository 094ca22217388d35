"""The details of an alert, as pairs of a label and one line, for channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.alert import IMPROVEMENT, Alert
from germane.alerting.drop.baselines import LEARNING_PERIOD
from germane.alerting.facts import AlertFacts, alert_facts
from germane.alerting.formatting import format_current, format_level, format_percent, format_score
from germane.alerting.wording.messages import MomentFormat, describe_changes
from germane.alerting.wording.words import CAUSES, MEASURES, RESOLVE_REASONS
from germane.phrasing import fill_if_known
from germane.score import COSINE_SCORERS
from germane.settings import MEAN_RULES, SHARE_RULES

DETAILS: Final[Mapping[str, str]] = {
    "Likely cause": "{cause}[: {refusals_since} of the answers, {refusals_before} before]",
    "Next step": "{next_step}",
    "Now": "{now}",
    "At the end": "{at_end}",
    "Baseline": "{baseline}",
    "Before": "{before}",
    "Scale": "{scorer}: {measure}; {values}, higher is better",
    "Largest drops": "{drops}",
    "Threshold": "{threshold}[ {of_what}]",
    "Started about": "{began}",
    "Changed": "{near}",
    "Changed earlier": "{far}",
    "Resolved because": "{resolve_reason}",
}
"""Templates by label."""
SHIFT: Final = "{dimension} {name}: {before} to {since}"
NEXT_STEPS: Final[Mapping[str, str]] = {
    "judge_changed": (
        "check whether recent answers are still worse, because the new baseline is learned from them; drops are "
        "detected again once it is learned, after {days} days (see germane baseline show)"
    ),
    "scorer_error": "see why scoring fails: germane doctor",
    "no_data": "see why scoring fails: germane doctor",
    "budget_exhausted": "raise the budget setting, or wait until the budget is available again",
    "judge_drift": (
        "find out what changed on the judge's server; then resolve the alert, and new baselines are measured: germane "
        "alerts respond resolve {id}"
    ),
    IMPROVEMENT: "accept it: germane baseline accept {id}; or decline it: germane alerts respond resolve {id}",
}
INSPECT: Final = "see the worst answers and what changed: germane alerts show {id}"


def alert_details(alert: Alert, moment: MomentFormat) -> dict[str, str | None]:
    """Return the details of an alert by label, None for those without a value. Names in them are not sanitized.

    Args:
        alert: The alert.
        moment: Formats times.
    """
    facts = alert_facts(alert)
    values = {**_explanations(facts, moment), **_levels(facts), **_scale(alert)}
    return {label: fill_if_known(template, **values) for label, template in DETAILS.items()}


def _explanations(facts: AlertFacts, moment: MomentFormat) -> dict[str, object]:
    alert, shares = facts.alert, facts.refusal_shares
    step = facts.next_step and NEXT_STEPS.get(facts.next_step, INSPECT)
    return {
        "cause": facts.cause and CAUSES[facts.cause],
        "refusals_before": shares and format_percent(shares[0]),
        "refusals_since": shares and format_percent(shares[1]),
        "next_step": step and step.format(id=alert.id[:8], days=LEARNING_PERIOD.days),
        "began": facts.began and moment(facts.began),
        "resolve_reason": alert.resolve_reason and RESOLVE_REASONS[alert.resolve_reason],
        **describe_changes(facts, moment),
    }


def _levels(facts: AlertFacts) -> dict[str, object]:
    alert, baseline = facts.alert, facts.alert.baseline
    current = None if facts.level is None else format_current(alert)
    before = baseline and format_level(alert, baseline, alert.current.mean if alert.current else None)
    drops = [
        SHIFT.format(
            dimension=shift.dimension,
            name=shift.name,
            before=format_score(shift.before.mean, shift.since.mean),
            since=format_score(shift.since.mean, shift.before.mean),
        )
        for shift in facts.named_shifts
    ]
    return {
        "now" if facts.is_level_current else "at_end": current,
        "baseline" if alert.type in {"drop", IMPROVEMENT} else "before": before,
        "drops": "; ".join(drops) or None,
    }


def _scale(alert: Alert) -> dict[str, object]:
    """Return what the scorer measures, for rules about its mean, and the rule's threshold."""
    scorer, threshold = alert.scorer or "", alert.threshold
    is_share = alert.type in {*SHARE_RULES, "scorer_error"}
    if threshold is None or alert.type == "no_data":  # its threshold is a time
        shown = None
    else:
        shown = format_percent(threshold) if is_share else f"{threshold:g}"
    return {
        "scorer": scorer,
        "measure": MEASURES.get(scorer) if alert.type in {*MEAN_RULES, IMPROVEMENT} else None,
        "values": "at most 1" if scorer in COSINE_SCORERS else "0 to 1",
        "threshold": shown,
        "of_what": "of the answers unscored" if alert.type == "scorer_error" else None,
    }
