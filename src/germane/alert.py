"""Alerts, their events and notifications, and silences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pydantic import TypeAdapter

AlertState = Literal["pending", "firing", "recovering", "resolved"]
Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
"""Least severe first."""
AlertEventType = Literal[
    "pending", "fired", "escalated", "eased", "recovering", "relapsed", "resolved", "repeated", "acknowledged"
]
NotificationType = Literal["firing", "escalated", "repeated", "resolved"]
"""Most important first. A notification about several alerts gets the first type that applies to any of them."""
ResolveReason = Literal["recovered", "passed", "judge_changed", "by_hand", "new_baseline", "rule_removed"]
"""The reason an alert was resolved; ``passed`` if it never fired."""
Cause = Literal[
    "answers_drifting", "refusals_rising", "retrieval_worse", "judge_broken", "judge_drift", "no_data", "budget"
]
Interval = tuple[float, float]
IMPROVEMENT = "improvement"
"""Type of alerts that propose a new baseline, and the value of their ``change`` label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLevel:
    """A mean or a share, with its sample size."""

    mean: float
    n: int
    interval: Interval | None = None
    """95% interval, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreShift:
    """The level of one route, attribute value or scorer before and after an alert began."""

    dimension: Literal["route", "attribute", "scorer"]
    name: str
    """Name of the route or scorer; ``name=value`` for an attribute."""
    before: ScoreLevel
    since: ScoreLevel
    supported: bool = False
    """Whether there is evidence that chance does not explain it: for a route or attribute value, that it fell more than
    the others. Sentences name only supported ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert and its state. It contains exchange ids, but never exchange text."""

    id: str
    key: str
    """Hash of the rule name and the labels; see :func:`alert_key`. At most one alert per key is open."""
    rule: str
    """Name of the rule."""
    type: str
    """Type of the rule: drop, mean_threshold, low_score_rate, noncommittal_rate, no_data, scorer_error,
    budget_exhausted or judge_drift."""
    labels: Mapping[str, str]
    """The service, scorer and route that the alert is about. Labels that the rule does not distinguish are omitted."""
    state: AlertState
    severity: Severity = "warning"
    cause: Cause | None = None
    """Likely cause."""
    message: str = ""
    """Summary of the alert, in one sentence."""
    fingerprint: str | None = None
    """Fingerprint of the scorer."""
    value: float | None = None
    """The value that the rule evaluates: a mean, a share, or a delay in seconds."""
    threshold: float | None = None
    current: ScoreLevel | None = None
    baseline: ScoreLevel | None = None
    window: float | None = None
    """Length of the window that ``value`` covers, in seconds."""
    onset: datetime | None = None
    """Estimated start of the problem, UTC."""
    onset_interval: tuple[datetime, datetime] | None = None
    """95% interval of the onset, UTC, if it was estimated from the answers around it."""
    shifts: tuple[ScoreShift, ...] = ()
    """Largest first."""
    exchange_ids: tuple[str, ...] = ()
    """Ids of the worst exchanges, worst first."""
    starts_at: datetime
    """When the rule first matched, UTC."""
    fired_at: datetime | None = None
    resolved_at: datetime | None = None
    evaluated_at: datetime
    """When the rule was last evaluated, UTC."""
    notified_at: datetime | None = None
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    resolve_reason: ResolveReason | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """Rule-specific, JSON-serializable data."""

    @property
    def is_open(self) -> bool:
        """Whether the alert has not been resolved yet."""
        return self.state != "resolved"

    @property
    def service(self) -> str:
        """The service, or an empty string."""
        return self.labels.get("service", "")

    @property
    def route(self) -> str | None:
        """The route; None if the alert is about a whole service."""
        return self.labels.get("route")

    @property
    def scorer(self) -> str | None:
        """The scorer; None if the alert is not about a single scorer."""
        return self.labels.get("scorer")

    def as_dict(self) -> dict[str, Any]:
        """Return the alert as a JSON-serializable dict, with times in ISO 8601 and intervals as lists."""
        return {item.name: _to_json(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Alert:
        """Create an alert from the result of :meth:`as_dict`. Unknown keys are ignored."""
        return _alert_adapter().validate_python(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvent:
    """An immutable entry in an alert's history."""

    id: str
    alert_id: str
    at: datetime
    """UTC."""
    type: AlertEventType
    before: AlertState | None = None
    """Previous state; None for the first event of an alert."""
    after: AlertState
    detail: Mapping[str, Any] = field(default_factory=dict)
    """JSON-serializable data about the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChange:
    """A new version of an alert, and the event that caused the change."""

    alert: Alert
    before: Alert | None = None
    """The alert as it was loaded; None for a new alert. If the stored alert has changed since, nothing is written."""
    event: AlertEvent | None = None
    """None if only values changed."""
    notify: bool = False
    """Whether to send notifications, unless a silence or another alert suppresses them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message to one channel. It contains a snapshot of the alerts of one service that changed at the same time."""

    id: str
    channel: str
    """Name of the channel in the settings; ``log`` and ``callback`` always exist."""
    idempotency_key: str
    """A key that is the same for every attempt, so that receivers can ignore duplicates."""
    type: NotificationType
    """The most important notification type that applies to any of the alerts."""
    alerts: tuple[Alert, ...]
    """At least one alert, the most important first."""
    event_ids: tuple[str, ...]
    """The reported events, in the order of ``alerts``."""
    created_at: datetime
    """UTC."""
    attempt: int = 0
    """Number of attempts so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A period without notifications about matching alerts. It does not affect the state of alerts."""

    id: str
    matchers: Mapping[str, str]
    """Patterns, such as ``docs-*``, for ``rule`` or a label (``service``, ``scorer`` or ``route``). All must match. A
    silence without matchers applies to all alerts."""
    starts_at: datetime
    """UTC."""
    ends_at: datetime
    created_by: str | None = None
    comment: str | None = None

    def covers(self, alert: Alert, at: datetime) -> bool:
        """Return whether this silence applies to an alert at a given time. A missing label matches no pattern."""
        values = {**alert.labels, "rule": alert.rule}
        matches = (name in values and fnmatchcase(values[name], pattern) for name, pattern in self.matchers.items())
        return self.starts_at <= at < self.ends_at and all(matches)


def alert_key(rule: str, labels: Mapping[str, str]) -> str:
    """Return an alert's key: a hash of the rule name and the sorted labels, as 32 hexadecimal digits."""
    return sha256(json.dumps([rule, sorted(labels.items())]).encode()).hexdigest()[:32]


@cache
def _alert_adapter() -> TypeAdapter[Alert]:
    from pydantic import TypeAdapter

    return TypeAdapter(Alert)


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _to_json(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_to_json(item) for item in value]
    if isinstance(value, (ScoreLevel, ScoreShift)):
        return {one.name: _to_json(getattr(value, one.name)) for one in fields(value)}
    return value
