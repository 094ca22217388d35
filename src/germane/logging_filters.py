"""Filters that keep library messages about germane's requests and database out of the application's log."""

from __future__ import annotations

import logging
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


class _ContextFilter(logging.Filter):
    """Drops records of a thread or task while it is inside the context manager :meth:`suppressing`."""

    def __init__(self, name: str, *, keep: int) -> None:
        super().__init__()
        self._keep = keep
        """Level from which records are kept."""
        self._is_active: ContextVar[bool] = ContextVar(name, default=False)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._keep or not self._is_active.get()

    @contextmanager
    def suppressing(self) -> Iterator[None]:
        """Drop records while the block runs."""
        before = self._is_active.get()
        self._is_active.set(True)
        try:
            yield
        finally:
            self._is_active.set(before)  # without a token, because a generator may end in another context


_FILTER: Final = _ContextFilter("germane_loggers_suppressed", keep=logging.WARNING)
_DRIVER_FILTER: Final = _ContextFilter("germane_driver_suppressed", keep=logging.CRITICAL + 1)
suppressed_driver: Final = _DRIVER_FILTER.suppressing
"""Suppress the database driver's log records. Its errors are still raised, and germane reports each one once."""


@contextmanager
def suppressed_loggers() -> Iterator[None]:
    """Suppress routine log lines, such as those for judge requests, whose URLs may contain secrets."""
    for logger in _LOGGERS:
        logger.addFilter(_FILTER)  # adding the same filter again has no effect
    with _FILTER.suppressing():
        yield


def install_driver_filter() -> None:
    """Add the filter to the database driver's loggers. Calling this again has no effect."""
    for name in _DRIVER_LOGGERS:
        logging.getLogger(name).addFilter(_DRIVER_FILTER)
