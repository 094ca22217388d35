"""Connecting, flushing and disconnecting the tracer."""

from __future__ import annotations

from functools import partial
from typing import Any

from germane.daemon_pool import run_within
from germane.tracer import annotation, collection, connection, provider, telemetry, watching


def connect(**settings: Any) -> None:
    """Start capturing. ``settings`` are the fields of :class:`germane.tracer.connection.Connection`."""
    collection.watch_collections()
    connection.set_connection(connection.Connection(**settings))
    watching.start()
    telemetry.check_endpoints()


def disconnect(timeout: float = 10.0) -> bool:
    """Stop capturing: handlers run as if they were not decorated. Private providers export their pending data.

    Return whether the export finished within ``timeout`` seconds. Otherwise, it continues in the background.
    """
    collection.run_deferred()
    watching.flush(timeout / 2, is_last=True)
    provider.release()
    annotation.log_rejected_calls(connection.current_connection())
    connection.set_connection(None)
    watching.stop()
    return run_within(timeout, provider.close, telemetry.close)


def flush(timeout: float) -> bool:
    """Read all complete traces and export all pending data. Return whether it finished within ``timeout`` seconds."""
    collection.run_deferred()
    watching.flush(timeout / 2)
    return run_within(timeout, partial(provider.flush, timeout), partial(telemetry.flush, timeout))
