"""The guard at the border to the user's handler: what goes wrong on our side of it stays there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from germane.errors import GermaneError

T = TypeVar("T")

_logger = logging.getLogger("germane.tracer")
NOT_CAPTURED = "not captured, {} (the handler is not affected)"
NOT_KEPT = "not kept, {} (the caller is not affected)"

_said: set[str] = set()
_SAID_AT_MOST = 1000
_strict = 0


def attempt(
    what: str, function: Callable[..., T], /, *args: Any, problems: list[str] | None = None, said: str = NOT_CAPTURED
) -> T | None:
    """Call our own code, or a callable that the user gave us, beside the handler; None when it raises.

    This is the one broad ``except`` of the tracer. ``what`` names the attempt in the log, said once in the sentence
    ``said``, and in ``problems``. Messages of foreign errors are left out: they may quote what was asked.
    """
    try:
        return function(*args)
    except Exception as error:
        if _strict:
            raise
        try:
            _tell(what, error, problems, said)
        except Exception:  # noqa: BLE001 - a filter of the application's logging raised, or no stack is left to tell it
            return None
        return None


def _tell(what: str, error: Exception, problems: list[str] | None, said: str) -> None:
    told = f"{what}: {error if isinstance(error, GermaneError) else type(error).__name__}"
    if problems is not None and told not in problems:
        problems.append(told)
    say_once(said.format(told))


def say_once(message: str) -> None:
    """Log a warning the first time it is said in this process; after a thousand different ones, no more."""
    if message not in _said and len(_said) < _SAID_AT_MOST:
        _said.add(message)
        _logger.warning(message)


@contextmanager
def strict() -> Iterator[None]:
    """Let what goes wrong inside germane reach the caller, in every thread, for as long as the block lasts.

    For tests alone: it is what the guard exists to prevent.
    """
    global _strict
    _strict += 1
    try:
        yield
    finally:
        _strict -= 1
