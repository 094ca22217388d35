"""Recording of generators, step by step, while the caller consumes them.

A generator stays a generator. Values that the caller sends, exceptions that it throws and calls of ``close()`` reach
the body unchanged, and the body's results reach the caller unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from germane.tracer.guard import guarded

if TYPE_CHECKING:
    from germane.exchange import Status
    from germane.tracer.recording import Recording

StartRecording = Callable[[tuple[Any, ...], dict[str, Any]], "Recording | None"]
"""A function that starts recording a call. It returns None if the call is not recorded."""


class _Unrecorded:
    """A null object for calls that are not recorded."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_error: object) -> None: ...

    def add_chunk(self, chunk: Any) -> None: ...

    def finish(self, status: Status) -> None: ...

    def fail(self, error: BaseException) -> None: ...


_UNRECORDED = _Unrecorded()


def record_generator(recording: Recording, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Return a generator that runs ``body`` and records its chunks, status and errors."""
    advance, value = body.send, None
    try:
        while True:
            with recording:
                chunk = advance(value)
            recording.add_chunk(chunk)
            advance, value = body.send, None
            try:
                value = yield chunk
            except BaseException as thrown:  # noqa: BLE001 - forwarded to the body
                advance, value = body.throw, thrown
    except StopIteration as stop:
        recording.finish(_status_after(value))
        return stop.value
    except BaseException as error:
        recording.fail(error)
        raise
    finally:
        value = None  # breaks the cycle of a thrown error, its traceback and this frame


def async_generator_function(
    make_body: Callable[..., AsyncGenerator[Any, Any]], start_recording: StartRecording
) -> Callable[..., Any]:
    """Return an asynchronous generator function that records the generators that ``make_body`` returns.

    The function contains the loop itself, because Python has no ``yield from`` for asynchronous generators.
    """

    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body = make_body(*args, **kwargs)
        recording = guarded("start of the call", start_recording, args, kwargs) or _UNRECORDED
        advance: Callable[[Any], Awaitable[Any]] = partial(_first_step, body)
        value: Any = None
        try:
            while True:
                with recording:
                    chunk = await advance(value)
                recording.add_chunk(chunk)
                advance, value = body.asend, None
                try:
                    value = yield chunk
                except BaseException as thrown:  # noqa: BLE001 - forwarded to the body
                    advance, value = body.athrow, thrown
        except StopAsyncIteration:
            recording.finish(_status_after(value))
        except BaseException as error:
            recording.fail(error)
            raise
        finally:
            value = None  # breaks the cycle, as above

    return recorded


def _first_step(body: AsyncGenerator[Any, Any], _nothing: None) -> Awaitable[Any]:
    """Start an asynchronous generator without the event loop's hooks: the loop closes the generator around it."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return body.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def record_async_generator(recording: Recording, body: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Return an asynchronous generator that runs ``body`` and records its chunks, status and errors."""
    return async_generator_function(lambda: body, lambda _args, _kwargs: recording)()  # type: ignore[no-any-return]  # the function is untyped


def _status_after(value: object) -> Status:
    """Return the status of a body that ended after ``value`` was sent to or thrown into it."""
    # issubclass() on the type, because isinstance() would call the value's own code.
    return "abandoned" if issubclass(type(value), GeneratorExit) else "ok"
