"""What a channel is given to send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

from germane.alert import Alert, Level, Notification, Shift
from germane.sanitize import counted, harmless


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What one of the worst exchanges said. Hostile text."""

    exchange_id: str
    question: str | None
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A notification, with what its channel may show beside it."""

    notification: Notification
    quotes: Mapping[str, Quote] = field(default_factory=dict)
    """By exchange; none unless the channel is to quote."""
    link: str | None = None
    """Of an alert, with places such as ``{id}``."""

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """At least one."""
        return self.notification.alerts

    def link_to(self, alert: Alert) -> str | None:
        """Return the address of a page on the alert; None where there is none."""
        if self.link is None:
            return None
        named = {
            "id": alert.id,
            "key": alert.key,
            "rule": alert.rule,
            "service": alert.service,
            "route": alert.route or "",
            "scorer": alert.scorer or "",
        }
        address = self.link
        for name, value in named.items():
            address = address.replace(f"{{{name}}}", quote(value, safe=""))
        return address

    def quotes_of(self, alert: Alert) -> list[Quote]:
        """Return what its worst exchanges said, worst first."""
        return [self.quotes[one] for one in alert.exchange_ids if one in self.quotes]


Fact = tuple[str, str]

NAMED: Final = 5
"""Exchanges that are named."""
WIDTH: Final = 390
"""Characters of a fact."""
SENTENCE: Final = 590
"""Characters of an alert's sentence."""
QUOTED: Final = 500
"""Characters of a question or an answer."""
_TOLD: Final[Mapping[str, str]] = {
    "firing": "Firing",
    "escalated": "Now critical",
    "repeated": "Still firing",
    "resolved": "Resolved",
}
_CAUSES: Final[Mapping[str, str]] = {
    "answers_drifting": "answers drift from the questions",
    "refusals_rising": "more refusals",
    "retrieval_worse": "retrieval brings worse contexts",
    "judge_broken": "the judge does not work",
    "no_data": "nothing is scored any more",
    "budget": "the budget is spent",
}
_REASONS: Final[Mapping[str, str]] = {
    "recovered": "it has recovered",
    "passed": "it passed before it fired",
    "judge_changed": "the judge has changed: a new baseline is learned",
    "by_hand": "somebody has closed it",
    "new_baseline": "this level was accepted as the new baseline",
    "rule_removed": "its rule is gone",
}


def headline(notification: Notification) -> str:
    """Say in one line what happened, and where."""
    said, first = _TOLD[notification.what], notification.alerts[0]
    if len(notification.alerts) == 1:
        return harmless(f"{said}: {subject(first)}", 150)
    alike = sum(alert.is_open == first.is_open for alert in notification.alerts)
    over = len(notification.alerts) - alike
    more = f", {over} resolved" if over else ""
    return harmless(f"{said}: {counted(alike, 'alert')} in {first.service}{more}", 150)


def subject(alert: Alert) -> str:
    """Say what an alert is and where: ``drop in shop, docs``."""
    return harmless(f"{alert.rule} in {', '.join(filter(None, (alert.service, alert.route)))}", 140)


def state_of(alert: Alert) -> str:
    """Say how it stands, in one word."""
    return "Resolved" if alert.state == "resolved" else alert.severity.capitalize()


def sentence(alert: Alert) -> str:
    """Return its sentence on one line."""
    return harmless(alert.message or f"{subject(alert)}: {state_of(alert).lower()}", SENTENCE)


def facts(alert: Alert) -> list[Fact]:
    """Return what a person needs to believe it: names and values, each on one line."""
    found: list[tuple[str, str | None]] = [
        ("Likely", _CAUSES.get(alert.cause or "")),
        ("Now", _level(alert.current)),
        ("Baseline", _level(alert.baseline)),
        ("Threshold", None if alert.threshold is None else f"{alert.threshold:.3g}"),
        ("Began about", _moment(alert.onset)),
        ("Evidence", _evidence(alert)),
        ("Where", "; ".join(map(_shift, alert.shifts[:3])) or None),
        ("Over because", _REASONS.get(alert.resolve_reason or "")),
    ]
    return [(name, harmless(value, WIDTH)) for name, value in found if value is not None]


def worst(alert: Alert) -> str:
    """Return the ids of its worst exchanges, on one line."""
    return harmless(", ".join(alert.exchange_ids[:NAMED]), WIDTH)


def quoted(text: str | None) -> str:
    """Return a question or an answer on one line, cut."""
    return "(none)" if text is None else harmless(text, QUOTED)


def _level(level: Level | None) -> str | None:
    if level is None:
        return None
    between = "" if level.interval is None else f"95 % {level.interval[0]:.3f} to {level.interval[1]:.3f}, "
    return f"{level.mean:.3f} ({between}n = {level.n})"


def _shift(shift: Shift) -> str:
    return f"{shift.kind} {shift.name}: {shift.before.mean:.3f} to {shift.since.mean:.3f}"


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def _evidence(alert: Alert) -> str | None:
    return None if alert.evidence is None else f"as rare as {alert.evidence:.2g} false alarms a year"
