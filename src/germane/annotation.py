"""Annotations by users and their applications: feedback, recorded scores and markers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

EXTERNAL_FINGERPRINT = "external"
"""Fingerprint of all scores that were computed outside germane, which does not know how they were computed. They are
never averaged with germane's own scores of the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A person's label for an answer."""

    id: str
    exchange_id: str
    """Id of the labeled exchange, which may not be stored yet."""
    score: float
    """0 (bad) to 1 (good)."""
    comment: str | None = None
    user: str | None = None
    """Id of the person."""
    created_at: datetime
    """UTC, timezone-aware."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScore:
    """A score for an exchange, computed outside germane."""

    exchange_id: str
    name: str
    """Name of the score, used like a scorer's name. It may be the name of a built-in scorer."""
    value: float
    """-1 to 1, higher is better."""
    label: str | None = None
    explanation: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    recorded_at: datetime
    """UTC, timezone-aware. A later score with the same name replaces an earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A named point in time, such as a deploy, a new index or a model change.

    Scores before and after it can be compared.
    """

    id: str
    name: str
    service: str
    at: datetime
    """UTC, timezone-aware."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """JSON-serializable data, such as a version."""


Annotation = Feedback | RecordedScore | Marker
