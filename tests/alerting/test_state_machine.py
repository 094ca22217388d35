"""Alert states and transitions, including property-based invariants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.alert import Alert, AlertChange
from germane.alerting.rule_result import RuleResult
from germane.alerting.state_machine import AlertStateMachine

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
Watched = Callable[[Alert], bool]
RuleEvaluator = list[tuple[list[RuleResult], bool]]
LABELS: Final = {"service": "shop", "scorer": "answer_relevancy", "route": "docs"}
PATHS: Final = {
    None: {"pending", "firing"},
    "pending": {"firing", "resolved"},
    "firing": {"firing", "recovering", "resolved"},
    "recovering": {"firing", "recovering", "resolved"},
}
"""States that may follow each state."""


def a_result(state: str, **given_: Any) -> RuleResult:
    fields = {"rule": "mean_threshold", "type": "mean_threshold", "labels": LABELS, **given_}
    return RuleResult(state=state, **fields)  # type: ignore[arg-type]  # one of the three, made up by the test


class Evaluations:
    """Runs evaluations and stores alerts as a database does."""

    def __init__(self) -> None:
        self.now = NOON
        self.alerts: dict[str, Alert] = {}
        self.changes: list[AlertChange] = []
        self._numbers = count()

    def run(
        self, *results: RuleResult, minutes: float = 1, has_rule: Callable[[Alert], bool] = lambda _: True
    ) -> list[AlertChange]:
        self.now += timedelta(minutes=minutes)
        machine = AlertStateMachine(self.now, lambda: str(next(self._numbers)))
        changes = machine.apply(self.open, results, has_rule=has_rule)
        for change in changes:
            self.alerts[change.alert.id] = as_notified(change.alert) if change.notify else change.alert
        self.changes += changes
        return changes

    @property
    def open(self) -> list[Alert]:
        return [alert for alert in self.alerts.values() if alert.is_open]

    @property
    def only(self) -> Alert:
        (alert,) = self.open
        return alert


def as_notified(alert: Alert) -> Alert:
    """Return an alert as it is after a notification."""
    return replace(alert, details={**alert.details, "peak": alert.severity})


def event_types(changes: Sequence[AlertChange]) -> list[str]:
    return [change.event.type for change in changes if change.event is not None]


def test_a_bad_result_without_a_delay_fires_immediately_and_notifies_once() -> None:
    """The rule has no pending time."""
    evaluations = Evaluations()
    (change,) = evaluations.run(a_result("bad", value=0.5))
    assert (event_types([change]), change.notify, evaluations.only.state) == (["fired"], True, "firing")
    assert (evaluations.only.starts_at, evaluations.only.fired_at, evaluations.only.value) == (
        evaluations.now,
        evaluations.now,
        0.5,
    )
    assert event_types(evaluations.run(a_result("bad", value=0.4))) == []
    assert evaluations.only.value == 0.4


def test_an_alert_is_pending_until_its_condition_has_lasted_long_enough() -> None:
    """No notification is sent for an alert that ends earlier."""
    evaluations = Evaluations()
    assert event_types(evaluations.run(a_result("bad", pending=120))) == ["pending"]
    assert event_types(evaluations.run(a_result("bad", pending=120))) == []
    (change,) = evaluations.run(a_result("bad", pending=120))
    assert (event_types([change]), change.notify) == (["fired"], True)

    other = Evaluations()
    other.run(a_result("bad", pending=120))
    (change,) = other.run(a_result("good", pending=120))
    assert (change.alert.state, change.alert.resolve_reason, change.notify) == ("resolved", "passed", False)


def test_an_unclear_result_does_not_change_an_alert() -> None:
    """This applies in every state, and also to a missing result."""
    evaluations = Evaluations()
    assert evaluations.run(a_result("unclear")) == []
    evaluations.run(a_result("bad", keep_firing_for=60))
    assert evaluations.run(a_result("unclear"), minutes=9999) == []
    assert evaluations.run(minutes=9999) == []
    evaluations.run(a_result("good", keep_firing_for=60))
    assert evaluations.run(a_result("unclear"), minutes=9999) == []
    assert evaluations.only.state == "recovering"


def test_an_alert_resolves_after_a_good_result_for_keep_firing_for() -> None:
    """A bad result restarts the wait, without notifications."""
    evaluations = Evaluations()
    evaluations.run(a_result("bad"))
    assert event_types(evaluations.run(a_result("good", keep_firing_for=120))) == ["recovering"]
    assert event_types(evaluations.run(a_result("bad"))) == ["relapsed"]
    assert event_types(evaluations.run(a_result("good", keep_firing_for=120))) == ["recovering"]
    assert event_types(evaluations.run(a_result("good", keep_firing_for=120))) == []
    (change,) = evaluations.run(a_result("good", keep_firing_for=120))
    assert (change.alert.resolve_reason, change.notify, change.alert.resolved_at) == (
        "recovered",
        True,
        evaluations.now,
    )
    assert [one.notify for one in evaluations.changes if one.event] == [True, False, False, False, True]


def test_an_alert_without_keep_firing_for_resolves_immediately() -> None:
    """With reasons other than recovery, alerts always resolve immediately."""
    evaluations = Evaluations()
    evaluations.run(a_result("bad"))
    (change,) = evaluations.run(a_result("good"))
    assert change.alert.resolve_reason == "recovered"
    evaluations.run(a_result("bad"))
    (change,) = evaluations.run(a_result("good", keep_firing_for=3600, reason="judge_changed"))
    assert change.alert.resolve_reason == "judge_changed"


def test_an_escalation_sends_only_one_notification() -> None:
    """The severity may fall and rise again without another notification."""
    evaluations = Evaluations()
    evaluations.run(a_result("bad"))
    rise, fall = a_result("bad", severity="critical"), a_result("bad")
    changes = [evaluations.run(result)[0] for result in (rise, fall, rise)]
    assert [(change.event.type, change.notify) for change in changes if change.event] == [
        ("escalated", True), ("eased", False), ("escalated", False),
    ]  # fmt: skip
    assert evaluations.only.severity == "critical"


def test_an_alert_whose_rule_was_removed_resolves() -> None:
    """A notification is sent."""
    evaluations = Evaluations()
    evaluations.run(a_result("bad"))
    (change,) = evaluations.run(has_rule=lambda _: False)
    assert (change.alert.resolve_reason, change.notify) == ("rule_removed", True)


def test_the_onset_of_an_alert_does_not_change() -> None:
    """Later results do not change the onset."""
    evaluations = Evaluations()
    evaluations.run(a_result("bad", onset=NOON))
    evaluations.run(a_result("bad", onset=NOON + timedelta(days=1), value=0.1))
    assert evaluations.only.onset == NOON


def test_people_can_acknowledge_and_resolve_alerts() -> None:
    """The event contains the person's name."""
    evaluations = Evaluations()
    evaluations.run(a_result("bad"))
    machine = AlertStateMachine(evaluations.now, lambda: "x")
    known = machine.acknowledge(evaluations.only, "ann")
    assert (known.alert.state, known.alert.acknowledged_by, known.notify) == ("firing", "ann", False)
    over = machine.resolve(evaluations.only, "by_hand", "ann")
    assert over.event is not None
    assert (over.alert.resolve_reason, over.event.detail["by"], over.notify) == ("by_hand", "ann", True)


