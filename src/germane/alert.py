"""What people are told when answers got worse, or when nobody can say any more whether they did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

AlertState = Literal["pending", "firing", "recovering", "resolved"]
Severity = Literal["warning", "critical"]
Cause = Literal["answers_drifting", "refusals_rising", "retrieval_worse", "judge_broken", "no_data", "budget"]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A mean, with what it was made from."""

    mean: float
    n: int
    interval: Interval | None = None
    """95 %, where it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Where a drop sits: one route, one attribute's value, or one scorer, before and since."""

    kind: Literal["route", "attribute", "scorer"]
    name: str
    """Of an attribute ``name=value``."""
    before: Level
    since: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One thing that is wrong, as it stands. It carries ids of exchanges and never their text."""

    id: str
    key: str
    """The same whenever the same rule fires for the same labels: at most one alert of a key is open."""
    rule: str
    """Its name in the settings."""
    kind: str
    """drop, floor, low_rate, noncommittal_rate, no_data, scorer_error or budget_exhausted."""
    labels: Mapping[str, str]
    """Service, scorer and route, as far as the rule tells them apart."""
    state: AlertState
    severity: Severity = "warning"
    cause: Cause | None = None
    """What is likely behind it."""
    message: str = ""
    """One plain sentence."""
    fingerprint: str | None = None
    """Of the scorer whose scores were judged."""
    value: float | None = None
    """What the rule looked at: a mean, a share, a gap in seconds."""
    threshold: float | None = None
    current: Level | None = None
    baseline: Level | None = None
    window: float | None = None
    """Seconds that ``value`` was made over."""
    evidence: float | None = None
    """False alarms a year as rare as this."""
    onset: datetime | None = None
    """When it is likely to have begun; UTC."""
    shifts: tuple[Shift, ...] = ()
    """Largest first."""
    exchange_ids: tuple[str, ...] = ()
    """The worst exchanges, worst first."""
    starts_at: datetime
    """When the rule first found it; UTC."""
    fired_at: datetime | None = None
    resolved_at: datetime | None = None
    evaluated_at: datetime
    """When its rule last looked; UTC."""
    notified_at: datetime | None = None
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    resolve_reason: str | None = None
    """recovered, judge_changed, by_hand, new_baseline or rule_removed."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What only its rule understands; JSON."""

    @property
    def is_open(self) -> bool:
        """Whether it is not over."""
        return self.state != "resolved"


def key_of(rule: str, labels: Mapping[str, str]) -> str:
    """Return 32 hexadecimal digits that name an alert: the hash of the rule's name and the sorted labels."""
    return sha256(json.dumps([rule, sorted(labels.items())]).encode()).hexdigest()[:32]
