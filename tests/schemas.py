"""Validation of JSON with the documented schemas in docs/schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
ALERTMANAGER, DISCORD, PAGERDUTY, SLACK, TEAMS = "alertmanager", "discord", "pagerduty", "slack", "teams"
"""Schemas of the receivers' requests, written from their published descriptions."""
WEBHOOK = "webhook"


@cache
def load(name: str) -> dict[str, Any]:
    """Return a schema by its path below docs/schemas, without the suffix."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content


def strict(schema: Any) -> Any:
    """Return a schema that also rejects undocumented fields.

    The published schemas accept them, because fields may be added without a new version.
    """
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(part) for name, part in schema.items()}
    return {"additionalProperties": False, **closed} if isinstance(schema.get("properties"), dict) else closed


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = strict(load(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


def check(found: Any, name: str) -> None:
    """Fail if a document violates a documented schema or has fields that it does not document."""
    errors = [f"{error.json_path}: {error.message}" for error in _validator(name).iter_errors(found)]
    assert not errors, f"docs/schemas/{name}.json does not allow this: {errors[:5]}"


def schema_of(arguments: list[str]) -> str:
    """Return the schema of a command line's output, by its words and the option that selects what it prints."""
    words, name, names = arguments, "", {path.stem for path in (FOLDER / "cli").glob("*.json")}
    for word in words:
        longer = f"{name}-{word.removeprefix('--')}" if name else word
        if longer in names or (not name and any(each.startswith(f"{word}-") for each in names)):
            name = longer
    return f"cli/{name}"
