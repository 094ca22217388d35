"""Scores as JSON, and back."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from germane.evaluation import values
from germane.score import Reason, Score

_FIELDS = tuple(field.name for field in dataclasses.fields(Score))


def plain(value: Any) -> Any:
    """Return what JSON can hold of a value: details of a scorer of yours may be anything."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    found = values.attribute(value)
    return str(value) if found is None else found


def as_dict(score: Score) -> dict[str, Any]:
    """Return all fields of a score as JSON holds them."""
    return {name: plain(getattr(score, name)) for name in _FIELDS}


def dumped(score: Score) -> str:
    """Return a score as a line of JSON."""
    return json.dumps(as_dict(score), allow_nan=False)


def loaded(line: str) -> Score:
    """Return the score of a line of JSON.

    Raises:
        ValueError, TypeError: it is none.
    """
    given: dict[str, Any] = json.loads(line)
    reason, moment = given["reason"], given["scored_at"]
    given["reason"] = None if reason is None else Reason(reason)
    given["scored_at"] = None if moment is None else datetime.fromisoformat(moment)
    return Score(**given)
