"""Tells you, minutes after it happens, that your production RAG has stopped answering the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from germane.exchange import Context, Exchange, Turn
from germane.registry import scorer
from germane.runtime import lifespan, start, stop
from germane.score import Reason, Score
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

if TYPE_CHECKING:
    from germane.evaluation import Evaluation, aevaluate, evaluate
    from germane.storage import Store

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
    "Evaluation": "germane.evaluation",
    "Store": "germane.storage",
    "aevaluate": "germane.evaluation",
    "evaluate": "germane.evaluation",
}
"""Names whose modules are imported at their first use: a handler's process may never need them."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
