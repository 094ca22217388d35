"""Minimal values that are valid under a JSON schema, for judges without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def schema_instance(
    schema: Mapping[str, Any], *, items: int = 1, number: int = 0, text: Callable[[int], str] = lambda _: "text"
) -> Any:
    """Return a minimal value that is valid under a JSON schema.

    Alternatives and enumerations use their first member, objects have all properties, and lists have ``items`` items,
    within the limits of the schema. A number is its minimum. A number without a minimum is ``number``. Inside a list
    item, it is instead the item's number (starting at 1), because such numbers usually identify the item. ``text``
    returns the text for such a number.
    """

    def build(node: Mapping[str, Any], item: int) -> Any:
        node = _resolve(node, schema)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return node["enum"][0]
        types = node.get("type", "object" if "properties" in node else "null")
        match types if isinstance(types, str) else types[0]:
            case "object":
                return {name: build(child, item) for name, child in node.get("properties", {}).items()}
            case "array":
                length = min(max(items, node.get("minItems", 0)), node.get("maxItems", 1_000))
                return [build(node.get("items", {}), position) for position in range(1, length + 1)]
            case "number" | "integer":
                minimum = node.get("minimum", node.get("exclusiveMinimum", item - 1) + 1)
                return min(minimum, node.get("maximum", minimum))
            case "boolean":
                return False
            case "string":
                return text(item)
            case _:
                return None

    return build(schema, number)


def _resolve(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first alternative of a node, with references into the schema followed."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        if node.get(keyword):
            return _resolve(node[keyword][0], schema)
    if "$ref" not in node:
        return node
    target: Any = schema
    for key in node["$ref"].removeprefix("#/").split("/"):
        target = target[key]
    return _resolve(target, schema)
