"""Wrapping a function in recordings, without changing what kind of function it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from germane.errors import UsageError
from germane.tracer.guard import attempt
from germane.tracer.streams import Begin, async_generator_function, deliver, record_generator


def check(function: Any, decorator: str) -> None:
    """Refuse what cannot be decorated.

    Raises:
        UsageError: it is a class, or cannot be called.
    """
    if isinstance(function, type) or not callable(function):
        raise UsageError(f"@germane.{decorator} decorates functions and methods, not {function!r:.100}")


def wrap(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    """Wrap a function, a coroutine function, a generator function or an asynchronous one as what it is."""
    if inspect.isasyncgenfunction(function):
        return wraps(function)(async_generator_function(function, begin))
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(function, begin)
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(function, begin)
    return _wrap_function(function, begin)


def _wrap_function(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    @wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        recording = attempt("the start of a call", begin, args, kwargs)
        if recording is None:
            return function(*args, **kwargs)
        try:
            with recording:
                result = function(*args, **kwargs)
        except BaseException as error:
            recording.fail(error)
            raise
        return deliver(recording, result)

    return recorded


def _wrap_coroutine(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    @wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        recording = attempt("the start of a call", begin, args, kwargs)
        if recording is None:
            return await function(*args, **kwargs)
        try:
            with recording:
                result = await function(*args, **kwargs)
        except BaseException as error:
            recording.fail(error)
            raise
        return deliver(recording, result)

    return recorded


def _wrap_generator(function: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    @wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        body = function(*args, **kwargs)
        recording = attempt("the start of a call", begin, args, kwargs)
        return (yield from (body if recording is None else record_generator(recording, body)))

    return recorded
