"""Proxies that behave like an iterator or lazy sequence, and record each item that the caller reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from germane.tracer.known_types import is_collection, is_iterator

if TYPE_CHECKING:
    from germane.tracer.recording import Recording

_READ_ELSEWHERE = "a stream or query was read through its own methods, whose results are not captured"
_ENDS = {"close", "aclose", "cancel", "shutdown"}
"""Methods that end a stream without reading it."""


class _State:
    """The state of a proxy: the original object, its recording, and how the caller reads it."""

    __slots__ = ("body", "is_iterated", "is_read_elsewhere", "recording", "source")

    def __init__(self, body: Any, recording: Recording, source: Any) -> None:
        self.body = body
        self.recording = recording
        self.source = source
        """The proxy that returned this body, if any. Kept alive, because its finalizer would end the recording."""
        self.is_iterated = False
        self.is_read_elsewhere = False

    def drop(self) -> None:
        """End the recording of a stream that was closed, exited or dropped."""
        if self.is_iterated or not self.is_read_elsewhere:
            self.recording.finish("abandoned")
        elif self.recording.active:
            if not self.recording.has_chunks:
                self.recording.warn(_READ_ELSEWHERE)
            self.recording.finish()


class _Proxy:
    """Forwards everything, including the class, to the original. Only reads are intercepted."""

    __slots__ = ("__weakref__", "state")

    def __init__(self, state: _State) -> None:
        _set_state(self, state)

    @property  # type: ignore[misc]  # isinstance() must see the original's class
    def __class__(self) -> type:
        return _state(self).body.__class__  # type: ignore[no-any-return]  # a body may be another proxy

    def __getattr__(self, name: str) -> Any:
        state = _state(self)
        value = getattr(state.body, name)
        if name.startswith("_") or name in _ENDS:
            return value
        if inspect.isroutine(value):
            return _recorded_method(self, name, value)
        return _read_elsewhere(self, value) if _is_stream(type(value)) else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_state(self).body, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_state(self).body, name)

    def __del__(self) -> None:
        if _state(self).source is None:
            _state(self).drop()


_slot: Any = _Proxy.__dict__["state"]
_state: Callable[[Any], _State] = _slot.__get__
_set_state: Callable[[Any, _State], None] = _slot.__set__
delattr(_Proxy, "state")  # the descriptor still works, and no longer hides an attribute of the original


class _IteratorProxy(_Proxy):
    """A proxy for an iterator, or for an object that is known to be a stream."""

    __slots__ = ()


class _SequenceProxy(_Proxy):
    """A proxy for a lazy sequence, such as a database query. The items that the caller reads are recorded."""

    __slots__ = ()

    def __del__(self) -> None:
        state = _state(self)
        if state.source is None and state.recording.active:
            if state.is_read_elsewhere and not state.recording.has_chunks:
                state.recording.warn(_READ_ELSEWHERE)
            state.recording.finish()


def proxy_iterator(recording: Recording, body: Any, source: Any = None) -> Any:
    """Return a proxy for an iterator, or for an iterable that is known to be a stream."""
    return _proxy_type(_iterator_types, _IteratorProxy, _ITERATION, type(body))(_State(body, recording, source))


def proxy_sequence(recording: Recording, body: Any, source: Any = None) -> Any:
    """Return a proxy for a lazy sequence."""
    return _proxy_type(_sequence_types, _SequenceProxy, _INDEXING, type(body))(_State(body, recording, source))


def is_proxy(kind: type) -> bool:
    """Return whether a type is a proxy class."""
    return issubclass(kind, _Proxy)


def is_sequence_proxy(kind: type) -> bool:
    """Return whether a type is a proxy class for lazy sequences."""
    return issubclass(kind, _SequenceProxy)


def _is_stream(kind: type) -> bool:
    return is_iterator(kind) or issubclass(kind, _IteratorProxy)


def _recorded_method(proxy: Any, name: str, method: Any) -> Any:
    """Return a method of the original, wrapped to record the data that it reads."""

    @wraps(method, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def recorded(*args: Any, **kwargs: Any) -> Any:
        result = method(*args, **kwargs)
        if name.startswith("read"):
            return _record_awaited(proxy, result) if inspect.iscoroutine(result) else _record_read(proxy, result)
        return _read_elsewhere(proxy, result)

    return recorded


def _read_elsewhere(proxy: Any, result: Any) -> Any:
    """Return a method's or attribute's result for the caller. A stream or query is returned as a recording proxy."""
    state, kind = _state(proxy), type(result)
    state.is_read_elsewhere = True
    if result is state.body:
        return proxy
    if _is_stream(kind):
        return proxy_iterator(state.recording, result, proxy)
    return proxy_sequence(state.recording, result, proxy) if kind is type(state.body) else result


async def _record_awaited(proxy: Any, reading: Any) -> Any:
    return _record_read(proxy, await reading)


def _record_read(proxy: Any, data: Any) -> Any:
    state = _state(proxy)
    state.is_read_elsewhere = True
    if issubclass(type(data), str | bytes | bytearray):
        if data:
            state.recording.add_chunk(data)
        else:
            state.recording.finish()
    return data


class _Iteration:
    """The methods of a proxy for an iterator. Each is defined only if the original has it."""

    def __next__(self: Any) -> Any:
        state = _state(self)
        recording, state.is_iterated = state.recording, True
        try:
            token = recording.enter()
            try:
                chunk = next(state.body)
            finally:
                recording.leave(token)
        except StopIteration:
            recording.finish()
            raise
        except BaseException as error:
            recording.fail(error)
            raise
        recording.add_chunk(chunk)
        return chunk

    async def __anext__(self: Any) -> Any:
        state = _state(self)
        recording, state.is_iterated = state.recording, True
        try:
            token = recording.enter()
            try:
                chunk = await anext(state.body)
            finally:
                recording.leave(token)
        except StopAsyncIteration:
            recording.finish()
            raise
        except BaseException as error:
            recording.fail(error)
            raise
        recording.add_chunk(chunk)
        return chunk

    def __iter__(self: Any) -> Any:
        return _iterator_of(self, iter(_state(self).body))

    def __aiter__(self: Any) -> Any:
        return _iterator_of(self, aiter(_state(self).body))

    def __enter__(self: Any) -> Any:
        return _entered(self, _state(self).body.__enter__())

    def __exit__(self: Any, *error: object) -> Any:
        try:
            return _state(self).body.__exit__(*error)
        finally:
            _state(self).drop()

    async def __aenter__(self: Any) -> Any:
        return _entered(self, await _state(self).body.__aenter__())

    async def __aexit__(self: Any, *error: object) -> Any:
        try:
            return await _state(self).body.__aexit__(*error)
        finally:
            _state(self).drop()

    def close(self: Any, *args: Any) -> Any:
        try:
            return _state(self).body.close(*args)
        finally:
            _state(self).drop()

    async def aclose(self: Any, *args: Any) -> Any:
        try:
            return await _state(self).body.aclose(*args)
        finally:
            _state(self).drop()


class _Indexing:
    """The methods of a proxy for a lazy sequence."""

    def __iter__(self: Any) -> Any:
        return _read_items(_state(self).recording, iter(_state(self).body), self)

    def __aiter__(self: Any) -> Any:
        return _read_items_later(_state(self).recording, aiter(_state(self).body), self)

    def __getitem__(self: Any, key: Any) -> Any:
        state = _state(self)
        found = state.body[key]
        kind = type(found)
        if not isinstance(key, slice):
            state.recording.add_chunk(found)
        elif kind is type(state.body):
            return proxy_sequence(state.recording, found, self)
        elif is_collection(kind):
            for item in found:
                state.recording.add_chunk(item)
        return found


def _read_items(recording: Recording, items: Any, _source: Any) -> Any:
    for item in items:
        recording.add_chunk(item)
        yield item


async def _read_items_later(recording: Recording, items: Any, _source: Any) -> Any:
    async for item in items:
        recording.add_chunk(item)
        yield item


def _iterator_of(proxy: Any, iterator: Any) -> Any:
    """Return the proxy for a body's iterator, which is usually the body itself."""
    state = _state(proxy)
    if iterator is state.body:
        return proxy
    state.is_iterated = True
    return proxy_iterator(state.recording, iterator, proxy)


