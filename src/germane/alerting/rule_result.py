"""The result of evaluating a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from germane.alert import Cause, ResolveReason, ScoreLevel, Severity, alert_key

RuleState = Literal["bad", "good", "unclear"]
ALERT_FIELDS = (
    "cause", "fingerprint", "value", "threshold", "current", "baseline", "window", "onset"
)  # fmt: skip
"""Fields that an alert copies from a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """The state of a rule for one set of labels. The state ``unclear`` does not change the alert."""

    rule: str
    """Name of the rule."""
    type: str
    """Type of the rule, and of its alert."""
    labels: Mapping[str, str]
    state: RuleState
    severity: Severity = "warning"
    pending: float = 0.0
    """Seconds for which the state must be bad before the alert fires."""
    keep_firing_for: float = 0.0
    """Seconds for which the state must be good before the alert resolves."""
    reason: ResolveReason = "recovered"
    """The resolve reason of a good state. Reasons other than ``recovered`` resolve the alert immediately."""
    cause: Cause | None = None
    fingerprint: str | None = None
    value: float | None = None
    threshold: float | None = None
    current: ScoreLevel | None = None
    baseline: ScoreLevel | None = None
    window: float | None = None
    onset: datetime | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the alert that this result belongs to."""
        return alert_key(self.rule, self.labels)