results = st.builds(
    a_result,
    st.sampled_from(["bad", "good", "unclear"]),
    labels=st.sampled_from([{"route": "a"}, {"route": "b"}]),
    severity=st.sampled_from(["warning", "critical"]),
    pending=st.sampled_from([0, 90]),
    keep_firing_for=st.sampled_from([0, 90]),
)
looks = st.lists(st.tuples(st.lists(results, max_size=3), st.booleans()), max_size=20)


@given(looks)
def test_alerts_satisfy_their_invariants_after_any_sequence_of_results(given_looks: RuleEvaluator) -> None:
    """There is one open alert per key, transitions are valid, each firing and resolution sends one notification, and
    unclear results send none.
    """
    evaluations = Evaluations()
    for some, is_removed in given_looks:
        # The default binds the value of this iteration.
        evaluations.run(*some, has_rule=lambda _, gone=is_removed: not gone)  # type: ignore[misc]
        keys = [alert.key for alert in evaluations.open]
        assert len(keys) == len(set(keys))
    for alert in evaluations.alerts.values():
        events = [change for change in evaluations.changes if change.alert.id == alert.id and change.event is not None]
        _follows(events)
        notified = [change.event.type for change in events if change.notify and change.event]
        assert notified.count("fired") == (alert.fired_at is not None)
        assert notified.count("escalated") <= 1
        assert notified.count("resolved") == (alert.fired_at is not None and not alert.is_open)
        assert notified[:1] in ([], ["fired"])
        assert set(notified) <= {"fired", "escalated", "resolved"}


def _follows(changes: Sequence[AlertChange]) -> None:
    state = None
    for change in changes:
        assert change.event is not None
        assert change.event.before == state
        assert change.event.after == change.alert.state
        assert change.alert.state in PATHS[state]
        state = change.event.after


@given(looks, st.floats(min_value=0, max_value=1e6))
def test_an_evaluation_without_data_does_not_change_alerts(given_looks: RuleEvaluator, minutes: float) -> None:
    """This applies to any length of time and any earlier state."""
    evaluations = Evaluations()
    for some, _ in given_looks:
        evaluations.run(*some)
    assert (
        evaluations.run(*(a_result("unclear", labels=alert.labels) for alert in evaluations.open), minutes=minutes)
        == []
    )


@pytest.mark.parametrize("order", [("bad", "good"), ("good", "bad")])
def test_only_the_worst_result_for_an_alert_key_is_used(order: tuple[str, str]) -> None:
    """Two results with one key raise one alert."""
    evaluations = Evaluations()
    assert event_types(evaluations.run(*map(a_result, order))) == ["fired"]
