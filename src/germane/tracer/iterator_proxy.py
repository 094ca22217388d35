"""Proxies for iterators, lazy sequences and mappings, which act like the original and record what the caller reads."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from germane.tracer.known_types import is_collection, is_iterator, is_lazy_sequence

if TYPE_CHECKING:
    from germane.tracer.recording import Recording

_READ_ELSEWHERE = "a stream or query was used through its own methods or attributes, whose results are not captured"
_ENDS = {"close", "aclose", "cancel", "shutdown"}
"""Methods that end a stream without reading it."""


class _State:
    """The state of a proxy: the original object, its recording, and how the caller reads it."""

    __slots__ = ("body", "is_iterated", "is_read_elsewhere", "recording", "source")

    def __init__(self, body: Any, recording: Recording, source: Any = None) -> None:
        self.body = body
        self.recording = recording
        self.source = source
        """The proxy that returned this body, if any. Kept alive, because its finalizer would end the recording."""
        self.is_iterated = False
        self.is_read_elsewhere = False

    def mark_read_elsewhere(self) -> None:
        """Record that a result was not captured, in this state and in those of the proxies it was derived from."""
        state = self
        while not state.is_read_elsewhere:
            state.is_read_elsewhere = True
            state = state if state.source is None else _state(state.source)

    def drop(self) -> None:
        """End the recording of a stream that was closed, exited or dropped."""
        if self.is_iterated or not self.is_read_elsewhere:
            self.recording.finish("abandoned")
        elif self.recording.active:
            if not self.recording.has_chunks:
                self.recording.warn(_READ_ELSEWHERE)
            self.recording.finish()


class _Proxy:
    """Forwards all attribute access, including ``__class__``, to the original. Only reads are intercepted."""

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
        is_part_of_query = is_sequence_proxy(type(self))  # from which another query may be built
        return _read_elsewhere(self, value) if is_part_of_query or _is_stream(type(value)) else value

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
delattr(_Proxy, "state")  # the descriptor still works, but no longer hides the original's attribute of this name


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


class _MappingProxy(_SequenceProxy):
    """A proxy for a lazy mapping. The values that the caller looks up are recorded."""

    __slots__ = ()


def proxy_iterator(recording: Recording, body: Any, source: Any = None) -> Any:
    """Return a proxy for an iterator, or for an iterable that is known to be a stream."""
    return _proxy_type(_IteratorProxy, type(body))(_State(body, recording, source))


def proxy_sequence(recording: Recording, body: Any, source: Any = None) -> Any:
    """Return a proxy for a lazy sequence."""
    return _proxy_type(_SequenceProxy, type(body))(_State(body, recording, source))


def proxy_mapping(recording: Recording, body: Any) -> Any:
    """Return a proxy for a lazy mapping."""
    return _proxy_type(_MappingProxy, type(body))(_State(body, recording))


def is_proxy(kind: type) -> bool:
    """Return whether a type is a proxy class."""
    return issubclass(kind, _Proxy)


def is_sequence_proxy(kind: type) -> bool:
    """Return whether a type is the proxy class of a lazy sequence or mapping."""
    return issubclass(kind, _SequenceProxy)


def is_mapping_proxy(kind: type) -> bool:
    """Return whether a type is the proxy class of a lazy mapping."""
    return issubclass(kind, _MappingProxy)


def _is_stream(kind: type) -> bool:
    return is_iterator(kind) or issubclass(kind, _IteratorProxy)


def _recorded_method(proxy: Any, name: str, method: Any) -> Any:
    """Return a method of the original, wrapped to record what it reads. A bound method stays a bound method."""
    is_bound = type(method) is MethodType
    function = method.__func__ if is_bound else method
    first = 1 if is_bound else 0

    if inspect.iscoroutinefunction(method):

        @wraps(function)
        async def recorded(*args: Any, **kwargs: Any) -> Any:
            return _returned(proxy, name, await method(*args[first:], **kwargs))
    else:

        @wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            return _returned(proxy, name, method(*args[first:], **kwargs))

    if not is_bound:
        return recorded
    return MethodType(recorded, proxy if method.__self__ is _state(proxy).body else method.__self__)


def _returned(proxy: Any, name: str, result: Any) -> Any:
    """Record the result of a method, and return the result for the caller."""
    if name.startswith("read"):
        return _record_awaited(proxy, result) if inspect.iscoroutine(result) else _record_read(proxy, result)
    return _read_elsewhere(proxy, result)


def _read_elsewhere(proxy: Any, result: Any) -> Any:
    """Return a result of a stream or query that was not iterated. A result that is a stream or query is recorded."""
    _state(proxy).mark_read_elsewhere()
    return _derived(proxy, result)


def _derived(proxy: Any, result: Any) -> Any:
    """Return a proxy for a stream or query that was derived from another. Any other result is returned unchanged."""
    state, kind = _state(proxy), type(result)
    if result is state.body:
        return proxy
    if is_mapping_proxy(type(proxy)):
        return result
    if _is_stream(kind):
        return proxy_iterator(state.recording, result, proxy)
    is_query = kind is type(state.body) or is_lazy_sequence(kind)
    return proxy_sequence(state.recording, result, proxy) if is_query else result


async def _record_awaited(proxy: Any, reading: Any) -> Any:
    return _record_read(proxy, await reading)


def _record_read(proxy: Any, data: Any) -> Any:
    state = _state(proxy)
    state.mark_read_elsewhere()
    if issubclass(type(data), str | bytes | bytearray):
        if data:
            state.recording.add_chunk(data)
        else:
            state.recording.finish()
    return data


class _Iteration:
    """The methods of an iterator's proxy. Each is defined only if the original has a method of the same name."""

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
    """The methods of a lazy sequence's proxy."""

    def __iter__(self: Any) -> Any:
        return _read_items(_state(self).recording, iter(_state(self).body), self)

    def __aiter__(self: Any) -> Any:
        return _read_items_later(_state(self).recording, aiter(_state(self).body), self)

    def __getitem__(self: Any, key: Any) -> Any:
        state = _state(self)
        found = state.body[key]
        if not isinstance(key, slice):
            state.recording.add_chunk(found)
            return found
        if is_collection(type(found)):
            for item in found:
                state.recording.add_chunk(item)
        return _derived(self, found)


