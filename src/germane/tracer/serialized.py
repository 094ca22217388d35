"""Texts that are serialized structures: JSON, also in a fence or a string, Python literals, and streams of events."""

from __future__ import annotations

import json
import re
from typing import Any

from germane.recognizers import decode
from germane.reprs import UNREADABLE, read_repr
from germane.tracer.sse import END_OF_STREAM, Event, EventReader, may_become_sse

STRUCTURED = frozenset("{[")
_STARTS = STRUCTURED | set('`~"(')
"""First characters of texts that may be JSON."""
_BLANK = " \t\r\n\ufeff"
_MAX_PREFIX = 6
"""Maximum number of characters of the prefix of a line in a stream of events, such as ``event:``."""
_WRAPPED = re.compile(r"""```|~~~|"["'\\\s]*[{\[]|\(\{""")
_FENCE = re.compile(r"(?is)(?:```|~~~)[^\S\n]*(?:json\w*)?\s*(?=[{\[])(.*?)\s*(?:(?:```|~~~)\s*)?")
_DICT = re.compile(r"""[\[(]*\{\s*['"\d]""")
_MESSAGE = re.compile(r"(?s)(?:[A-Z]\w*\()?content=(?:['\"\[]).* (?:additional_kwargs|response_metadata|id)=.*[})']\Z")
"""A message of LangChain as text, unlike code that creates one."""
_ENDS = frozenset(")}'")
_decode = json.JSONDecoder().raw_decode
_SEPARATORS = re.compile(r"[\s,\x1e]*")
_PARTS = {"0": "text", "3": "error"}
"""Names of the parts of the AI SDK's data streams that matter. Each line has the code of its part before the value."""
_PART = re.compile(r'([0-9a-k]):(?=["{\[])')


def is_plain(text: str) -> bool:
    """Return whether a text certainly is no structure, as its first characters show."""
    return text[:1].isalnum() and ":" not in text[:_MAX_PREFIX] and text[-1:] not in _ENDS


def json_value(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or list that a text consists of, also in a fence, a string or as a Python literal.

    It is None for any other text, and empty if it cannot be read: it was cut off, or contains other objects.
    """
    text = text.lstrip(_BLANK)
    if _MESSAGE.match(text) and isinstance(value := read_repr(text), dict):
        return value
    if text[:1] not in _STARTS or (text[0] not in STRUCTURED and not _WRAPPED.match(text)):
        return None
    if fence := _FENCE.fullmatch(text):
        text = fence[1]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = UNREADABLE if decode(text) is None else read_repr(text) if _DICT.match(text) else None
    if isinstance(value, str):
        value = inner if is_event(inner := json_value(value)) or inner == {} else None
    return {} if value is UNREADABLE else value if isinstance(value, dict | list) else None


def is_event(value: Any) -> bool:
    """Return whether a JSON value may be an event of a stream, unlike a text such as "[1]" or "{}"."""
    return bool(value) and (type(value) is dict or (type(value) is list and all(type(item) is dict for item in value)))


def read_events(text: str, *, is_whole: bool) -> tuple[list[Any], str]:
    """Return the JSON objects in a text, one per line or one after the other, and the text after them.

    If the text contains anything else, there are no events. The last object may be incomplete; if the text is whole,
    it was cut off.
    """
    events, position = list[Any](), 0
    while (position := _SEPARATORS.match(text, position).end()) < len(text):  # type: ignore[union-attr]  # it matches
        if text.startswith(END_OF_STREAM, position):
            position += len(END_OF_STREAM)
            continue
        try:
            event, position = _decode(text, position)
        except (ValueError, RecursionError):
            rest = text[position:]
            is_start = rest[0] in STRUCTURED and not (is_whole and decode(rest) is not None)
            return (events, rest) if is_start else ([], text)
        if not is_event(event):
            return [], text
        events += event if isinstance(event, list) else [event]
    return events, ""


def events_in(text: str, *, may_be_sse: bool = True) -> list[tuple[Any, str]] | None:
    """Return the data and the names of the events that a text consists of; None for any other text."""
    text = text.lstrip(_BLANK)
    if text[:1] in STRUCTURED:
        return [(event, "") for event in read_events(text, is_whole=True)[0]] or None
    if _PART.match(text):
        return _parts(text)
    return list[tuple[Any, str]](found) if may_be_sse and (found := _sse_events(text)) is not None else None


def _parts(text: str) -> list[tuple[Any, str]] | None:
    """Return the parts of a data stream of the AI SDK. The last line may have been cut off."""
    parts, lines = list[tuple[Any, str]](), text.rstrip().split("\n")
    for number, line in enumerate(lines, 1):
        code, _, data = line.partition(":")
        try:
            parts.append((json.loads(data), _PARTS.get(code, "metadata")))
        except ValueError:
            if line and number < len(lines):
                return None
    return parts


def _sse_events(text: str) -> list[Event] | None:
    if not may_become_sse(text):
        return None
    reader = EventReader()
    events = reader.feed(text)
    is_confirmed = reader.is_confirmed
    events += reader.close()
    is_confirmed = is_confirmed or any(is_event(json_value(data)) for data, _ in events)
    return events if reader.is_valid and is_confirmed else None
