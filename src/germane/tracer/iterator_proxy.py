"""Stand-ins for iterators that are no generators: the caller sees the original, and each item is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from germane.tracer.recording import Recording

_types: WeakKeyDictionary[type, type[_StandIn]] = WeakKeyDictionary()


def stand_in(recording: Recording, body: Any, source: Any = None) -> Any:
    """Return a stand-in for an iterator or an asynchronous iterable; None for anything else.

    ``source`` is the stand-in that gave out this body: it lives as long, as its own end would end the recording.
    """
    kind = type(body)
    if not (hasattr(kind, "__next__") or hasattr(kind, "__anext__") or hasattr(kind, "__aiter__")):
        return None
    return _stand_in_type(kind)(body, recording, source)


class _StandIn:
    """Everything is the original's, its class too; only the way to its items leads through here."""

    __slots__ = ("__weakref__", "_body", "_recording", "_source")

    def __init__(self, body: Any, recording: Recording, source: Any) -> None:
        object.__setattr__(self, "_body", body)
        object.__setattr__(self, "_recording", recording)
        object.__setattr__(self, "_source", source)

    @property  # type: ignore[misc]  # isinstance() asks for it, and shall be told the original's
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


def _next(self: Any) -> Any:
    return _take(self._recording, lambda: next(self._body))


def _take(recording: Recording, take: Callable[[], Any]) -> Any:
    try:
        token = recording.enter()
        try:
            chunk = take()
        finally:
            recording.leave(token)
    except StopIteration:
        recording.finish()
        raise
    except BaseException as error:
        recording.fail(error)
        raise
    recording.add(chunk)
    return chunk


async def _anext(self: Any) -> Any:
    return await _take_later(self._recording, lambda: anext(self._body))


async def _take_later(recording: Recording, take: Callable[[], Awaitable[Any]]) -> Any:
    try:
        token = recording.enter()
        try:
            chunk = await take()
        finally:
            recording.leave(token)
    except StopAsyncIteration:
        recording.finish()
        raise
    except BaseException as error:
        recording.fail(error)
        raise
    recording.add(chunk)
    return chunk


def _iter(self: Any) -> Any:
    return _given_out(self, iter(self._body))


def _aiter(self: Any) -> Any:
    return _given_out(self, aiter(self._body))


def _given_out(self: Any, found: Any) -> Any:
    """Return what iterates a body: most often the body itself."""
    return self if found is self._body else stand_in(self._recording, found, self)


def _close(self: Any, *args: Any) -> Any:
    try:
        return self._body.close(*args)
    finally:
        self._recording.finish("abandoned")


async def _aclose(self: Any, *args: Any) -> Any:
    try:
        return await self._body.aclose(*args)
    finally:
        self._recording.finish("abandoned")


def _enter(self: Any) -> Any:
    entered = self._body.__enter__()
    return self if entered is self._body else entered


def _exit(self: Any, *raised: Any) -> Any:
    try:
        return self._body.__exit__(*raised)
    finally:
        self._recording.finish("abandoned")


async def _aenter(self: Any) -> Any:
    entered = await self._body.__aenter__()
    return self if entered is self._body else entered


async def _aexit(self: Any, *raised: Any) -> Any:
    try:
        return await self._body.__aexit__(*raised)
    finally:
        self._recording.finish("abandoned")


_OWN: dict[str, Callable[..., Any]] = {
    "__next__": _next,
    "__anext__": _anext,
    "__iter__": _iter,
    "__aiter__": _aiter,
    "__enter__": _enter,
    "__exit__": _exit,
    "__aenter__": _aenter,
    "__aexit__": _aexit,
    "close": _close,
    "aclose": _aclose,
}
_OF_THE_TYPE = {
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
"""Special methods that make a stand-in what it is. All others are the original's: Python looks them up on the type."""


def _stand_in_type(kind: type) -> type[_StandIn]:
    if kind not in _types:
        _types[kind] = _make_type(kind)
    return _types[kind]


def _make_type(kind: type) -> type[_StandIn]:
    """Make the stand-in of a type: it has the special methods that the type has, and no others."""
    special = (name for name in dir(kind) if name.startswith("__") and name.endswith("__") and name not in _OF_THE_TYPE)
    methods: dict[str, Any] = {name: _forward(name) for name in special if callable(getattr(kind, name, None))}
    methods.update({name: method for name, method in _OWN.items() if hasattr(kind, name)})
    return type(kind.__name__, (_StandIn,), {"__slots__": (), **methods})


def _forward(name: str) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._body, name)(*args, **kwargs)

    return forward
