"""Questions, answers and pieces of answers in structured values: messages, request bodies, states, results and events.

The recognizers, which read the same values from spans, find the texts. This module converts objects in memory to the
plain values that they read, without running an object's own code.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from types import MemberDescriptorType
from typing import Any, NamedTuple

from germane.recognizers import QuestionValue, decode, find_answer, find_question, names_answer, read_messages
from germane.tracer.known_types import (
    attributes_of,
    decided_per_type,
    defines,
    is_collection,
    is_lazy_mapping,
    pretends,
)
from germane.tracer.sse import END_OF_STREAM

STRUCTURED = frozenset("{[")
_BLANK = " \t\r\n\ufeff"
"""First characters of texts that may be JSON."""
_decode = json.JSONDecoder().raw_decode
_SEPARATORS = re.compile(r"[\s,\x1e]*")
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
_PIECES = ("delta", "token", "answer", "text", "content", "chunk", "response", "output", "parts", "data", "message")
"""Names of the text in an event of a stream, from the most to the least specific."""
_ALTERNATIVES = ("choices", "candidates")
_OTHER_EVENTS = ("tool", "function_call", "reason", "think", "thought", "error")
"""Parts of the names of events whose text is not part of the answer."""
_TAGS = ("type", "event", "kind")
"""Names of an event's name."""


class Piece(NamedTuple):
    """The text of one chunk of a stream."""

    text: str
    source: str = ""
    """Name of the event, or of the part of it, that contains the text; empty for plain text."""
    is_whole: bool = False
    """Whether the text is the answer so far, such as a conversation's last message, rather than a part of it."""


def names_text(source: str) -> bool:
    """Return whether the source of a piece is not the name of something else, such as a status."""
    return source != _PIECES[-1] and (not source or any(name in source.lower() for name in _PIECES))


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
                part = event if is_event(event := json_value(text)) else text  # such as the body of a request
            elif depth <= _MAX_DEPTH and number < _MAX_VALUES and is_structured(kind):
                part = _copy(item)
                number += len(part)
                pending.append((part, depth + 1))
            container[key] = part
    return converted[""]


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
    declared = (base.__dict__.get(name) for base in kind.__mro__ for name in _FIELD_LISTS)
    fields = next((fields for fields in declared if isinstance(fields, Mapping | tuple)), ())
    names = tuple(str(getattr(field, "name", field)) for field in fields)
    return (*names, _EXTRA) if defines(kind, _EXTRA) else names


