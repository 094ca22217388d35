"""Questions and answers in structured values: messages, request bodies, states and results.

The recognizers, which read the same values from spans, find the texts. This module converts objects in memory to the
plain values that they read, without running an object's own code.
"""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from types import MemberDescriptorType
from typing import Any

from germane.recognizers import find_answer, names_answer, read_messages
from germane.tracer.known_types import (
    attributes_of,
    decided_per_type,
    defines,
    is_collection,
    is_lazy_mapping,
    pretends,
)
from germane.tracer.outcomes import has_notice, is_status_text, outcome_of, payload_of
from germane.tracer.serialized import is_event, json_value

_MAX_DEPTH = 10
_MAX_ITEMS = 1000
"""Maximum number of items of a collection that are converted: the last ones of a list, because conversations grow at
the end, and the first ones of other collections."""
_MAX_VALUES = 20_000
"""Maximum number of items that are converted in one value, level by level."""
_MAX_NAMES = 8
_FIELD_LISTS = (
    *("__dataclass_fields__", "__pydantic_fields__", "model_fields", "__fields__"),
    *("__struct_fields__", "__attrs_attrs__", "_fields"),
)
"""Attributes in which dataclasses, Pydantic, msgspec, attrs and named tuples list the fields of a class."""
_EXTRA = "__pydantic_extra__"
_WEAK_NAMES = ("message", "text", "content", "output", "result")
"""Names that may belong to an answer or to something else. Two different texts with such names are ambiguous."""


def plain(value: Any) -> Any:
    """Convert a value to texts, numbers, lists and dicts. Objects that do not declare their fields become None.

    The time is limited whatever the size of the value: items over the limits are left out.
    """
    converted = {"": value}
    pending, number = deque[tuple[Any, int]]([(converted, 0)]), 0  # objects may refer to each other in cycles
    while pending:
        container, depth = pending.popleft()
        for key, item in list(container.items() if type(container) is dict else enumerate(container)):
            kind, part = type(item), None
            if item is None or kind in {int, float, bool}:
                continue
            if issubclass(kind, str):
                text = str.__str__(item)
                if key == "body" and container.get("isBase64Encoded") is True:  # of an AWS Lambda function
                    text = _decoded(text)
                part = event if is_event(event := json_value(text)) else text  # such as the body of a request
            elif depth <= _MAX_DEPTH and number < _MAX_VALUES and is_structured(kind):
                part = _copy(item)
                number += len(part)
                pending.append((part, depth + 1))
            container[key] = part
    return converted[""]


def _decoded(body: str) -> str:
    try:
        return b64decode(body, validate=True).decode()
    except ValueError:
        return ""


def _copy(value: Any) -> dict[str, Any] | list[Any]:
    """Return the items of a collection or the fields of an object, up to the limit, without converting them."""
    kind = type(value)
    items: Iterable[tuple[Any, Any]]
    if fields := _fields_of(kind):
        items = zip(fields, value, strict=False) if issubclass(kind, tuple) else read_fields(value, fields)
    elif issubclass(kind, dict):
        items = dict.items(value)
    elif issubclass(kind, Mapping):
        items = value.items()
    else:
        last = slice(-_MAX_ITEMS, None)
        if issubclass(kind, deque):
            parts = list(islice(deque.__reversed__(value), _MAX_ITEMS))[::-1]
        else:
            parts = list.__getitem__(value, last) if issubclass(kind, list) else list(tuple.__getitem__(value, last))
        is_vector = bool(parts) and {type(parts[0]), type(parts[-1])} <= {int, float}
        return [] if is_vector else parts
    return {str(name): item for name, item in islice(items, _MAX_ITEMS)}


@decided_per_type
def is_structured(kind: type) -> bool:
    """Return whether a type's objects consist of parts that can be read without running code."""
    if pretends(kind) or issubclass(kind, str):
        return False
    is_list = issubclass(kind, list | tuple | deque) and is_collection(kind)
    return is_list or bool(_fields_of(kind)) or (issubclass(kind, Mapping) and not is_lazy_mapping(kind))


@decided_per_type
def _fields_of(kind: type) -> tuple[str, ...]:
    """Return the names of the fields that a class declares as data; empty for other classes."""
    declared = (_declaration(kind, name) for name in _FIELD_LISTS)
    fields = next((fields for fields in declared if isinstance(fields, Mapping | tuple)), ())
    names = tuple(str(getattr(field, "name", field)) for field in fields)
    return (*names, _EXTRA) if defines(kind, _EXTRA) else names


