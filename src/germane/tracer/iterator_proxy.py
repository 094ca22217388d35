"""Proxies for iterators that are not generators: the caller sees the original, and each item is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from germane.tracer.recording import Recording

_types: WeakKeyDictionary[type, type[_IteratorProxy]] = WeakKeyDictionary()


def proxy_iterator(recording: Recording, body: Any, source: Any = None) -> Any:
    """Return a proxy for an iterator or asynchronous iterable, or None for anything else.

    Args:
        recording: The recording to which items are added.
        body: The original.
        source: The proxy that returned this body. It is kept alive, because its finalizer would end the recording.
    """
    kind = type(body)
    if not (hasattr(kind, "__next__") or hasattr(kind, "__anext__") or hasattr(kind, "__aiter__")):
        return None
    if kind not in _types:
        _types[kind] = _make_type(kind)
    return _types[kind](body, recording, source)


class _IteratorProxy:
    """Forwards everything to the original, including its class. Only iteration is intercepted."""

    __slots__ = ("__weakref__", "_body", "_recording", "_source")

    def __init__(self, body: Any, recording: Recording, source: Any) -> None:
        object.__setattr__(self, "_body", body)
        object.__setattr__(self, "_recording", recording)
        object.__setattr__(self, "_source", source)

    @property  # type: ignore[misc]  # isinstance() must see the original's class
    def __class__(self) -> type:
        return type(self._body)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._body, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._body, name)

    def __del__(self) -> None:
        self._recording.finish("abandoned")


class _Interception:
    """The methods that a proxy does not forward unchanged. Each is defined only if the original has it."""

    def __next__(self: Any) -> Any:
        recording = self._recording
        try:
            token = recording.enter()
            try:
                chunk = next(self._body)
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
        recording = self._recording
        try:
            token = recording.enter()
            try:
                chunk = await anext(self._body)
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
        return _proxy_of(self, iter(self._body))

    def __aiter__(self: Any) -> Any:
        return _proxy_of(self, aiter(self._body))

    def __enter__(self: Any) -> Any:
        entered = self._body.__enter__()
        return self if entered is self._body else entered

    def __exit__(self: Any, *error: object) -> Any:
        try:
            return self._body.__exit__(*error)
        finally:
            self._recording.finish("abandoned")

    async def __aenter__(self: Any) -> Any:
        entered = await self._body.__aenter__()
        return self if entered is self._body else entered

    async def __aexit__(self: Any, *error: object) -> Any:
        try:
            return await self._body.__aexit__(*error)
        finally:
            self._recording.finish("abandoned")

    def close(self: Any, *args: Any) -> Any:
        try:
            return self._body.close(*args)
        finally:
            self._recording.finish("abandoned")

    async def aclose(self: Any, *args: Any) -> Any:
        try:
            return await self._body.aclose(*args)
        finally:
            self._recording.finish("abandoned")


def _proxy_of(self: Any, iterator: Any) -> Any:
    """Return the proxy of a body's iterator, which usually is the body itself."""
    return self if iterator is self._body else proxy_iterator(self._recording, iterator, self)


_INTERCEPTED = {name: method for name, method in vars(_Interception).items() if callable(method)}
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
"""Special methods of the proxy itself. The others are forwarded explicitly: Python looks them up on the type."""


def _make_type(kind: type) -> type[_IteratorProxy]:
    """Create the proxy type for a type, with exactly the special methods that the type has."""

    def forward(name: str) -> Callable[..., Any]:
        return lambda self, *args, **kwargs: getattr(self._body, name)(*args, **kwargs)

    special = (
        name for name in dir(kind) if name.startswith("__") and name.endswith("__") and name not in _NOT_FORWARDED
    )
    methods: dict[str, Any] = {name: forward(name) for name in special if callable(getattr(kind, name, None))}
    methods.update({name: method for name, method in _INTERCEPTED.items() if hasattr(kind, name)})
    return type(kind.__name__, (_IteratorProxy,), {"__slots__": (), **methods})
