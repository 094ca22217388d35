"""The callback that stops germane at interpreter exit."""

from __future__ import annotations

import atexit
import sys
import weakref


def register() -> None:
    """Register the callback. It runs after callbacks that are registered later: they may still call handlers."""
    # Register weakref's exit callback now, so that it runs after germane's. It fails if another thread, such as the
    # writer thread, adds a finalizer while it runs.
    weakref.finalize(_stop_at_exit, int).detach()
    atexit.register(_stop_at_exit)


def _stop_at_exit() -> None:
    if (process := sys.modules.get("germane.process")) is not None:
        process.stop_runtime(process.EXIT_TIMEOUT)
