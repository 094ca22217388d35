"""Fixtures shared with the monitor tests: databases, judges and running monitors. Alerts of all types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.alerting.channels.conftest import an_alert
from tests.monitor.conftest import (  # noqa: F401 - fixtures
    attached,
    judge,
    new_exchange,
    other_store,
    settings,
    start,
    start_judged,
    store,
    until,
    url,
)

from germane.alert import Alert, ScoreLevel
from germane.alerting.wording import alert_message

SERVICE = {"service": "shop", "scorer": "answer_relevancy"}
FAILING = {"tried": 31, "failed": 31, "reason": "judge_unreachable"}
REFUSING = {"refusals": (0.02, 0.15)}


def level(mean: float, n: int = 120, interval: tuple[float, float] | None = None) -> ScoreLevel:
    """Return a level."""
    return ScoreLevel(mean=mean, n=n, interval=interval)


def a_drop(**given: Any) -> Alert:
    """Return an alert about a drop with the message of the production code."""
    alert = an_alert(**{"cause": None, "shifts": (), **given})
    return replace(alert, message=alert_message(alert))


def a_rule(type_: str, **given: Any) -> Alert:
    """Return an alert of another type, with its default name."""
    values = {"type": type_, "rule": type_, "baseline": None, "current": None, "onset": None, **given}
    return a_drop(**values)
