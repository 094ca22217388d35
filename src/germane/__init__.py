"""germane: detects, within minutes, when your production RAG stops answering the question."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 - no installer checks the version of a source tree or a copied package
    raise ImportError(
        f"germane needs Python 3.11 or newer, but this is Python {sys.version_info[0]}.{sys.version_info[1]} "
        f"({sys.executable})"
    )

from germane.errors import GermaneError, SettingsError
from germane.exchange import Context, Exchange, Message
from germane.registry import scorer
from germane.score import Score, UnscoredReason

if TYPE_CHECKING:
    from germane.alert import Alert
    from germane.evaluation import Evaluation, aevaluate, evaluate, evaluate_to_parquet
    from germane.recognizers import recognizer
    from germane.runtime import lifespan, start, stop
    from germane.settings import Settings
    from germane.storage import Store
    from germane.tracer import (
        ScoreSpanProcessor,
        add_contexts,
        current_exchange,
        feedback,
        mark,
        observe,
        record_exchange,
        record_score,
        retrieval,
        set_attribute,
        set_question,
        watch,
    )

    __version__: str

__all__ = [
    "Alert",
    "Context",
    "Evaluation",
    "Exchange",
    "GermaneError",
    "Message",
    "Score",
    "ScoreSpanProcessor",
    "Settings",
    "SettingsError",
    "Store",
    "UnscoredReason",
    "__version__",
    "add_contexts",
    "aevaluate",
    "current_exchange",
    "evaluate",
    "evaluate_to_parquet",
    "feedback",
    "lifespan",
    "mark",
    "observe",
    "recognizer",
    "record_exchange",
    "record_score",
    "retrieval",
    "scorer",
    "set_attribute",
    "set_question",
    "start",
    "stop",
    "watch",
]

_LAZY_IMPORTS = {
    "germane.alert": ("Alert",),
    "germane.evaluation": ("Evaluation", "aevaluate", "evaluate", "evaluate_to_parquet"),
    "germane.recognizers": ("recognizer",),
    "germane.runtime": ("lifespan", "start", "stop"),
    "germane.settings": ("Settings",),
    "germane.storage": ("Store",),
    "germane.tracer": (
        "ScoreSpanProcessor",
        "add_contexts",
        "current_exchange",
        "feedback",
        "mark",
        "observe",
        "record_exchange",
        "record_score",
        "retrieval",
        "set_attribute",
        "set_question",
        "watch",
    ),
}
"""Public names that are imported on first use, by module. A process that only runs handlers never loads the database
code, and a dashboard process never loads OpenTelemetry."""
_MODULES = {name: module for module, names in _LAZY_IMPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module, metadata

    if name == "__version__":
        value: Any = metadata.version("germane")
    elif name in _MODULES:
        if _MODULES[name] == "germane.tracer":
            import_module("germane.process")  # registers the fork and exit hooks
        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _stop_at_exit() -> None:
    from sys import modules

    if (process := modules.get("germane.process")) is not None:
        process.stop_runtime(process.EXIT_TIMEOUT)


def _register_exit_callback() -> None:
    """Register a callback that stops germane at exit.

    It runs after callbacks that were registered later, because they may still call handlers.
    """
    import atexit
    import weakref

    # Register weakref's exit callback now, so that it runs after germane's. It fails if another thread, such as the
    # writer thread, adds a finalizer while it runs.
    weakref.finalize(_stop_at_exit, int).detach()
    atexit.register(_stop_at_exit)


_register_exit_callback()
