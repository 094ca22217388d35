"""Which answers are scored, in words: what settings say, and what was done in fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from germane.insights.text import percent
from germane.settings import Budget, Settings
from germane.storage import Coverage, Manner, Sampled

REASONS: Final[Mapping[str, str]] = {
    "drawn": "drawn",
    "not_drawn": "not drawn",
    "candidate": "in the pool of the budget",
    "uniform": "picked evenly",
    "route_floor": "picked for their route",
    "suspicion": "picked because they look bad",
    "always": "asked for by a rule or a person",
    "passed_over": "left by the budget",
    "": "not decided on yet",
}


def sampling_rule(settings: Settings, coverage: Coverage | None = None) -> str:
    """Return a few words that stand wherever a mean does: "all drawn", "80 % drawn" or what a budget picks.

    Args:
        settings: Of this process; those that score may have others, so what was counted goes before.
        coverage: What became of the answers in question.
    """
    left_out = {} if coverage is None else coverage.skipped
    if settings.budget is not None or "budget" in left_out:
        words = f"picked by what they tell, within {_budget(settings.budget)}"
    elif "not_drawn" in left_out and coverage is not None:
        words = f"{percent(1 - left_out['not_drawn'] / coverage.seen)} drawn"
    elif settings.rate < 1 and not (coverage and coverage.seen):
        words = f"{percent(settings.rate)} drawn"
    else:
        words = "all drawn"
    return f"{words}, of those that the filters take" if "filtered" in left_out else words


def sampling_told(settings: Settings) -> str:
    """Return the same as a sentence, with the settings that it comes from."""
    how = "" if settings.budget is not None else f" (rate = {settings.rate:g})"
    always = " Some are always scored, whatever the draw says." if settings.always else ""
    rule = sampling_rule(settings)
    return f"{rule[0].upper()}{rule[1:]}{how}.{always}"


def limits(budget: Budget) -> Iterator[str]:
    """Yield each limit of a budget in words, such as "5,000 calls a day"."""
    for name, words in (("calls", "{:,} calls"), ("tokens", "{:,} tokens"), ("usd", "${:,.2f}")):
        for length in ("hour", "day"):
            value = getattr(budget, f"{name}_per_{length}")
            if value is not None:
                yield f"{words.format(value)} {'an' if length == 'hour' else 'a'} {length}"


def _budget(budget: Budget | None) -> str:
    return "a budget" if budget is None else f"the budget: {', '.join(limits(budget))}"


def in_fact(manner: Manner) -> list[str]:
    """Return, for each reason, how many of the newest answers were decided on so, and with what probability."""
    return [_sampled(one) for one in manner.sampled]


def _sampled(one: Sampled) -> str:
    words = REASONS.get(one.reason, one.reason.replace("_", " "))
    return f"{one.n:,} {words}{_probability(one)}"


def _probability(one: Sampled) -> str:
    if one.lowest is None or one.highest is None:
        return ""
    low, high = f"{one.lowest:.2g}", f"{one.highest:.2g}"
    return f" (with probability {low})" if low == high else f" (with probability {low} to {high})"
