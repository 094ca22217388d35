"""Every knob once, with its type, its default and its environment variable.

What is passed to :func:`load` wins over ``GERMANE_...`` variables, those over ``germane.toml``, that over
``[tool.germane]`` in ``pyproject.toml``.
"""

from __future__ import annotations

from germane.settings.kinds import as_token
from germane.settings.parts import DAY, Always, Budget, Match, Price, Retention
from germane.settings.rules import (
    AnyRule,
    BudgetExhausted,
    Drop,
    Floor,
    LowRate,
    NoData,
    NoncommittalRate,
    Rule,
    ScorerError,
    Windowed,
)
from germane.settings.settings import DEFAULT_EMBEDDER, DEFAULT_JUDGE, LOCAL, PREFIX, Capture, Settings, load

__all__ = [
    "DAY",
    "DEFAULT_EMBEDDER",
    "DEFAULT_JUDGE",
    "LOCAL",
    "PREFIX",
    "Always",
    "AnyRule",
    "Budget",
    "BudgetExhausted",
    "Capture",
    "Drop",
    "Floor",
    "LowRate",
    "Match",
    "NoData",
    "NoncommittalRate",
    "Price",
    "Retention",
    "Rule",
    "ScorerError",
    "Settings",
    "Windowed",
    "as_token",
    "load",
]
