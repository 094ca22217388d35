"""What people are told when the scores of a route have dropped, and when that is over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

AlertState = Literal["firing", "resolved"]
Severity = Literal["warning", "critical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One transition of a rule for one route. It carries ids of exchanges and never their text."""

    key: str
    """The same for all transitions of one rule and one set of labels."""
    rule: str
    state: AlertState
    severity: Severity = "warning"
    service: str
    route: str
    scorer: str
    fingerprint: str
    """Of the scorer whose scores were judged."""
    value: float
    """Mean score over the window."""
    n: int
    """Scores that the mean was made from."""
    interval: tuple[float, float] | None = None
    """95 % interval of the mean, where it is known."""
    threshold: float
    window: float
    """Seconds."""
    fired_at: datetime | None
    """UTC. None on a resolved alert whose firing this process did not see."""
    at: datetime
    """When this transition was found; UTC. Of a resolved alert the time at which it was over."""
    exchange_ids: tuple[str, ...] = ()
    """The exchanges with the lowest scores of the window, lowest first."""

    @property
    def message(self) -> str:
        """One plain sentence."""
        low_high = f"95 % interval {self.interval[0]:.2f} to {self.interval[1]:.2f}, " if self.interval else ""
        verdict = f"below {self.threshold:g}" if self.state == "firing" else f"no longer below {self.threshold:g}"
        return (
            f"{self.scorer} of route {self.route} in {self.service} is {verdict}: "
            f"mean {self.value:.3f} ({low_high}n = {self.n}) over {_span(self.window)}."
        )

    def resolved(self, **changes: Any) -> Alert:
        """Return the alert that says that this one is over."""
        return replace(self, state="resolved", **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON: times in ISO 8601, the interval as a list."""
        plain = asdict(self) | {"message": self.message}
        times = {name: value.isoformat() for name, value in plain.items() if isinstance(value, datetime)}
        lists = {name: list(value) for name, value in plain.items() if isinstance(value, tuple)}
        return plain | times | lists


def key_of(rule: str, labels: Mapping[str, str]) -> str:
    """Return 32 hexadecimal digits that name an alert: the hash of the rule's name and the sorted labels."""
    return sha256(json.dumps([rule, sorted(labels.items())]).encode()).hexdigest()[:32]


def _span(seconds: float) -> str:
    """Say ``the last 90 minutes``, in the largest unit that leaves a whole number."""
    length = timedelta(seconds=seconds)
    for unit, name in ((timedelta(days=1), "days"), (timedelta(hours=1), "hours"), (timedelta(minutes=1), "minutes")):
        if length >= unit and not length % unit:
            count = length // unit
            return f"the last {name[:-1]}" if count == 1 else f"the last {count} {name}"
    return f"the last {seconds:g} seconds"
