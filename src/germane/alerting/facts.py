"""What an alert states, without wording: the kind of problem, its level, and what changed around its onset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from germane.alert import IMPROVEMENT, Alert, Cause, ScoreLevel, ScoreShift
from germane.alerting.changes import Change, list_changes
from germane.alerting.evidence import REFUSALS

AlertKind = Literal[
    "dropped", "had_dropped", "not_recovered", "refusals_rose", "still_watched", "was_back", "was_back_with_judge",
    "back", "recovered", "low", "was_low", "no_longer_low", "proposed", "accepted", "improved", "improvement_lost",
    "mean_threshold", "low_score_rate", "noncommittal_rate", "no_data", "scored_again", "scorer_error", "works_again",
    "budget_exhausted", "budget_available", "judge_drifted", "judge_steady", "other",
]  # fmt: skip
"""What a message states. Of drops, ``still_watched`` is open although its level is back; ``not_recovered`` and
``was_back_with_judge`` ended because the judge changed, and other kinds with ``had`` or ``was`` for another reason.
``low`` is about a new route."""

RESTATED: Final[Mapping[str, Cause]] = {
    "noncommittal_rate": "refusals_rising",
    "no_data": "no_data",
    "budget_exhausted": "budget",
    "judge_drift": "judge_drift",
}
"""Causes that only repeat what the alert is about, by its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFacts:
    """What an alert states."""

    alert: Alert
    kind: AlertKind
    refusals: tuple[float, float] | None
    """The noncommittal rate before and after the onset, if it rose significantly but the mean does not show it."""
    near: tuple[Change, ...] = ()
    """What changed around the onset: only this may have caused the problem. Changes before the onset come first."""
    far: tuple[Change, ...] = ()
    """What changed earlier."""

    @property
    def is_about_refusals(self) -> bool:
        """Whether more refusals lowered the mean."""
        return self.alert.cause == "refusals_rising" and self.refusals is None

    @property
    def refusal_shares(self) -> tuple[float, float] | None:
        """The noncommittal rate before and after the onset, if more refusals lowered the mean."""
        return self.alert.details.get(REFUSALS) if self.is_about_refusals else None

    @property
    def is_cleared(self) -> bool:
        """Whether the value no longer violates the rule's threshold."""
        value, threshold = self.alert.value, self.alert.threshold
        if value is None or threshold is None:
            return True
        return value >= threshold if self.alert.type == "mean_threshold" else value <= threshold

    @property
    def level(self) -> ScoreLevel | None:
        """The level now or at the end of the alert. It is unknown for a new route that is no longer low."""
        return None if self.kind == "no_longer_low" else self.alert.current

    @property
    def is_level_current(self) -> bool:
        """Whether the level is that of now, rather than that at the end of the alert."""
        return self.alert.is_open or self.alert.resolve_reason == "recovered"

    @property
    def began(self) -> datetime | None:
        """The estimated start of the problem. It is None for window rules, which do not estimate it."""
        if self.alert.onset is None and self.alert.type in {"scorer_error", "budget_exhausted"}:
            return self.alert.starts_at
        return self.alert.onset

    @property
    def cause(self) -> Cause | None:
        """The likely cause of an open alert, unless it only says in other words what the alert is about.

        Evidence describes an alert that fires, so it does not match a resolved one.
        """
        alert = self.alert
        restates = alert.cause == "answers_drifting" or RESTATED.get(alert.type) == alert.cause
        return alert.cause if alert.is_open and not restates else None

    @property
    def named_shifts(self) -> tuple[ScoreShift, ...]:
        """The shifts that sentences about an open alert may name. As for the cause, there is evidence for them."""
        other = (shift for shift in self.alert.shifts if shift.supported and shift.name != self.alert.scorer)
        return tuple(other) if self.alert.is_open else ()

    @property
    def next_step(self) -> str | None:
        """What a first step for the reader depends on: the type of an open alert, or ``judge_changed``."""
        if self.alert.resolve_reason == "judge_changed":
            return "judge_changed"
        is_accepted = self.alert.type == IMPROVEMENT and self.alert.details.get("accepts")
        return self.alert.type if self.alert.is_open and not is_accepted else None


def alert_facts(alert: Alert) -> AlertFacts:
    """Return what an alert states."""
    onset = alert.onset or alert.starts_at
    changes = list_changes(alert, onset)
    near, far = (tuple(each for each in changes if each.is_near(onset) is is_near) for is_near in (True, False))
    kind = KINDS[alert.type](alert) if alert.type in KINDS else "other"
    return AlertFacts(alert=alert, kind=kind, refusals=_rise_of_refusals(alert), near=near, far=far)


def is_new_route(alert: Alert) -> bool:
    """Return whether an alert is about a route that is too new to have dropped."""
    return bool(alert.details.get("new_route"))


def is_back(alert: Alert) -> bool:
    """Return whether the level after a drop has returned to the baseline, or nearly so."""
    return alert.state == "recovering" or not _may_have_fallen(alert)


def _may_have_fallen(alert: Alert) -> bool:
    return alert.current is None or alert.baseline is None or alert.current.mean < alert.baseline.mean


def _rise_of_refusals(alert: Alert) -> tuple[float, float] | None:
    return None if _may_have_fallen(alert) else alert.details.get(REFUSALS)


def _drop(alert: Alert) -> AlertKind:
    is_judge_changed = alert.resolve_reason == "judge_changed"
    if alert.resolve_reason == "recovered":
        # Once the alert has recovered, the level of a new route is known only if the route has a baseline by then.
        if is_new_route(alert):
            return "no_longer_low" if alert.baseline is None else "back"
        return "recovered" if alert.current is None else "back"
    if is_new_route(alert):
        return "low" if alert.is_open else "was_low"
    if alert.is_open and _rise_of_refusals(alert) is not None:
        return "refusals_rose"
    if is_back(alert):
        return "still_watched" if alert.is_open else "was_back_with_judge" if is_judge_changed else "was_back"
    return "dropped" if alert.is_open else "not_recovered" if is_judge_changed else "had_dropped"


def _improvement(alert: Alert) -> AlertKind:
    if alert.current is not None and alert.baseline is not None and alert.current.mean <= alert.baseline.mean:
        return "improvement_lost"
    if not alert.is_open:
        return "improved"
    return "accepted" if alert.details.get("accepts") else "proposed"


KINDS: Final[Mapping[str, Callable[[Alert], AlertKind]]] = {
    "drop": _drop,
    IMPROVEMENT: _improvement,
    "mean_threshold": lambda _: "mean_threshold",
    "low_score_rate": lambda _: "low_score_rate",
    "noncommittal_rate": lambda _: "noncommittal_rate",
    "no_data": lambda alert: "no_data" if alert.details.get("waiting") else "scored_again",
    "scorer_error": lambda alert: "works_again" if alert.resolve_reason == "recovered" else "scorer_error",
    "budget_exhausted": lambda alert: "budget_exhausted" if alert.details.get("until") else "budget_available",
    "judge_drift": lambda alert: "judge_steady" if alert.resolve_reason == "recovered" else "judge_drifted",
}
"""Functions that decide the kind of a message, by the type of the alert."""
