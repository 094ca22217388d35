"""Values that follow a JSON schema, for a judge that knows nothing of what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EMPTY: Mapping[str, Any] = {"boolean": False, "null": None, "string": "text"}


def instance_of(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Return a small value that follows the schema.

    The first of what it may be, the least number (else 0), lists of one item unless the schema says otherwise, all
    properties.
    """
    root = schema if root is None else root
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object" if "properties" in schema else "null")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return {name: instance_of(each, root) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance_of(schema.get("items", {}), root)] * _length(schema)
    if kind in ("number", "integer"):
        return _number(schema)
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


def _length(schema: Mapping[str, Any]) -> int:
    least: int = schema.get("minItems", 0)
    most: int = schema.get("maxItems", 1_000)
    return min(max(1, least), most)


def _number(schema: Mapping[str, Any]) -> float:
    least: float = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    most: float = schema.get("maximum", least)
    return min(least, most)