def _entered(proxy: Any, entered: Any) -> Any:
    return proxy if entered is _state(proxy).body else entered


_NOT_FORWARDED = {
    "__class__",
    "__class_getitem__",
    "__del__",
    "__delattr__",
    "__getattr__",
    "__getattribute__",
    "__init__",
    "__init_subclass__",
    "__new__",
    "__setattr__",
    "__subclasshook__",
}
"""Special methods of the proxy itself. Others are forwarded explicitly, because Python looks them up on the type."""
_ITERATION = {name: method for name, method in vars(_Iteration).items() if callable(method)}
_INDEXING = {name: method for name, method in vars(_Indexing).items() if callable(method)}
_iterator_types: WeakKeyDictionary[type, type[_Proxy]] = WeakKeyDictionary()
_sequence_types: WeakKeyDictionary[type, type[_Proxy]] = WeakKeyDictionary()


def _proxy_type(
    types: WeakKeyDictionary[type, type[_Proxy]], base: type[_Proxy], intercepted: dict[str, Any], kind: type
) -> type[_Proxy]:
    """Return the proxy class for a type, which has exactly the same special methods as the type."""
    if kind in types:
        return types[kind]

    def forward(name: str) -> Callable[..., Any]:
        return lambda self, *args, **kwargs: getattr(_state(self).body, name)(*args, **kwargs)

    special = (
        name for name in dir(kind) if name.startswith("__") and name.endswith("__") and name not in _NOT_FORWARDED
    )
    methods: dict[str, Any] = {name: forward(name) for name in special if callable(getattr(kind, name, None))}
    methods.update({name: method for name, method in intercepted.items() if hasattr(kind, name)})
    names = {"__slots__": (), "__doc__": kind.__doc__, "__module__": kind.__module__}
    types[kind] = made = type(kind.__name__, (base,), {**names, **methods})
    return made
