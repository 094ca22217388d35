"""Stand-ins for iterators that are no generators: the caller sees the original, and each item is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from germane.tracer.recording import Recording

_FORWARDED = (
    "__await__",
    "__bool__",
    "__contains__",
    "__eq__",
    "__getitem__",
    "__hash__",
    "__len__",
    "__length_hint__",
    "__repr__",
    "__str__",
)
"""Special methods that Python looks up on the type, so that attribute access does not find the original's."""


_types: WeakKeyDictionary[type, type[_StandIn]] = WeakKeyDictionary()


def stand_in(recording: Recording, body: Any) -> Any:
    """Return a stand-in for an iterator or an asynchronous iterable; None for anything else."""
    kind = type(body)
    if not (hasattr(kind, "__next__") or hasattr(kind, "__anext__") or hasattr(kind, "__aiter__")):
        return None
    return _stand_in_type(kind)(body, recording)


class _StandIn:
    """Everything is the original's, its class too; only the way to its items leads through here."""

    __slots__ = ("__weakref__", "_body", "_recording")

    def __init__(self, body: Any, recording: Recording) -> None:
        object.__setattr__(self, "_body", body)
        object.__setattr__(self, "_recording", recording)

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
        with recording:
            chunk = take()
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
        with recording:
            chunk = await take()
    except StopAsyncIteration:
        recording.finish()
        raise
    except BaseException as error:
        recording.fail(error)
        raise
    recording.add(chunk)
    return chunk


def _aiter(self: Any) -> Any:
    """Iterate a body that is an asynchronous iterable, but no iterator itself."""
    return stand_in(self._recording, aiter(self._body))


def _itself(self: Any) -> Any:
    return self


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
    "__enter__": _enter,
    "__exit__": _exit,
    "__aenter__": _aenter,
    "__aexit__": _aexit,
    "close": _close,
    "aclose": _aclose,
}


def _stand_in_type(kind: type) -> type[_StandIn]:
    if kind not in _types:
        _types[kind] = _make_type(kind)
    return _types[kind]


def _make_type(kind: type) -> type[_StandIn]:
    """Make the stand-in of a type: it has the special methods that the type has, and no others."""
    methods: dict[str, Any] = {name: method for name, method in _OWN.items() if hasattr(kind, name)}
    methods.update({name: _forward(name) for name in _FORWARDED if hasattr(kind, name)})
    if "__next__" in methods:
        methods["__iter__"] = _itself
    if hasattr(kind, "__aiter__"):
        methods["__aiter__"] = _itself if "__anext__" in methods else _aiter
    return type(kind.__name__, (_StandIn,), {"__slots__": (), **methods})


def _forward(name: str) -> Callable[..., Any]:
    def forward(self: Any, *args: Any) -> Any:
        return getattr(self._body, name)(*args)

    return forward
