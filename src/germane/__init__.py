"""Tells you, minutes after it happens, that your production RAG has stopped answering the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from germane.exchange import Context, Exchange, Turn
from germane.registry import scorer
from germane.score import Reason, Score

if TYPE_CHECKING:
    from germane.evaluation import Evaluation, aevaluate, evaluate
    from germane.runtime import lifespan, start, stop
    from germane.storage import Store
    from germane.tracer import (
        add_contexts,
        current_exchange,
        feedback,
        hold,
        mark,
        observe,
        record,
        retrieval,
        set_attribute,
    )

__all__ = [
    "Context",
    "Evaluation",
    "Exchange",
    "Reason",
    "Score",
    "Store",
    "Turn",
    "add_contexts",
    "aevaluate",
    "current_exchange",
    "evaluate",
    "feedback",
    "hold",
    "lifespan",
    "mark",
    "observe",
    "record",
    "retrieval",
    "scorer",
    "set_attribute",
    "start",
    "stop",
]

_LATER = {
    "germane.evaluation": ("Evaluation", "aevaluate", "evaluate"),
    "germane.runtime": ("lifespan", "start", "stop"),
    "germane.storage": ("Store",),
    "germane.tracer": (
        "add_contexts",
        "current_exchange",
        "feedback",
        "hold",
        "mark",
        "observe",
        "record",
        "retrieval",
        "set_attribute",
    ),
}
"""Names whose modules are imported at their first use: a handler's process never needs the database's, and one that
shows pages never OpenTelemetry."""
_PLACES = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if _PLACES[name] == "germane.tracer":
        import_module("germane.runtime")  # it sees to forks, and to the end of the interpreter
    found = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
