"""Filters that keep library messages about germane's requests and migrations out of the application's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LOGGERS: Final = (
    "alembic.runtime.migration",
    "alembic.runtime.plugins",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpx2",
    "openai._base_client",
)
"""Loggers that write a line per request or migration step. A filter applies to one logger only, not to its children."""
_is_suppressed: ContextVar[bool] = ContextVar("germane_loggers_suppressed", default=False)


class _WarningsOnly(logging.Filter):
    """Drops records below warning level in a suppressed context."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not _is_suppressed.get()


_FILTER: Final = _WarningsOnly()


@contextmanager
def suppressed_loggers() -> Iterator[None]:
    """Suppress routine log lines, such as one per judge request. Their URLs may contain secrets."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # adding the same filter again has no effect
    token = _is_suppressed.set(True)
    try:
        yield
    finally:
        _is_suppressed.reset(token)
