"""Alerts beside who was told of them, and what they say in numbers: what the lists and the page of one share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from germane.alert import Alert, Interval, Level, Silence
from germane.insights.text import interval, number, percent
from germane.storage import Posted, Store

TOLD: Final = 1_000
"""Notifications that are looked at."""
LATER: Final = timedelta(days=1)
"""For so long after its end notifications of an alert may be written."""
SHARES: Final = frozenset({"low_rate", "noncommittal_rate", "scorer_error"})
"""Kinds of rules that look at a share, not at a mean."""
Tone = Literal["bad", "warn", "good", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How one channel was told of an alert the last time."""

    channel: str
    what: str
    state: str
    """sent, waiting or dead."""
    at: datetime
    """When it was written; UTC."""
    settled_at: datetime | None
    tries: int
    problem: str | None
    """What went wrong with it, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAlert:
    """One alert as it is shown."""

    alert: Alert
    told: Sequence[Told] = ()
    """The newest of each channel, by name."""
    silence: Silence | None = None
    """By which nobody is told of it now: the one that lasts longest."""

    @property
    def tone(self) -> Tone:
        """How bad it is: critical ones that fire are bad, others a warning."""
        if not self.alert.is_open:
            return "good"
        if self.alert.state != "firing":
            return "warn" if self.alert.state == "recovering" else ""
        return "bad" if self.alert.severity == "critical" else "warn"

    @property
    def state(self) -> str:
        """Its state, in a word that a person reads."""
        return {"resolved": "over"}.get(self.alert.state, self.alert.state)

    @property
    def value(self) -> str:
        """What its rule looked at, with n and interval where it is a mean or a share."""
        alert = self.alert
        if alert.current is not None:
            return level(alert.kind, alert.current)
        if alert.value is None:
            return "\u2013"
        tried = alert.details.get("tried")
        sure = f" (n={tried})" if isinstance(tried, int) else ""
        return f"{amount(alert.kind, alert.value)}{sure}"

    @property
    def against(self) -> str:
        """What that is compared with; empty where there is nothing."""
        alert = self.alert
        if alert.kind == "drop":
            return "" if alert.baseline is None else f"baseline {level(alert.kind, alert.baseline)}"
        return "" if alert.threshold is None else f"threshold {amount(alert.kind, alert.threshold)}"

    @property
    def lasted(self) -> timedelta | None:
        """How long it has fired, or did; None of what never fired."""
        alert = self.alert
        return None if alert.fired_at is None else (alert.resolved_at or alert.evaluated_at) - alert.fired_at


def amount(kind: str, value: float) -> str:
    """Return a value of a kind of rule: a share, a time in seconds, or a mean."""
    if kind == "no_data":
        return length(timedelta(seconds=value))
    return percent(value) if kind in SHARES else number(value)


def level(kind: str, found: Level) -> str:
    """Return "0.52 (95 % interval 0.48-0.56, n=40)"."""
    between = "" if found.interval is None else f"95 % interval {_ends(kind, found.interval)}, "
    return f"{amount(kind, found.mean)} ({between}n={found.n:,})"


def _ends(kind: str, ends: Interval) -> str:
    return f"{percent(ends[0])} to {percent(ends[1])}" if kind in SHARES else interval(ends)


def length(passed: timedelta) -> str:
    """Return "45 s", "12 min", "6 h" or "3.5 d"."""
    seconds = max(0.0, passed.total_seconds())
    for unit, size, up_to in (("s", 1, 60), ("min", 60, 7_200), ("h", 3_600, 172_800)):
        if seconds < up_to:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.1f} d"


def span_of(seconds: float) -> str:
    """Return the same of seconds."""
    return length(timedelta(seconds=seconds))


def shown_alerts(store: Store, alerts: Sequence[Alert], silences: Sequence[Silence], now: datetime) -> list[ShownAlert]:
    """Return alerts with who was told of them, in their order; one reading for all of them."""
    told = told_of(store, alerts, now) if alerts else {}
    return [ShownAlert(alert=one, told=told.get(one.id, ()), silence=_silence_of(one, silences, now)) for one in alerts]


def told_of(store: Store, alerts: Sequence[Alert], now: datetime) -> Mapping[str, Sequence[Told]]:
    """Return by id of the alert how each channel was told of it the last time."""
    since = min(alert.starts_at for alert in alerts)
    until = max((alert.resolved_at or now) for alert in alerts) + LATER
    found: dict[str, dict[str, Told]] = {}
    for posted in store.notifications(since=since, until=until, limit=TOLD):
        for alert in posted.notification.alerts:
            found.setdefault(alert.id, {}).setdefault(posted.notification.channel, _told(posted))
    return {id_: [channels[name] for name in sorted(channels)] for id_, channels in found.items()}


def posted_of(store: Store, alert: Alert, now: datetime) -> list[Told]:
    """Return all that channels were told of one alert, the newest first."""
    until = (alert.resolved_at or now) + LATER
    posted = store.notifications(since=alert.starts_at, until=until, limit=TOLD)
    return [_told(one) for one in posted if alert.id in {each.id for each in one.notification.alerts}]


def _told(posted: Posted) -> Told:
    one = posted.notification
    return Told(
        channel=one.channel,
        what=one.what,
        state=posted.status,
        at=one.created_at,
        settled_at=posted.settled_at,
        tries=one.attempt,
        problem=posted.error,
    )


def _silence_of(alert: Alert, silences: Iterable[Silence], now: datetime) -> Silence | None:
    covering = [one for one in silences if alert.is_open and one.covers(alert, now)]
    return max(covering, key=lambda one: one.ends_at, default=None)
