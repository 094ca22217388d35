"""Which answers are scored, in words: what the settings of this process say, and what was done in fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from germane.dashboard.words import percent
from germane.settings import Budget, Settings
from germane.storage import Manner, Sampled

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


def rule(settings: Settings) -> str:
    """Say in a sentence which answers are scored by these settings."""
    always = " Some are always scored, whatever the draw says." if settings.always else ""
    if settings.budget is not None:
        told = ", ".join(limits(settings.budget))
        return f"Answers are picked by what they tell, as many as the budget pays for: {told}.{always}"
    if settings.rate >= 1:
        return f"Every answer is scored (rate = 1).{always}"
    return f"{percent(settings.rate)} of answers are drawn for scoring (rate = {settings.rate:g}).{always}"


def limits(budget: Budget) -> Iterator[str]:
    """Yield each limit of a budget in words, such as "5,000 calls a day"."""
    for name, words in (("calls", "{:,} calls"), ("tokens", "{:,} tokens"), ("usd", "${:,.2f}")):
        for length in ("hour", "day"):
            value = getattr(budget, f"{name}_per_{length}")
            if value is not None:
                yield f"{words.format(value)} {'an' if length == 'hour' else 'a'} {length}"


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