def read_fields(value: Any, fields: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """Yield the fields of an object that are set, from its ``__dict__`` and its slots, and those that Pydantic adds."""
    attributes = attributes_of(value)
    for name in fields:
        slot = next((base.__dict__[name] for base in type(value).__mro__ if name in base.__dict__), None)
        if name in attributes:
            yield name, attributes[name]
        elif isinstance(slot, MemberDescriptorType):
            try:
                found = slot.__get__(value)
                yield from (found or {}).items() if name == _EXTRA else [(name, found)]
            except AttributeError:  # the slot is not set
                continue


def question_in(arguments: Mapping[str, Any]) -> QuestionValue | None:
    """Find the question in the structured arguments of a call: by the names of the arguments, or in one of them."""
    values = {name: part for name, value in arguments.items() if isinstance(part := plain(value), dict | list)}
    if (found := find_question(values)) is not None:
        return found
    alone = [found for value in values.values() if (found := find_question(value)) is not None]
    return alone[0] if len({question.text for question in alone}) == 1 else None


def json_value(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the JSON object or list that a text consists of; None for any other text."""
    text = text.lstrip(_BLANK)
    if text[:1] not in STRUCTURED:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {} if decode(text) is None else None  # it was cut off
    return value if isinstance(value, dict | list) else None


def answer_in(value: Any) -> str | None:
    """Find the answer in a structured value. If two parts may be the answer, and no name says which, there is none."""
    if issubclass(type(value), tuple) and not _fields_of(type(value)):
        return _answer_in_parts(plain(value) or [])
    value = plain(value)
    if isinstance(value, str):
        value = json_value(value)
    if isinstance(value, dict):
        if True in (value.get("isError"), value.get("is_error")):
            return None
        results = [part for part in value.values() if names_answer(part)]
        if not names_answer(value) and len(results) == 1:
            return answer_in(results[0])
        weak = {value[name] for name in _WEAK_NAMES if isinstance(value.get(name), str)}
        if not names_answer(value) and len(weak) > 1:
            return None
    return find_answer({"answer": value}) or _text_of_blocks(value.get("content") if isinstance(value, dict) else value)


def _text_of_blocks(blocks: Any) -> str | None:
    """Return the text of content blocks, as in the result of an MCP tool."""
    if not isinstance(blocks, list) or not all(type(block) is dict and "type" in block for block in blocks):
        return None
    return find_answer([{"role": "assistant", "content": blocks}])


def _answer_in_parts(parts: list[Any]) -> str | None:
    """Find the answer among the values that a handler returns together, such as a text with sources or a status."""
    conversations = [part for part in parts if isinstance(part, list) and read_messages(part)]
    texts = [part for part in parts if isinstance(part, str) and part]
    others = [part for part in parts if isinstance(part, dict | list)]
    candidates = texts if texts and not conversations else [answer_in(part) for part in conversations or others]
    answers = {answer for answer in candidates if answer is not None}
    return answers.pop() if len(answers) == 1 else None


def is_event(value: Any) -> bool:
    """Return whether a JSON value may be an event of a stream, unlike a text such as "[1]" or "{}"."""
    return bool(value) and (type(value) is dict or (type(value) is list and all(type(item) is dict for item in value)))


def read_events(text: str) -> tuple[list[Any], str]:
    """Return the JSON objects in a text, one per line or one after the other, and the text after them.

    If the text contains anything else, there are no events.
    """
    events, position = list[Any](), 0
    while (position := _SEPARATORS.match(text, position).end()) < len(text):  # type: ignore[union-attr]  # it matches
        if text.startswith(END_OF_STREAM, position):
            position += len(END_OF_STREAM)
            continue
        try:
            event, position = _decode(text, position)
        except (ValueError, RecursionError):
            return (events, text[position:]) if text[position] in STRUCTURED else ([], text)
        if not is_event(event):
            return [], text
        events += event if isinstance(event, list) else [event]
    return events, ""


def piece_in(value: Any, event: str = "") -> Piece | None:
    """Find the text in a structured chunk of a stream; None if the chunk contains no text of the answer.

    Args:
        value: The chunk.
        event: Name of the event that contains the chunk, if known.
    """
    parts, value = value, plain(value)
    if isinstance(value, list):
        return _piece_in_parts(value, event, has_texts=issubclass(type(parts), tuple))
    if not isinstance(value, dict) or value.get("error") is not None:
        return None
    if any("messages" in part for part in (value, *value.values()) if isinstance(part, dict)):
        answer = find_answer(value)
        return None if answer is None else Piece(answer, is_whole=True)
    messages = read_messages(value)
    if messages and messages[0].role != "assistant":
        return None
    tag = event or ("" if messages else _tag_of(value))
    found = None if _is_other_event(event) else _text_in(value, 0)
    return None if found is None else Piece(found[1], tag or found[0])


def _piece_in_parts(parts: list[Any], event: str, *, has_texts: bool) -> Piece | None:
    if len(read_messages(parts) or ()) == len(parts) > 0:
        answer = find_answer(parts)
        return None if answer is None else Piece(answer, is_whole=True)
    others = (piece_in(part, event) for part in parts if isinstance(part, dict | list))
    if (piece := next(filter(None, others), None)) is not None:
        return piece
    texts = [part for part in parts if isinstance(part, str) and part] if has_texts else ()
    return Piece(texts[0], event) if len(texts) == 1 else None


def _text_in(value: Any, depth: int) -> tuple[str, str] | None:
    """Return the name and the text of the most specific part of an event."""
    if type(value) is not dict or depth > _MAX_DEPTH or value.get("thought") is True or _is_other_event(_tag_of(value)):
        return None
    for name in (*_ALTERNATIVES, *_PIECES, *(name for name in value if name.lower().endswith("delta"))):
        inner = value.get(name)
        if isinstance(inner, str):
            return name, inner
        parts = inner if isinstance(inner, list) else [inner]
        found = [_text_in(part, depth + 1) for part in (parts[:1] if name in _ALTERNATIVES else parts)]
        if texts := [text[1] for text in found if text is not None]:
            return name, "".join(texts)
    return None


def _tag_of(value: Mapping[str, Any]) -> str:
    return next((value[name] for name in _TAGS if isinstance(value.get(name), str)), "")


def _is_other_event(name: str) -> bool:
    return any(word in name.lower() for word in _OTHER_EVENTS)


def describe(value: Any) -> str:
    """Describe a value by its type and the names in it, without its texts."""
    kind, value = type(value), plain(value)
    names = [name for name in value if name.isidentifier()] if isinstance(value, dict) else []
    what = "JSON" if issubclass(kind, str | bytes) else kind.__name__
    return f"{what} with {', '.join(names[:_MAX_NAMES])}" if names else what
