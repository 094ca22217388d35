"""Collection of a span's attributes, some of which are lists and objects that are flattened into many attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from germane.recognizers.messages import PART_KEYS
from germane.recognizers.text import decode

Shape = Literal["value", "list", "object"]
Key = tuple[str, Shape]
"""An attribute or the common beginning of several attributes, and how its value is recorded: in one attribute, as a
list such as ``llm.input_messages.0.message.content``, or as an object such as ``gen_ai.prompt.variable.question``."""
_MAX_NAMES: Final = 10_000
"""Maximum number of names whose places are remembered. Applications have a few hundred."""
_NUMBER: Final = re.compile(r"[0-9]{1,6}")
_WRAPPERS: Final = frozenset({"message", "document", "message_content", "tool_call", "prompt", "completion"})
"""Names that are left out of the collected objects."""


class _Place(NamedTuple):
    """Where an attribute belongs."""

    key: Key
    number: int = 0
    """Number of the list's item. Numbers may start anywhere and have gaps."""
    name: str = ""
    """Name in the item or object."""
    part: int | None = None
    """Number of an item of the nested list with this name, if there is one."""
    part_name: str = ""


class _Parts(dict[int, dict[str, Any]]):
    """The numbered parts of a collected object, as opposed to a value that is itself a dict."""


class AttributeCollector:
    """Collects the attributes that a convention knows. Each name is parsed only once."""

    def __init__(self, keys: Iterable[Key]) -> None:
        keys = frozenset(keys)
        self._values = {source for source, shape in keys if shape == "value"}
        prefixes = sorted((source for source, shape in keys if shape == "list"), key=len, reverse=True)
        self._item = re.compile(
            rf"({'|'.join(map(re.escape, prefixes))})\.([0-9]{{1,6}})\.(.+)" if prefixes else r"(?!)", re.DOTALL
        )
        self._objects = [source for source, shape in keys if shape == "object"]
        self._places: dict[str, _Place | None] = {}

    def collect(self, attributes: Mapping[str, Any]) -> dict[Key, Any]:
        """Return the attributes' values. Lists are lists of objects."""
        places = self._places
        values: dict[Key, Any] = {}
        lists: dict[Key, dict[int, dict[str, Any]]] = {}
        for attribute, value in attributes.items():
            if attribute in places:
                place = places[attribute]
            else:
                place = self._parse(attribute)
                if len(places) < _MAX_NAMES:
                    places[attribute] = place
            if place is None:
                continue
            key, number, name, part, part_name = place
            if key[1] == "value":
                values[key] = value
            elif key[1] == "object":
                values.setdefault(key, {})[name] = value
            else:
                item = lists.setdefault(key, {}).setdefault(number, {})
                if part is None:
                    item.setdefault(name, decoded_parts(value) if name == "content" else value)
                elif isinstance(parts := item.setdefault(name, _Parts()), _Parts):
                    parts.setdefault(part, {})[part_name] = value
        for key, items in lists.items():
            values[key] = [
                {
                    name: [part for _, part in sorted(value.items())] if type(value) is _Parts else value
                    for name, value in item.items()
                }
                for _, item in sorted(items.items())
            ]
        return values

    def _parse(self, attribute: str) -> _Place | None:
        if attribute in self._values:
            return _Place((attribute, "value"))
        if (found := self._item.match(attribute)) is not None:
            key: Key = (found[1], "list")
            number, path = int(found[2]), found[3].split(".")
            names = [name for name in path[:-1] if name not in _WRAPPERS] + path[-1:]
            if len(names) < 3 or not _NUMBER.fullmatch(names[1]):
                return _Place(key, number, names[0])
            return _Place(key, number, names[0], int(names[1]), ".".join(names[2:]))
        source = next((source for source in self._objects if attribute.startswith(f"{source}.")), None)
        return None if source is None else _Place((source, "object"), name=attribute.removeprefix(f"{source}."))


def decoded_parts(content: Any) -> Any:
    """Return the parts of a message's content that is a JSON list of parts, and any other content unchanged."""
    parts = decode(content)
    is_list = isinstance(parts, list) and parts and all(isinstance(part, dict) for part in parts)
    return parts if is_list and not any(PART_KEYS.isdisjoint(part) for part in parts) else content
