"""Recording of streams and coroutines, step by step, while the caller consumes them.

A generator stays a generator and a coroutine stays a coroutine; any other iterator is wrapped in a proxy. Whatever the
caller sends, throws or closes reaches the body unchanged, and so do the body's results.
"""

from __future__ import annotations

import io
import sys
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from functools import partial
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

from germane.tracer.guard import guarded
from germane.tracer.iterator_proxy import proxy_iterator

if TYPE_CHECKING:
    from germane.exchange import Status
    from germane.tracer.recording import Recording

S = TypeVar("S")
StartRecording = Callable[[tuple[Any, ...], dict[str, Any]], "Recording | None"]
"""Starts the recording of one call. Returns None if the call is not recorded."""


class _Unrecorded:
    """A null object for calls that are not recorded."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_error: object) -> None: ...

    def add_chunk(self, chunk: Any) -> None: ...

    def finish(self, status: Status) -> None: ...

    def fail(self, error: BaseException) -> None: ...


_UNRECORDED = _Unrecorded()


def deliver(recording: Recording, result: Any) -> Any:
    """Return the value for the caller: the result itself, or a recorded version of a stream or coroutine."""
    stream = guarded("a stream", record_stream, recording, result)
    if stream is not None:
        return stream
    recording.finish_with(result)
    return result


def record_stream(recording: Recording, result: Any) -> Any:
    """Return a recorded version of a stream or coroutine, or None if the result is neither."""
    kind = type(result)
    if kind is str:
        return None
    if kind is GeneratorType:
        return _named_like(result, record_generator(recording, result), recording)
    if kind is AsyncGeneratorType:
        return _named_like(result, record_async_generator(recording, result), recording)
    if kind is CoroutineType:
        recorded = record_coroutine(recording, result)
        weakref.finalize(recorded, result.close).atexit = False  # or Python warns twice about an unawaited coroutine
        return _named_like(result, recorded, recording)
    if hasattr(kind, "body_iterator") or "body_iterator" in getattr(result, "__dict__", ()):
        return _record_response(recording, result, "body_iterator", getattr(result, "media_type", None))
    if hasattr(kind, "is_streamed"):  # a Flask response
        if not result.is_streamed or result.direct_passthrough:  # its body is complete already, or a file
            return None
        return _record_response(recording, result, "response", result.mimetype)
    if issubclass(kind, io.IOBase):  # an open file is iterable, but is not a stream of chunks
        return None
    return proxy_iterator(recording, result)


def record_generator(recording: Recording, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Record a generator."""
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
    """Return an asynchronous generator function that records the generators of ``make_body``.

    It contains the loop itself, because Python has no ``yield from`` for asynchronous generators.
    """

    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body = make_body(*args, **kwargs)
        recording = guarded("the start of a call", start_recording, args, kwargs) or _UNRECORDED
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
    """Start an asynchronous generator without the event loop's hooks.

    The loop already closes the generator that wraps it."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return body.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def record_async_generator(recording: Recording, body: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Record an asynchronous generator."""
    return async_generator_function(lambda: body, lambda _args, _kwargs: recording)()  # type: ignore[no-any-return]  # the function is untyped


async def record_coroutine(recording: Recording, body: Coroutine[Any, Any, Any]) -> Any:
    """Record a coroutine and its result."""
    try:
        with recording:
            result = await body
    except BaseException as error:
        recording.fail(error)
        raise
    return deliver(recording, result)


def _named_like(original: Any, recorded: S, recording: Recording) -> S:
    """Copy the original's name. If the caller drops the stream unread, the call is recorded as abandoned."""
    for name in ("__name__", "__qualname__"):
        setattr(recorded, name, getattr(original, name))
    weakref.finalize(recorded, recording.finish, "abandoned").atexit = False
    return recorded


def _record_response(recording: Recording, response: Any, body: str, media_type: str | None) -> Any:
    """Replace the body of a streaming response by a recorded one. Return None if the body is not a stream."""
    if media_type == "text/event-stream":
        recording.expect_sse()
    recorded = record_stream(recording, getattr(response, body))
    if recorded is None:
        return None
    setattr(response, body, recorded)
    weakref.finalize(response, recording.finish, "abandoned").atexit = False
    return response


def _status_after(value: object) -> Status:
    """Return the status of a body that returned after this value was sent or thrown into it."""
    # issubclass() on the type, because isinstance() would call the value's own code.
    return "abandoned" if issubclass(type(value), GeneratorExit) else "ok"
