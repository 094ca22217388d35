"""Classification of types, cached per type and without accessing a value.

Classes of other libraries are recognized by package and name, so no library has to be imported. A value is classified
by ``type()`` alone, because ``isinstance()`` also reads ``__class__``, which evaluates a lazy object.
"""

from __future__ import annotations

import io
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from inspect import isasyncgenfunction, isgeneratorfunction
from types import FunctionType, GetSetDescriptorType
from typing import Any, TypeVar

T = TypeVar("T")
_DATA_PACKAGES = {"numpy", "pandas", "polars", "pyarrow", "torch"}
"""Packages whose collections hold their items in memory."""
_ROW_PACKAGES = {*_DATA_PACKAGES, "sqlalchemy"}
"""Packages whose mappings hold their values in memory."""
_OF_BARE_ITERABLES = {"__iter__", "__aiter__", "__init__", "__new__", "__del__", "close", "aclose"}
_OF_EVERY_CLASS = {
    *("__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__qualname__", "__annotations__"),
    *("__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__", "__firstlineno__"),
    *("__abstractmethods__", "__subclasshook__", "__init_subclass__", "__class_getitem__"),
    *("__orig_bases__", "__parameters__", "__type_params__", "__protocol_attrs__", "__non_callable_proto_members__"),
}
"""Attributes that Python adds to classes, including those of abstract and generic classes."""


def decided_per_type(decide: Callable[[type], T]) -> Callable[[type], T]:
    """Cache a function's results per type, without keeping the types alive. Supports unhashable types."""
    decisions: dict[int, tuple[weakref.ref[type], T]] = {}

    def decided(kind: type) -> T:
        number = id(kind)
        entry = decisions.get(number)
        if entry is not None:
            return entry[1]
        decision = decide(kind)
        decisions[number] = weakref.ref(kind, lambda _reference: decisions.pop(number, None)), decision
        return decision

    return decided


def library_classes(kind: type) -> set[tuple[str, str]]:
    """Return the package and name of a class and its bases, such as ``("starlette", "StreamingResponse")``."""
    return {(str(base.__module__).partition(".")[0], base.__name__) for base in kind.__mro__}


def defines(kind: type, name: str) -> bool:
    """Return whether a class or one of its bases, other than ``object``, defines an attribute."""
    return any(base.__dict__.get(name) is not None for base in kind.__mro__ if base is not object)


@decided_per_type
def pretends(kind: type) -> bool:
    """Return whether a type's objects claim to be of another class, as lazy objects, proxies and mocks do."""
    return defines(kind, "__class__")


@decided_per_type
def is_iterator(kind: type) -> bool:
    """Return whether a type is an iterator or asynchronous iterator, except for open files."""
    is_iterated = defines(kind, "__next__") or defines(kind, "__anext__")
    return is_iterated and not pretends(kind) and not issubclass(kind, io.IOBase)


@decided_per_type
def is_bare_iterable(kind: type) -> bool:
    """Return whether a type's objects only support iteration, through a generator method, unlike iterable data."""
    bases = [base for base in kind.__mro__ if base is not object]
    generates = any(
        isgeneratorfunction(base.__dict__.get("__iter__")) or isasyncgenfunction(base.__dict__.get("__aiter__"))
        for base in bases
    )
    offered = {name for base in bases for name in base.__dict__ if name.startswith("__") or not name.startswith("_")}
    return generates and offered - _OF_EVERY_CLASS <= _OF_BARE_ITERABLES


@decided_per_type
def is_collection(kind: type) -> bool:
    """Return whether a type's objects hold their items in memory, so that reading the items has no side effects."""
    if not defines(kind, "__iter__") or not defines(kind, "__len__") or pretends(kind):
        return False
    if issubclass(kind, str | bytes | Mapping):
        return False
    written_in_c = not isinstance(_static(kind, "__iter__"), FunctionType)
    return (
        written_in_c or issubclass(kind, UserList) or any(name in _DATA_PACKAGES for name, _ in library_classes(kind))
    )


@decided_per_type
def is_lazy_sequence(kind: type) -> bool:
    """Return whether a type is a sequence, with or without a length, that may compute its items, such as a query."""
    return (
        defines(kind, "__iter__")
        and defines(kind, "__getitem__")
        and isinstance(_static(kind, "__iter__"), FunctionType)
        and not defines(kind, "keys")
        and not pretends(kind)
        and not is_collection(kind)
        and not is_iterator(kind)
        and not issubclass(kind, str | bytes | Mapping | list | tuple | AbstractSet | deque)
    )


@decided_per_type
def is_lazy_mapping(kind: type) -> bool:
    """Return whether looking up a key in a mapping may run code, for example to send a request."""
    return (
        not pretends(kind)
        and issubclass(kind, Mapping)
        and isinstance(_static(kind, "__getitem__"), FunctionType)
        and not issubclass(kind, dict | UserDict | ChainMap)
        and not any(name in _ROW_PACKAGES for name, _ in library_classes(kind))
    )


def has_attributes(kind: type) -> bool:
    """Return whether a type's objects have an instance ``__dict__``, which can be read without running their code."""
    return _dict_descriptor(kind) is not None


def attributes_of(value: Any) -> Mapping[str, Any]:
    """Return an object's instance ``__dict__`` without running its code; empty if the object has only slots."""
    descriptor = _dict_descriptor(type(value))
    return {} if descriptor is None else descriptor.__get__(value)


def attribute(value: Any, name: str) -> Any:
    """Return an attribute of an object, or None. Attributes that ``__getattr__`` computes are not read."""
    kind = type(value)
    if _computes_attributes(kind) and name not in attributes_of(value) and not defines(kind, name):
        return None
    return getattr(value, name, None)


@decided_per_type
def _computes_attributes(kind: type) -> bool:
    names = ("__getattr__", "__getattribute__")
    return any(isinstance(base.__dict__.get(name), FunctionType) for base in kind.__mro__ for name in names)


def _dict_descriptor(kind: type) -> Any:
    descriptor = next((base.__dict__["__dict__"] for base in kind.__mro__ if "__dict__" in base.__dict__), None)
    return descriptor if isinstance(descriptor, GetSetDescriptorType) else None


def _static(kind: type, name: str) -> Any:
    return next(base.__dict__[name] for base in kind.__mro__ if name in base.__dict__)
