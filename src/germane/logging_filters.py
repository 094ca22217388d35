"""Keeping what other libraries say of germane's own work out of the application's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_TALKERS: Final = (
    "alembic.runtime.migration",
    "alembic.runtime.plugins",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpx2",
    "openai._base_client",
)
"""Loggers that tell of each request or step. A filter holds for one logger only, not for those below it."""
_hushed: ContextVar[bool] = ContextVar("germane_hushed", default=False)


class _OnlyTrouble(logging.Filter):
    """Lets warnings pass, and all that is said of the application's own work."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not _hushed.get()


_FILTER = _OnlyTrouble()


@contextmanager
def hushed() -> Iterator[None]:
    """Hold back a line per judge request and the like; such lines also name addresses, which may be secret."""
    for name in _TALKERS:
        logging.getLogger(name).addFilter(_FILTER)  # adding it again changes nothing
    token = _hushed.set(True)
    try:
        yield
    finally:
        _hushed.reset(token)
