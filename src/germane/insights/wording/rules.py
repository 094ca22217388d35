"""Sentences about why a rule is not firing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from germane.insights.context import ViewParams
from germane.insights.formatting import (
    format_date_time,
    format_duration,
    format_interval,
    format_number,
    format_percent,
)
from germane.insights.rule_diagnosis import Finding, FindingKind
from germane.phrasing import fill

_STREAM: Final = "{scorer} for {service}: "
_ROUTE: Final = "Route {route}, service {service}: "
_MEAN: Final = _ROUTE + "the mean is {mean} (95% interval {interval}, n={n:,}), "
_SHARE: Final = _ROUTE + "the share is {share} (n={n:,}), "
FINDINGS: Final[Mapping[FindingKind, str]] = {
    "disabled": "The rule is disabled in the settings (enabled = false).",
    "other_route": "The rule's route patterns do not match this route.",
    "other_scorer": "The rule covers only scores from {scorer}.",
    "no_budget": "No budget is configured.",
    "no_scores": "There are no scores[ from {scorer}] in this window.",
    "uncovered_route": _STREAM + "the baseline does not cover route {route} until the route has enough scores.",
    "not_learning": _STREAM + "no baseline is being learned, because no worker has evaluated the rule yet.",
    "learning": (_STREAM + "learning a baseline until {until}. Large drops are detected after one day and 200 scores."),
    "few_scores": (
        _ROUTE
        + "n={n} in {window}, but the rule needs {limit}; the window is extended until it contains enough scores."
    ),
    "share_unknown": _ROUTE + "{scorer} does not detect noncommittal answers.",
    "silenced": "Notifications are silenced until {until}. The alert still fires and resolves.",
    "partly_silenced": "Some notifications are silenced until {until}. The alert still fires and resolves.",
    "no_worker": "No worker is running, and only workers evaluate rules.",
    "provisional": _STREAM + "until {until}, the baseline is provisional, and drops below 0.1 are missed.",
    "no_drop": (
        _STREAM
        + "no drop detected. To keep false alerts to {limit:g} per year, detection waits for more evidence than "
        "the overview, which can report a drop earlier."
    ),
    "mean_below": _MEAN + "below {limit:g}.",
    "mean_not_below": _MEAN + "not [{significantly} ]below {limit:g}.",
    "share_above": _SHARE + "above {share_limit}.",
    "share_not_above": _SHARE + "not [{significantly} ]above {share_limit}.",
}


def finding_sentence(finding: Finding, view: ViewParams) -> str:
    """Return a finding in one sentence, with times in the visitor's time zone."""
    level, limit = finding.level, finding.limit or 0.0
    is_beyond = level is not None and (level.mean > limit if "share" in finding.kind else level.mean < limit)
    return fill(
        FINDINGS[finding.kind],
        service=finding.service,
        scorer=finding.scorer,
        route=finding.route,
        until=finding.until and format_date_time(finding.until, view),
        window=finding.window and format_duration(finding.window),
        n=level and level.n,
        mean=level and format_number(level.mean),
        share=level and format_percent(level.mean),
        interval=level and format_interval(level.interval),
        limit=limit,
        share_limit=format_percent(limit),
        significantly="significantly" if is_beyond else None,
    )
