"""A small but real RAG application to monitor.

It answers questions from a product's documentation, and one of its routes breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from germane.demo.application import Documentation
from germane.demo.corpus import (
    ROUTES,
    DemoCorpus,
    DemoQuestion,
    Embed,
    Passage,
    PassageIndex,
    SearchHit,
    Vectors,
    load_corpus,
    split_sentences,
)
from germane.demo.traffic import BROKEN_ROUTE, DURATION, FAULT_TIME, Visit, plan_visits

if TYPE_CHECKING:
    from germane.demo.run import RULE, SCORER, DemoProgress, DemoResult, ProgressCallback, run_demo

__all__ = [
    "BROKEN_ROUTE",
    "DURATION",
    "FAULT_TIME",
    "ROUTES",
    "RULE",
    "SCORER",
    "DemoCorpus",
    "DemoProgress",
    "DemoQuestion",
    "DemoResult",
    "Documentation",
    "Embed",
    "Passage",
    "PassageIndex",
    "ProgressCallback",
    "SearchHit",
    "Vectors",
    "Visit",
    "load_corpus",
    "plan_visits",
    "run_demo",
    "split_sentences",
]


def __getattr__(name: str) -> Any:
    """Import :mod:`germane.demo.run` on first use. It imports all of germane, which would slow down ``--help``."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from germane.demo import run

    return getattr(run, name)
