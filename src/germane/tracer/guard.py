"""Guards that prevent errors inside germane from reaching the user's handler."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import CO_VARARGS, getattr_static
from itertools import pairwise
from opcode import opmap, opname
from traceback import walk_stack, walk_tb
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from germane import sanitize
from germane.errors import GermaneError
from germane.tracer.selectors import unwrap_partial

T = TypeVar("T")

NOT_CAPTURED = "capture failed: {} (the handler is not affected)"
NOT_TRACED = "tracing failed: {} (the exchange is captured without it)"
NOT_RECORDED = "recording failed: {} (the caller is not affected)"
_MAX_LOGGED_MESSAGES = 1000
_MAX_CAUSE_LENGTH = 1000
_QUOTE_LENGTH = 8
"""Number of characters that a message has to share with captured text in order to count as quoting it."""
_MIN_TEXT_LENGTH = 4
"""Shorter texts also occur in messages that do not quote them."""
_GREENLET_PACKAGES = {"eventlet", "gevent", "greenlet"}
_RAISING = {"RAISE_VARARGS", "RERAISE", "YIELD_VALUE", "SEND", "RETURN_GENERATOR", "CLEANUP_THROW", "END_ASYNC_FOR"}
"""Instructions that may raise any error: those of a raise statement, and those at which ``throw()`` raises in a
generator."""
_AFTER_YIELD = 3
_MAX_PLACEHOLDER_LENGTH = 6
_logger = logging.getLogger("germane.tracer")
_logged: set[str] = set()
_strict = 0


def guarded(
    what: str,
    function: Callable[..., T],
    /,
    *args: Any,
    problems: list[str] | None = None,
    message: str = NOT_CAPTURED,
    texts: Callable[[], Iterable[str]] | None = None,
) -> T | None:
    """Call a function of germane, or a user's callable, alongside the handler. Return its result, or None if it raises.

    The error is logged once, in ``message``, and appended to ``problems``. For other libraries' errors, only the type
    is logged, because their messages may quote captured text. If ``texts`` returns all captured text that the function
    may have received, messages that quote none of it are logged, too. An interruption, such as a time limit, belongs to
    the application and is raised: see :func:`_is_interruption`. The start and the end of spans do the same without a
    call of this function, because they are on the path of every call.
    """
    try:
        return function(*args)
    except Exception as error:
        if must_be_raised(error, what, problems, message, texts):
            raise
        return None


def must_be_raised(
    error: Exception, what: str, problems: list[str] | None, message: str, texts: Callable[[], Iterable[str]] | None
) -> bool:
    """Log an error once. Return whether it belongs to the application, or to a strict test."""
    if _strict:
        return True
    try:
        problem = f"{what}: {error if isinstance(error, GermaneError) else type(error).__name__}"
        key = None if texts is None else problem
        if texts is not None and key not in _logged:
            problem += _cause_without(texts(), error)
        is_of_application = _is_interruption(error)
        if is_of_application:
            message = "interrupted: {} (the exception is raised to the application)"
        elif problems is not None and problem not in problems:
            problems.append(problem)
        log_once(message.format(problem), key=key)
    except Exception:  # noqa: BLE001 - the application's logging filter raised, or the stack is exhausted
        return False
    return is_of_application


def _cause_without(texts: Iterable[str], error: Exception) -> str:
    """Return an error's message, preceded by a colon, without secrets. Return "" if it quotes one of the texts.

    For an error without a message, return the module that raised it.
    """
    cause = str(error)
    if not cause and error.__traceback__ is not None:
        *_, (frame, line) = walk_tb(error.__traceback__)
        return f" in {frame.f_globals.get('__name__')}, line {line}"
    quotes = {cause[start : start + _QUOTE_LENGTH] for start in range(len(cause) - _QUOTE_LENGTH + 1)} or {cause}
    for text in texts:
        is_short = _MIN_TEXT_LENGTH <= len(text) < _QUOTE_LENGTH
        if (is_short and text in cause) or any(quote in text or quote in ascii(text) for quote in quotes):
            return ""
    return cause and f": {sanitize.line(sanitize.hide_secrets(cause), _MAX_CAUSE_LENGTH)}"


def _is_interruption(error: BaseException) -> bool:
    """Return whether an error, its cause or its context was raised from outside the code that it passed through.

    Three kinds are recognized: errors raised by a signal handler, by another thread in this thread, and by another
    greenlet in this greenlet. An error without a traceback cannot be recognized.
    """
    frames = {frame for frame, _ in walk_stack(sys._getframe())}  # noqa: SLF001 - documented, for CPython
    errors, seen = [error], set[int]()
    while errors:
        current = errors.pop()
        seen.add(id(current))
        entries, entry = list[TracebackType](), current.__traceback__
        while entry is not None:
            entries.append(entry)
            entry = entry.tb_next
        if current is not error and entries and entries[0].tb_frame in frames:
            continue  # the application was handling this error when it called germane
        if entries and (_is_raised_by_signal_handler(entries) or _is_raised_elsewhere(current, entries[-1])):
            return True
        related = [current.__cause__, current.__context__]
        related += current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        errors += [item for item in related if item is not None and id(item) not in seen]
    return False


def _is_raised_elsewhere(error: BaseException, entry: TracebackType) -> bool:
    """Return whether an error was raised from another thread or greenlet, based on the last entry of its traceback.

    An asynchronous exception from another thread (``PyThreadState_SetAsyncExc``) has no arguments. It surfaces between
    two instructions: at a jump, at the start of a function, or after an instruction that may have called C code. An
    error that such C code raises itself has arguments, or a type that is not defined in Python.
    """
    kind, frame = type(error), entry.tb_frame
    code = frame.f_code.co_code
    if not issubclass(kind, Exception):  # such as the cancellation that becomes an error in asyncio.wait_for()
        return False
    module = sys.modules.get(kind.__module__)
    is_in_python = kind.__module__ == "__main__" or str(getattr(module, "__file__", None)).endswith((".py", ".pyc"))
    if str(frame.f_globals.get("__name__")).partition(".")[0] in _GREENLET_PACKAGES:
        is_own = kind.__module__.partition(".")[0] in _GREENLET_PACKAGES
        return frame.f_code.co_name.endswith("switch") and is_in_python and not is_own
    # Compiled extensions, such as Cython's, add entries whose code only consists of a raise statement.
    is_placeholder = len(code) <= _MAX_PLACEHOLDER_LENGTH and opmap["RAISE_VARARGS"] in code[::2]
    if is_placeholder or not 0 <= entry.tb_lasti < len(code):
        return False
    instruction, argument = opname[code[entry.tb_lasti]], code[entry.tb_lasti + 1]
    if instruction == "RESUME" and argument & _AFTER_YIELD:  # raised by a caller of a generator's throw()
        return False
    if instruction == "RESUME" or "JUMP_BACKWARD" in instruction:  # these raise only if interrupted
        return not issubclass(kind, MemoryError | RecursionError)
    may_be_interrupted = instruction not in _RAISING and not error.args
    return may_be_interrupted and (is_in_python or kind in {Exception, TimeoutError})


def _is_raised_by_signal_handler(entries: Sequence[TracebackType]) -> bool:
    """Return whether a traceback has the frame of a registered signal handler, or of a call like that of one."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    return any(entry.tb_frame.f_code in handlers or _takes_a_signal(entry.tb_frame) for entry in entries)


def _code_of(handler: Any) -> CodeType | None:
    handler = unwrap_partial(handler)
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


def log_once(message: str, *, key: str | None = None) -> None:
    """Log a warning the first time it, or its key, occurs in this process. After 1,000 warnings, log no more."""
    key = key or message
    if key not in _logged and len(_logged) < _MAX_LOGGED_MESSAGES:
        _logged.add(key)
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