class _Lookup:
    """The methods of a lazy mapping's proxy."""

    def __getitem__(self: Any, key: Any) -> Any:
        return _looked_up(self, key, _state(self).body[key])

    def get(self: Any, key: Any, *default: Any, **options: Any) -> Any:
        return _looked_up(self, key, _state(self).body.get(key, *default, **options))


def _looked_up(proxy: Any, key: Any, value: Any) -> Any:
    state = _state(proxy)
    state.mark_read_elsewhere()  # reported if no text is looked up
    state.recording.add_field(key, value)
    return value


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


def _original(value: Any) -> Any:
    return _state(value).body if is_proxy(type(value)) else value


_NOT_FORWARDED = {
    *("__class__", "__class_getitem__", "__del__", "__delattr__", "__getattr__", "__getattribute__"),
    *("__init__", "__init_subclass__", "__new__", "__setattr__", "__subclasshook__"),
}
"""Special methods of the proxy itself. Others are forwarded explicitly, because Python looks them up on the type."""
_COPIES = {"__reduce__", "__reduce_ex__"}
"""Special methods from which :mod:`copy` creates a query that is not recorded."""
_BINARY_OPERATORS = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"),
    *("lshift", "rshift", "and", "or", "xor"),
)
_INTERCEPTED: dict[type[_Proxy], type] = {
    _IteratorProxy: _Iteration,
    _SequenceProxy: _Indexing,
    _MappingProxy: _Lookup,
}
"""The methods that each kind of proxy does not only forward."""
_proxy_types: dict[type[_Proxy], WeakKeyDictionary[type, type[_Proxy]]] = {
    base: WeakKeyDictionary() for base in _INTERCEPTED
}


def _proxy_type(base: type[_Proxy], kind: type) -> type[_Proxy]:
    """Return the proxy class for a type. It has exactly the same special methods as the type."""
    types = _proxy_types[base]
    if kind in types:
        return types[kind]

    def forward(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(_state(self).body, name)(*map(_original, args), **kwargs)

        if not is_sequence_proxy(base):
            return call
        derive = _read_elsewhere if name in _COPIES else _derived
        return lambda self, *args, **kwargs: derive(self, call(self, *args, **kwargs))

    def forward_operator(operate: Callable[[Any, Any], Any], *, is_reflected: bool = False) -> Callable[..., Any]:
        if is_reflected:
            return lambda self, other: _derived(self, operate(_original(other), _state(self).body))
        return lambda self, other: _derived(self, operate(_state(self).body, _original(other)))

    special = (
        name for name in dir(kind) if name.startswith("__") and name.endswith("__") and name not in _NOT_FORWARDED
    )
    methods: dict[str, Any] = {name: forward(name) for name in special if callable(getattr(kind, name, None))}
    for name in _BINARY_OPERATORS:
        operate, special_name = getattr(operator, f"__{name}__"), f"__{name}__"
        if special_name in methods:  # also the reflected method: the class may not accept a proxy as an operand
            methods[special_name] = forward_operator(operate)
            methods[f"__r{name}__"] = forward_operator(operate, is_reflected=True)
        if f"__i{name}__" in methods:
            methods[f"__i{name}__"] = forward_operator(getattr(operator, f"__i{name}__"))
    intercepted = vars(_INTERCEPTED[base])
    methods |= {name: method for name, method in intercepted.items() if callable(method) and hasattr(kind, name)}
    names = {"__slots__": (), "__doc__": kind.__doc__, "__module__": kind.__module__}
    types[kind] = made = type(kind.__name__, (base,), {**names, **methods})
    return made
