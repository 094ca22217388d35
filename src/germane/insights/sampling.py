"""Descriptions of sampling: what the settings say, and what was decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from germane.insights.formatting import format_percent
from germane.settings import Budget, Settings
from germane.storage import Coverage, SamplingSummary

_REASONS: Final[Mapping[str, str]] = {
    "sampled": "sampled",
    "not_sampled": "not sampled",
    "candidate": "in the candidate pool of the budget",
    "uniform": "picked uniformly",
    "route_floor": "picked to cover their route",
    "suspicion": "picked for a low local score",
    "always": "required by a rule or a label",
    "passed_over": "left out by the budget",
    "": "not decided yet",
}


def describe_sampling(settings: Settings, coverage: Coverage | None = None) -> str:
    """Return the sampling in a few words: "all sampled", "80 % sampled", or how a budget picks.

    Args:
        settings: Those of this process. Workers may have others, so counted outcomes take precedence.
        coverage: Outcomes of the answers that a mean is about.
    """
    skipped = {} if coverage is None else coverage.skipped
    if settings.budget is not None or "budget" in skipped:
        limits = "a budget" if settings.budget is None else f"the budget: {', '.join(describe_limits(settings.budget))}"
        words = f"picked by expected information, within {limits}"
    elif "not_sampled" in skipped and coverage is not None:
        words = f"{format_percent(1 - skipped['not_sampled'] / coverage.seen)} sampled"
    elif settings.sample_rate < 1 and not (coverage and coverage.seen):
        words = f"{format_percent(settings.sample_rate)} sampled"
    else:
        words = "all sampled"
    return f"{words}, after filters" if "filtered" in skipped else words


def describe_sampling_settings(settings: Settings) -> str:
    """Return the sampling as a sentence with the settings it comes from."""
    rate = "" if settings.budget is not None else f" (sample_rate = {settings.sample_rate:g})"
    always = " Answers that match always_score are scored regardless." if settings.always_score else ""
    rule = describe_sampling(settings)
    return f"{rule[0].upper()}{rule[1:]}{rate}.{always}"


def describe_limits(budget: Budget) -> Iterator[str]:
    """Yield each limit of a budget, such as "5,000 requests per day"."""
    for name, words in (("requests", "{:,} requests"), ("tokens", "{:,} tokens"), ("usd", "${:,.2f}")):
        for period in ("hour", "day"):
            value = getattr(budget, f"{name}_per_{period}")
            if value is not None:
                yield f"{words.format(value)} per {period}"


def describe_sampling_outcomes(summary: SamplingSummary) -> list[str]:
    """Return, for each reason, the number of the newest answers and the range of their probabilities."""
    lines = []
    for group in summary.reasons:
        words = f"{group.n:,} {_REASONS.get(group.reason, group.reason.replace('_', ' '))}"
        if group.min_probability is not None and group.max_probability is not None:
            low, high = f"{group.min_probability:.2g}", f"{group.max_probability:.2g}"
            words += f" (with probability {low})" if low == high else f" (with probability {low} to {high})"
        lines.append(words)
    return lines
