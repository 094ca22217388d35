"""Wrappers for a handler's return value. Most values are returned unchanged; streams are wrapped to record the items
that the caller reads.

Only the following streams are recorded while they are read: generators and iterators, the streaming responses of common
libraries, tasks and futures, and the classes that the user specifies. The choice of recorder is cached per type.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future as ThreadFuture
from functools import partial, wraps
from inspect import CO_ITERABLE_COROUTINE
from types import AsyncGeneratorType, CoroutineType, GeneratorType, coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from germane.tracer.guard import guarded
from germane.tracer.iterator_proxy import is_proxy, is_sequence_proxy, proxy_iterator
from germane.tracer.known_types import (
    attributes_of,
    decided_per_type,
    defines,
    has_attributes,
    is_bare_iterable,
    is_iterator,
    library_classes,
    pretends,
)
from germane.tracer.streams import record_async_generator, record_generator

if TYPE_CHECKING:
    from germane.tracer.recording import Recording

S = TypeVar("S")
StreamRecorder = Callable[["Recording", Any], Any]
"""A function that returns the recorded version of a stream, or None if the value is not a stream."""


def deliver(recording: Recording, result: Any) -> Any:
    """Return the value for the caller: the result itself, or a recorded version of a stream or coroutine."""
    try:
        if type(result) is not str:
            stream = guarded("stream", _record_stream, recording, result)
            if stream is not None:
                return stream
        recording.finish_with(result)
    except BaseException as error:  # raised by a signal handler
        recording.fail(error)
        raise
    return result


def _record_stream(recording: Recording, result: Any) -> Any:
    kind = type(result)
    record = stream_recorder(kind)
    stream = None if record is None else record(recording, result)
    return recording.record_returned(result) if stream is None else stream


@decided_per_type
def stream_recorder(kind: type) -> StreamRecorder | None:
    """Return the function that records streams of a type, or None if the type is not a stream."""
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    if is_sequence_proxy(kind):  # a query that a retriever returned is not a streamed answer
        return None
    if is_proxy(kind):
        return proxy_iterator
    if pretends(kind):
        return None
    classes = library_classes(kind)
    for name, record in _LIBRARIES.items():
        if name in classes:
            return record
    if issubclass(kind, asyncio.Future | ThreadFuture):
        return _record_future
    if defines(kind, "body_iterator"):
        return partial(_record_attribute, "body_iterator")
    if is_iterator(kind):
        return proxy_iterator
    if not has_attributes(kind):
        return None
    return _record_bare_iterable if is_bare_iterable(kind) else _record_unknown_response


async def record_coroutine(recording: Recording, body: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine, and record it and its result."""
    try:
        with recording:
            result = await body
    except BaseException as error:
        recording.fail(error)
        raise
    return deliver(recording, result)


