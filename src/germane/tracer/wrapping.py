"""Wrapping a function so that its calls are recorded, without changing its kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from germane.errors import UsageError
from germane.tracer.guard import guarded
from germane.tracer.streams import StartRecording, async_generator_function, deliver, record_generator


def check_decorable(function: Any, decorator: str) -> None:
    """Check that an object can be decorated.

    Raises:
        UsageError: The object is a class or not callable.
    """
    if isinstance(function, type) or not callable(function):
        raise UsageError(f"@germane.{decorator} decorates functions and methods, not {function!r:.100}")


def wrap(function: Callable[..., Any], start_recording: StartRecording) -> Callable[..., Any]:
    """Wrap a function of any kind: plain, coroutine, generator or asynchronous generator. The kind is preserved."""
    if inspect.isasyncgenfunction(function):
        return wraps(function)(async_generator_function(function, start_recording))
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(function, start_recording)
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(function, start_recording)
    return _wrap_function(function, start_recording)


def _wrap_function(function: Callable[..., Any], start_recording: StartRecording) -> Callable[..., Any]:
    @wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        recording = guarded("the start of a call", start_recording, args, kwargs)
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


def _wrap_coroutine(function: Callable[..., Any], start_recording: StartRecording) -> Callable[..., Any]:
    @wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        recording = guarded("the start of a call", start_recording, args, kwargs)
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


def _wrap_generator(function: Callable[..., Any], start_recording: StartRecording) -> Callable[..., Any]:
    @wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        body = function(*args, **kwargs)
        recording = guarded("the start of a call", start_recording, args, kwargs)
        return (yield from (body if recording is None else record_generator(recording, body)))

    return recorded
