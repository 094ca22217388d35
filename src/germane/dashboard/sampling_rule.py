"""Which answers are scored: a few words that stand wherever a mean does."""

from __future__ import annotations

from germane.dashboard.words import percent
from germane.settings import Settings
from germane.storage import Coverage


def sampling_rule(settings: Settings, coverage: Coverage | None = None) -> str:
    """Return "every answer is drawn", "80 % drawn" or what a budget picks.

    Args:
        settings: Of this process; those that score may have others, so what was counted goes before.
        coverage: What became of the answers in question.
    """
    left_out = {} if coverage is None else coverage.skipped
    if "budget" in left_out or (not left_out and settings.budget is not None):
        words = "picked within the budget, by what they tell"
    elif "not_drawn" in left_out and coverage is not None:
        words = f"{percent(1 - left_out['not_drawn'] / coverage.seen)} drawn"
    elif settings.rate < 1 and not (coverage and coverage.seen):
        words = f"{percent(settings.rate)} drawn"
    else:
        words = "every answer is drawn"
    return f"{words}, of what its filter takes" if "filtered" in left_out else words
