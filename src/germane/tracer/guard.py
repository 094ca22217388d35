"""Guards that prevent errors inside germane from reaching the user's handler."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import CO_VARARGS, getattr_static
from itertools import pairwise
from traceback import walk_tb
from types import CodeType, FrameType
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
    """Call a function of germane, or a user's callable, alongside the handler. Return its result, or None if it raises.

    This is the only broad ``except`` in the tracer. The error is logged once, formatted with ``message``, and appended
    to ``problems``. For other libraries' errors, only the type is logged, because their messages may quote captured
    text. An error raised by a signal handler, such as a time limit, belongs to the application and is raised again.
    """
    try:
        return function(*args)
    except Exception as error:
        if _strict:
            raise
        try:
            problem = f"{what}: {error if isinstance(error, GermaneError) else type(error).__name__}"
            is_of_application = _is_raised_by_signal_handler(error)
            if is_of_application:
                message = "interrupted, {} (raised to the application)"
            elif problems is not None and problem not in problems:
                problems.append(problem)
            log_once(message.format(problem))
        except Exception:  # noqa: BLE001 - the application's logging filter raised, or the stack is exhausted
            return None
        if is_of_application:
            raise
        return None


def _is_raised_by_signal_handler(error: BaseException) -> bool:
    """Return whether an error's traceback contains a frame of a Python signal handler.

    A frame counts as one if its function is registered for a signal, or was called with a signal number and the
    interrupted frame.
    """
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return any(frame.f_code in handlers or _takes_a_signal(frame) for frame in frames)


def _code_of(handler: Any) -> CodeType | None:
    while isinstance(handler, partial):
        handler = handler.func
    function = handler if hasattr(handler, "__code__") else getattr_static(type(handler), "__call__", None)
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _takes_a_signal(frame: FrameType) -> bool:
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount]
    arguments = [values.get(name) for name in names]
    if code.co_flags & CO_VARARGS:
        arguments += values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    pairs = pairwise(arguments)
    return any(type(interrupted) is FrameType and issubclass(type(number), int) for number, interrupted in pairs)


def log_once(message: str) -> None:
    """Log a warning the first time it occurs in this process. After 1,000 distinct messages, log nothing more."""
    if message not in _logged and len(_logged) < _MAX_LOGGED_MESSAGES:
        _logged.add(message)
        _logger.warning(message)


@contextmanager
def strict() -> Iterator[None]:
    """Let errors inside germane propagate to the caller, in all threads, while the block runs. For tests only."""
    global _strict
    _strict += 1
    try:
        yield
    finally:
        _strict -= 1