def _declaration(kind: type, name: str) -> Any:
    """Return an attribute that a class or its base declares, or that its metaclass stores, without running code."""
    metaclass: type = type(kind)
    stored = next((base.__dict__[name] for base in metaclass.__mro__ if name in base.__dict__), None)
    if isinstance(stored, MemberDescriptorType):
        return stored.__get__(kind)
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def read_fields(value: Any, fields: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """Yield the fields of an object that are set, from its ``__dict__`` and its slots, and those that Pydantic adds."""
    attributes = attributes_of(value)
    for name in fields:
        slot = next((base.__dict__[name] for base in type(value).__mro__ if name in base.__dict__), None)
        if name in attributes:
            yield name, attributes[name]
        elif isinstance(slot, MemberDescriptorType):
            with suppress(AttributeError):  # the slot is not set
                found = slot.__get__(value)
                yield from (found or {}).items() if name == _EXTRA else [(name, found)]


def with_last_reply(value: Any, question: str | None) -> Any:
    """Return a conversation of pairs of texts, alone or in a tuple, as its last reply, and any other value unchanged.

    Lists of pairs may be anything. The last pair of a conversation begins with the question.
    """
    for part in value if type(value) is tuple else (value,):
        last: Any = part[-1] if type(part) is list and part else None
        if type(last) in {list, tuple} and len(last) == 2 and type(last[0]) is str and last[0] == question:
            return [{"role": "assistant", "content": last[1]}]
    return value


def answer_in(value: Any) -> str | None:
    """Find the answer in a structured value. If two parts may be the answer, and no name says which, there is none."""
    if issubclass(type(value), tuple) and not _fields_of(type(value)):
        return _answer_in_parts(plain(value) or [])
    value = plain(value)
    return _answer_in_plain(json_value(value) if isinstance(value, str) else value)


def _answer_in_plain(value: Any) -> str | None:
    if isinstance(value, dict):
        return _answer_in_object(value)
    return find_answer({"answer": value}) or _text_of_blocks(value)


def _answer_in_object(value: dict[str, Any]) -> str | None:
    """Find the answer in an object. The payload of an envelope takes precedence over its status and message."""
    outcome = outcome_of(value)
    if outcome in {"failed", "pending"}:
        return None
    envelopes = {name: part for name, part in value.items() if isinstance(part, dict) and outcome_of(part)}
    if isinstance(value.get("message"), str) and has_notice(value):
        value = {name: part for name, part in value.items() if name != "message"}
    value = value | {name: _answer_in_object(part) for name, part in envelopes.items()}
    if names_answer(value):
        return find_answer({"answer": value}) or _number_in(value)
    results = [part for part in value.values() if names_answer(part)]
    if len(results) == 1:
        return _answer_in_object(results[0])
    payload = payload_of(value)
    if payload is not None and outcome:
        return payload if isinstance(payload, str) else _answer_in_plain(payload)
    return (_answer_in_object(payload) if isinstance(payload, dict) else None) or _answer_without_name(value)


def _number_in(value: dict[str, Any]) -> str | None:
    """Return the only number whose name says that it is the answer, as text."""
    numbers = [part for name, part in value.items() if type(part) in {int, float} and names_answer({name: part})]
    return str(numbers[0]) if len(numbers) == 1 else None


def _answer_without_name(value: dict[str, Any]) -> str | None:
    value = {name: part for name, part in value.items() if not is_status_text(part)}
    if len({value[name] for name in _WEAK_NAMES if isinstance(value.get(name), str)}) > 1:
        return None
    inner = next(iter(value.values())) if len(value) == 1 else None
    if isinstance(inner, dict):  # the update of a graph's node, or a wrapper
        return _answer_in_object(inner)
    return find_answer({"answer": value}) or _text_of_blocks(value.get("content"))


def _text_of_blocks(blocks: Any) -> str | None:
    """Return the text of content blocks, as in the result of an MCP tool."""
    if not isinstance(blocks, list) or not all(type(block) is dict and "type" in block for block in blocks):
        return None
    return find_answer([{"role": "assistant", "content": blocks}])


def _answer_in_parts(parts: list[Any]) -> str | None:
    """Find the answer among the values that a handler returns together, such as a text with sources or a status."""
    if isinstance(parts[0], dict) and any(type(part) is int and 400 <= part < 600 for part in parts[1:2]):
        return None  # the status of a response
    conversations = [part for part in parts if isinstance(part, list) and read_messages(part)]
    texts = [part for part in parts if isinstance(part, str) and part]
    others = [part for part in parts if isinstance(part, dict | list)]
    candidates = texts if texts and not conversations else [answer_in(part) for part in conversations or others]
    answers = {answer for answer in candidates if answer is not None}
    return answers.pop() if len(answers) == 1 else None


def describe(value: Any, what: str = "") -> str:
    """Describe a value by its type and the names in it, without its texts."""
    kind, value = type(value), plain(value)
    names = [name for name in value if name.isidentifier()] if isinstance(value, dict) else []
    what = what or ("text" if isinstance(value, str) else "JSON" if issubclass(kind, str) else kind.__name__)
    return f"{what} with {', '.join(names[:_MAX_NAMES])}" if names else what
