"""Connecting the tracer to the rest of germane, and taking it off again."""

from __future__ import annotations

from typing import Any

from germane.tracer import connection, provider, signals


def connect(**settings: Any) -> None:
    """Begin to capture; see :class:`germane.tracer.connection.Connection` for the settings."""
    connection.use(connection.Connection(**settings))


def disconnect() -> None:
    """Stop capturing: handlers run as if they were not decorated. What private providers hold is exported."""
    provider.release()
    connection.use(None)
    provider.close()
    signals.close()


def flush(timeout: float) -> bool:
    """Export what is waiting; False when that took longer than ``timeout`` seconds."""
    flushed = provider.flush(timeout), signals.flush(timeout)
    return all(flushed)
