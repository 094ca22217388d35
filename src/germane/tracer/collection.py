"""Handling of recordings that end while the garbage collector runs.

Up to Python 3.11, the collector may run while a context variable is being set. If a finalizer then sets a context
variable, the interpreter crashes, because the tree of variables is replaced while it is being copied. Later versions
only collect between bytecodes. Recordings of streams that were dropped in a reference cycle are therefore ended after
the collection.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable
from functools import cache
from threading import get_ident
from typing import Literal

_collecting_thread: int | None = None
_deferred: deque[Callable[[], object]] = deque()


@cache
def watch_collections() -> None:
    """Track garbage collections from now on, in Python versions where they may run at any allocation."""
    if sys.version_info < (3, 12):
        gc.callbacks.append(_note_collection)


def is_collecting() -> bool:
    """Return whether the collector is running in this thread because of an allocation. Explicit calls are safe."""
    return _collecting_thread is not None and _collecting_thread == get_ident()


def defer(function: Callable[[], object]) -> None:
    """Schedule a function for the next call of :func:`run_deferred`, which each new recording makes."""
    _deferred.append(function)


def run_deferred() -> None:
    """Call the deferred functions, unless the collector is running."""
    while _deferred and not is_collecting():
        try:
            function = _deferred.popleft()
        except IndexError:  # another thread was faster
            return
        function()


def _note_collection(phase: Literal["start", "stop"], _info: dict[str, int]) -> None:
    global _collecting_thread
    # The count exceeds its threshold unless the application calls gc.collect().
    is_implicit = phase == "start" and gc.get_count()[0] > gc.get_threshold()[0]
    _collecting_thread = get_ident() if is_implicit else None
