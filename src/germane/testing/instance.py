"""Values that follow a JSON schema, for a judge that knows nothing of what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EMPTY: Mapping[str, Any] = {"boolean": False, "null": None, "string": "text"}


def instance_of(schema: Mapping[str, Any], *, items: int = 1) -> Any:
    """Return a small value that follows the schema.

    The first of what it may be, the least number (else 0), lists of so many ``items`` unless the schema says otherwise,
    all properties. Numbers in the items of a list count these from 1, which is what they mostly are there for.
    """
    return _instance(schema, schema, items, 0)


def _instance(schema: Mapping[str, Any], root: Mapping[str, Any], items: int, place: int) -> Any:
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object" if "properties" in schema else "null")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return {name: _instance(each, root, items, place) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        places = range(1, _length(schema, items) + 1)
        return [_instance(schema.get("items", {}), root, items, at) for at in places]
    if kind in ("number", "integer"):
        return _number(schema, place)
    return _EMPTY.get(kind)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return _resolved(schema[several][0], root)
    if "$ref" not in schema:
        return schema
    found: Any = root
    for step in schema["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return _resolved(found, root)


def _length(schema: Mapping[str, Any], items: int) -> int:
    least: int = schema.get("minItems", 0)
    most: int = schema.get("maxItems", 1_000)
    return min(max(items, least), most)


def _number(schema: Mapping[str, Any], place: int) -> float:
    least: float = schema.get("minimum", schema.get("exclusiveMinimum", place - 1) + 1)
    most: float = schema.get("maximum", least)
    return min(least, most)
