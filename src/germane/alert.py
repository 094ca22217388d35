"""What people are told when answers got worse, or when nobody can say any more whether they did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Literal

AlertState = Literal["pending", "firing", "recovering", "resolved"]
Severity = Literal["warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("warning", "critical")
"""Least first."""
What = Literal[
    "pending", "fired", "escalated", "eased", "recovering", "relapsed", "resolved", "repeated", "acknowledged"
]
"""What may happen to an alert."""
Telling = Literal["firing", "escalated", "repeated", "resolved"]
"""What people are told of an alert; the first of them names a notification of several."""
ResolveReason = Literal["recovered", "passed", "judge_changed", "by_hand", "new_baseline", "rule_removed"]
"""Why an alert is over; ``passed`` without ever having fired."""
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
    resolve_reason: ResolveReason | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """What only its rule understands; JSON."""

    @property
    def is_open(self) -> bool:
        """Whether it is not over."""
        return self.state != "resolved"

    @property
    def service(self) -> str:
        """Whose answers it is about."""
        return self.labels.get("service", "")

    @property
    def route(self) -> str | None:
        """None of what concerns a service as a whole."""
        return self.labels.get("route")

    @property
    def scorer(self) -> str | None:
        """None of what concerns no scorer alone."""
        return self.labels.get("scorer")

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON: times in ISO 8601, intervals as lists; what is not known as null."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Alert:
        """Return the alert that :meth:`as_dict` was of. Names that are not known are passed over."""
        known: dict[str, Any] = {one.name: plain[one.name] for one in fields(cls) if one.name in plain}
        known |= {name: _moment(known.get(name)) for name in _MOMENTS if name in known}
        known |= {name: _level(known.get(name)) for name in ("current", "baseline") if name in known}
        known["shifts"] = tuple(map(_shift, known.get("shifts", ())))
        known["exchange_ids"] = tuple(known.get("exchange_ids", ()))
        return cls(**known)


_MOMENTS = ("onset", "starts_at", "fired_at", "resolved_at", "evaluated_at", "notified_at", "acknowledged_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to an alert: kept, and never changed."""

    id: str
    alert_id: str
    at: datetime
    """UTC."""
    what: What
    before: AlertState | None = None
    """State; None of an alert that begins with it."""
    after: AlertState
    detail: Mapping[str, Any] = field(default_factory=dict)
    """JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An alert as it is from now on, and what happened to it."""

    alert: Alert
    before: Alert | None = None
    """As it was read; None of one that begins. Where it is otherwise by now, nothing is written."""
    event: Event | None = None
    """None where only its numbers are newer."""
    notify: bool = False
    """Whether people are told, unless a silence or another alert speaks against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What one channel is told at once: the alerts of one service that changed together, as they were then."""

    id: str
    channel: str
    """Its name in the settings; ``log`` and ``callback`` are always there."""
    idempotency_key: str
    """The same for every try: a receiver that has seen it need not look again."""
    what: Telling
    """Of several alerts what matters most."""
    alerts: tuple[Alert, ...]
    """At least one; that of the headline first."""
    event_ids: tuple[str, ...]
    """Of the events that it tells, in the order of the alerts."""
    created_at: datetime
    """UTC."""
    attempt: int = 0
    """Tries so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A time in which nobody is told of the alerts that match. Their states go on as ever."""

    id: str
    matchers: Mapping[str, str]
    """Patterns such as ``docs-*`` by label (``service``, ``scorer``, ``route``) or for ``rule``; all must fit, and
    without any all alerts do."""
    starts_at: datetime
    """UTC."""
    ends_at: datetime
    created_by: str | None = None
    comment: str | None = None

    def covers(self, alert: Alert, at: datetime) -> bool:
        """Whether nobody is told of the alert at that moment. A label that the alert does not have fits no pattern."""
        names = {**alert.labels, "rule": alert.rule}
        fits = (name in names and fnmatchcase(names[name], pattern) for name, pattern in self.matchers.items())
        return self.starts_at <= at < self.ends_at and all(fits)


def key_of(rule: str, labels: Mapping[str, str]) -> str:
    """Return 32 hexadecimal digits that name an alert: the hash of the rule's name and the sorted labels."""
    return sha256(json.dumps([rule, sorted(labels.items())]).encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    if isinstance(value, (Level, Shift)):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value


def _moment(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _level(plain: Mapping[str, Any] | None) -> Level | None:
    return None if plain is None else _known_level(plain)


def _known_level(plain: Mapping[str, Any]) -> Level:
    interval = plain.get("interval")
    return Level(mean=plain["mean"], n=plain["n"], interval=None if interval is None else (interval[0], interval[1]))


def _shift(plain: Mapping[str, Any]) -> Shift:
    before, since = _known_level(plain["before"]), _known_level(plain["since"])
    return Shift(kind=plain["kind"], name=plain["name"], before=before, since=since)
