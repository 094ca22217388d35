"""Every knob once, with its type, its default and its environment variable.

What is passed to :func:`load` wins over ``GERMANE_...`` variables, those over ``germane.toml``, that over
``[tool.germane]`` in ``pyproject.toml``.
"""

from __future__ import annotations

from germane.settings.parts import DAY, Always, Budget, Floor, Match, Price, Retention
from germane.settings.settings import DEFAULT_EMBEDDER, DEFAULT_JUDGE, LOCAL, PREFIX, Capture, Settings, load

__all__ = [
    "DAY",
    "DEFAULT_EMBEDDER",
    "DEFAULT_JUDGE",
    "LOCAL",
    "PREFIX",
    "Always",
    "Budget",
    "Capture",
    "Floor",
    "Match",
    "Price",
    "Retention",
    "Settings",
    "load",
]
