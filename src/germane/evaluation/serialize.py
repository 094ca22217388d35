"""JSON serialization of scores."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import Any

from germane.score import Score, UnscoredReason
from germane.storage import clean_json

_FIELDS = tuple(field.name for field in dataclasses.fields(Score))


def score_to_dict(score: Score) -> dict[str, Any]:
    """Convert a score to a JSON-serializable dict with all its fields."""
    fields: dict[str, Any] = clean_json({name: getattr(score, name) for name in _FIELDS})
    return fields


def dump_score(score: Score) -> str:
    """Return a score as one line of JSON."""
    return json.dumps(score_to_dict(score), allow_nan=False)


def load_score(line: str) -> Score:
    """Parse a score from a line of JSON. Raise a value, type or key error if it does not contain one."""
    fields: dict[str, Any] = json.loads(line)
    reason, scored_at = fields["reason"], fields["scored_at"]
    fields["reason"] = None if reason is None else UnscoredReason(reason)
    fields["scored_at"] = None if scored_at is None else datetime.fromisoformat(scored_at)
    return Score(**fields)
