"""A small but real RAG application to monitor.

It answers questions from a product's documentation, and one of its routes breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from germane.demo.traffic import BROKEN_ROUTE, DURATION, FAULT_TIME

if TYPE_CHECKING:
    from germane.demo.run import RULE, SCORER, DemoProgress, DemoResult, ProgressCallback, run_demo

__all__ = [
    "BROKEN_ROUTE",
    "DURATION",
    "FAULT_TIME",
    "RULE",
    "SCORER",
    "DemoProgress",
    "DemoResult",
    "ProgressCallback",
    "run_demo",
]


def __getattr__(name: str) -> Any:
    """Import :mod:`germane.demo.run` on first use. It imports all of germane, which would slow down ``--help``."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from germane.demo import run

    return getattr(run, name)
