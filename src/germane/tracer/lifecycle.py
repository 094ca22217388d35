"""Connecting the tracer to the rest of germane, and disconnecting it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from germane.tracer import annotation, connection, provider, telemetry


def connect(**settings: Any) -> None:
    """Start capturing. The settings are the fields of :class:`germane.tracer.connection.Connection`."""
    connection.set_connection(connection.Connection(**settings))


def disconnect(timeout: float = 10.0) -> bool:
    """Stop capturing: handlers run as if they were not decorated. Private providers export their pending data.

    Returns:
        False if that took longer than ``timeout`` seconds. It then continues in the background.
    """
    provider.release()
    annotation.log_rejected_calls(connection.current_connection())
    connection.set_connection(None)
    return _finish_within(timeout, provider.close, telemetry.close)


def flush(timeout: float) -> bool:
    """Export all pending data. Return False if that took longer than ``timeout`` seconds."""
    return _finish_within(timeout, partial(provider.flush, timeout), partial(telemetry.flush, timeout))


def _finish_within(seconds: float, *calls: Callable[[], object]) -> bool:
    """Run calls in parallel. Return whether all ended in time and none returned False.

    OpenTelemetry exceeds its own timeouts while a collector is unreachable. Such calls are left running.
    """
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda call=call: results.append(call()), name="germane-export", daemon=True)
        for call in calls
    ]
    deadline = time.monotonic() + seconds
    started = []
    for thread in threads:
        try:
            thread.start()
            started.append(thread)
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            thread.run()
    for thread in started:
        thread.join(max(0.0, deadline - time.monotonic()))
    return len(results) == len(calls) and False not in results
