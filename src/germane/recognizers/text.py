"""Decoding of attribute values, and detection of texts that cannot be a question or an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

MAX_DEPTH: Final = 8
"""Maximum depth of nested values to search."""
_MAX_STRINGS: Final = 1_000
_JSON_START: Final = frozenset('{["')
_REPRESENTATION: Final = re.compile(r"\s*[\[(]?<?(?:[A-Za-z_]\w*\.)*[A-Z_]\w*(?: object at 0x|\()")
_OBJECT_REPRESENTATION: Final = re.compile(
    r"\s*[\[(]?(?:\{\s*'"
    r"|<(?:[\w.]+ object\b|(?:async_)?generator\b|(?:bound method|built-in|class|coroutine|function|module) ))"
)
_CUT_REPRESENTATION: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z_]\w*\([A-Za-z_]\w*=")
_REPRESENTATION_START: Final = frozenset("[({<")
_REPRESENTATION_LAST: Final = frozenset(")>]}.…")
_REPRESENTATION_END: Final = (")", ">", ")]", ">]", "}", "}]")
_PLACEHOLDERS: Final = frozenset({"__REDACTED__", "[REDACTED]", "<redacted>", "REDACTED", "redacted-by-litellm"})
_PLACEHOLDER_LENGTH: Final = 32
_MISSING: Final = frozenset({"null", "None", '""'})
_OBJECT_START: Final = re.compile(r'(?:\[\s*)*\{\s*"\w+"\s*:')
_LAST_TOKEN: Final = 6
"""Maximum number of characters of a literal or an escape, such as ``false`` or ``\\u00e9``, that was cut off."""
_FIELD: Final = re.compile(r"^\d+\. `(\w+)`", re.MULTILINE)
_MARKER: Final = re.compile(r"\[\[ ## (\w+) ## \]\]")
_MARKER_LINE: Final = re.compile(r"^\[\[ ## (\w+) ## \]\]$", re.MULTILINE)
_NUMBERED: Final = re.compile(r"\[[0-9]{1,6}\] «")
_MAX_FIELDS: Final = 100
"""Maximum number of fields of a DSPy prompt."""
_MAX_OCCURRENCES: Final = 10_000
"""Maximum number of occurrences of a text in a prompt that are examined."""
_SURROUNDINGS: Final = 32
"""Number of characters around each occurrence that are examined."""
_PADDING: Final = "\"'«»" + "".join(filter(str.isspace, map(chr, range(0x3001)))).replace("\n", "")
"""Quotation marks, and whitespace within a line. A recorded text is stripped of any whitespace, a prompt is not."""
_INSTRUCTION: Final = "Respond with the corresponding output fields"


def decode(value: Any, *, quoted: bool = False) -> Any:
    """Decode a JSON object or list, whatever its media type says. Return any other text or value unchanged, but None
    for what serializers write if there is no value, and for JSON that was cut off at a maximum length of attributes.

    A text in quotation marks is decoded only if ``quoted`` is true, because the marks may be the author's.
    """
    if type(value) is not str:
        return value
    text = value.lstrip()
    if is_missing(text):
        return None
    if text[:1] not in _JSON_START or (text[:1] == '"' and not quoted):
        return value
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        is_cut = error.msg.startswith("Unterminated") or (
            error.pos >= len(text) - _LAST_TOKEN and error.msg != "Extra data"
        )
        return None if is_cut and _OBJECT_START.match(text) else value
    except (ValueError, RecursionError):
        return value


def is_missing(text: str) -> bool:
    """Return whether a text is what serializers write if there is no value."""
    return len(text) < _PLACEHOLDER_LENGTH and text.strip() in _MISSING


def plain_value(value: Any, depth: int = 0) -> Any:
    """Return a recorded value with the lists and dicts that SDKs have converted to tuples and other mappings."""
    kind = type(value)
    if kind is str or kind is int or kind is float or depth > MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {name: plain_value(item, depth + 1) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain_value(item, depth + 1) for item in value]
    return value


def is_representation(text: str) -> bool:
    """Return whether a text is the ``repr`` of a Python object, such as ``ChatMessage(_role=...)``."""
    stripped = text.strip()
    if stripped[:1] not in _REPRESENTATION_START and stripped[-1:] not in _REPRESENTATION_LAST:
        return False
    start = text[:200]
    if _OBJECT_REPRESENTATION.match(start):
        return True
    if text.rstrip().endswith(("...", "…")) and _CUT_REPRESENTATION.match(start.lstrip()):
        return True
    return _REPRESENTATION.match(start) is not None and text.rstrip().endswith(_REPRESENTATION_END)


def is_hidden(text: str) -> bool:
    """Return whether an instrumentation has replaced the text because content capture is off."""
    stripped = text.strip()
    return len(stripped) < _PLACEHOLDER_LENGTH and stripped in _PLACEHOLDERS


def is_text(value: str) -> bool:
    """Return whether a value is text that a person or a model wrote: not empty, hidden or a Python representation."""
    return bool(value.strip()) and not is_representation(value) and not is_hidden(value)


def template_fields(text: str, names: Sequence[str]) -> Mapping[str, str]:
    """Return the fields of a DSPy prompt or reply, by name; empty if a field is missing or occurs more than once."""
    markers = [f"[[ ## {name} ## ]]\n" for name in names]
    if len(markers) > _MAX_FIELDS or any(text.count(marker) != 1 for marker in markers):
        return {}
    fields = {}
    for name, marker, following in zip(names, markers, (*markers[1:], "[[ ## completed ## ]]"), strict=True):
        body = text.partition(marker)[2].partition(following)[0]
        fields[name] = body.partition(f"\n\n{_INSTRUCTION}")[0].strip()
    return fields


def field_names(instructions: str) -> tuple[list[str], list[str]] | None:
    """Return the names of the input and output fields in the system message of a DSPy prompt; None in any other."""
    if not instructions.startswith("Your input fields are:"):
        return None
    inputs, found, rest = instructions.partition("Your output fields are:")
    outputs = rest.partition("All interactions")[0]
    return (_FIELD.findall(inputs), _FIELD.findall(outputs)) if found else None


def prompt_fields(prompt: str) -> tuple[list[str], list[str]] | None:
    """Return the names of the input and output fields that a DSPy prompt itself contains; None in any other."""
    inputs, found, outputs = prompt.rpartition(f"\n\n{_INSTRUCTION}")
    if not found or not prompt.startswith("[[ ## "):
        return None
    return _MARKER_LINE.findall(inputs), [name for name in _MARKER.findall(outputs) if name != "completed"]


def numbered_items(text: str) -> list[str]:
    """Return the items of a list in a DSPy prompt, or the whole text if it is not a list."""
    items = []
    found = _NUMBERED.search(text)
    while found is not None and (end := text.find("»", found.end())) >= 0:
        items.append(text[found.end() : end])
        found = _NUMBERED.search(text, end)
    return items or [text]


def stands_alone(text: str, message: str) -> bool:
    """Return whether ``text`` fills the rest of a line in ``message``, like a value inserted by a template.

    The time is linear in the lengths: occurrences that overlap an earlier one, and those after many others, are left
    out, and only a few characters around each are looked at.
    """
    if not text:
        return False
    position = message.find(text)
    for _ in range(_MAX_OCCURRENCES):
        if position < 0:
            break
        end = position + len(text)
        start = max(0, position - _SURROUNDINGS)
        before = message[start:position].rstrip(_PADDING)
        after = message[end : end + _SURROUNDINGS].lstrip(_PADDING)
        is_line_start = before[-1] in "\n:>" if before else start == 0
        is_line_end = after[0] in "\n<" if after else end + _SURROUNDINGS >= len(message)
        if is_line_start and is_line_end:
            return True
        position = message.find(text, end)
    return False


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a recorded value: the value itself, and all texts nested in it."""
    pending, number = [(value, 0)], 0
    while pending and number < _MAX_STRINGS:
        number += 1
        item, depth = pending.pop()
        if isinstance(item, str):
            yield item.strip()
        elif depth <= MAX_DEPTH and isinstance(item, (list, dict)):
            inner = list(item.values() if isinstance(item, dict) else item)[:_MAX_STRINGS]
            pending += [(part, depth + 1) for part in reversed(inner)]
