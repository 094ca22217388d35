"""germane: detects, within minutes, when your production RAG stops answering the question.

``__init__.pyi`` lists the public names. Each is imported when it is first used: a process that only runs handlers never
loads the database code, and a dashboard process never loads OpenTelemetry.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - no installer checks the version of a source tree or a copied package
    raise ImportError(
        f"germane needs Python 3.11 or newer, but this is Python {sys.version_info[0]}.{sys.version_info[1]} "
        f"({sys.executable})"
    )

import importlib
from typing import Any

from germane import exit_callback, lazy

_load, __dir__, __all__ = lazy.attach_stub(__name__)


def __getattr__(name: str) -> Any:
    value = _load(name)
    if "germane.tracer" in sys.modules:
        importlib.import_module("germane.process")  # registers the fork and exit hooks
    return value


exit_callback.register()
