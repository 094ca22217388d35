"""Connecting the tracer to the rest of germane, and taking it off again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from germane.tracer import annotation, connection, provider
from germane.tracer.telemetry import counters


def connect(**settings: Any) -> None:
    """Begin to capture; see :class:`germane.tracer.connection.Connection` for the settings."""
    connection.use(connection.Connection(**settings))


def disconnect(timeout: float = 10.0) -> bool:
    """Stop capturing: handlers run as if they were not decorated. What private providers hold is exported.

    Returns:
        False when that took longer than ``timeout`` seconds; it then goes on in the background.
    """
    provider.release()
    annotation.tell_refused(connection.current())
    connection.use(None)
    return _all_within(timeout, provider.close, counters.close)


def flush(timeout: float) -> bool:
    """Export what is waiting; False when that took longer than ``timeout`` seconds."""
    return _all_within(timeout, partial(provider.flush, timeout), partial(counters.flush, timeout))


def _all_within(seconds: float, *calls: Callable[[], object]) -> bool:
    """Make calls side by side; return whether all have ended in time and none has returned False.

    OpenTelemetry keeps no time-outs while a collector is away: what takes longer is left behind in its thread.
    """
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda call=call: results.append(call()), name="germane-export", daemon=True)
        for call in calls
    ]
    deadline = time.monotonic() + seconds
    for thread in [thread for thread in threads if _starts(thread)]:
        thread.join(max(0.0, deadline - time.monotonic()))
    return len(results) == len(calls) and False not in results


def _starts(thread: threading.Thread) -> bool:
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends, and makes no thread any more
        thread.run()
        return False
    return True
