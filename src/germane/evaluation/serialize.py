"""JSON serialization of scores."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from germane.evaluation.values import parse_attribute
from germane.score import Score, UnscoredReason

_FIELDS = tuple(field.name for field in dataclasses.fields(Score))


def to_json_value(value: Any) -> Any:
    """Convert any value to a JSON-serializable one. Details from user-defined scorers may have any type."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json_value(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    attribute = parse_attribute(value)
    return str(value) if attribute is None else attribute


def score_to_dict(score: Score) -> dict[str, Any]:
    """Convert a score to a JSON-serializable dict with all its fields."""
    return {name: to_json_value(getattr(score, name)) for name in _FIELDS}


def dump_score(score: Score) -> str:
    """Return a score as one line of JSON."""
    return json.dumps(score_to_dict(score), allow_nan=False)


def load_score(line: str) -> Score:
    """Parse a score from a line of JSON.

    Raises:
        ValueError, TypeError, KeyError: the line does not contain a score.
    """
    fields: dict[str, Any] = json.loads(line)
    reason, scored_at = fields["reason"], fields["scored_at"]
    fields["reason"] = None if reason is None else UnscoredReason(reason)
    fields["scored_at"] = None if scored_at is None else datetime.fromisoformat(scored_at)
    return Score(**fields)
