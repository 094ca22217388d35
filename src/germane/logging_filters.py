"""Filters that keep library messages about germane's requests and database out of the application's log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LOGGERS: Final = tuple(
    map(
        logging.getLogger,
        (
            "alembic.runtime.migration",
            "alembic.runtime.plugins",
            *(f"{name}.{part}" for name in ("httpcore", "httpcore2") for part in ("connection", "http11", "http2")),
            *("httpcore.proxy", "httpcore2.proxy", "httpx", "httpx2", "openai._base_client"),
        ),
    )
)
"""Loggers that write a line per request or migration step. A filter applies to one logger only, not to its children."""
_DRIVER_LOGGERS: Final = ("psycopg", "sqlalchemy.pool.impl.QueuePool")
"""Loggers that write a warning about a lost connection in addition to the error that they raise."""
_is_suppressed: ContextVar[bool] = ContextVar("germane_loggers_suppressed", default=False)


class _WarningsOnly(logging.Filter):
    """Drops records below warning level in a suppressed context."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not _is_suppressed.get()


class _ThreadState(threading.local):
    """Thread-local nesting depth of the blocks that use germane's database."""

    depth = 0


class _OtherThreadsOnly(logging.Filter):
    """Drops records from threads that are using germane's database. germane reports database errors itself."""

    def filter(self, _record: logging.LogRecord) -> bool:
        return not _thread.depth


_FILTER: Final = _WarningsOnly()
_DRIVER_FILTER: Final = _OtherThreadsOnly()
_thread: Final = _ThreadState()


@contextmanager
def suppressed_loggers() -> Iterator[None]:
    """Suppress routine log lines, such as those for judge requests, whose URLs may contain secrets."""
    for logger in _LOGGERS:
        logger.addFilter(_FILTER)  # adding the same filter again has no effect
    token = _is_suppressed.set(True)
    try:
        yield
    finally:
        _is_suppressed.reset(token)


def install_driver_filter() -> None:
    """Add the filter to the database driver's loggers. Calling this again has no effect."""
    for name in _DRIVER_LOGGERS:
        logging.getLogger(name).addFilter(_DRIVER_FILTER)


@contextmanager
def suppressed_driver() -> Iterator[None]:
    """Suppress the database driver's log records on this thread.

    Its errors are still raised, and germane reports each one once.
    """
    _thread.depth += 1
    try:
        yield
    finally:
        _thread.depth -= 1
