"""The guard at the border to the user's handler: errors inside germane never reach the handler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from germane.errors import GermaneError

T = TypeVar("T")

NOT_CAPTURED = "not captured, {} (the handler is not affected)"
NOT_RECORDED = "not recorded, {} (the caller is not affected)"
_MAX_LOGGED_MESSAGES = 1000
_logger = logging.getLogger("germane.tracer")
_logged: set[str] = set()
_strict = 0


def guarded(
    what: str, function: Callable[..., T], /, *args: Any, problems: list[str] | None = None, message: str = NOT_CAPTURED
) -> T | None:
    """Call code of germane, or a user's callable, alongside the handler. Return None if it raises.

    This is the only broad ``except`` of the tracer. The error is logged once, in ``message``, and appended to
    ``problems``. Other libraries' errors are logged by type only, because their messages may quote captured text.
    """
    try:
        return function(*args)
    except Exception as error:
        if _strict:
            raise
        try:
            problem = f"{what}: {error if isinstance(error, GermaneError) else type(error).__name__}"
            if problems is not None and problem not in problems:
                problems.append(problem)
            log_once(message.format(problem))
        except Exception:  # noqa: BLE001 - the application's logging filter raised, or the stack is exhausted
            return None
        return None


def log_once(message: str) -> None:
    """Log a warning at its first occurrence in this process. After 1,000 distinct messages, log nothing."""
    if message not in _logged and len(_logged) < _MAX_LOGGED_MESSAGES:
        _logged.add(message)
        _logger.warning(message)


@contextmanager
def strict() -> Iterator[None]:
    """Let errors inside germane propagate to the caller, in every thread, while the block runs. For tests only."""
    global _strict
    _strict += 1
    try:
        yield
    finally:
        _strict -= 1