@coroutine
def record_iterable_coroutine(recording: Recording, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run an awaitable generator, as created by ``types.coroutine``, and record it and its result."""
    try:
        with recording:
            result = yield from body
    except BaseException as error:
        recording.fail(error)
        raise
    return deliver(recording, result)


def _named_like(original: Any, recorded: S, recording: Recording) -> S:
    """Name the recorded stream like the original. If the caller drops it unread, the call is recorded as abandoned."""
    for name in ("__name__", "__qualname__"):
        setattr(recorded, name, getattr(original, name))
    weakref.finalize(recorded, recording.finish, "abandoned").atexit = False
    return recorded


def _record_unknown_response(recording: Recording, response: Any) -> Any:
    """Record a response of an unknown ASGI framework that follows Starlette's conventions, otherwise return None."""
    if "body_iterator" not in attributes_of(response):
        return None
    return _record_attribute("body_iterator", recording, response)


def _record_bare_iterable(recording: Recording, iterable: Any) -> Any:
    if any(not name.startswith("_") for name in attributes_of(iterable)):
        return None
    return proxy_iterator(recording, iterable)


def _record_attribute(name: str, recording: Recording, response: Any, holder: Any = None) -> Any:
    """Wrap a streaming response's body to record it. Return the response, or None if it has no body."""
    holder = response if holder is None else holder
    body = getattr(holder, name, None)
    recorded = _record_body(recording, body)
    if recorded is None:
        return None
    recording.expect_response(response)
    if not _replace_attribute(holder, name, body, recorded):
        recording.warn(f"the stream of {type(response).__name__}, whose {name} cannot be replaced")
        recording.finish()
    return response


def _record_body(recording: Recording, body: Any) -> Any:
    """Return a recorded version of a streaming response's body, or None if there is no body to record."""
    kind = type(body)
    if body is None or issubclass(kind, str | bytes):
        return None
    record = stream_recorder(kind)
    if record is not None and record not in {_record_unknown_response, _record_future}:
        return record(recording, body)
    if defines(kind, "__iter__") or defines(kind, "__aiter__"):
        return proxy_iterator(recording, body)
    return (lambda: _record_body(recording, body())) if callable(body) else None


def _replace_attribute(holder: Any, name: str, body: Any, recorded: Any) -> bool:
    """Replace the attribute that contains a body, even behind a read-only property. Return whether this succeeded."""
    names = [name, *attributes_of(holder)]
    for base in type(holder).__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    for candidate in dict.fromkeys(names):
        if candidate != name and getattr(holder, candidate, None) is not body:
            continue
        for set_attribute in (setattr, object.__setattr__):
            try:
                set_attribute(holder, candidate, recorded)
            except (AttributeError, TypeError):  # read-only, or frozen
                continue
            if getattr(holder, name) is recorded:
                return True
    return False


def _record_werkzeug(recording: Recording, response: Any) -> Any:
    if not response.is_streamed or response.direct_passthrough:  # the body is already complete, or a file
        return None
    return _record_attribute("response", recording, response)


def _record_quart(recording: Recording, response: Any) -> Any:
    body = response.response
    return _record_attribute("iter", recording, response, body) if hasattr(type(body), "__aiter__") else None


def _record_future(recording: Recording, future: Any) -> Any:
    """Record the result of a task or future when it is done. Return the same object."""
    if future.done():
        _finish_with_future(recording, future)
    else:
        future.add_done_callback(partial(_finish_with_future, recording))
        weakref.finalize(future, recording.finish, "abandoned").atexit = False
    return future


def _finish_with_future(recording: Recording, future: Any) -> None:
    if future.cancelled():
        recording.finish("cancelled")
        return
    error = future._exception  # noqa: SLF001 - exception() marks it as retrieved, and asyncio would not log it
    if error is not None:
        recording.fail(error)
    else:
        recording.finish_with(future.result())


def _record_stream_reader(recording: Recording, reader: Any) -> Any:
    """Record the data that the caller reads from an :class:`asyncio.StreamReader`. Return the same object."""
    depth = 0  # the methods call each other

    def recorded(read: Callable[..., Awaitable[bytes]]) -> Callable[..., Awaitable[bytes]]:
        @wraps(read)
        async def reading(*args: Any, **kwargs: Any) -> bytes:
            nonlocal depth
            depth += 1
            data = b""
            try:
                data = await read(*args, **kwargs)
            except asyncio.IncompleteReadError as error:
                data = error.partial
                raise
            finally:
                depth -= 1
                if depth == 0:
                    recording.add_chunk(data)
                    if reader.at_eof():
                        recording.finish()
            return data

        return reading

    for name in ("read", "readline", "readuntil", "readexactly"):
        setattr(reader, name, recorded(getattr(reader, name)))
    finish = weakref.finalize(reader, lambda: recording.finish("ok" if recording.has_chunks else "abandoned"))
    finish.atexit = False
    return reader


def _record_returned_generator(recording: Recording, body: Any) -> Any:
    is_awaited = body.gi_code.co_flags & CO_ITERABLE_COROUTINE
    record = record_iterable_coroutine if is_awaited else record_generator
    return _named_like(body, record(recording, body), recording)


def _record_returned_coroutine(recording: Recording, body: Any) -> Any:
    recorded = record_coroutine(recording, body)
    weakref.finalize(recorded, body.close).atexit = False  # otherwise, Python warns twice that it was not awaited
    return _named_like(body, recorded, recording)


_BUILT_IN: dict[type, StreamRecorder | None] = {
    GeneratorType: _record_returned_generator,
    AsyncGeneratorType: lambda recording, body: _named_like(body, record_async_generator(recording, body), recording),
    CoroutineType: _record_returned_coroutine,
}
_LIBRARIES: dict[tuple[str, str], StreamRecorder | None] = {
    ("asyncio", "StreamReader"): _record_stream_reader,
    ("django", "FileResponse"): None,
    ("django", "StreamingHttpResponse"): partial(_record_attribute, "_iterator"),
    ("litestar", "Stream"): partial(_record_attribute, "iterator"),
    ("llama_index", "AsyncStreamingResponse"): partial(_record_attribute, "async_response_gen"),
    ("llama_index", "StreamingResponse"): partial(_record_attribute, "response_gen"),
    ("quart", "Response"): _record_quart,
    ("sse_starlette", "EventSourceResponse"): partial(_record_attribute, "body_iterator"),
    ("starlette", "StreamingResponse"): partial(_record_attribute, "body_iterator"),
    ("werkzeug", "Response"): _record_werkzeug,
}
"""Recorders for the streams of libraries, by package and class. A subclass comes before its base class."""
