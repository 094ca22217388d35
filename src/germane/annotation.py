"""Annotations by users and their applications: feedback, recorded scores, markers and saved views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

EXTERNAL_FINGERPRINT = "external"
"""Fingerprint of all scores that were computed outside germane. It keeps them from being averaged with germane's own
scores of the same name, which may have been computed differently."""


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
    wave: str | None = None
    """The wave in which the answer was drawn for this label; None for a label that somebody gave unasked."""


def mean_label(labels: Iterable[Feedback]) -> float:
    """Return the mean of each person's latest label, in [0, 1]. There is at least one label; they are oldest first.

    Labels without a name are assumed to be from different people.
    """
    latest = {label.user or f"\0{label.id}": label.score for label in labels}
    return sum(latest.values()) / len(latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScore:
    """A score for an exchange, computed outside germane."""

    exchange_id: str
    name: str
    """Name of the score, used in place of a scorer's name. It may be the name of a built-in scorer."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """A named link to a page of the dashboard."""

    name: str
    """Unique."""
    path: str
    """Path and query, without the prefix under which the dashboard is mounted. A stored path may not be local."""
    created_at: datetime
    """UTC, timezone-aware."""
    created_by: str | None = None
    """The display name that the person entered."""
