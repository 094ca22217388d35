"""Which answers are scored, in words."""

from __future__ import annotations

from typing import Final

from germane.dashboard.sampling_rule import sampling_rule
from germane.dashboard.words import count
from germane.settings import Budget, Settings
from germane.storage import Coverage

_LIMITS: Final = {
    "calls_per_hour": "{} calls an hour",
    "calls_per_day": "{} calls a day",
    "tokens_per_hour": "{} tokens an hour",
    "tokens_per_day": "{} tokens a day",
    "usd_per_hour": "${} an hour",
    "usd_per_day": "${} a day",
}


def sampling_of(settings: Settings, coverage: Coverage | None = None) -> str:
    """Return the rule in force, as :func:`sampling_rule` says it; of a budget what it allows."""
    if settings.budget is None:
        return sampling_rule(settings, coverage)
    return f"budget: {_limits(settings.budget)}"


def _limits(budget: Budget) -> str:
    limits = {name: value for name, value in budget.model_dump().items() if value is not None}
    return ", ".join(_LIMITS[name].format(_amount(value)) for name, value in limits.items())


def _amount(value: float) -> str:
    return count(int(value)) if value == int(value) else f"{value:,.2f}"
