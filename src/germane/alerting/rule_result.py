"""What one look of a rule found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from germane.alert import Cause, Level, ResolveReason, Severity, key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a rule says of one set of labels now. What is unclear changes nothing: silence is no news."""

    rule: str
    """Its name in the settings."""
    kind: str
    labels: Mapping[str, str]
    state: Literal["bad", "good", "unclear"]
    severity: Severity = "warning"
    pending: float = 0.0
    """Seconds for which it must be bad before anybody is told."""
    keep_firing: float = 0.0
    """Seconds for which it must be good again before it is over."""
    reason: ResolveReason = "recovered"
    """Of a good one: why. Whatever is no recovery ends the alert at once."""
    cause: Cause | None = None
    fingerprint: str | None = None
    value: float | None = None
    threshold: float | None = None
    current: Level | None = None
    baseline: Level | None = None
    window: float | None = None
    evidence: float | None = None
    onset: datetime | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the alert that it is about."""
        return key_of(self.rule, self.labels)


NUMBERS = (
    "cause", "fingerprint", "value", "threshold", "current", "baseline", "window", "evidence", "onset"
)  # fmt: skip
"""What an alert takes over from a verdict as it is."""
