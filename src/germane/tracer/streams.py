"""Bodies that give their result piece by piece, or later: each is passed on step by step and recorded as it goes.

A generator stays a generator, a coroutine a coroutine; any other iterator gets a stand-in. Whatever the caller sends,
throws or closes reaches the body unchanged, and so does what the body answers.
"""

from __future__ import annotations

import io
import sys
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from functools import partial
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

from germane.tracer.guard import attempt
from germane.tracer.iterator_proxy import stand_in

if TYPE_CHECKING:
    from germane.exchange import Status
    from germane.tracer.recording import Recording

S = TypeVar("S")
Begin = Callable[[tuple[Any, ...], dict[str, Any]], "Recording | None"]
"""Opens the recording of one call; None when it is not to be recorded."""


class _Unrecorded:
    """Stands in for the recording of a call that is not recorded."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_raised: object) -> None: ...

    def add(self, chunk: Any) -> None: ...

    def finish(self, status: Status) -> None: ...

    def fail(self, error: BaseException) -> None: ...


_UNRECORDED = _Unrecorded()


def deliver(recording: Recording, result: Any) -> Any:
    """Return what the caller gets: the result, or when it is still to come, one that is recorded as it comes."""
    stream = attempt("a stream", stream_of, recording, result)
    if stream is not None:
        return stream
    recording.keep(result)
    return result


def stream_of(recording: Recording, result: Any) -> Any:
    """Return what the caller gets in place of a stream, recorded; None when the result is no stream."""
    kind = type(result)
    if kind is str:
        return None
    if kind is GeneratorType:
        return _alike(result, record_generator(recording, result), recording)
    if kind is AsyncGeneratorType:
        return _alike(result, record_async_generator(recording, result), recording)
    if kind is CoroutineType:
        recorded = record_coroutine(recording, result)
        weakref.finalize(recorded, result.close).atexit = False  # else Python warns of two that were never awaited
        return _alike(result, recorded, recording)
    if hasattr(kind, "body_iterator") or "body_iterator" in getattr(result, "__dict__", ()):
        return _record_response(recording, result, "body_iterator", getattr(result, "media_type", None))
    if hasattr(kind, "is_streamed"):
        return _record_flask_response(recording, result)
    if issubclass(kind, io.IOBase):  # an open file iterates, but nobody returns one as an answer in pieces
        return None
    return stand_in(recording, result)


def record_generator(recording: Recording, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Pass a generator on."""
    advance, value = body.send, None
    try:
        while True:
            with recording:
                chunk = advance(value)
            recording.add(chunk)
            advance, value = body.send, None
            try:
                value = yield chunk
            except BaseException as thrown:  # noqa: BLE001 - whatever it is, it is the body's to answer
                advance, value = body.throw, thrown
    except StopIteration as stop:
        recording.finish(_ended_by(value))
        return stop.value
    except BaseException as error:
        recording.fail(error)
        raise
    finally:
        value = None  # else what was thrown in, its traceback and this frame would keep one another alive


def async_generator_function(make: Callable[..., AsyncGenerator[Any, Any]], begin: Begin) -> Callable[..., Any]:
    """Return an asynchronous generator function that passes on what ``make`` makes.

    It is the loop itself, and not a function that returns one, as Python has no ``yield from`` for these.
    """

    async def recorded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body = make(*args, **kwargs)
        recording = attempt("the start of a call", begin, args, kwargs) or _UNRECORDED
        advance: Callable[[Any], Awaitable[Any]] = partial(_first_step, body)
        value: Any = None
        try:
            while True:
                with recording:
                    chunk = await advance(value)
                recording.add(chunk)
                advance, value = body.asend, None
                try:
                    value = yield chunk
                except BaseException as thrown:  # noqa: BLE001 - whatever it is, it is the body's to answer
                    advance, value = body.athrow, thrown
        except StopAsyncIteration:
            recording.finish(_ended_by(value))
        except BaseException as error:
            recording.fail(error)
            raise
        finally:
            value = None  # as above

    return recorded


def _first_step(body: AsyncGenerator[Any, Any], _nothing: None) -> Awaitable[Any]:
    """Begin an asynchronous generator unseen by the event loop: it closes ours, and would close this one beside it."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return body.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def record_async_generator(recording: Recording, body: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Pass an asynchronous generator on."""
    return async_generator_function(lambda: body, lambda _args, _kwargs: recording)()  # type: ignore[no-any-return]  # the function is untyped


async def record_coroutine(recording: Recording, body: Coroutine[Any, Any, Any]) -> Any:
    """Pass a coroutine on, and its result when it is there."""
    try:
        with recording:
            result = await body
    except BaseException as error:
        recording.fail(error)
        raise
    return deliver(recording, result)


def _alike(original: Any, recorded: S, recording: Recording) -> S:
    """Give a recorded body the original's name; when the caller drops it unread, the call ends as abandoned."""
    for name in ("__name__", "__qualname__"):
        setattr(recorded, name, getattr(original, name))
    weakref.finalize(recorded, recording.finish, "abandoned").atexit = False
    return recorded


def _record_response(recording: Recording, response: Any, body: str, media_type: str | None) -> Any:
    """Record the body of a streaming response (Starlette's, Flask's) in its place; None if it is no stream."""
    if media_type == "text/event-stream":
        recording.expect_frames()
    recorded = stream_of(recording, getattr(response, body))
    if recorded is None:
        return None
    setattr(response, body, recorded)
    weakref.finalize(response, recording.finish, "abandoned").atexit = False
    return response


def _record_flask_response(recording: Recording, response: Any) -> Any:
    """Do the same for Flask's, which is Werkzeug's; None where its body is there already, or a file."""
    if not response.is_streamed or response.direct_passthrough:
        return None
    return _record_response(recording, response, "response", response.mimetype)


def _ended_by(value: object) -> Status:
    """Say how a body ended that returned after this was sent or thrown into it."""
    # Not isinstance(), which asks the value itself what it is.
    return "abandoned" if issubclass(type(value), GeneratorExit) else "ok"
