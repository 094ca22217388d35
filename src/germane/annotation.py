"""What is said from outside: a person's label of an exchange, a score of it made elsewhere, and marks in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

RECORDED_FINGERPRINT = "recorded"
"""The fingerprint of scores made elsewhere: what made them is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A person's label of one answer."""

    id: str
    exchange_id: str
    """Of an exchange that may not be in the database yet."""
    score: float
    """0 (bad) to 1 (good)."""
    comment: str | None = None
    user: str | None = None
    """Who said it."""
    created_at: datetime
    """UTC, with its zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScore:
    """A score made elsewhere, of one exchange."""

    exchange_id: str
    name: str
    """Stands where a scorer's name would."""
    value: float
    """-1 to 1, higher is better."""
    label: str | None = None
    explanation: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    recorded_at: datetime
    """UTC, with its zone. Of two records of one name, the later one stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A moment that people compare before and since: a deploy, a new index, another model."""

    id: str
    name: str
    service: str
    at: datetime
    """UTC, with its zone."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON, such as the version."""


Annotation = Feedback | RecordedScore | Marker
